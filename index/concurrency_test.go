package index_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"assay"
	"assay/index"
)

// generationOf is a corpus in which every text names the generation, so that a mixture would show.
func generationOf(n int) index.Batch {
	var b index.Batch
	for i := range 5 + n%4 {
		b.Put = append(b.Put, plain(fmt.Sprint("d", i), "T", fmt.Sprintf("common gen%dx", n), fmt.Sprintf("common again gen%dx", n)))
	}
	for i := 5 + n%4; i < 8; i++ {
		b.Delete = append(b.Delete, fmt.Sprint("d", i))
	}
	return b
}

// checkGeneration checks that a snapshot shows one generation, whole, in both channels.
func checkGeneration(t *testing.T, s *index.Snapshot) error {
	n := int(s.Generation())
	want := 2 * (5 + n%4)
	term := fmt.Sprintf("gen%dx", n)
	lexical, err1 := s.Lexical(t.Context(), "common", 100, assay.Filter{})
	own, err2 := s.Lexical(t.Context(), term, 100, assay.Filter{})
	dense, err3 := s.Dense(t.Context(), vectorOf(n, testDimensions), 100, assay.Filter{})
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	if len(lexical) != want || len(own) != want || len(dense) != want || s.Chunks() != want {
		return fmt.Errorf("generation %d: %d, %d and %d hits and %d chunks, want %d", n, len(lexical), len(own), len(dense), s.Chunks(), want)
	}
	for _, h := range append(own[:1:1], dense[0]) {
		c, _, err := s.Chunk(h.Row)
		if err != nil {
			return err
		}
		if c.Text != "common "+term && c.Text != "common again "+term {
			return fmt.Errorf("generation %d: text %q", n, c.Text)
		}
	}
	return nil
}

