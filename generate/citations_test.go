package generate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func testPassages(n int) []Passage {
	out := make([]Passage, n)
	for i := range out {
		out[i] = Passage{Position: i + 1, Marker: fmt.Sprintf("[%d]", i+1), ChunkID: fmt.Sprintf("c%d", i+1), DocID: "d", URI: "u", Text: "text"}
	}
	return out
}

// cite runs an answer through the filter in the given pieces.
func cite(passages int, pieces ...string) (text string, cited []int, invalid []string) {
	c := newCiter(testPassages(passages))
	var out strings.Builder
	for _, p := range pieces {
		out.WriteString(c.write(p))
	}
	out.WriteString(c.close())
	return out.String(), c.cited, c.invalid
}

func TestMarkersResolveToWhatWasSent(t *testing.T) {
	for _, tc := range []struct{ in, out, cited, invalid string }{
		{"It takes 14 days [1].", "It takes 14 days [1].", "[1]", "[]"},
		{"Yes.[2][1] And [2].", "Yes.[2][1] And [2].", "[2 1]", "[]"},
		{"Both [1, 3] and [ 2;3 ].", "Both [1][3] and [2][3].", "[1 3 2]", "[]"},
		{"Range [1-3] or [2–3].", "Range [1][2][3] or [2][3].", "[1 2 3]", "[]"},
		{"See [Source 2] and [sources: 1, 3] and [^1].", "See [2] and [1][3] and [1].", "[2 1 3]", "[]"},
		{"Not sent [9].", "Not sent.", "[]", "[[9]]"},
		{"Not sent [9] here, [0] neither.", "Not sent here, neither.", "[]", "[[9] [0]]"},
		{"[9] At the start.\n[8] And of a line.", "At the start.\nAnd of a line.", "[]", "[[9] [8]]"},
		{"Half [1, 9].", "Half [1].", "[1]", "[[9]]"},
		{"Beyond [2-5].", "Beyond [2][3].", "[2 3]", "[[2-5]]"},
		{"Twice [9] and [9].", "Twice and.", "[]", "[[9]]"},
		{"After 5 h [9][8], a [7] [6][2].", "After 5 h, a[2].", "[2]", "[[9] [8] [7] [6]]"},
		{"Glued to a word[2], to a number 24h[1], to a wrong one[7].", "Glued to a word[2], to a number 24h[1], to a wrong one.", "[2 1]", "[[7]]"},
		{"Index a[0], xs[9], my_list[7], args[0].", "Index a[0], xs[9], my_list[7], args[0].", "[]", "[]"},
		{"Code `a[1]` and ``b ` [9]`` stay.", "Code `a[1]` and ``b ` [9]`` stay.", "[]", "[]"},
		{"An open ` tick [9] ends with the line\n[9]x", "An open ` tick ends with the line\nx", "[]", "[[9]]"},
		{"```go\nx := a[1] // [9]\n```\nText [1].", "```go\nx := a[1] // [9]\n```\nText [1].", "[1]", "[]"},
		{"~~~\n[9]\n```\n[9]\n~~~~ \n[9]done", "~~~\n[9]\n```\n[9]\n~~~~ \ndone", "[]", "[[9]]"},
		{"  ```\n[9]\n  ```", "  ```\n[9]\n  ```", "[]", "[]"},
		{"Links [1](http://x) and [text](http://y) and [text][1].", "Links [1](http://x) and [text](http://y) and [text][1].", "[1]", "[]"},
		{"- [ ] open\n- [x] done\n[note] [2024] [1.5] [a1] [] [0-9]", "- [ ] open\n- [x] done\n[note] [2024] [1.5] [a1] [] [0-9]", "[]", "[]"},
		{`Escaped \[9] and \\ [1].`, `Escaped \[9] and \\ [1].`, "[1]", "[]"},
		{"[see [1]] [[2]]", "[see [1]] [[2]]", "[1 2]", "[]"},
		{"Unfinished [1", "Unfinished [1", "[]", "[]"},
		{"Unfinished `[9]", "Unfinished `", "[]", "[[9]]"},
		{"日本語の答え[2]。次は[7]。", "日本語の答え[2]。次は。", "[2]", "[[7]]"},
		{"", "", "[]", "[]"},
	} {
		text, cited, invalid := cite(3, tc.in)
		if text != tc.out || fmt.Sprint(cited) != tc.cited || fmt.Sprint(invalid) != tc.invalid {
			t.Errorf("%q:\n got %q cited %v invalid %v\nwant %q cited %v invalid %v", tc.in, text, cited, invalid, tc.out, tc.cited, tc.invalid)
		}
	}
}

