package dense

import (
	"context"
	"runtime"

	"github.com/bits-and-blooms/bitset"
	"github.com/viterin/vek/vek32"
	"golang.org/x/sync/errgroup"

	"assay/index/topk"
)

const (
	// scanPart is how many slots are scanned between two looks at the context.
	scanPart = 1024
	// parallelFrom is the number of slots from which a second core pays for its start.
	parallelFrom = 16 * scanPart
)

// scan compares the query with every allowed slot from first up to end, and offers all to best. Where
// there are many they are split among the cores; the merge makes the result independent of the split.
func scan(ctx context.Context, query []float32, vector func(slot uint32) []float32, first, end int, allowed *bitset.BitSet, k int, tie topk.Tie, best *topk.Heap) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	workers := 1
	if end-first >= parallelFrom {
		workers = max(1, min(runtime.GOMAXPROCS(0), (end-first)/scanPart))
	}
	heaps := make([]*topk.Heap, workers-1)
	g, ctx := errgroup.WithContext(ctx)
	from := first
	for w := range heaps {
		heaps[w] = topk.New(k, tie)
		part, to := from, first+(w+1)*(end-first)/workers
		g.Go(func() error { return scanRange(ctx, query, vector, part, to, allowed, heaps[w]) })
		from = to
	}
	err := scanRange(ctx, query, vector, from, end, allowed, best) // the caller's goroutine takes the last part
	if other := g.Wait(); err == nil {
		err = other
	}
	if err != nil {
		return err
	}
	for _, other := range heaps {
		best.Merge(other)
	}
	return nil
}

func scanRange(ctx context.Context, query []float32, vector func(uint32) []float32, first, end int, allowed *bitset.BitSet, best *topk.Heap) error {
	for ; first < end; first += scanPart {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := uint(min(first+scanPart, end))
		for slot, ok := allowed.NextSet(uint(first)); ok && slot < to; slot, ok = allowed.NextSet(slot + 1) {
			best.Push(uint32(slot), float64(vek32.Dot(query, vector(uint32(slot)))))
		}
	}
	return nil
}

// count is the number of allowed slots from first up to end.
func count(allowed *bitset.BitSet, first, end int) int {
	end = min(end, int(allowed.Len()))
	if first >= end {
		return 0
	}
	return int(allowed.OnesBetween(uint(first), uint(end)))
}
