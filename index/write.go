package index

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// CheckFingerprint compares with what the corpus was made with: nil when they agree or when there is
// no document, otherwise a MismatchError.
func (ix *Index) CheckFingerprint(f Fingerprint) error {
	s := ix.current.Load()
	return ix.checkFingerprint(s, f.withAnalyzer(s))
}

func (f Fingerprint) withAnalyzer(s *state) Fingerprint {
	if f.Analyzer == "" {
		f.Analyzer = s.analyzer.Name()
	}
	return f
}

func (ix *Index) checkFingerprint(s *state, f Fingerprint) error {
	stored := f
	if s.fingerprint != nil && s.table.liveDocuments.Any() {
		stored = *s.fingerprint
	}
	stored.Analyzer = s.analyzer.Name()
	return stored.compare(ix.dir, f)
}

// Apply makes a change of the corpus in one step and returns the generation that it led to. When it
// returns without an error the change is on disk, and every Snapshot taken from then on sees it, in
// both channels. An error means that nothing was changed, except for a DegradedError. Once the
// change is on disk, the context no longer ends it.
func (ix *Index) Apply(ctx context.Context, f Fingerprint, b Batch) (generation uint64, err error) {
	s := ix.current.Load()
	f = f.withAnalyzer(s)
	if err := ix.checkFingerprint(s, f); err != nil {
		return 0, err
	}
	batch, err := ix.prepare(ctx, s.analyzer, f.Embedder.Dimensions, b)
	if err != nil {
		return 0, err
	}
	ix.writer.Lock()
	defer ix.writer.Unlock()
	if err := ix.ready(ctx); err != nil {
		return 0, err
	}
	s = ix.current.Load()
	// Another write may have come between, even one that has reset the corpus.
	if err := ix.checkFingerprint(s, f); err != nil {
		return 0, err
	}
	if len(batch) == 0 && !s.holdsAny(b.Delete) {
		return s.generation, nil
	}
	if s, err = ix.fresh(s, f); err != nil {
		return 0, err
	}
	c, err := ix.commit(ctx, s, f, batch, b.Delete, ix.readable())
	if err != nil {
		return 0, err
	}
	return c.generation, ix.follow(s, c)
}

func (s *state) holdsAny(ids []string) bool {
	for _, id := range ids {
		if _, ok := s.table.byID(id); ok {
			return true
		}
	}
	return false
}

// ready refuses writes to a closed index, and brings one that has fallen behind its store up to it
// first: a write needs to know what it replaces. The writer's lock is held.
func (ix *Index) ready(ctx context.Context) error {
	if ix.closed {
		return ErrClosed
	}
	if ix.behind == nil {
		return ctx.Err()
	}
	if err := ix.recoverState(ctx); err != nil {
		return fmt.Errorf("index: not ready for a write, which was not made: %w", err)
	}
	return nil
}

func (ix *Index) recoverState(ctx context.Context) error {
	s, err := ix.load(ctx)
	if err != nil {
		ix.fellBehind(err)
		return err
	}
	ix.publish(s)
	return nil
}

// fresh returns the state to write upon. A corpus without documents may take another embedder, so
// its arrays start anew.
func (ix *Index) fresh(s *state, f Fingerprint) (*state, error) {
	if s.vectors() != nil && (s.table.liveDocuments.Any() || len(s.table.documents) == 0 && s.fingerprint.Embedder == f.Embedder) {
		return s, nil
	}
	vectors, err := ix.newVectors(f.Embedder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	ix.epoch++
	out := &state{generation: s.generation, fingerprint: &f, analyzer: s.analyzer, table: newTable(ix.epoch)}
	out.setVectors(vectors)
	return out, nil
}

// follow brings both channels up to a change that the store has, and publishes the result. The
// writer's lock is held.
func (ix *Index) follow(s *state, c *change) error {
	err := ix.lexical.Apply(c.docs, c.dropRows, c.generation)
	if err == nil {
		next := &state{generation: c.generation, fingerprint: c.fingerprint, analyzer: s.analyzer}
		if next.reader, err = ix.lexical.Reader(); err == nil {
			next.table = s.table.edit(c.drop, c.add)
			vectors := s.vectors().Extend(c.vectors)
			if next.table.sparse() {
				ix.epoch++
				var kept []uint32
				next.table, kept = next.table.compact(ix.epoch)
				vectors = vectors.Compact(kept)
			}
			next.setVectors(vectors)
			next.corpus = next.table.corpus()
			ix.publish(next)
			return nil
		}
	}
	ix.fellBehind(err)
	ix.lg.Error("a search index could not follow a write that is stored; it is brought up from the store", "generation", c.generation, "error", err)
	// The caller's context has done its part: what is stored has to become searchable.
	if again := ix.recoverState(context.Background()); again != nil {
		return &DegradedError{Generation: c.generation, Err: errors.Join(err, again)}
	}
	return nil
}

// Reset drops all documents, chunks, vectors and the fingerprint, so that a corpus can be built with
// other settings. Manifests and the embedding cache stay. Open snapshots keep what they saw.
func (ix *Index) Reset(ctx context.Context) error {
	ix.writer.Lock()
	defer ix.writer.Unlock()
	if ix.closed {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	dropped := 0
	readable := ix.readable()
	err := ix.update(func(tx *bbolt.Tx) error {
		if err := purge(tx, readable); err != nil {
			return err
		}
		meta := tx.Bucket(metaBucket)
		generation := number(meta.Get(generationKey)) + 1
		cursor := tx.Bucket(idsBucket).Cursor()
		for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
			if err := tx.Bucket(deadBucket).Put(append(be64(generation), v...), []byte{}); err != nil {
				return err
			}
			dropped++
		}
		return errors.Join(
			dropStaged(tx, generation),
			recreate(tx, [][]byte{idsBucket}),
			meta.Delete(fingerprintKey),
			meta.Put(generationKey, be64(generation)))
	})
	if err != nil {
		return fmt.Errorf("index reset: %w", err)
	}
	if err := ix.recoverState(context.Background()); err != nil {
		return &DegradedError{Generation: ix.current.Load().generation + 1, Err: err}
	}
	ix.lg.Info("the corpus was dropped", "documents", dropped, "duration", time.Since(start).Round(time.Millisecond))
	return nil
}
