package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"assay"
	"assay/index"
	"assay/ingest"
)

// A batch is written when it holds this much. At most three batches are in flight, which bounds the
// memory of a run whatever the size of the corpus.
const (
	batchChunks = 1024
	batchBytes  = 8 << 20
)

// batch is a group of documents on its way through the write path.
type batch struct {
	entries       []entry
	remove        []string // IDs
	chunks, bytes int
}

// entry is one document of a batch.
type entry struct {
	index.Entry
	isNew bool
}

func (b *batch) empty() bool { return len(b.entries)+len(b.remove) == 0 }

// writer is one run of the write path: reading and chunking, embedding, and committing are three
// goroutines, so that the next batch is read while the last one is written.
type writer struct {
	e *Engine
	o IngestOptions

	pace    *pace           // nil for full speed
	seen    map[string]bool // URIs that are still there
	skipped []ingest.Result // what is there and did not become searchable

	mu      sync.Mutex // guards summary
	summary Summary
}

func (w *writer) run(ctx context.Context, roots []ingest.Root) error {
	g, ctx := errgroup.WithContext(ctx)
	read := make(chan *batch)
	embedded := make(chan *batch)
	g.Go(func() error {
		defer close(read)
		return w.read(ctx, roots, read)
	})
	g.Go(func() error {
		defer close(embedded)
		return w.embed(ctx, read, embedded)
	})
	g.Go(func() error { return w.commit(ctx, embedded) })
	return g.Wait()
}

// update changes the summary and tells the caller.
func (w *writer) update(change func(*Summary)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.summary)
	if w.o.OnProgress != nil {
		w.o.OnProgress(w.summary)
	}
}

