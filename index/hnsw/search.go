package hnsw

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// ErrQuery is returned for a search that makes no sense.
var ErrQuery = errors.New("hnsw: query")

// pollEvery is how many nodes are looked around from before the context is asked again: some 30 µs.
const pollEvery = 64

// Search yields the ef nearest nodes that it meets, and their twins, in no order. The greater ef, the
// better the recall and the longer the search. With allowed, only nodes that it accepts are yielded,
// and the search goes on until ef of those are in sight; for a set that few nodes are in, comparing
// with each of them is cheaper. allowed is called several times for some nodes and never for others.
func (g *Graph) Search(ctx context.Context, query []float32, ef int, allowed func(id uint32) bool, yield func(Neighbour)) error {
	if len(query) != g.dim {
		return fmt.Errorf("%w: it has %d dimensions, the graph has %d", ErrQuery, len(query), g.dim)
	}
	if ef < 1 {
		return fmt.Errorf("%w: ef is %d; it must be at least 1", ErrQuery, ef)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if g.Len() == 0 {
		return nil
	}
	defer runtime.KeepAlive(g) // as long as its vectors are read
	s := g.scratch.get()
	defer g.scratch.put(s)
	at := g.descend(query, Neighbour{g.entry, similarity(query, g.Vector(g.entry))}, g.top, 1)
	found, err := g.searchLayer(ctx, s, query, at, ef, 0, allowed)
	if err != nil {
		return err
	}
	for _, n := range found {
		if allowed == nil || allowed(n.ID) {
			yield(n)
		}
		for _, t := range g.twinsOf(n.ID) {
			if allowed == nil || allowed(t.id) {
				yield(Neighbour{t.id, n.Similarity})
			}
		}
	}
	return nil
}

// passes reports whether a node or one of its twins is allowed.
func (g *Graph) passes(id uint32, allowed func(uint32) bool) bool {
	if allowed == nil || allowed(id) {
		return true
	}
	for _, t := range g.twinsOf(id) {
		if allowed(t.id) {
			return true
		}
	}
	return false
}

// descend walks greedily from the layer from down to the layer to and returns the nearest node met.
func (g *Graph) descend(query []float32, at Neighbour, from, to int) Neighbour {
	for layer := from; layer >= to; layer-- {
		for moved := true; moved; {
			moved = false
			for _, id := range g.links(at.ID, layer) {
				if id == none {
					break
				}
				if n := (Neighbour{id, similarity(query, g.Vector(id))}); nearer(n, at) {
					at, moved = n, true
				}
			}
		}
	}
	return at
}

// searchLayer returns the ef nearest nodes that it meets from at, the farthest first and the others in
// no order. The result is valid until s is used again.
func (g *Graph) searchLayer(ctx context.Context, s *scratch, query []float32, at Neighbour, ef, layer int, allowed func(uint32) bool) ([]Neighbour, error) {
	s.next(g.Len())
	s.open, s.found = s.open[:0], s.found[:0]
	s.visit(at.ID)
	s.open.push(at)
	if g.passes(at.ID, allowed) {
		s.found.push(at)
	}
	for steps := 1; len(s.open) > 0; steps++ {
		if steps%pollEvery == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		current := s.open.pop()
		if len(s.found) >= ef && nearer(s.found[0], current) {
			break
		}
		for _, id := range g.links(current.ID, layer) {
			if id == none {
				break
			}
			if !s.visit(id) {
				continue
			}
			n := Neighbour{id, similarity(query, g.Vector(id))}
			full := len(s.found) >= ef
			if full && !nearer(n, s.found[0]) {
				continue
			}
			s.open.push(n)
			switch {
			case !g.passes(id, allowed):
			case full:
				s.found.replace(n)
			default:
				s.found.push(n)
			}
		}
	}
	return s.found, nil
}

// scratch is what one search needs; it is kept for the next one.
type scratch struct {
	seen  []uint8 // the epoch in which a node was visited last; a byte each, since many are read
	epoch uint8
	open  nearestFirst
	found farthestFirst
}

// next begins a new search: no node is visited.
func (s *scratch) next(n int) {
	if len(s.seen) < n {
		s.seen, s.epoch = make([]uint8, n), 0
	}
	s.epoch++
	if s.epoch == 0 { // the marks of old searches would come true again
		clear(s.seen)
		s.epoch = 1
	}
}

// visit marks a node, and reports whether it was not visited before.
func (s *scratch) visit(id uint32) bool {
	if s.seen[id] == s.epoch {
		return false
	}
	s.seen[id] = s.epoch
	return true
}

// scratchPool keeps scratches between searches.
type scratchPool struct{ pool sync.Pool }

func (p *scratchPool) get() *scratch {
	if s, ok := p.pool.Get().(*scratch); ok {
		return s
	}
	return &scratch{}
}

func (p *scratchPool) put(s *scratch) { p.pool.Put(s) }
