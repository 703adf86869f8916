package index_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"assay"
	"assay/index"
)

// plain is a document whose every line is a chunk.
func plain(id, title string, lines ...string) index.Entry {
	d := assay.Document{ID: id, URI: "file/" + id, Title: title, Hash: assay.HashText(id + title), Text: strings.Join(lines, "\n")}
	e := index.Entry{Document: d}
	start := 0
	for i, line := range lines {
		e.Chunks = append(e.Chunks, chunkOf(d, start, start+len(line), i, "Part", fmt.Sprint(i)))
		e.Vectors = append(e.Vectors, vectorOf(len(id)*1000+i, testDimensions))
		start += len(line) + 1
	}
	return e
}

func apply(t *testing.T, ix *index.Index, b index.Batch) uint64 {
	t.Helper()
	generation, err := ix.Apply(t.Context(), testFingerprint, b)
	if err != nil {
		t.Fatal(err)
	}
	return generation
}

// found returns the texts that a lexical and a dense search bring, sorted; they must agree when the
// query matches every chunk.
func found(t *testing.T, s *index.Snapshot, query string) (lexical, dense []string) {
	t.Helper()
	texts := func(hits []index.Hit, err error) []string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, h := range hits {
			c, d, err := s.Chunk(h.Row)
			if err != nil {
				t.Fatal(err)
			}
			if c.DocID != d.ID {
				t.Fatalf("chunk of %q with document %q", c.DocID, d.ID)
			}
			out = append(out, c.Text)
		}
		slices.Sort(out)
		return out
	}
	return texts(s.Lexical(t.Context(), query, 1000, assay.Filter{})), texts(s.Dense(t.Context(), vectorOf(1, testDimensions), 1000, assay.Filter{}))
}

func expect(t *testing.T, s *index.Snapshot, query string, want ...string) {
	t.Helper()
	slices.Sort(want)
	lexical, dense := found(t, s, query)
	if !slices.Equal(lexical, want) {
		t.Errorf("lexical: %q, want %q", lexical, want)
	}
	if !slices.Equal(dense, want) {
		t.Errorf("dense: %q, want %q", dense, want)
	}
}

func TestReplacedAndDeletedDocumentsAreGoneFromBothChannels(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	first := plain("a", "Keys", "key one", "key two", "key three")
	if g := apply(t, ix, index.Batch{Put: []index.Entry{first, plain("b", "Other", "key four")}}); g != 1 {
		t.Errorf("generation %d, want 1", g)
	}
	before := ix.Snapshot()
	apply(t, ix, index.Batch{Put: []index.Entry{plain("a", "Keys", "key one", "key new")}})
	replaced := ix.Snapshot()
	apply(t, ix, index.Batch{Delete: []string{"b", "never there"}})
	after := ix.Snapshot()
	if g := apply(t, ix, index.Batch{Delete: []string{"b"}}); g != after.Generation() {
		t.Errorf("a change of nothing led from generation %d to %d", after.Generation(), g)
	}

	// Each snapshot still shows its own generation, texts included.
	expect(t, before, "key", "key one", "key two", "key three", "key four")
	expect(t, replaced, "key", "key one", "key new", "key four")
	expect(t, after, "key", "key one", "key new")

	old := first.Chunks[1].ID
	if c, d, err := before.ChunkByID(old); err != nil || c.Text != "key two" || d.ID != "a" || d.Text != "" || !slices.Equal(c.Headings, []string{"Part", "1"}) {
		t.Errorf("old chunk in the old snapshot: %+v, %+v, %v", c, d, err)
	}
	if _, _, err := after.ChunkByID(old); !errors.Is(err, index.ErrNotFound) {
		t.Errorf("old chunk in the new snapshot: %v", err)
	}
	// The first passage is unchanged, so it has the same ID in both.
	for _, s := range []*index.Snapshot{before, after} {
		if c, _, err := s.ChunkByID(first.Chunks[0].ID); err != nil || c.Text != "key one" {
			t.Errorf("generation %d: %+v, %v", s.Generation(), c, err)
		}
	}
	if d, err := before.Document("a"); err != nil || d.Text != first.Document.Text {
		t.Errorf("old text: %+v, %v", d, err)
	}
	if d, err := after.Document("a"); err != nil || d.Text != "key one\nkey new" || d.Title != "Keys" {
		t.Errorf("new text: %+v, %v", d, err)
	}
	if _, err := after.Document("b"); !errors.Is(err, index.ErrNotFound) {
		t.Errorf("deleted document: %v", err)
	}
	if chunks, err := before.ChunksOf("a"); err != nil || len(chunks) != 3 || chunks[2].Text != "key three" {
		t.Errorf("chunks of the replaced document: %+v, %v", chunks, err)
	}
	if _, err := after.ChunksOf("b"); !errors.Is(err, index.ErrNotFound) {
		t.Errorf("chunks of the deleted document: %v", err)
	}
	if before.Documents() != 2 || before.Chunks() != 4 || after.Documents() != 1 || after.Chunks() != 2 || after.Tokens() != len("key one")+len("key new") {
		t.Errorf("counts: %d, %d; %d, %d, %d", before.Documents(), before.Chunks(), after.Documents(), after.Chunks(), after.Tokens())
	}
	for _, s := range []*index.Snapshot{before, replaced, after} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	e := plain("a", "A", "text")
	apply(t, ix, index.Batch{Put: []index.Entry{e, plain("b", "B", "text")}})
	if id, hash, ok := ix.ByURI("file/a"); id != "a" || hash != e.Document.Hash || !ok {
		t.Errorf("%q, %q, %v", id, hash, ok)
	}
	moved := e
	moved.Document.URI = "elsewhere"
	apply(t, ix, index.Batch{Put: []index.Entry{moved}, Delete: []string{"b"}})
	if _, _, ok := ix.ByURI("file/a"); ok {
		t.Error("the former URI still leads somewhere")
	}
	if id, _, ok := ix.ByURI("elsewhere"); id != "a" || !ok {
		t.Errorf("%q, %v", id, ok)
	}
	if !ix.Taken("a") || ix.Taken("b") || ix.Taken("") {
		t.Error("Taken does not tell what is stored")
	}
	s := ix.Snapshot()
	defer s.Close()
	for d, stats := range s.AllDocuments() {
		if d.ID != "a" || d.Text != "" || stats != (index.DocumentStats{Chunks: 1, Tokens: 4}) {
			t.Errorf("%+v, %+v", d, stats)
		}
	}
}

func TestEverythingSurvivesAReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ix := open(t, dir, index.Options{})
	empty := plain("empty", "Nothing")
	empty.Chunks, empty.Vectors = nil, nil
	e := plain("a", "Keys", "key one", "key two")
	e.Document.Metadata = assay.Metadata{"product": {"relay"}, "tags": {"x", "y"}}
	apply(t, ix, index.Batch{Put: []index.Entry{e, plain("b", "B", "key b"), empty}})
	apply(t, ix, index.Batch{Delete: []string{"b"}})
	checkAndClose(t, ix)

	ix = open(t, dir, index.Options{})
	s := ix.Snapshot()
	defer s.Close()
	if s.Generation() != 2 || s.Documents() != 2 || s.Chunks() != 2 {
		t.Errorf("generation %d, %d documents, %d chunks", s.Generation(), s.Documents(), s.Chunks())
	}
	expect(t, s, "key", "key one", "key two")
	d, err := s.Document("a")
	if err != nil || d.Metadata.Get("product") != "relay" || !slices.Equal(d.Metadata["tags"], []string{"x", "y"}) {
		t.Errorf("%+v, %v", d, err)
	}
	stats := ix.Stats()
	if stats.Embedder != testFingerprint.Embedder || stats.Analyzer != "en" || stats.Bytes.Store == 0 || stats.Bytes.Lexical == 0 || stats.Bytes.Dense == 0 || stats.Degraded != "" {
		t.Errorf("%+v", stats)
	}
	if g := apply(t, ix, index.Batch{Put: []index.Entry{plain("c", "C", "key c")}}); g != 3 {
		t.Errorf("generation %d, want 3", g)
	}
}

