package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/bits-and-blooms/bitset"

	"assay/index/dense"
	"assay/index/hnsw"
)

// filtered returns the dataset as it looks through a filter, for its first queries.
func (d *dataset) filtered(allowed func(int) bool, queries int) *dataset {
	out := &dataset{dim: d.dim, base: d.base, query: d.query[:min(queries, len(d.query))]}
	out.truth = make([][]int32, len(out.query))
	each(len(out.query), func(i int) { out.truth[i] = nearest(d.base, out.query[i], truthDepth, allowed) })
	return out
}

// filters measures searches of which a part of all vectors passes a filter: the engine as it is, the
// graph alone and the exact scan alone.
func (d *dataset) filters() error {
	b, err := newBuilt(dense.EngineHNSW, d.dim)
	if err != nil {
		return err
	}
	b.add(d.base)
	if err := b.settle(runtime.NumCPU()); err != nil {
		return err
	}
	file, ok := b.view.(*dense.Graphed).File("")
	if !ok {
		return fmt.Errorf("%d vectors are too few for a graph", len(d.base))
	}
	exact, err := newBuilt(dense.EngineExact, d.dim)
	if err != nil {
		return err
	}
	exact.add(d.base)
	for _, percent := range []float64{0.1, 1, 5, 10, 15, 20, 30, 50, 100} {
		r := rand.New(rand.NewPCG(9, 9))
		allowed := bitset.New(uint(len(d.base)))
		for i := range d.base {
			if r.Float64() < percent/100 {
				allowed.Set(uint(i))
			}
		}
		if allowed.Count() < truthDepth {
			continue // recall would say nothing
		}
		part := d.filtered(func(i int) bool { return allowed.Test(uint(i)) }, 100)
		setting := fmt.Sprintf("%g %% pass", percent)
		for _, m := range []struct {
			name   string
			search searcher
		}{
			{"filter: hnsw", b.search(allowed)},
			{"filter: graph ef100", graphSearch(file.Graph, 100, func(id uint32) bool { return allowed.Test(uint(id)) })},
			{"filter: exact", exact.search(allowed)},
		} {
			if err := part.measure(m.name, setting, m.search); err != nil {
				return err
			}
		}
	}
	return nil
}

// deletes measures what is left of recall when half of all is deleted, and when it came back.
func (d *dataset) deletes() error {
	b, err := newBuilt(dense.EngineHNSW, d.dim)
	if err != nil {
		return err
	}
	b.add(d.base)
	if err := b.settle(runtime.NumCPU()); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(8, 8))
	dead := r.Perm(len(d.base))[:len(d.base)/2]
	var back [][]float32
	place := make([]int32, len(d.base)) // where a vector is
	for i := range place {
		place[i] = int32(i)
	}
	for i, id := range dead {
		b.live.Clear(uint(id))
		back = append(back, d.base[id])
		place[id] = int32(len(d.base) + i)
	}
	half := d.filtered(func(i int) bool { return b.live.Test(uint(i)) }, len(d.query))
	if err := half.measure("deletes", "half deleted", b.search(b.live)); err != nil {
		return err
	}
	file, ok := b.view.(*dense.Graphed).File("")
	if !ok {
		return fmt.Errorf("%d vectors are too few for a graph", len(d.base))
	}
	if err := half.measure("deletes", "half deleted, graph alone, ef100", graphSearch(file.Graph, 100, func(id uint32) bool { return b.live.Test(uint(id)) })); err != nil {
		return err
	}
	all := *d
	all.truth = make([][]int32, len(d.truth))
	for i, t := range d.truth {
		for _, id := range t {
			all.truth[i] = append(all.truth[i], place[id])
		}
	}
	// A graph that is extended by what came back, instead of being made anew as the engine does.
	extended, err := extend(file.Graph, back)
	if err != nil {
		return err
	}
	if err := all.measure("deletes", "half came back, graph alone, not made anew, ef100", graphSearch(extended, 100, func(id uint32) bool {
		return int(id) >= len(d.base) || b.live.Test(uint(id))
	})); err != nil {
		return err
	}
	b.add(back)
	if err := all.measure("deletes", "half came back, fresh", b.search(b.live)); err != nil {
		return err
	}
	if err := b.settle(runtime.NumCPU()); err != nil {
		return err
	}
	return all.measure("deletes", "half came back, after the background work", b.search(b.live))
}

func extend(g *hnsw.Graph, vectors [][]float32) (*hnsw.Graph, error) {
	return g.Extend(context.Background(), vectors, runtime.NumCPU())
}