func TestCitationsCarryThePassage(t *testing.T) {
	c := newCiter(testPassages(3))
	c.write("a [3][1] b [3]")
	c.close()
	got := c.citations()
	if len(got) != 2 || got[0].ChunkID != "c3" || got[0].Position != 3 || got[0].Marker != "[3]" || got[1].ChunkID != "c1" {
		t.Errorf("citations %+v", got)
	}
}

func TestStreamedTextIsTheSameHoweverItIsCut(t *testing.T) {
	parts := rapid.SampledFrom([]string{
		"[1]", "[9]", "[1, 9]", "[2-4]", "[", "]", "(", "`", "``", "```", "~~~", "\n", " ", "  ", "\t", "\\", "a", "word", "x_", "0", "é", "日",
		"[Source 2]", "[x]", "](u)", "\n```\n", "\n~~~ \n", strings.Repeat(" ", 70), strings.Repeat("y", 60), strings.Repeat("`z", 300), strings.Repeat("`", 130), strings.Repeat("~", 127), "_" + strings.Repeat("n", 50),
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(parts, 0, 40).Draw(t, "parts"), "")
		want, wantCited, wantInvalid := cite(3, text)
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), rapid.SampledFrom([]int{1, 12, 200}).Draw(t, "size"))).Draw(t, "cut")
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		got, cited, invalid := cite(3, pieces...)
		if got != want || !slices.Equal(cited, wantCited) || !slices.Equal(invalid, wantInvalid) {
			t.Fatalf("%q cut as %q:\n got %q %v %v\nwant %q %v %v", text, pieces, got, cited, invalid, want, wantCited, wantInvalid)
		}
	})
}

func TestDecidedTextIsNotHeldBack(t *testing.T) {
	c := newCiter(testPassages(1))
	if got := c.write("A plain sentence. And an open [1"); got != "A plain sentence. And an open" {
		t.Errorf("passed on %q", got)
	}
	if got := c.write("] x"); got != " [1] x" {
		t.Errorf("passed on %q", got)
	}
	if got := c.write("[" + strings.Repeat("1", 100)); !strings.HasPrefix(got, "[1111") {
		t.Errorf("an endless bracket is held back: %q", got)
	}
}

func FuzzCitations(f *testing.F) {
	for _, s := range []string{"a [1] b [9].", "```\n[9]\n```", "`x` [2-7](u) \\[1]", "[[1]] [ ] [^3]"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, text string, cut int) {
		cut = max(0, cut) % (len(text) + 1)
		want, cited, invalid := cite(3, text)
		got, gotCited, gotInvalid := cite(3, text[:cut], text[cut:])
		if got != want || !slices.Equal(cited, gotCited) || !slices.Equal(invalid, gotInvalid) {
			t.Fatalf("cut at %d of %q: %q, want %q", cut, text, got, want)
		}
		if len(want) > 3*len(text) || utf8.ValidString(text) && !utf8.ValidString(want) {
			t.Fatalf("%q became %q", text, want)
		}
		for _, n := range cited {
			if n < 1 || n > 3 {
				t.Fatalf("cited %d of 3", n)
			}
		}
	})
}
