package bm25

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAnalyzers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"en":       {"The keys' rotations", []string{"kei", "rotat"}},
		"cjk":      {"鍵の回転", []string{"の回", "回転", "鍵の"}},
		"standard": {"The Keys", []string{"keys"}},
		"simple":   {"The Keys 42", []string{"keys", "the"}},
		"de":       {"die Katzen", []string{"katz"}},
		"fr":       {"l'avion", []string{"avion"}},
	} {
		a, err := NewAnalyzer(name)
		if err != nil {
			t.Error(err)
			continue
		}
		var got []string
		for term := range a.Terms(c.text) {
			got = append(got, term)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for _, name := range []string{"", "keyword", "EN"} {
		if _, err := NewAnalyzer(name); err == nil || !strings.Contains(err.Error(), "cjk") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Whatever bytes a text has, every analyser copes with it.
func FuzzAnalyzers(f *testing.F) {
	f.Add("The keys' rotations l'avion 鍵の回転 \xff\x00 ﷺ e\u0301\u200d\U0001F468")
	var all []*Analyzer
	for _, name := range Names() {
		a, err := NewAnalyzer(name)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, a)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, a := range all {
			n := 0
			for _, times := range a.Terms(text) {
				n += times
			}
			if got := int(a.Field(text).Length); n > got {
				t.Errorf("%s: %d terms in a text of length %d", a.Name(), n, got)
			}
		}
	})
}

func TestOpenReplacesWhatBelongsToAnother(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bm25")
	a, err := NewAnalyzer("en")
	if err != nil {
		t.Fatal(err)
	}
	step := func(store, analyzer string, wantReplaced bool, wantGeneration uint64) {
		t.Helper()
		ix, replaced, err := Open(dir, store, analyzer)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ix.Reader()
		if err != nil {
			t.Fatal(err)
		}
		rows, err1 := r.Rows()
		generation, err2 := r.Generation()
		if err := errors.Join(err1, err2); err != nil || (replaced != "") != wantReplaced || generation != wantGeneration || rows.Test(7) != (wantGeneration > 0) {
			t.Errorf("%s, %s: replaced %q, generation %d, %d rows, %v", store, analyzer, replaced, generation, rows.Count(), err)
		}
		doc := Doc{Row: 7, Fields: [Fields]Field{Body: a.Field("some text")}}
		if err := errors.Join(r.Close(), ix.Apply([]Doc{doc}, nil, 3), ix.Close(), ix.Close()); err != nil {
			t.Fatal(err)
		}
	}
	step("store", "en", false, 0)
	step("store", "en", false, 3)
	step("other", "en", true, 0)
	step("other", "de", true, 0)
}

// An index that another program reads must not be replaced under it.
func TestOpenLeavesAloneWhatIsInUse(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bm25")
	first, _, err := Open(dir, "store", "en")
	if err != nil {
		t.Fatal(err)
	}
	if _, replaced, err := Open(dir, "store", "en"); err == nil || replaced != "" {
		t.Errorf("opened again: replaced %q, %v", replaced, err)
	}
	if err := errors.Join(first.Apply(nil, nil, 9), first.Close()); err != nil {
		t.Fatal(err)
	}
	again, replaced, err := Open(dir, "store", "en")
	if err != nil || replaced != "" {
		t.Fatalf("replaced %q, %v", replaced, err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