func TestUnusableEntriesChangeNothing(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{MaxDocumentBytes: 1000, MaxBatchBytes: 5000})
	apply(t, ix, index.Batch{Put: []index.Entry{plain("kept", "K", "key kept")}})
	edit := func(change func(*index.Entry)) index.Batch {
		e := plain("a", "A", "key one", "key two")
		change(&e)
		return index.Batch{Put: []index.Entry{plain("fine", "F", "key fine"), e}}
	}
	var many index.Batch
	for i := range 10 {
		many.Put = append(many.Put, plain(fmt.Sprint(i), "", strings.Repeat("x", 900)))
	}
	for name, b := range map[string]index.Batch{
		"no ID":              edit(func(e *index.Entry) { e.Document.ID = "" }),
		"NUL in ID":          edit(func(e *index.Entry) { e.Document.ID = "a\x00b" }),
		"long ID":            edit(func(e *index.Entry) { e.Document.ID = strings.Repeat("a", 2000) }),
		"ID not UTF-8":       edit(func(e *index.Entry) { e.Document.ID, e.Chunks[0].DocID, e.Chunks[1].DocID = "\xff", "\xff", "\xff" }),
		"URI not UTF-8":      edit(func(e *index.Entry) { e.Document.URI = "a\xff" }),
		"metadata not UTF-8": edit(func(e *index.Entry) { e.Document.Metadata = assay.Metadata{"k": {"\xff"}} }),
		"large metadata":     edit(func(e *index.Entry) { e.Document.Metadata = assay.Metadata{"k": {strings.Repeat("x", 1000)}} }),
		"chunk of another":   edit(func(e *index.Entry) { e.Chunks[1].DocID = "b" }),
		"chunk without ID":   edit(func(e *index.Entry) { e.Chunks[1].ID = "" }),
		"chunk twice":        edit(func(e *index.Entry) { e.Chunks[1] = e.Chunks[0] }),
		"chunk of kept":      edit(func(e *index.Entry) { e.Chunks[1].ID = plain("kept", "K", "key kept").Chunks[0].ID }),
		"span outside":       edit(func(e *index.Entry) { e.Chunks[1].Span.End++ }),
		"span reversed":      edit(func(e *index.Entry) { e.Chunks[1].Span = assay.Span{Start: 5, End: 2} }),
		"span negative":      edit(func(e *index.Entry) { e.Chunks[1].Span.Start = math.MinInt }),
		"text elsewhere":     edit(func(e *index.Entry) { e.Chunks[1].Text = "key six" }),
		"negative tokens":    edit(func(e *index.Entry) { e.Chunks[1].Tokens = -1 }),
		"many headings":      edit(func(e *index.Entry) { e.Chunks[1].Headings = make([]string, 1000) }),
		"too few vectors":    edit(func(e *index.Entry) { e.Vectors = e.Vectors[:1] }),
		"too many vectors":   edit(func(e *index.Entry) { e.Vectors = append(e.Vectors, e.Vectors[0]) }),
		"wrong dimension":    edit(func(e *index.Entry) { e.Vectors[1] = e.Vectors[1][1:] }),
		"NaN":                edit(func(e *index.Entry) { e.Vectors[1][2] = float32(math.NaN()) }),
		"infinite":           edit(func(e *index.Entry) { e.Vectors[1][2] = float32(math.Inf(1)) }),
		"zero":               edit(func(e *index.Entry) { e.Vectors[1] = make([]float32, testDimensions) }),
		"long text":          {Put: []index.Entry{plain("long", "", strings.Repeat("x", 1001))}},
		"large batch":        many,
		"document twice":     {Put: []index.Entry{plain("a", "", "x"), plain("a", "", "y")}},
		"stored and deleted": {Put: []index.Entry{plain("a", "", "x")}, Delete: []string{"a"}},
	} {
		if _, err := ix.Apply(t.Context(), testFingerprint, b); !errors.Is(err, index.ErrInvalid) || !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	mixed := index.Batch{Put: []index.Entry{plain("good", "", "x")}}
	for i := range 12 {
		e := plain(fmt.Sprint("bad", i), "", "x")
		e.Vectors[0] = make([]float32, testDimensions)
		mixed.Put = append(mixed.Put, e)
	}
	var batch *index.BatchError
	if _, err := ix.Apply(t.Context(), testFingerprint, mixed); !errors.As(err, &batch) || len(batch.Entries) != 12 || batch.Entries[11].ID != "bad11" || !strings.Contains(err.Error(), "2 more") {
		t.Errorf("twelve of thirteen: %v", err)
	}
	for _, dimensions := range []int{0, -3, 1 << 30} {
		other := open(t, t.TempDir(), index.Options{})
		f := index.Fingerprint{Embedder: assay.Model{Name: "m", Dimensions: dimensions}}
		if _, err := other.Apply(t.Context(), f, index.Batch{Put: []index.Entry{plain("a", "", "x")}}); !errors.Is(err, index.ErrInvalid) {
			t.Errorf("%d dimensions: %v", dimensions, err)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ix.Apply(cancelled, testFingerprint, index.Batch{Put: []index.Entry{plain("a", "", "x")}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	s := ix.Snapshot()
	defer s.Close()
	if s.Generation() != 1 {
		t.Errorf("generation %d, want 1", s.Generation())
	}
	expect(t, s, "key", "key kept")
}

func TestCallersSlicesAreCopied(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	e := plain("a", "A", "key one")
	v := slices.Clone(e.Vectors[0])
	apply(t, ix, index.Batch{Put: []index.Entry{e}})
	if !slices.Equal(v, e.Vectors[0]) {
		t.Error("the caller's vector was changed")
	}
	clear(e.Vectors[0])
	e.Chunks[0].Headings[0] = "changed"
	s := ix.Snapshot()
	defer s.Close()
	hits, err := s.Dense(t.Context(), v, 1, assay.Filter{})
	if err != nil || len(hits) != 1 || math.Abs(hits[0].Score-1) > 1e-6 {
		t.Errorf("%v, %v", hits, err)
	}
}
