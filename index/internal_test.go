package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"assay"
)

var oneDimension = Fingerprint{Embedder: assay.Model{Name: "test", Dimensions: 2}}

func oneChunk(id, text string) Entry {
	span := assay.Span{End: len(text)}
	return Entry{
		Document: assay.Document{ID: id, Text: text},
		Chunks:   []assay.Chunk{{ID: assay.ChunkID(id, span, text), DocID: id, Span: span, Tokens: 1, Text: text}},
		Vectors:  [][]float32{{1, 2}},
	}
}

func opened(t *testing.T) *Index {
	t.Helper()
	ix, err := Open(slog.New(slog.DiscardHandler), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by the time its cleanup runs.
		if err := errors.Join(ix.Check(context.Background()), ix.Close()); err != nil {
			t.Error(err)
		}
	})
	return ix
}

func lexicalHits(t *testing.T, ix *Index) int {
	t.Helper()
	s := ix.Snapshot()
	defer s.Close()
	hits, err := s.Lexical(t.Context(), "key", 100, assay.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return len(hits)
}

// A bleve that fails after the store has acknowledged a write is made anew within that write.
func TestFailureOfBleveAfterTheCommitIsRepairedAtOnce(t *testing.T) {
	t.Parallel()
	ix := opened(t)
	for n, id := range []string{"a", "b", "c"} {
		if id == "b" {
			if err := ix.lexical.Close(); err != nil { // from here on bleve refuses every batch
				t.Fatal(err)
			}
		}
		if g, err := ix.Apply(t.Context(), oneDimension, Batch{Put: []Entry{oneChunk(id, "key "+id)}}); err != nil || g != uint64(n+1) {
			t.Fatalf("generation %d, %v", g, err)
		}
		if got := lexicalHits(t, ix); got != n+1 {
			t.Errorf("%d hits after %d writes", got, n+1)
		}
	}
}

// When it cannot be repaired at once, searches go on with the former generation, the write is
// reported as stored but not searchable, and the next one that can makes up for it.
func TestDegradedIndexCatchesUpWithTheNextWrite(t *testing.T) {
	t.Parallel()
	ix := opened(t)
	if _, err := ix.Apply(t.Context(), oneDimension, Batch{Put: []Entry{oneChunk("a", "key a")}}); err != nil {
		t.Fatal(err)
	}
	var vector []byte
	if err := ix.db.Update(func(tx *bbolt.Tx) error { // no state can be loaded without it
		vector = slices.Clone(tx.Bucket(vectorsBucket).Get(be32(0)))
		return tx.Bucket(vectorsBucket).Delete(be32(0))
	}); err != nil {
		t.Fatal(err)
	}
	if err := ix.lexical.Close(); err != nil {
		t.Fatal(err)
	}
	var degraded *DegradedError
	var corrupt *CorruptError
	g, err := ix.Apply(t.Context(), oneDimension, Batch{Put: []Entry{oneChunk("b", "key b")}})
	if !errors.As(err, &degraded) || degraded.Generation != 2 || g != 2 || !errors.As(err, &corrupt) {
		t.Fatalf("generation %d, %v", g, err)
	}
	if got, stats := lexicalHits(t, ix), ix.Stats(); got != 1 || stats.Generation != 1 || !strings.Contains(stats.Degraded, "vector") {
		t.Errorf("%d hits, %+v", got, stats)
	}
	if _, err := ix.Apply(t.Context(), oneDimension, Batch{Put: []Entry{oneChunk("c", "key c")}}); !errors.As(err, &corrupt) || errors.As(err, &degraded) {
		t.Errorf("a write that cannot know what it replaces: %v", err)
	}
	if err := ix.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(vectorsBucket).Put(be32(0), vector) }); err != nil {
		t.Fatal(err)
	}
	if g, err := ix.Apply(t.Context(), oneDimension, Batch{Put: []Entry{oneChunk("d", "key d")}}); err != nil || g != 3 {
		t.Errorf("generation %d, %v", g, err)
	}
	if got, stats := lexicalHits(t, ix), ix.Stats(); got != 3 || stats.Degraded != "" {
		t.Errorf("%d hits, %+v", got, stats)
	}
}

