package builtin

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// A golden is what the script that made the weights says of a text: the ids of the tokenizers
// library, and the vector before it was rounded to int8 (for some texts).
type golden struct {
	Text   string    `json:"text"`
	IDs    []int32   `json:"ids"`
	Vector []float32 `json:"vector"`
}

// goldens reads testdata/golden.jsonl, which tools/distil writes.
func goldens(t testing.TB) []golden {
	t.Helper()
	f, err := os.Open("testdata/golden.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []golden
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var g golden
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	if err := lines.Err(); err != nil || len(all) < 50 {
		t.Fatalf("%d golden texts, error %v", len(all), err)
	}
	return all
}

func goldenTexts(t testing.TB) []string {
	var texts []string
	for _, g := range goldens(t) {
		texts = append(texts, g.Text)
	}
	return texts
}

func TestTokenizerAgreesWithPython(t *testing.T) {
	m := model(t)
	for _, g := range goldens(t) {
		ids := m.vocab.appendIDs(nil, &buffers{}, g.Text)
		if !slices.Equal(ids, g.IDs) {
			t.Errorf("%q\n got %v\nwant %v", g.Text, ids, g.IDs)
		}
	}
}

func TestVectorsAgreeWithPython(t *testing.T) {
	m := model(t)
	n := 0
	for _, g := range goldens(t) {
		if len(g.Vector) == 0 {
			continue
		}
		n++
		if c := cosine(embed(m, g.Text), g.Vector); c < 0.999 {
			t.Errorf("%.60q: cosine %.5f with the vector before rounding", g.Text, c)
		}
	}
	if n < 10 {
		t.Fatalf("only %d golden vectors", n)
	}
}

func TestAppendDecomposed(t *testing.T) {
	for r := range unicode.MaxRune {
		s := string(r)
		if got, want := appendDecomposed(nil, r, s), norm.NFD.String(s); string(got) != want {
			t.Fatalf("%U decomposes to %x, want %x", r, got, want)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, text := range append(goldenTexts(f), oddTexts...) {
		f.Add(text)
	}
	m := model(f)
	f.Fuzz(func(t *testing.T, text string) {
		ids := m.vocab.appendIDs(nil, &buffers{}, text)
		for _, id := range ids {
			if id < 0 || int(id) >= len(m.scales) {
				t.Fatalf("%q: id %d of %d", text, id, len(m.scales))
			}
		}
		again := m.vocab.appendIDs(nil, &buffers{[]byte("used"), []byte("before")}, text)
		if !slices.Equal(ids, again) {
			t.Fatalf("%q: %v, then %v", text, ids, again)
		}
		// White space around a text, and its case, are nothing.
		spaced := m.vocab.appendIDs(nil, &buffers{}, " "+text+"\n")
		if !slices.Equal(ids, spaced) {
			t.Fatalf("%q: %v, with spaces around it %v", text, ids, spaced)
		}
		checkUnit(t, text, embed(m, text))
	})
}

// The cost of a text must not grow faster than its length, whatever is in it.
func TestHostileTexts(t *testing.T) {
	m := model(t)
	for _, unit := range []string{"a", "z", "é", "東", "-", "́", "\x00", "\xf0"} {
		ids := m.vocab.appendIDs(nil, &buffers{}, strings.Repeat(unit, 1<<20))
		if len(ids) > 1<<20 {
			t.Errorf("%q repeated gives %d ids", unit, len(ids))
		}
	}
}
