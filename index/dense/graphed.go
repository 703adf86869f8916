package dense

import (
	"context"
	"runtime"
	"slices"

	"github.com/bits-and-blooms/bitset"

	"assay/index/topk"
)

// Graphed is the View that has a graph over the vectors of the first slots, and compares the query
// with each of the fresh ones behind them. It never makes a graph by itself: whoever holds it asks with
// Plan whether one would pay, has it made with Grow while searches go on, and puts it in with Adopt.
type Graphed struct {
	dimensions int
	tuning     tuning
	graph      graph    // empty at first
	keys       []uint32 // of the graph's ids: the owner's numbers
	slots      []uint32 // of the graph's ids, ascending; gone where a compaction has dropped it
	ids        []uint32 // of the slots that the graph covers; gone for those that were dead then
	fresh      *Exact   // the vectors of the slots after those
}

var _ View = (*Graphed)(nil)

// gone stands where there is no id or slot.
const gone = ^uint32(0)

// graph is a search structure over vectors that have the ids from 0 on. It is immutable.
type graph interface {
	len() int
	vector(id uint32) []float32
	// search yields some of the nearest allowed ones, aiming at ef of them, each once. share is the
	// part of all that is allowed.
	search(ctx context.Context, query []float32, ef int, share float64, allowed func(id uint32) bool, yield func(id uint32, similarity float32)) error
	// extend returns a graph with further vectors.
	extend(ctx context.Context, vectors [][]float32, workers int) (graph, error)
	// empty returns a graph of the same kind without vectors.
	empty() graph
}

// tuning is what was measured for a kind of graph; docs/dense.md has the figures.
type tuning struct {
	scans    int  // how many comparisons one of ef costs; decides when comparing with all is cheaper
	minEf    int  // of a search, however small k is
	efPerTen int  // of a search, for ten of k
	from     int  // vectors from which a graph is made at all
	growth   int  // a graph is made larger when the fresh vectors are one in so many of its own
	rebuild  bool // whether it is then made anew, since it cannot be extended
}

func newGraphed(dimensions int, empty graph, t tuning) *Graphed {
	return &Graphed{dimensions: dimensions, tuning: t, graph: empty, fresh: NewExact(dimensions)}
}

// Len implements View.
func (v *Graphed) Len() int { return len(v.ids) + v.fresh.slots }

// Vector implements View.
func (v *Graphed) Vector(slot uint32) []float32 {
	if int(slot) >= len(v.ids) {
		return v.fresh.Vector(slot - uint32(len(v.ids)))
	}
	if id := v.ids[slot]; id != gone {
		return v.graph.vector(id)
	}
	return nil
}

// Extend implements View.
func (v *Graphed) Extend(vectors [][]float32) View {
	out := *v
	out.fresh = v.fresh.extend(vectors)
	return &out
}

// Compact implements View. The graph stays, with the dropped vectors in it, until Plan finds that
// there are too many.
func (v *Graphed) Compact(keep []uint32) View {
	border, _ := slices.BinarySearch(keep, uint32(len(v.ids)))
	out := &Graphed{dimensions: v.dimensions, tuning: v.tuning, graph: v.graph, keys: v.keys, slots: make([]uint32, len(v.slots)), ids: make([]uint32, border)}
	for id := range out.slots {
		out.slots[id] = gone
	}
	for to, slot := range keep[:border] {
		out.ids[to] = v.ids[slot]
		if out.ids[to] != gone {
			out.slots[out.ids[to]] = uint32(to)
		}
	}
	if border == 0 {
		out.graph, out.keys, out.slots = v.graph.empty(), nil, nil
	}
	behind := make([]uint32, 0, len(keep)-border)
	for _, slot := range keep[border:] {
		behind = append(behind, slot-uint32(len(v.ids)))
	}
	out.fresh = v.fresh.pick(behind)
	runtime.KeepAlive(v)
	return out
}

// Search implements View. The graph is asked where that is cheaper than comparing with every allowed
// vector in it, and not believed when it finds fewer than there are.
func (v *Graphed) Search(ctx context.Context, query []float32, k int, allowed *bitset.BitSet, tie topk.Tie) ([]topk.Item, error) {
	defer runtime.KeepAlive(v) // its vectors may be mapped
	best := topk.New(k, tie)
	if passing := count(allowed, 0, len(v.ids)); v.pays(k, passing) {
		found, err := v.searchGraph(ctx, query, k, passing, allowed, best)
		if err != nil {
			return nil, err
		}
		if found >= min(k, passing) {
			return v.searchFresh(ctx, query, k, allowed, tie, best)
		}
		best = topk.New(k, tie)
	}
	if err := scan(ctx, query, v.Vector, 0, len(v.ids), allowed, k, tie, best); err != nil {
		return nil, err
	}
	return v.searchFresh(ctx, query, k, allowed, tie, best)
}

// ef is how many are kept in sight by a search for k, where a share of the graph passes. What passes
// lies apart, and the way from one part to the next leads through what does not: at 100,000 vectors
// recall@50 falls from 0.996 where half passes to 0.94 where a fifth does, unless more is kept in sight.
func (v *Graphed) ef(k int, share float64) float64 {
	const fromShare, most = 0.5, 4
	return float64(max(v.tuning.minEf, k*v.tuning.efPerTen/10)) * max(1, min(fromShare/share, most))
}

// pays reports whether the graph finds k of so many in less time than they can be compared with. The
// fewer pass, the more of the others the search goes through on its way.
func (v *Graphed) pays(k, passing int) bool {
	share := v.share(passing)
	return share > 0 && float64(passing) > float64(v.tuning.scans)*v.ef(k, share)/share
}

// share is the part of the graph that passes.
func (v *Graphed) share(passing int) float64 {
	return float64(passing) / float64(max(v.graph.len(), 1))
}

func (v *Graphed) searchGraph(ctx context.Context, query []float32, k, passing int, allowed *bitset.BitSet, best *topk.Heap) (found int, err error) {
	accepts := func(id uint32) bool {
		slot := v.slots[id]
		return slot != gone && allowed.Test(uint(slot))
	}
	share := v.share(passing)
	err = v.graph.search(ctx, query, int(v.ef(k, share)), share, accepts, func(id uint32, similarity float32) {
		found++
		best.Push(v.slots[id], float64(similarity))
	})
	return found, err
}

func (v *Graphed) searchFresh(ctx context.Context, query []float32, k int, allowed *bitset.BitSet, tie topk.Tie, best *topk.Heap) ([]topk.Item, error) {
	first := uint32(len(v.ids))
	vector := func(slot uint32) []float32 { return v.fresh.Vector(slot - first) }
	if err := scan(ctx, query, vector, len(v.ids), v.Len(), allowed, k, tie, best); err != nil {
		return nil, err
	}
	return best.Sorted(), nil
}
