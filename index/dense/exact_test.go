package dense

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bits-and-blooms/bitset"
	"github.com/viterin/vek/vek32"

	"assay/index/topk"
)

func bySlot(a, b uint32) int { return cmp.Compare(a, b) }

func randomVectors(r *rand.Rand, n, dimensions int) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		v := make([]float32, dimensions)
		for j := range v {
			v[j] = float32(r.NormFloat64())
		}
		out[i], _ = Normalised(v, dimensions)
	}
	return out
}

func allOf(n int) *bitset.BitSet {
	out := bitset.New(uint(n))
	for i := range n {
		out.Set(uint(i))
	}
	return out
}

func loop(vectors [][]float32, query []float32, k int, allowed *bitset.BitSet) []topk.Item {
	var out []topk.Item
	for i, v := range vectors {
		if !allowed.Test(uint(i)) {
			continue
		}
		dot := 0.0
		for j, x := range v {
			dot += float64(x) * float64(query[j])
		}
		out = append(out, topk.Item{Slot: uint32(i), Score: dot})
	}
	slices.SortFunc(out, func(a, b topk.Item) int { return cmp.Or(cmp.Compare(b.Score, a.Score), bySlot(a.Slot, b.Slot)) })
	return out[:min(k, len(out))]
}

// The sizes lie around the borders of blocks and beyond the one from which cores share the work; the
// dimensions around the widths of SIMD registers. Without acceleration the results are the same.
func TestSearchEqualsALoop(t *testing.T) {
	defer vek32.SetAcceleration(vek32.Info().Acceleration)
	for _, accelerated := range []bool{vek32.Info().Acceleration, false} {
		vek32.SetAcceleration(accelerated)
		r := rand.New(rand.NewPCG(1, 1))
		for _, n := range []int{1, blockSlots - 1, blockSlots, blockSlots + 1, parallelFrom + 77} {
			for _, dimensions := range []int{1, 7, 8, 33} {
				vectors := randomVectors(r, n, dimensions)
				var view View = NewExact(dimensions)
				for part := range slices.Chunk(vectors, 700) {
					view = view.Extend(part)
				}
				allowed := allOf(n)
				for i := range n / 2 {
					allowed.Clear(uint(i * 2))
				}
				query := randomVectors(r, 1, dimensions)[0]
				got, err := view.Search(t.Context(), query, 20, allowed, bySlot)
				want := loop(vectors, query, 20, allowed)
				if err != nil || len(got) != len(want) {
					t.Fatalf("%d of %d dimensions: %d items, want %d (%v)", n, dimensions, len(got), len(want), err)
				}
				for i := range got {
					if math.Abs(got[i].Score-want[i].Score) > 1e-5 {
						t.Fatalf("%d of %d dimensions, place %d: %v, want %v", n, dimensions, i, got[i], want[i])
					}
				}
			}
		}
	}
}

func TestViewsDoNotSeeWhatCameLater(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	vectors := randomVectors(r, 3000, 4)
	views := []View{NewExact(4)}
	for part := range slices.Chunk(vectors, 300) {
		views = append(views, views[len(views)-1].Extend(part))
	}
	for i, view := range views {
		if view.Len() != 300*i {
			t.Errorf("view %d has %d slots", i, view.Len())
		}
		got, err := view.Search(t.Context(), vectors[0], 5000, allOf(5000), bySlot)
		if err != nil || len(got) != view.Len() {
			t.Errorf("view %d: %d items, %v", i, len(got), err)
		}
	}
	keep := []uint32{0, 5, 1023, 1024, 2999}
	compact := views[10].Compact(keep)
	for i, slot := range keep {
		if !slices.Equal(compact.Vector(uint32(i)), vectors[slot]) {
			t.Errorf("slot %d is not what was in %d", i, slot)
		}
	}
	views[10].Extend(vectors[:1])
	if compact.Len() != len(keep) || views[10].Len() != 3000 {
		t.Errorf("%d and %d slots", compact.Len(), views[10].Len())
	}
}

func TestCancelledSearch(t *testing.T) {
	view := NewExact(4).Extend(randomVectors(rand.New(rand.NewPCG(3, 3)), parallelFrom+1, 4))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := view.Search(ctx, []float32{1, 0, 0, 0}, 5, allOf(view.Len()), bySlot)
	if !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestNormalised(t *testing.T) {
	if v, err := Normalised([]float32{3, 4}, 2); err != nil || !slices.Equal(v, []float32{0.6, 0.8}) {
		t.Errorf("%v, %v", v, err)
	}
	unit, _ := Normalised([]float32{1, 2, 3}, 3)
	if again, err := Normalised(unit, 3); err != nil || !slices.Equal(again, unit) {
		t.Errorf("a unit vector was changed from %v to %v, %v", unit, again, err)
	}
	tiny := float32(math.SmallestNonzeroFloat32)
	if v, err := Normalised([]float32{tiny, 0}, 2); err != nil || v[0] != 1 {
		t.Errorf("the smallest vector: %v, %v", v, err)
	}
	if v, err := Normalised([]float32{math.MaxFloat32, math.MaxFloat32}, 2); err != nil || math.Abs(float64(v[0])-math.Sqrt2/2) > 1e-6 {
		t.Errorf("the largest vector: %v, %v", v, err)
	}
	for want, v := range map[error][]float32{ErrDimension: {1}, ErrZero: {0, 0}, ErrNotFinite: {1, float32(math.NaN())}} {
		if _, err := Normalised(v, 2); !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", v, err, want)
		}
	}
}