// What was replaced stays in the store for as long as a snapshot reads it, and no longer.
func TestReplacedRecordsArePurgedWhenNobodyReadsThem(t *testing.T) {
	t.Parallel()
	ix := opened(t)
	put := func(n int) {
		t.Helper()
		if _, err := ix.Apply(t.Context(), oneDimension, Batch{Put: []Entry{oneChunk("a", fmt.Sprint("key ", n))}}); err != nil {
			t.Fatal(err)
		}
	}
	stored := func() (n int) {
		t.Helper()
		if err := ix.db.View(func(tx *bbolt.Tx) error { n = tx.Bucket(chunksBucket).Stats().KeyN; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	put(1)
	s := ix.Snapshot()
	for n := 2; n <= 6; n++ {
		put(n)
	}
	if got := stored(); got != 6 {
		t.Errorf("%d rows while a snapshot may read the first, want all 6", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	put(7)
	if got := stored(); got != 2 {
		t.Errorf("%d rows afterwards, want the current one and the one that it has just replaced", got)
	}
}

// Each of these would be found by nobody but the checker.
func TestCheckFindsWhatDoesNotAgree(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*bbolt.Tx) error{
		"text":      func(tx *bbolt.Tx) error { return tx.Bucket(textsBucket).Put(be32(0), []byte("key x")) },
		"vector":    func(tx *bbolt.Tx) error { return tx.Bucket(vectorsBucket).Put(be32(0), encodeVector([]float32{1, 0})) },
		"no vector": func(tx *bbolt.Tx) error { return tx.Bucket(vectorsBucket).Delete(be32(0)) },
		"no ID":     func(tx *bbolt.Tx) error { return tx.Bucket(idsBucket).Delete([]byte("a")) },
		"no chunk ID": func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket(chunkIDsBucket).Cursor().First()
			return tx.Bucket(chunkIDsBucket).Delete(k)
		},
		"generation":  func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(generationKey, be64(9)) },
		"row numbers": func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(nextRowKey, be64(0)) },
		"manifest ID": func(tx *bbolt.Tx) error { return tx.Bucket(byIDBucket).Delete([]byte("m")) },
		"trace":       func(tx *bbolt.Tx) error { return tx.Bucket(byTraceBucket).Put([]byte("x"), []byte("nothing")) },
		"cache":       func(tx *bbolt.Tx) error { return tx.Bucket(cacheBucket).Delete(be64(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			ix, err := Open(slog.New(slog.DiscardHandler), t.TempDir(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer ix.Close()
			_, err1 := ix.Apply(t.Context(), oneDimension, Batch{Put: []Entry{oneChunk("a", "key a")}})
			err2 := ix.PutManifest(t.Context(), &assay.Manifest{ID: "m", TraceID: "t", CreatedAt: time.Now()})
			err3 := ix.PutVectors(oneDimension.Embedder, []string{"h"}, [][]float32{{1, 2}})
			if err := errors.Join(err1, err2, err3, ix.Check(t.Context())); err != nil {
				t.Fatal(err)
			}
			if err := ix.db.Update(damage); err != nil {
				t.Fatal(err)
			}
			var corrupt *CorruptError
			if err := ix.Check(t.Context()); !errors.As(err, &corrupt) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("lexical index", func(t *testing.T) {
		ix := opened(t)
		if _, err := ix.Apply(t.Context(), oneDimension, Batch{Put: []Entry{oneChunk("a", "key a")}}); err != nil {
			t.Fatal(err)
		}
		s := ix.current.Load()
		if err := ix.lexical.Apply(nil, []uint32{0}, s.generation); err != nil {
			t.Fatal(err)
		}
		reader, err := ix.lexical.Reader()
		if err != nil {
			t.Fatal(err)
		}
		kept := s.reader
		s.reader = reader
		var corrupt *CorruptError
		if err := ix.Check(t.Context()); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "missing") {
			t.Errorf("%v", err)
		}
		s.reader = kept
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	})
}

// While the disk is busy, manifests wait in bounded number and are readable all the same.
func TestManifestsWaitForABusyDiskInBoundedNumber(t *testing.T) {
	t.Parallel()
	ix := opened(t)
	tx, err := ix.db.Begin(true) // nobody else can write
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i := range maxPending {
		if err := ix.PutManifest(t.Context(), &assay.Manifest{ID: fmt.Sprint(i), CreatedAt: now}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // the select may take either way only where there is room
		if err := ix.PutManifest(ctx, &assay.Manifest{ID: "one more", CreatedAt: now}); !errors.Is(err, context.Canceled) {
			t.Fatalf("one more: %v", err)
		}
	}
	if m, err := ix.Manifest("0"); err != nil || m.ID != "0" {
		t.Errorf("%+v, %v", m, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range ix.Manifests(time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != maxPending {
		t.Errorf("%d manifests, want %d", n, maxPending)
	}
}

func TestDamagedCacheEntriesCountAsNone(t *testing.T) {
	t.Parallel()
	ix := opened(t)
	model := oneDimension.Embedder
	if err := ix.PutVectors(model, []string{"a", "b"}, [][]float32{{1, 2}, {3, 4}}); err != nil {
		t.Fatal(err)
	}
	if err := ix.db.Update(func(tx *bbolt.Tx) error {
		entry := slices.Clone(tx.Bucket(cacheBucket).Get(be64(0)))
		entry[len(entry)-1] ^= 1
		return tx.Bucket(cacheBucket).Put(be64(0), entry)
	}); err != nil {
		t.Fatal(err)
	}
	got, err := ix.GetVectors(model, []string{"a", "b"})
	if err != nil || got[0] != nil || !slices.Equal(got[1], []float32{3, 4}) {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzDecodeChunk(f *testing.F) {
	r := chunkRecord{chunk: assay.Chunk{ID: "c_1", Ordinal: 2, Span: assay.Span{Start: 3, End: 9}, Headings: []string{"Keys", ""}, Tokens: 7}, owner: 4, lengths: [3]uint32{1, 0, 5}}
	f.Add(r.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		// With a right checksum in the end, so that what is before it is decoded at all.
		data = append(data, be32(checksum(data))...)
		r, err := decodeChunk(data)
		if err != nil {
			return
		}
		again, err := decodeChunk(r.encode())
		if err != nil || fmt.Sprint(again) != fmt.Sprint(r) {
			t.Errorf("%+v, encoded and decoded: %+v, %v", r, again, err)
		}
	})
}
