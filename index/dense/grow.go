package dense

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/bits-and-blooms/bitset"

	"assay/index/hnsw"
)

// Plan is work on a graph that would pay.
type Plan struct {
	Fresh bool     // the graph is made anew; otherwise it stays and is extended
	Slots []uint32 // of the vectors that go into it, ascending
}

// Plan returns what there is to do for a view of which these slots are live, and false when it is
// best left as it is. A graph is made when there are enough vectors, is made larger when so many are
// fresh that comparing with them shows, and is made anew when a third of it is dead.
func (v *Graphed) Plan(live *bitset.BitSet) (Plan, bool) {
	t := v.tuning
	inGraph := count(live, 0, len(v.ids))
	fresh := count(live, len(v.ids), v.Len())
	none := v.graph.len() == 0
	if none && fresh < t.from {
		return Plan{}, false
	}
	anew := none || v.graph.len()-inGraph > v.graph.len()/3
	if !anew && fresh < max(t.from/2, v.graph.len()/t.growth) {
		return Plan{}, false
	}
	p := Plan{Fresh: anew || t.rebuild}
	first := uint(len(v.ids))
	if p.Fresh {
		first = 0
	}
	for slot, ok := live.NextSet(first); ok && slot < uint(v.Len()); slot, ok = live.NextSet(slot + 1) {
		p.Slots = append(p.Slots, uint32(slot))
	}
	return p, true
}

// Grown is a graph that is ready to be put into a view. Each of its vectors has a key, which is the
// owner's number of it, ascending, and stays the same when slots change.
type Grown struct {
	graph graph
	keys  []uint32
}

// Grow makes the graph of a plan of this view, from so many goroutines (0 for one a core). It takes
// some 0.3 ms for each vector and changes nothing. keyOf gives the keys of slots.
func (v *Graphed) Grow(ctx context.Context, p Plan, keyOf func(slot uint32) uint32, workers int) (Grown, error) {
	defer runtime.KeepAlive(v)
	out := Grown{graph: v.graph, keys: slices.Clone(v.keys)}
	if p.Fresh {
		out = Grown{graph: v.graph.empty()}
	}
	vectors := make([][]float32, len(p.Slots))
	for i, slot := range p.Slots {
		vectors[i] = v.Vector(slot)
		out.keys = append(out.keys, keyOf(slot))
	}
	var err error
	if out.graph, err = out.graph.extend(ctx, vectors, workers); err != nil {
		return Grown{}, fmt.Errorf("dense: graph over %d vectors: %w", len(out.keys), err)
	}
	return out, nil
}

// Len is the number of vectors in the graph.
func (g Grown) Len() int { return g.graph.len() }

// FromFile returns a graph that was kept, for a view of EngineHNSW.
func FromFile(f *hnsw.File) Grown { return Grown{&own{f.Graph}, f.Keys} }

// ErrAdopt is returned for a graph that does not belong to a view.
var ErrAdopt = errors.New("dense: the graph does not fit the vectors")

// Adopt returns a view with another graph, which answers for the slots below border: all of them that
// are live are in it. slotOf finds the slot of a key, if it still has one.
func (v *Graphed) Adopt(g Grown, slotOf func(key uint32) (uint32, bool), border int) (*Graphed, error) {
	if border < len(v.ids) || border > v.Len() {
		return nil, fmt.Errorf("%w: it is said to answer for %d of %d slots, the present one does for %d", ErrAdopt, border, v.Len(), len(v.ids))
	}
	out, err := v.with(g, slotOf, border)
	if err != nil {
		return nil, err
	}
	var behind []uint32
	for slot := border - len(v.ids); slot < v.fresh.slots; slot++ {
		behind = append(behind, uint32(slot))
	}
	out.fresh = v.fresh.pick(behind)
	return out, nil
}

// Restore returns a view of the slots below border, of which a graph has all. v is empty.
func (v *Graphed) Restore(g Grown, slotOf func(key uint32) (uint32, bool), border int) (*Graphed, error) {
	if v.Len() > 0 {
		return nil, fmt.Errorf("%w: it is to be the first, and there are %d slots", ErrAdopt, v.Len())
	}
	return v.with(g, slotOf, border)
}

// with returns a view with a graph and without fresh vectors.
func (v *Graphed) with(g Grown, slotOf func(key uint32) (uint32, bool), border int) (*Graphed, error) {
	if len(g.keys) != g.graph.len() {
		return nil, fmt.Errorf("%w: %d keys for %d vectors", ErrAdopt, len(g.keys), g.graph.len())
	}
	out := newGraphed(v.dimensions, g.graph, v.tuning)
	out.keys, out.slots, out.ids = g.keys, make([]uint32, len(g.keys)), make([]uint32, border)
	for slot := range out.ids {
		out.ids[slot] = gone
	}
	last := -1
	for id, key := range g.keys {
		slot, ok := slotOf(key)
		if !ok {
			out.slots[id] = gone
			continue
		}
		if int(slot) >= border || int(slot) <= last {
			return nil, fmt.Errorf("%w: key %d is said to be in slot %d, after %d and below %d", ErrAdopt, key, slot, last, border)
		}
		last = int(slot)
		out.slots[id], out.ids[slot] = slot, uint32(id)
	}
	return out, nil
}

// File returns the graph for keeping; false when there is none, or one of a kind that is not kept.
func (v *Graphed) File(label string) (*hnsw.File, bool) {
	own, ok := v.graph.(*own)
	if !ok || own.len() == 0 {
		return nil, false
	}
	return &hnsw.File{Graph: own.g, Label: label, Keys: v.keys}, true
}

// Swap returns a view with the same graph from another place, such as the file that it was kept in;
// false when the view has another graph than the kept one.
func (v *Graphed) Swap(kept, opened *hnsw.File) (*Graphed, bool) {
	if own, ok := v.graph.(*own); !ok || own.g != kept.Graph || opened.Graph.Len() != kept.Graph.Len() {
		return nil, false
	}
	out := *v
	out.graph = &own{opened.Graph}
	return &out, true
}

// Covered is the number of slots that the graph answers for, and how many vectors are in it.
func (v *Graphed) Covered() (slots, vectors int) { return len(v.ids), v.graph.len() }

// Check reports what is wrong with how a view finds its vectors: each live slot has one, and a graph
// that slots and keys agree with.
func (v *Graphed) Check(live *bitset.BitSet, keyOf func(slot uint32) uint32) error {
	if len(v.keys) != v.graph.len() || len(v.slots) != v.graph.len() {
		return fmt.Errorf("%w: %d vectors in the graph, %d keys and %d slots", ErrAdopt, v.graph.len(), len(v.keys), len(v.slots))
	}
	for slot, id := range v.ids {
		switch {
		case id == gone && live.Test(uint(slot)):
			return fmt.Errorf("%w: slot %d is live and not in the graph", ErrAdopt, slot)
		case id != gone && (int(id) >= len(v.slots) || v.slots[id] != uint32(slot) || v.keys[id] != keyOf(uint32(slot))):
			return fmt.Errorf("%w: slot %d is another vector in the graph", ErrAdopt, slot)
		}
	}
	for id, slot := range v.slots {
		if slot != gone && (int(slot) >= len(v.ids) || v.ids[slot] != uint32(id)) {
			return fmt.Errorf("%w: vector %d of the graph is in no slot", ErrAdopt, id)
		}
	}
	return nil
}