// read turns sources into batches of chunked documents.
func (w *writer) read(ctx context.Context, roots []ingest.Root, out chan<- *batch) error {
	o := w.o.Read
	o.Catalogue = w.e.d.Index
	b := &batch{}
	send := func(force bool) error {
		if b.empty() || !force && b.chunks < w.pace.batchSize() && b.bytes < batchBytes {
			return nil
		}
		select {
		case out <- b:
			b = &batch{}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for r := range ingest.Read(ctx, w.e.lg, roots, o) {
		if err := w.pace.piece(ctx, func() error { w.take(r, b); return nil }); err != nil {
			return err
		}
		if err := send(false); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.o.Prune {
		gone, err := w.gone(roots)
		if err != nil {
			return err
		}
		w.update(func(s *Summary) { s.Gone = gone })
		for _, id := range gone {
			b.remove = append(b.remove, id)
			b.bytes += 1 << 10
			if err := send(false); err != nil {
				return err
			}
		}
	}
	return send(true)
}

// take puts what was read into the batch.
func (w *writer) take(r ingest.Result, b *batch) {
	w.seen[r.URI] = true
	switch r.State {
	case ingest.StateUnchanged:
		w.update(func(s *Summary) { s.Unchanged++; s.Bytes += r.Bytes })
		return
	case ingest.StateSkipped:
		w.skip(r, b)
		return
	}
	doc := r.Document
	chunks := w.e.d.Chunker.Chunk(doc)
	if len(chunks) == 0 {
		w.skip(ingest.Result{ID: r.ID, URI: r.URI, Bytes: r.Bytes, Reason: NoText, State: ingest.StateSkipped}, b)
		return
	}
	b.entries = append(b.entries, entry{index.Entry{Document: *doc, Chunks: chunks}, r.State == ingest.StateNew})
	b.chunks += len(chunks)
	b.bytes += len(doc.Text)
	w.update(func(s *Summary) { s.Bytes += r.Bytes })
}

// skip reports a source that does not become searchable. What was stored of it earlier stays when
// the source could not be read, and goes when the source now says nothing.
func (w *writer) skip(r ingest.Result, b *batch) {
	skipped := SkippedDoc{URI: r.URI, Reason: r.Reason}
	if r.Err != nil {
		skipped.Detail = r.Err.Error()
	}
	if id, _, known := w.e.d.Index.ByURI(r.URI); known {
		if r.Reason == ingest.SkipEmpty || r.Reason == NoText {
			b.remove = append(b.remove, id)
		} else {
			skipped.Kept = true
		}
	}
	w.skipped = append(w.skipped, r)
	w.update(func(s *Summary) { s.Skipped = append(s.Skipped, skipped); s.Bytes += r.Bytes })
}

// gone lists the stored documents below the roots that nothing which was met accounts for. A root below
// which nothing at all was met is more likely a mistake, such as a disk that is not mounted, than the
// wish to remove everything.
func (w *writer) gone(roots []ingest.Root) ([]string, error) {
	snap := w.e.d.Index.Snapshot()
	defer snap.Close()
	var ids []string
	protected := 0
	for doc := range snap.AllDocuments() {
		switch {
		case w.seen[doc.URI] || !w.below(roots, doc.URI):
		case w.accounted(doc.URI):
			protected++
		default:
			ids = append(ids, doc.ID)
		}
	}
	w.update(func(s *Summary) { s.Protected = protected })
	if len(ids) > 0 && len(w.seen) == 0 && !w.o.PruneAll {
		return nil, fmt.Errorf("%w: nothing was found where %d stored documents are from, so nothing was removed; if they are to go, say so with --prune-all", assay.ErrInvalid, len(ids))
	}
	return ids, nil
}

func (w *writer) below(roots []ingest.Root, uri string) bool {
	return slices.ContainsFunc(roots, func(r ingest.Root) bool { return r.Contains(uri) })
}

func (w *writer) accounted(uri string) bool {
	return slices.ContainsFunc(w.skipped, func(r ingest.Result) bool { return r.Accounts(uri) })
}

// embed fills in the vectors of each batch.
func (w *writer) embed(ctx context.Context, in <-chan *batch, out chan<- *batch) error {
	for b := range in {
		if !w.o.DryRun {
			if err := w.vectors(ctx, b); err != nil {
				return err
			}
		}
		select {
		case out <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (w *writer) vectors(ctx context.Context, b *batch) error { return w.e.d.vectors(ctx, b, w.pace) }

// vectors embeds the passages of a batch, each under its title and headings.
func (d Deps) vectors(ctx context.Context, b *batch, p *pace) error {
	texts := make([]string, 0, b.chunks)
	for _, entry := range b.entries {
		for _, c := range entry.Chunks {
			texts = append(texts, passageText(entry.Document.Title, assay.HeadingPath(c.Headings), c.Text))
		}
	}
	if len(texts) == 0 {
		return nil
	}
	var vectors [][]float32
	for len(texts) > 0 {
		n := p.textsAtOnce(len(texts))
		err := p.piece(ctx, func() error {
			some, err := d.Embedder.EmbedDocuments(ctx, texts[:n])
			vectors = append(vectors, some...)
			return err
		})
		if err != nil {
			return err
		}
		texts = texts[n:]
	}
	for i := range b.entries {
		n := len(b.entries[i].Chunks)
		b.entries[i].Vectors, vectors = vectors[:n:n], vectors[n:]
	}
	return nil
}

// commit writes each batch: one commit, after which it is searchable.
func (w *writer) commit(ctx context.Context, in <-chan *batch) error {
	for b := range in {
		if !w.o.DryRun {
			if err := w.apply(ctx, b); err != nil {
				return err
			}
		}
		w.update(func(s *Summary) {
			for _, entry := range b.entries {
				if entry.isNew {
					s.Added++
				} else {
					s.Changed++
				}
				s.Chunks += len(entry.Chunks)
				for _, c := range entry.Chunks {
					s.Tokens += c.Tokens
				}
			}
			s.Removed += len(b.remove)
		})
	}
	return nil
}

// apply commits a batch. Documents that cannot be stored are left out of it and reported.
func (w *writer) apply(ctx context.Context, b *batch) error {
	for {
		change := index.Batch{Delete: b.remove}
		for _, entry := range b.entries {
			change.Put = append(change.Put, entry.Entry)
		}
		err := w.pace.piece(ctx, func() error {
			_, err := w.e.d.Index.Apply(ctx, w.e.d.stored(), change)
			return err
		})
		var bad *index.BatchError
		var degraded *index.DegradedError
		switch {
		case errors.As(err, &bad):
			w.reject(b, bad)
			if b.empty() {
				return nil
			}
			continue
		case errors.As(err, &degraded): // it is on disk; the next commit or start makes it searchable
			w.e.lg.Error("what was ingested is stored and not yet searchable", "error", err)
			return nil
		}
		return err
	}
}

// reject takes documents out of a batch that the index cannot store.
func (w *writer) reject(b *batch, bad *index.BatchError) {
	for _, problem := range bad.Entries {
		i := slices.IndexFunc(b.entries, func(e entry) bool { return e.Document.ID == problem.ID })
		if i < 0 {
			continue
		}
		rejected := b.entries[i]
		b.entries = slices.Delete(b.entries, i, i+1)
		w.update(func(s *Summary) {
			s.Skipped = append(s.Skipped, SkippedDoc{URI: rejected.Document.URI, Reason: NotStorable, Detail: problem.Err.Error(), Kept: !rejected.isNew})
		})
	}
}
