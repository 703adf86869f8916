package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"assay/index/bm25"
)

// ErrStale is returned by Promote when documents have changed, or have come, since they were staged.
var ErrStale = errors.New("index: not everything is staged as it is now")

// Unstaged returns the IDs of the documents that are still to be staged under f, in the order in which
// they were stored, and how many are staged already: by an earlier run, too. What was staged under
// other settings is dropped.
func (ix *Index) Unstaged(ctx context.Context, f Fingerprint) (ids []string, staged int, err error) {
	f = ix.complete(f)
	if err := ix.discardUnless(ctx, &f); err != nil {
		return nil, 0, err
	}
	s := ix.Snapshot()
	defer s.Close()
	err = s.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket(stagedBucket)
		for position := range s.s.table.liveDocuments.EachSet() {
			d := s.s.table.documents[position]
			if e, err := decodeStaged(b.Get([]byte(d.document.ID))); err == nil && e.source == d.number {
				staged++
				continue
			}
			ids = append(ids, d.document.ID)
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("index reindex: %w", err)
	}
	return ids, staged, nil
}

// complete fills in the analyser that the index was opened with.
func (ix *Index) complete(f Fingerprint) Fingerprint {
	if f.Analyzer == "" {
		f.Analyzer = ix.o.Analyzer
	}
	return f
}

// Discard drops everything that is staged.
func (ix *Index) Discard(ctx context.Context) error { return ix.discardUnless(ctx, nil) }

// discardAtOnce bounds how many documents one transaction removes, so that other writes get through.
const discardAtOnce = 1000

func (ix *Index) discardUnless(ctx context.Context, f *Fingerprint) error {
	for {
		done, err := ix.discardSome(ctx, f)
		if err != nil {
			return fmt.Errorf("index reindex: drop what was staged with other settings: %w", err)
		}
		if done {
			return nil
		}
	}
}

// discardSome removes staged documents for good: nobody has ever read them.
func (ix *Index) discardSome(ctx context.Context, f *Fingerprint) (done bool, err error) {
	ix.writer.Lock()
	defer ix.writer.Unlock()
	if err := ix.ready(ctx); err != nil {
		return false, err
	}
	err = ix.view(func(tx *bbolt.Tx) error {
		was, err := fingerprintUnder(tx, stagedKey)
		done = was == nil || f != nil && *was == *f
		return err
	})
	if err != nil || done {
		return done, err
	}
	err = ix.update(func(tx *bbolt.Tx) error {
		var ids [][]byte
		cursor := tx.Bucket(stagedBucket).Cursor()
		for k, _ := cursor.First(); k != nil && len(ids) < discardAtOnce; k, _ = cursor.Next() {
			ids = append(ids, bytes.Clone(k))
		}
		for _, id := range ids {
			if err := unstage(tx, id); err != nil {
				return err
			}
		}
		if len(ids) == discardAtOnce {
			return nil
		}
		done = true
		return tx.Bucket(metaBucket).Delete(stagedKey)
	})
	return done, err
}

// unstage removes a staged document, if there is one under the ID.
func unstage(tx *bbolt.Tx, id []byte) error {
	b := tx.Bucket(stagedBucket)
	value := b.Get(id)
	if value == nil {
		return nil
	}
	e, err := decodeStaged(value)
	if err != nil {
		return fmt.Errorf("staged document %q: %w", id, err)
	}
	return cmp.Or(purgeDocument(tx, be32(e.number)), b.Delete(id))
}

