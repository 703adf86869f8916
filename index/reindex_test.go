package index_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"assay"
	"assay/index"
)

// otherFingerprint is that of a corpus made with another embedder and another analyser.
var otherFingerprint = index.Fingerprint{Embedder: assay.Model{Name: "other", Dimensions: 4}, Chunker: "other", Analyzer: "de"}

// restaged is a document of the corpus as other settings make it: one chunk, another vector.
func restaged(tb testing.TB, s *index.Snapshot, id string) index.Entry {
	tb.Helper()
	d, err := s.Document(id)
	if err != nil {
		tb.Fatal(err)
	}
	return index.Entry{Document: *d, Chunks: []assay.Chunk{chunkOf(*d, 0, len(d.Text), 0)}, Vectors: [][]float32{vectorOf(len(d.Text), 4)}}
}

// stage stages some documents, at most n of them, and returns how many were left.
func stage(tb testing.TB, ix *index.Index, f index.Fingerprint, n int) (left int) {
	tb.Helper()
	ids, _, err := ix.Unstaged(context.Background(), f)
	if err != nil {
		tb.Fatal(err)
	}
	s := ix.Snapshot()
	defer s.Close()
	var entries []index.Entry
	for _, id := range ids[:min(n, len(ids))] {
		entries = append(entries, restaged(tb, s, id))
	}
	if err := ix.Stage(context.Background(), f, s, entries); err != nil {
		tb.Fatal(err)
	}
	return len(ids) - len(entries)
}

func sixDocuments(t *testing.T, ix *index.Index) {
	t.Helper()
	var b index.Batch
	for i := range 6 {
		b.Put = append(b.Put, plain(fmt.Sprint("d", i), "Title", fmt.Sprint("key one ", i), fmt.Sprint("key two ", i)))
	}
	apply(t, ix, b)
}

// The corpus is made anew in steps, with restarts and writes between them; what is searched is the old
// one, whole, until the new one is.
func TestReindexServesTheFormerCorpusUntilItIsDone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ix := open(t, dir, index.Options{})
	sixDocuments(t, ix)
	apply(t, ix, index.Batch{Put: []index.Entry{plain("d6", "Title", "key six")}})
	if left := stage(t, ix, otherFingerprint, 3); left != 4 {
		t.Fatalf("%d left", left)
	}
	if _, err := ix.Promote(t.Context(), otherFingerprint); !errors.Is(err, index.ErrStale) {
		t.Errorf("half of the documents are promoted: %v", err)
	}
	checkAndClose(t, ix)

	// A later start goes on where the former one ended.
	ix = open(t, dir, index.Options{})
	ids, staged, err := ix.Unstaged(t.Context(), otherFingerprint)
	if err != nil || staged != 3 || len(ids) != 4 || ix.Stats().Staged != 3 {
		t.Fatalf("%v to do, %d staged, %v", ids, staged, err)
	}
	// Meanwhile one that is staged changes, one goes and one comes.
	generation := apply(t, ix, index.Batch{Put: []index.Entry{plain("d0", "Title", "key changed"), plain("d7", "Title", "key seven")}, Delete: []string{"d1"}})
	s := ix.Snapshot()
	before, _ := found(t, s, "key")
	if left := stage(t, ix, otherFingerprint, 100); left != 0 {
		t.Errorf("%d left", left)
	}
	if err := ix.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if after, _ := found(t, ix.Snapshot(), "key"); !slices.Equal(before, after) {
		t.Errorf("staged documents are found: %q", after)
	}
	reached, err := ix.Promote(t.Context(), otherFingerprint)
	if err != nil || reached != generation+1 {
		t.Fatalf("generation %d after %d, %v", reached, generation, err)
	}
	if again, _ := found(t, s, "key"); !slices.Equal(before, again) {
		t.Errorf("a snapshot from before sees %q", again)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		now := ix.Snapshot()
		hits, err := now.Dense(t.Context(), vectorOf(1, 4), 100, assay.Filter{})
		if err != nil || len(hits) != 7 || now.Chunks() != 7 || now.Documents() != 7 || now.Generation() != reached {
			t.Errorf("%d hits, %d chunks, %d documents, generation %d, %v", len(hits), now.Chunks(), now.Documents(), now.Generation(), err)
		}
		lexical, err := now.Lexical(t.Context(), "key", 100, assay.Filter{})
		if err != nil || len(lexical) != 7 {
			t.Errorf("%d lexical hits, %v", len(lexical), err)
		}
		if err := errors.Join(now.Close(), ix.CheckFingerprint(otherFingerprint)); err != nil {
			t.Error(err)
		}
		if stats := ix.Stats(); stats.Staged != 0 || stats.Analyzer != "de" || stats.Embedder.Name != "other" {
			t.Errorf("%+v", stats)
		}
		checkAndClose(t, ix)
		ix = open(t, dir, index.Options{Analyzer: "de"})
	}
}

func TestWhatWasStagedWithOtherSettingsIsDropped(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	sixDocuments(t, ix)
	stage(t, ix, otherFingerprint, 100)
	third := otherFingerprint
	third.Chunker = "third"
	s := ix.Snapshot()
	defer s.Close()
	if err := ix.Stage(t.Context(), third, s, []index.Entry{restaged(t, s, "d0")}); !errors.Is(err, index.ErrInvalid) {
		t.Errorf("two settings are staged at once: %v", err)
	}
	if _, err := ix.Promote(t.Context(), third); !errors.Is(err, index.ErrStale) {
		t.Errorf("what was staged with other settings is promoted: %v", err)
	}
	if ids, staged, err := ix.Unstaged(t.Context(), third); err != nil || staged != 0 || len(ids) != 6 {
		t.Errorf("%d to do, %d staged, %v", len(ids), staged, err)
	}
	stage(t, ix, third, 4)
	if err := errors.Join(ix.Check(t.Context()), ix.Discard(t.Context())); err != nil || ix.Stats().Staged != 0 {
		t.Errorf("%d staged, %v", ix.Stats().Staged, err)
	}
}

func TestResetDropsWhatIsStaged(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	sixDocuments(t, ix)
	stage(t, ix, otherFingerprint, 100)
	if err := errors.Join(ix.Reset(t.Context()), ix.Check(t.Context())); err != nil {
		t.Fatal(err)
	}
	apply(t, ix, index.Batch{Put: []index.Entry{plain("a", "A", "key")}})
	if stats := ix.Stats(); stats.Staged != 0 || stats.Documents != 1 {
		t.Errorf("%+v", stats)
	}
}
