package index

import (
	"context"
	"fmt"
	"time"

	"assay/index/dense"
)

// grower makes graphs over the vectors in the background, while searches and writes go on. It holds
// the writer's lock only to put one in.
type grower struct {
	ix      *Index
	poke    chan struct{}     // there may be something to do
	waiters chan chan<- error // get the outcome when nothing is to do
	cancel  context.CancelFunc
	ended   chan struct{} // closed at the end
}

// startGrower starts the background work.
func (ix *Index) startGrower() {
	ctx, cancel := context.WithCancel(context.Background())
	g := &grower{ix: ix, poke: make(chan struct{}, 1), waiters: make(chan chan<- error), cancel: cancel, ended: make(chan struct{})}
	ix.grower = g
	go func() {
		defer close(g.ended)
		g.run(ctx)
	}()
}

// wake has the grower look whether there is something to do. It never waits.
func (g *grower) wake() {
	if g == nil { // nothing is published yet that would need it
		return
	}
	select {
	case g.poke <- struct{}{}:
	default:
	}
}

// stop ends the work, also work that is under way. The writer's lock is not held.
func (g *grower) stop() {
	if g == nil {
		return
	}
	g.cancel()
	<-g.ended
}

// run works until nothing is to do, keeps the graph in its file, and waits for the next change. A
// graph that cannot be made leaves searches right, but slower, so it is reported and tried again
// after the next change.
func (g *grower) run(ctx context.Context) {
	kept := true
	var waiting []chan<- error
	for {
		grown, err := g.step(ctx)
		if ctx.Err() != nil {
			return
		}
		if grown {
			kept = false
			continue
		}
		if err != nil {
			g.ix.lg.Error("a graph over the vectors could not be made; they are compared one by one", "error", err)
		} else if !kept {
			kept = true
			if err = g.ix.keepGraph(); err != nil {
				g.ix.lg.Warn("the graph over the vectors could not be kept; the next start makes it again", "error", err)
			}
		}
		for _, w := range waiting {
			w <- err
		}
		waiting = nil
		select {
		case <-ctx.Done():
			return
		case <-g.poke:
		case w := <-g.waiters:
			waiting = append(waiting, w)
		}
	}
}

// Settle waits until the graph over the vectors is made and kept, as far as there is to be one, and
// reports what went wrong with it. Searches are right before it too; they and the next start are faster
// after it.
func (ix *Index) Settle(ctx context.Context) error {
	w := make(chan error, 1)
	select {
	case ix.grower.waiters <- w:
	case <-ix.grower.ended:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-w:
		return err
	case <-ix.grower.ended:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// step does one piece of work, if there is one.
func (g *grower) step(ctx context.Context) (grown bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	s := g.ix.current.Load()
	view, ok := s.vectors().(*dense.Graphed)
	if !ok {
		return false, nil
	}
	plan, ok := view.Plan(s.table.live)
	if !ok {
		return false, nil
	}
	start := time.Now()
	graph, err := view.Grow(ctx, plan, func(slot uint32) uint32 { return s.table.rows[slot] }, g.ix.o.Workers)
	if err != nil {
		return false, err
	}
	if err := g.ix.adopt(graph, s.table.rows[len(s.table.rows)-1]); err != nil {
		return false, err
	}
	g.ix.lg.Info("a graph over the vectors is in use", "vectors", graph.Len(), "added", len(plan.Slots), "anew", plan.Fresh,
		"duration", time.Since(start).Round(time.Millisecond))
	return true, nil
}

// adopt puts a graph into the current state, in which it answers for the rows up to last.
func (ix *Index) adopt(g dense.Grown, last uint32) error {
	ix.writer.Lock()
	defer ix.writer.Unlock()
	s := ix.current.Load()
	view, ok := s.vectors().(*dense.Graphed)
	border := s.table.slotFrom(last + 1)
	if !ok || border == 0 { // all of it was dropped meanwhile
		return nil
	}
	next, err := view.Adopt(g, s.table.slot, border)
	if err != nil {
		return err
	}
	if err := next.Check(s.table.live, func(slot uint32) uint32 { return s.table.rows[slot] }); err != nil {
		// The corpus was exchanged for one whose rows lie between: the next step begins with that.
		ix.lg.Info("a graph over vectors that were exchanged meanwhile is not used", "reason", err)
		return nil
	}
	s.setVectors(next)
	return nil
}