func TestSnapshotsAreWholeWhileWritesGoOn(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	apply(t, ix, generationOf(1))
	const last = 16
	var written atomic.Int64
	written.Store(1)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			var old *index.Snapshot // kept over many writes
			for written.Load() < last {
				s := ix.Snapshot()
				if g := int64(s.Generation()); g < written.Load()-1 {
					// A write may end between the two looks, two cannot.
					if s2 := ix.Snapshot(); s2.Generation() < uint64(g) {
						t.Errorf("generation went back from %d to %d", g, s2.Generation())
					} else if err := s2.Close(); err != nil {
						t.Error(err)
					}
				}
				if err := checkGeneration(t, s); err != nil {
					t.Error(err)
					return
				}
				if old == nil {
					old = s
				} else if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if old != nil {
				if err := errors.Join(checkGeneration(t, old), old.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := 2; n <= last; n++ {
		if g := apply(t, ix, generationOf(n)); g != uint64(n) {
			t.Errorf("generation %d, want %d", g, n)
		}
		s := ix.Snapshot() // a snapshot after the acknowledgement sees the write
		if s.Generation() != uint64(n) {
			t.Errorf("after write %d a snapshot shows generation %d", n, s.Generation())
		}
		if err := errors.Join(checkGeneration(t, s), s.Close()); err != nil {
			t.Error(err)
		}
		written.Store(int64(n))
	}
	readers.Wait()
}

func TestWritersTakeTurns(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := range 5 {
				// Two writers each share a document, so that they also replace one another's.
				e := plain(fmt.Sprint("d", w/2), "T", fmt.Sprint("key ", w, " ", n))
				if _, err := ix.Apply(t.Context(), testFingerprint, index.Batch{Put: []index.Entry{e, plain(fmt.Sprint("own", w, n), "T", "key own")}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	s := ix.Snapshot()
	defer s.Close()
	if s.Generation() != 20 || s.Documents() != 22 || s.Chunks() != 22 {
		t.Errorf("generation %d, %d documents, %d chunks", s.Generation(), s.Documents(), s.Chunks())
	}
}

func TestCloseWhileSearching(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ix := open(t, dir, index.Options{})
	apply(t, ix, generationOf(1))
	held := ix.Snapshot()
	started, stop := make(chan struct{}, 4), make(chan struct{})
	var searchers sync.WaitGroup
	for range 4 {
		searchers.Go(func() {
			started <- struct{}{}
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := ix.Snapshot()
				if err := errors.Join(checkGeneration(t, s), s.Close()); err != nil && !errors.Is(err, index.ErrClosed) {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	if err := ix.Close(); err != nil {
		t.Error(err)
	}
	close(stop)
	searchers.Wait()

	// A snapshot from before still searches; only texts are out of reach.
	if hits, err := held.Lexical(t.Context(), "common", 5, assay.Filter{}); err != nil || len(hits) != 5 {
		t.Errorf("lexical after the close: %d hits, %v", len(hits), err)
	}
	if _, _, err := held.Chunk(0); !errors.Is(err, index.ErrClosed) {
		t.Errorf("text after the close: %v", err)
	}
	if err := errors.Join(held.Close(), held.Close()); err != nil {
		t.Error(err)
	}
	if _, err := held.Lexical(t.Context(), "common", 5, assay.Filter{}); !errors.Is(err, index.ErrClosed) {
		t.Errorf("a closed snapshot: %v", err)
	}
	after := ix.Snapshot()
	if _, err := after.Dense(t.Context(), vectorOf(1, testDimensions), 5, assay.Filter{}); !errors.Is(err, index.ErrClosed) {
		t.Errorf("a snapshot of a closed index: %v", err)
	}
	if _, err := ix.Apply(t.Context(), testFingerprint, generationOf(2)); !errors.Is(err, index.ErrClosed) {
		t.Errorf("a write to a closed index: %v", err)
	}
	if err := errors.Join(ix.Close(), after.Close()); err != nil {
		t.Errorf("closing again: %v", err)
	}
	s := open(t, dir, index.Options{}).Snapshot()
	defer s.Close()
	if err := checkGeneration(t, s); err != nil {
		t.Error(err)
	}
}

// Many replacements leave tombstones; they are compacted away while older snapshots stay whole.
func TestCompactionKeepsSnapshotsAndRows(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	lines := func(n int) []string {
		out := make([]string, 60)
		for i := range out {
			out[i] = fmt.Sprintf("common r%dx%d", n, i)
		}
		return out
	}
	apply(t, ix, index.Batch{Put: []index.Entry{plain("still", "S", "common still"), plain("a", "A", lines(0)...)}})
	first := ix.Snapshot()
	hits, err := first.Lexical(t.Context(), "still", 1, assay.Filter{})
	if err != nil || len(hits) != 1 {
		t.Fatalf("%v, %v", hits, err)
	}
	for n := 1; n <= 40; n++ {
		apply(t, ix, index.Batch{Put: []index.Entry{plain("a", "A", lines(n)...)}})
		s := ix.Snapshot()
		lexical, err1 := s.Lexical(t.Context(), "common", 100, assay.Filter{})
		dense, err2 := s.Dense(t.Context(), vectorOf(1, testDimensions), 100, assay.Filter{})
		if err := errors.Join(err1, err2, s.Close()); err != nil || len(lexical) != 61 || len(dense) != 61 {
			t.Fatalf("after %d: %d and %d hits, %v", n, len(lexical), len(dense), err)
		}
	}
	expect(t, first, "common", append(lines(0), "common still")...)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	s := ix.Snapshot()
	defer s.Close()
	if c, _, err := s.Chunk(hits[0].Row); err != nil || c.Text != "common still" {
		t.Errorf("the row from before: %+v, %v", c, err)
	}
	// 41 times 60 rows were written; what is held for search must not grow with that.
	if got, limit := ix.Stats().Bytes.Dense, int64(4*testDimensions*2000); got > limit {
		t.Errorf("%d bytes of vectors are held for 61 chunks, more than %d", got, limit)
	}
}
