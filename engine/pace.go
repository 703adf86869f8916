package engine

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Go gives the processor to whoever can run, first come, first served, for up to 10 ms at a time. A
// search takes 2 ms in a dozen steps, and would wait at each of them behind an ingest that keeps all
// cores busy. So an ingest that goes gently leaves a core free, does its work in small pieces, and
// lets searches that are under way go first.

// searches counts the searches under way.
type searches struct {
	count atomic.Int64

	mu    sync.Mutex    // guards quiet
	quiet chan struct{} // closed when no search is under way any more; nil when nobody waits for that
}

func (s *searches) begin() { s.count.Add(1) }

func (s *searches) end() {
	if s.count.Add(-1) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet != nil {
		close(s.quiet)
		s.quiet = nil
	}
}

// wait waits until no search is under way, for a limited time: under a steady load of questions a
// document has to get through as well.
func (s *searches) wait(ctx context.Context, limit time.Duration) {
	if s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	if s.quiet == nil {
		s.quiet = make(chan struct{})
	}
	quiet := s.quiet
	s.mu.Unlock()
	if s.count.Load() == 0 { // it ended meanwhile, perhaps before it could see that somebody waits
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-quiet:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// pieceWait is how long a piece of work waits for searches.
const pieceWait = 50 * time.Millisecond

// pace orders the pieces of a gentle ingest's work. A nil pace is full speed.
type pace struct {
	searches *searches
	cores    chan struct{} // one token for each core that may be busy
}

func newPace(s *searches) *pace {
	return &pace{searches: s, cores: make(chan struct{}, max(1, min(runtime.NumCPU(), runtime.GOMAXPROCS(0))-1))}
}

// piece does a piece of work when it is its turn.
func (p *pace) piece(ctx context.Context, work func() error) error {
	if p == nil {
		return work()
	}
	p.searches.wait(ctx, pieceWait)
	select {
	case p.cores <- struct{}{}:
		defer func() { <-p.cores }()
		return work()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sizes of the pieces of a gentle ingest.
const (
	gentleChunks = 128
	gentleTexts  = 16
)

// batchSize is how many chunks make a batch.
func (p *pace) batchSize() int {
	if p == nil {
		return batchChunks
	}
	return gentleChunks
}

// textsAtOnce is how many of n texts are embedded at once.
func (p *pace) textsAtOnce(n int) int {
	if p == nil {
		return n
	}
	return min(n, gentleTexts)
}
