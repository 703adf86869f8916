package ingest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTakenIDGetsAPrefix(t *testing.T) {
	one := writeTree(t, map[string]string{"README.md": "one"})
	two := writeTree(t, map[string]string{"README.md": "two"})
	three := writeTree(t, map[string]string{"README.md": "three"})
	got := ids(readAll(t, Options{}, parseRoot(t, one), parseRoot(t, two), parseRoot(t, three)))
	if got[0] != "README.md" || got[1] != "docs/README.md" || !strings.HasSuffix(got[2], "/docs/README.md") || len(got[2]) != len("01234567/docs/README.md") {
		t.Errorf("%v", got)
	}
	file := readAll(t, Options{}, parseRoot(t, one), parseRoot(t, filepath.Join(two, "README.md")))
	if got := ids(file); got[1] != "docs/README.md" {
		t.Errorf("a file by itself: %v", got)
	}
}

func TestTakenIDOfTheCatalogueGetsAPrefix(t *testing.T) {
	s := newStore()
	ingestInto(t, s, Options{}, memRoot(map[string]string{"README.md": "one"}))
	dir := writeTree(t, map[string]string{"README.md": "two"})
	if got := ids(ingestInto(t, s, Options{}, parseRoot(t, dir))); got[0] != "docs/README.md" {
		t.Errorf("%v", got)
	}
	if got := ids(ingestInto(t, s, Options{}, parseRoot(t, dir))); got[0] != "docs/README.md" {
		t.Errorf("second run: %v", got)
	}
}

func TestRecordsOfTwoSourcesMayShareAnID(t *testing.T) {
	got := ids(readAll(t, Options{}, memRoot(map[string]string{
		"a.jsonl": `{"_id":"1","text":"one"}`, "b.jsonl": `{"_id":"1","text":"two"}`,
	})))
	if !slices.Equal(got, []string{"1", "sample/1"}) {
		t.Errorf("%v", got)
	}
}

// Whatever the names, every document gets an ID of its own, keeps it over runs, and the IDs of a
// run do not depend on the number of workers. The store fails the test when an ID is given twice.
func TestIDsAreUniqueAndStable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var roots []Root
		for i := range rapid.IntRange(1, 4).Draw(rt, "roots") {
			files := map[string]string{}
			for range rapid.IntRange(0, 6).Draw(rt, "files") {
				name := rapid.SampledFrom([]string{"a.md", "docs/a.md", "docs/docs/a.md", "b.jsonl", "c.jsonl"}).Draw(rt, "name")
				if strings.HasSuffix(name, ".jsonl") {
					id := rapid.SampledFrom([]string{"a.md", "docs/a.md", "1", "x#y", "<::>"}).Draw(rt, "id")
					files[name] += fmt.Sprintf("{\"_id\":%q,\"text\":\"t\"}\n", id)
				} else {
					files[name] = "text"
				}
			}
			root := memRoot(files)
			root.base = "docs"
			root.arg = fmt.Sprintf("sample%d", i)
			roots = append(roots, root)
		}
		s := newStore()
		first := ids(ingestInto(t, s, Options{Workers: 3}, roots...))
		if again := ids(ingestInto(t, s, Options{}, roots...)); !slices.Equal(first, again) {
			rt.Fatalf("first %v, again %v", first, again)
		}
		if single := ids(readAll(t, Options{Workers: 1}, roots...)); !slices.Equal(first, single) {
			rt.Fatalf("3 workers %v, 1 worker %v", first, single)
		}
	})
}

func TestIDThatCannotBeStoredIsSkipped(t *testing.T) {
	for id, ok := range map[string]bool{
		"https://example.com/a#b": true, "<::>": true, "한국어/문서.md": true, " padded ": true, strings.Repeat("x", 512): true,
		"": false, "  ": false, strings.Repeat("x", 513): false, "a\x00b": false, "a\nb": false, "a\xffb": false,
	} {
		if err := checkID(id); (err == nil) != ok {
			t.Errorf("checkID(%q): %v", id, err)
		}
	}
	results := readAll(t, Options{}, memRoot(map[string]string{"bad\x01name.md": "x", "good.md": "x"}))
	if got := ids(results); !slices.Equal(got, []string{"bad_id", "good.md"}) {
		t.Errorf("%v", got)
	}
}
