package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"assay"
	"assay/index"
	"assay/server"
)

// live is the app of a server, which a reindexing replaces while requests are under way.
type live struct {
	lg *slog.Logger

	reindexing sync.Mutex // held over a whole one

	mu      sync.Mutex // guards what follows
	current *app
	pending chan struct{} // closed when a reindexing under way has ended; nil when there is none
	added   []*app        // to be closed with the first
}

var _ server.Engine = (*live)(nil)

func newLive(a *app) *live { return &live{lg: a.lg, current: a} }

func (l *live) app() *app {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

// close closes what was put in the place of the first app.
func (l *live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.added {
		a.close()
	}
}

// begin notes that the app is about to be replaced. The returned function ends that: with another app,
// or with nil when it stays.
func (l *live) begin() (end func(*app), err error) {
	if !l.reindexing.TryLock() {
		return nil, errors.New("reindex: the server is at it already; wait for that to end")
	}
	done := make(chan struct{})
	l.mu.Lock()
	l.pending = done
	l.mu.Unlock()
	return func(a *app) {
		l.mu.Lock()
		if a != nil {
			l.current = a
			l.added = append(l.added, a)
		}
		l.pending = nil
		l.mu.Unlock()
		close(done)
		l.reindexing.Unlock()
	}, nil
}

// swapPatience is how long a request waits for the models of a corpus that was just replaced; loading
// the built-in ones takes well under a second.
const swapPatience = 10 * time.Second

// swapped waits until a is no longer the current app, and reports whether it is not.
func (l *live) swapped(ctx context.Context, a *app) bool {
	l.mu.Lock()
	pending, current := l.pending, l.current
	l.mu.Unlock()
	if current != a {
		return true
	}
	if pending == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, swapPatience)
	defer cancel()
	select {
	case <-pending:
	case <-ctx.Done():
	}
	return l.app() != a
}

// again calls with the current app, and once more when the corpus was made anew under it: an engine
// refuses vectors of another model than its own before it does anything else.
func again[T any](ctx context.Context, l *live, call func(*app) (T, error)) (T, error) {
	for {
		a := l.app()
		out, err := call(a)
		var other *index.MismatchError
		if !errors.As(err, &other) || !l.swapped(ctx, a) {
			return out, err
		}
	}
}

// Answer implements server.Engine, as do the following.
func (l *live) Answer(ctx context.Context, q assay.Query, on func(assay.Event) error) (*assay.Answer, error) {
	return again(ctx, l, func(a *app) (*assay.Answer, error) { return a.engine.Answer(ctx, q, on) })
}

// Search retrieves without answering.
func (l *live) Search(ctx context.Context, q assay.Query) (*assay.Retrieval, error) {
	return again(ctx, l, func(a *app) (*assay.Retrieval, error) { return a.engine.Search(ctx, q) })
}

// Manifest returns the record of an answer.
func (l *live) Manifest(ctx context.Context, id string) (*assay.Manifest, error) {
	return l.app().engine.Manifest(ctx, id)
}

// Chunk returns a passage.
func (l *live) Chunk(ctx context.Context, id string) (assay.Chunk, *assay.Document, error) {
	return l.app().engine.Chunk(ctx, id)
}

// Ready reports what keeps the engine from answering.
func (l *live) Ready(ctx context.Context) []assay.NotReady { return l.app().engine.Ready(ctx) }
