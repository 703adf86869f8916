package dense

import (
	"context"
	"slices"

	"github.com/bits-and-blooms/bitset"

	"assay/index/topk"
)

// blockSlots is how many vectors lie in one contiguous block. Growing appends blocks and never
// moves a vector, so that an older view stays valid and nothing is copied twice.
const blockSlots = 1024

// Exact is the View that compares the query with every allowed vector.
type Exact struct {
	dimensions int
	slots      int
	blocks     [][]float32 // each with room for blockSlots vectors; views of one line share them
}

var _ View = (*Exact)(nil)

// NewExact returns an empty view.
func NewExact(dimensions int) *Exact { return &Exact{dimensions: dimensions} }

// Len implements View.
func (e *Exact) Len() int { return e.slots }

// Vector implements View.
func (e *Exact) Vector(slot uint32) []float32 {
	at := int(slot%blockSlots) * e.dimensions
	return e.blocks[slot/blockSlots][at : at+e.dimensions : at+e.dimensions]
}

// Extend implements View.
func (e *Exact) Extend(vectors [][]float32) View { return e.extend(vectors) }

// extend writes only beyond what older views can see.
func (e *Exact) extend(vectors [][]float32) *Exact {
	out := &Exact{dimensions: e.dimensions, slots: e.slots, blocks: slices.Clone(e.blocks)}
	for _, v := range vectors {
		if out.slots%blockSlots == 0 && out.slots/blockSlots == len(out.blocks) {
			out.blocks = append(out.blocks, make([]float32, blockSlots*e.dimensions))
		}
		copy(out.Vector(uint32(out.slots)), v)
		out.slots++
	}
	return out
}

// Compact implements View.
func (e *Exact) Compact(keep []uint32) View {
	return e.pick(keep)
}

// pick returns a view with only these slots.
func (e *Exact) pick(slots []uint32) *Exact {
	vectors := make([][]float32, len(slots))
	for i, slot := range slots {
		vectors[i] = e.Vector(slot)
	}
	return NewExact(e.dimensions).extend(vectors)
}

// Search implements View.
func (e *Exact) Search(ctx context.Context, query []float32, k int, allowed *bitset.BitSet, tie topk.Tie) ([]topk.Item, error) {
	best := topk.New(k, tie)
	if err := scan(ctx, query, e.Vector, 0, e.slots, allowed, k, tie, best); err != nil {
		return nil, err
	}
	return best.Sorted(), nil
}
