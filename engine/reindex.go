package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"assay"
	"assay/index"
)

// Reindexed is what a reindexing did.
type Reindexed struct {
	Documents  int           `json:"documents"` // in the corpus
	Resumed    int           `json:"resumed"`   // of those, done by an earlier run that was interrupted
	Made       int           `json:"made"`      // by this run; a document that changed meanwhile counts again
	Chunks     int           `json:"chunks"`    // made by this run
	Tokens     int           `json:"tokens"`    // of those chunks
	Needless   bool          `json:"needless"`  // the corpus is made with these settings already
	Generation uint64        `json:"generation"`
	Duration   time.Duration `json:"-"`
}

// Reindex makes the corpus anew from the stored texts with the chunker and the embedder of d and an
// analyser: no source is read. The former corpus is served until the new one is complete; then
// it is replaced in one step. What was made is durable, so that a run after an interruption goes on
// where that one ended. An Engine over other settings refuses requests from then on.
func Reindex(ctx context.Context, lg *slog.Logger, d Deps, analyzer string, onProgress func(Reindexed)) (Reindexed, error) {
	r := &reindexer{lg: lg, d: d, f: d.stored(), on: onProgress}
	r.f.Analyzer = analyzer
	start := time.Now()
	err := r.run(ctx)
	r.done.Duration = time.Since(start)
	if err != nil {
		err = fmt.Errorf("reindex: %w", err)
	}
	return r.done, err
}

type reindexer struct {
	lg   *slog.Logger
	d    Deps
	f    index.Fingerprint
	on   func(Reindexed)
	done Reindexed
}

func (r *reindexer) run(ctx context.Context) error {
	snap := r.d.Index.Snapshot()
	r.done.Documents, r.done.Generation = snap.Documents(), snap.Generation()
	if err := snap.Close(); err != nil {
		return err
	}
	if r.d.Index.CheckFingerprint(r.f) == nil {
		r.done.Needless = true
		return r.d.Index.Discard(ctx)
	}
	for first := true; ; first = false {
		ids, staged, err := r.d.Index.Unstaged(ctx, r.f)
		if err != nil {
			return err
		}
		r.done.Documents = len(ids) + staged
		if first {
			r.done.Resumed = staged
			r.progress()
		}
		if err := r.stage(ctx, ids); err != nil {
			return err
		}
		generation, err := r.d.Index.Promote(ctx, r.f)
		var degraded *index.DegradedError
		switch {
		case errors.Is(err, index.ErrStale): // documents came or changed meanwhile
			continue
		case errors.As(err, &degraded):
			r.lg.Error("the new corpus is stored and not yet searchable", "error", err)
		case err != nil:
			return err
		}
		r.done.Generation = generation
		return nil
	}
}

func (r *reindexer) progress() {
	if r.on != nil {
		r.on(r.done)
	}
}

// stage makes documents anew, in batches.
func (r *reindexer) stage(ctx context.Context, ids []string) error {
	for len(ids) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.batch(ctx, ids)
		if err != nil {
			return err
		}
		ids = ids[n:]
		r.progress()
	}
	return nil
}

// batch stages the first of some documents, as many as make a batch, and returns how many it took.
// Those that are gone by now are passed over.
func (r *reindexer) batch(ctx context.Context, ids []string) (taken int, err error) {
	snap := r.d.Index.Snapshot()
	defer snap.Close()
	b := &batch{}
	for taken < len(ids) && b.chunks < batchChunks && b.bytes < batchBytes {
		doc, err := snap.Document(ids[taken])
		taken++
		if errors.Is(err, assay.ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, err
		}
		chunks := r.d.Chunker.Chunk(doc)
		b.entries = append(b.entries, entry{Entry: index.Entry{Document: *doc, Chunks: chunks}})
		b.chunks += len(chunks)
		b.bytes += len(doc.Text)
	}
	if err := r.d.vectors(ctx, b, nil); err != nil {
		return 0, err
	}
	entries := make([]index.Entry, len(b.entries))
	for i, e := range b.entries {
		entries[i] = e.Entry
		r.done.Chunks += len(e.Chunks)
		for _, c := range e.Chunks {
			r.done.Tokens += c.Tokens
		}
	}
	if err := r.d.Index.Stage(ctx, r.f, snap, entries); err != nil {
		return 0, err
	}
	r.done.Made += len(entries)
	return taken, nil
}
