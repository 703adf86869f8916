package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"assay"
	"assay/chunker"
	"assay/index"
	"assay/ingest"
)

// topics is a corpus of n small documents.
func topics(n int) fstest.MapFS {
	out := fstest.MapFS{}
	for i := range n {
		out[fmt.Sprintf("p%03d.md", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "# Page %d\n\n%s\n", i, strings.Repeat(fmt.Sprintf("A sentence about topic %d. ", i), 40))}
	}
	return out
}

// smaller are the stages of a world with smaller chunks.
func smaller(t *testing.T, w *world) Deps {
	t.Helper()
	d := w.d
	var err error
	if d.Chunker, err = chunker.New(chunker.Options{Size: 32, Overlap: -1}); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestReindexMakesTheCorpusOfTheStoredTexts(t *testing.T) {
	w := newWorld(t, setup{})
	if _, err := w.Ingest(t.Context(), []ingest.Root{ingest.FSRoot("docs", topics(30))}, IngestOptions{}); err != nil {
		t.Fatal(err)
	}
	before := w.index.Stats()
	d := smaller(t, w)
	if _, err := New(w.lg, d, Options{}); err == nil {
		t.Fatal("an engine with other settings takes the corpus")
	}
	seen := 0
	done, err := Reindex(t.Context(), w.lg, d, "en", func(Reindexed) { seen++ })
	if err != nil || done.Made != 30 || done.Documents != 30 || done.Resumed != 0 || done.Generation != before.Generation+1 || seen == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	after := w.index.Stats()
	if after.Chunks <= before.Chunks || after.Documents != 30 || after.Chunks != done.Chunks || after.Tokens != done.Tokens {
		t.Errorf("%+v", after)
	}
	var other *index.MismatchError
	if _, err := w.Search(t.Context(), assay.Query{Text: "topic 7"}); !errors.As(err, &other) {
		t.Errorf("the former engine goes on over vectors and chunks of other settings: %v", err)
	}
	e, err := New(w.lg, d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := e.Search(t.Context(), assay.Query{Text: "page 7"})
	if err != nil || len(found.Candidates) == 0 {
		t.Errorf("%v", err)
	}
	if done, err := Reindex(t.Context(), w.lg, d, "en", nil); err != nil || !done.Needless {
		t.Errorf("a second time: %+v, %v", done, err)
	}
	// Sources that did not change are unchanged.
	if s, err := e.Ingest(t.Context(), []ingest.Root{ingest.FSRoot("docs", topics(30))}, IngestOptions{}); err != nil || s.Unchanged != 30 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := w.index.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// An interrupted run leaves the former corpus as it is, and the next one goes on.
func TestReindexGoesOnWhereItWasInterrupted(t *testing.T) {
	w := newWorld(t, setup{})
	all := topics(200)
	if _, err := w.Ingest(t.Context(), []ingest.Root{ingest.FSRoot("docs", all)}, IngestOptions{}); err != nil {
		t.Fatal(err)
	}
	before := w.index.Stats()
	d := smaller(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	done, err := Reindex(ctx, w.lg, d, "en", func(r Reindexed) {
		if r.Made > 0 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || done.Made == 0 || done.Made == 200 {
		t.Fatalf("%+v, %v", done, err)
	}
	if now := w.index.Stats(); now.Staged != done.Made || now.Chunks != before.Chunks {
		t.Errorf("%+v", now)
	}
	if found, err := w.Search(t.Context(), assay.Query{Text: "topic 7"}); err != nil || len(found.Candidates) == 0 {
		t.Errorf("the former corpus: %v", err)
	}
	all["p000.md"].Data = []byte("# Page 0\n\nIt has changed.\n") // one that was made already
	if _, err := w.Ingest(t.Context(), []ingest.Root{ingest.FSRoot("docs", all)}, IngestOptions{}); err != nil {
		t.Fatal(err)
	}
	again, err := Reindex(t.Context(), w.lg, d, "en", nil)
	if err != nil || again.Resumed != done.Made-1 || again.Resumed+again.Made != 200 {
		t.Errorf("%d made before; %+v, %v", done.Made, again, err)
	}
	if doc, err := w.index.Snapshot().Document("p000.md"); err != nil || !strings.Contains(doc.Text, "has changed") {
		t.Errorf("%v, %v", doc, err)
	}
	if err := w.index.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDeleteRemovesByIDAndByURI(t *testing.T) {
	w := newWorld(t, setup{})
	if _, err := w.Ingest(t.Context(), []ingest.Root{ingest.FSRoot("docs", topics(4))}, IngestOptions{}); err != nil {
		t.Fatal(err)
	}
	done, err := w.Delete(t.Context(), []string{"p000.md", "docs:/p001.md", "docs:/p000.md", "nothing"})
	if err != nil || len(done.Documents) != 2 || done.Left != 2 || len(done.Unknown) != 1 || done.Unknown[0] != "nothing" {
		t.Errorf("%+v, %v", done, err)
	}
	found, err := w.Search(t.Context(), assay.Query{Text: "page", Keep: 50})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found.Candidates {
		if c.DocID == "p000.md" || c.DocID == "p001.md" {
			t.Errorf("%s is found", c.DocID)
		}
	}
	again, err := w.Delete(t.Context(), []string{"p000.md"})
	if err != nil || len(again.Documents) != 0 || again.Generation != done.Generation {
		t.Errorf("a second time: %+v, %v", again, err)
	}
}
