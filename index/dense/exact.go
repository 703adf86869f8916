package dense

import (
	"context"
	"runtime"
	"slices"

	"github.com/bits-and-blooms/bitset"
	"github.com/viterin/vek/vek32"
	"golang.org/x/sync/errgroup"

	"assay/index/topk"
)

const (
	// blockSlots is how many vectors lie in one contiguous block. Growing appends blocks and never
	// moves a vector, so that an older view stays valid and nothing is copied twice.
	blockSlots = 1024
	// parallelFrom is the number of candidates from which a second core pays for its start.
	parallelFrom = 16 * blockSlots
)

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

// Extend implements View. It writes only beyond what older views can see.
func (e *Exact) Extend(vectors [][]float32) View {
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
	vectors := make([][]float32, len(keep))
	for i, slot := range keep {
		vectors[i] = e.Vector(slot)
	}
	return NewExact(e.dimensions).Extend(vectors)
}

// Search implements View. Large corpora are split among the cores; the merge makes the result
// independent of the split.
func (e *Exact) Search(ctx context.Context, query []float32, k int, allowed *bitset.BitSet, tie topk.Tie) ([]topk.Item, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	workers := 1
	if e.slots >= parallelFrom {
		workers = max(1, min(runtime.GOMAXPROCS(0), len(e.blocks)))
	}
	heaps := make([]*topk.Heap, workers)
	g, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		heaps[w] = topk.New(k, tie)
		first, last := w*len(e.blocks)/workers, (w+1)*len(e.blocks)/workers
		scan := func() error { return e.scan(ctx, query, first, last, allowed, heaps[w]) }
		if w == workers-1 { // the caller's own goroutine takes the last part
			if err := scan(); err != nil {
				_ = g.Wait()
				return nil, err
			}
			break
		}
		g.Go(scan)
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, other := range heaps[1:] {
		heaps[0].Merge(other)
	}
	return heaps[0].Sorted(), nil
}

// scan offers every allowed slot of some blocks. The context is polled once a block.
func (e *Exact) scan(ctx context.Context, query []float32, first, last int, allowed *bitset.BitSet, best *topk.Heap) error {
	for b := first; b < last; b++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := uint(min((b+1)*blockSlots, e.slots))
		for slot, ok := allowed.NextSet(uint(b * blockSlots)); ok && slot < end; slot, ok = allowed.NextSet(slot + 1) {
			best.Push(uint32(slot), float64(vek32.Dot(query, e.Vector(uint32(slot)))))
		}
	}
	return nil
}
