package index

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// maxPending bounds the manifests that wait for the disk.
const maxPending = 512

// pendingManifest is a manifest that is not on disk yet.
type pendingManifest struct {
	id, trace string
	created   time.Time
	data      []byte // as JSON
}

// manifestQueue gathers manifests while the disk is busy with earlier ones, so that an answer never
// waits for a disk and many answers share one sync. Its goroutine lives only while there is work.
type manifestQueue struct {
	ix   *Index
	room chan struct{} // holds one token for each pending manifest

	mu      sync.Mutex         // guards what follows
	idle    *sync.Cond         // signals that running has become false
	pending []*pendingManifest // oldest first, including those being written
	running bool
	closed  bool
	lost    int // that could not be written
}

func (q *manifestQueue) init(ix *Index) {
	q.ix, q.room, q.idle = ix, make(chan struct{}, maxPending), sync.NewCond(&q.mu)
}

func (q *manifestQueue) put(ctx context.Context, p *pendingManifest) error {
	select {
	case q.room <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("put manifest %q: %d are waiting for the disk: %w", p.id, maxPending, ctx.Err())
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		<-q.room
		return ErrClosed
	}
	q.pending = append(q.pending, p)
	if !q.running {
		q.running = true
		go q.run()
	}
	return nil
}

// find returns the latest pending manifest of which something holds.
func (q *manifestQueue) find(is func(*pendingManifest) bool) *pendingManifest {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range slices.Backward(q.pending) {
		if is(p) {
			return p
		}
	}
	return nil
}

// run writes until nothing is pending.
func (q *manifestQueue) run() {
	for {
		q.mu.Lock()
		batch := slices.Clone(q.pending)
		if len(batch) == 0 {
			q.running, q.pending = false, nil
			q.idle.Broadcast()
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()

		err := q.ix.writeManifests(batch)
		if err != nil {
			q.ix.lg.Error("manifests could not be written and are lost", "manifests", len(batch), "error", err)
		}
		q.mu.Lock()
		q.pending = q.pending[len(batch):]
		if err != nil {
			q.lost += len(batch)
		}
		q.mu.Unlock()
		for range batch {
			<-q.room
		}
	}
}

// drain waits until nothing is pending.
func (q *manifestQueue) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.running {
		q.idle.Wait()
	}
}

func (q *manifestQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.drain()
}