// Stage stores documents as they will be under f, without making them searchable: each stands for the
// document of its ID that the snapshot shows. It is durable when Stage returns, so that a later run
// can go on from there. Unstaged comes before it.
func (ix *Index) Stage(ctx context.Context, f Fingerprint, from *Snapshot, entries []Entry) error {
	f = ix.complete(f)
	analyzer, err := bm25.NewAnalyzer(f.Analyzer)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	batch, err := ix.prepare(ctx, analyzer, f.Embedder.Dimensions, Batch{Put: entries})
	if err != nil {
		return err
	}
	sources := make(map[string]uint32, len(entries))
	for _, e := range entries {
		position, ok := from.s.table.byID(e.Document.ID)
		if !ok {
			return fmt.Errorf("%w: document %q is not in the snapshot", ErrInvalid, e.Document.ID)
		}
		sources[e.Document.ID] = from.s.table.documents[position].number
	}
	fingerprint, err := json.Marshal(f)
	if err != nil {
		return err
	}
	ix.writer.Lock()
	defer ix.writer.Unlock()
	if err := ix.ready(ctx); err != nil {
		return err
	}
	s := ix.current.Load()
	err = ix.update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(metaBucket)
		if was := meta.Get(stagedKey); was != nil && !bytes.Equal(was, fingerprint) {
			return fmt.Errorf("%w: documents with other settings are staged", ErrInvalid)
		}
		replaced := map[int]bool{}
		for id := range sources {
			if err := unstage(tx, []byte(id)); err != nil {
				return err
			}
			if position, ok := s.table.byID(id); ok {
				replaced[position] = true
			}
		}
		t := transaction{tx: tx, state: s, change: &change{}, sources: sources}
		return cmp.Or(t.put(batch, replaced), meta.Put(stagedKey, fingerprint), ctx.Err())
	})
	if err != nil {
		return fmt.Errorf("index reindex: %w", err)
	}
	return nil
}

// Promote puts what is staged under f in the place of the corpus, in one step, and returns the
// generation that it led to. Snapshots keep what they saw, and searches go on over the former corpus
// until the new one is complete in both channels. It is ErrStale, and nothing has changed, when
// documents are not staged as they are now: Unstaged says which.
func (ix *Index) Promote(ctx context.Context, f Fingerprint) (generation uint64, err error) {
	f = ix.complete(f)
	ix.writer.Lock()
	defer ix.writer.Unlock()
	if err := ix.ready(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	s := ix.current.Load()
	readable := ix.readable()
	err = ix.update(func(tx *bbolt.Tx) error {
		if err := purge(tx, readable); err != nil {
			return err
		}
		generation = number(tx.Bucket(metaBucket).Get(generationKey)) + 1
		return cmp.Or(promote(tx, f, generation), ctx.Err())
	})
	if err != nil {
		return 0, fmt.Errorf("index reindex: %w", err)
	}
	ix.analyzer = f.Analyzer
	if err := ix.recoverState(context.WithoutCancel(ctx)); err != nil {
		return generation, &DegradedError{Generation: generation, Err: err}
	}
	ix.lg.Info("the corpus was made anew with other settings", "documents", s.table.liveDocuments.Count(), "generation", generation,
		"duration", time.Since(start).Round(time.Millisecond))
	return generation, nil
}

// promote makes the live documents dead and the staged ones live.
func promote(tx *bbolt.Tx, f Fingerprint, generation uint64) error {
	fingerprint, err := json.Marshal(f)
	if err != nil {
		return err
	}
	meta, ids, staged, dead := tx.Bucket(metaBucket), tx.Bucket(idsBucket), tx.Bucket(stagedBucket), tx.Bucket(deadBucket)
	if was := meta.Get(stagedKey); was != nil && !bytes.Equal(was, fingerprint) {
		return fmt.Errorf("%w: documents with other settings are staged", ErrStale)
	}
	type swap struct{ id, number []byte }
	var swaps []swap
	cursor := ids.Cursor()
	for id, live := cursor.First(); id != nil; id, live = cursor.Next() {
		e, err := decodeStaged(staged.Get(id))
		if err != nil || !e.current(live) {
			return fmt.Errorf("%w: document %q", ErrStale, id)
		}
		if err := dead.Put(append(be64(generation), live...), []byte{}); err != nil {
			return err
		}
		swaps = append(swaps, swap{bytes.Clone(id), be32(e.number)})
	}
	for _, w := range swaps {
		if err := cmp.Or(ids.Put(w.id, w.number), staged.Delete(w.id)); err != nil {
			return err
		}
	}
	return cmp.Or(
		dropStaged(tx, generation), // of documents that were deleted meanwhile
		meta.Put(fingerprintKey, fingerprint),
		meta.Put(generationKey, be64(generation)))
}
