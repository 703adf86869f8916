package dense_test

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bits-and-blooms/bitset"

	"assay/index/dense"
	"assay/index/dense/densetest"
	"assay/index/hnsw"
)

func eager(t *testing.T, vectors [][]float32) *dense.Graphed {
	t.Helper()
	empty, err := dense.NewEager(dense.EngineHNSW)(len(vectors[0]))
	if err != nil {
		t.Fatal(err)
	}
	return empty.Extend(vectors).(*dense.Graphed)
}

func same(slot uint32) uint32           { return slot }
func present(key uint32) (uint32, bool) { return key, true }
func grow(t *testing.T, v *dense.Graphed, p dense.Plan) dense.Grown {
	t.Helper()
	g, err := v.Grow(t.Context(), p, same, 1)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// settled is a view whose graph covers all of the vectors.
func settled(t *testing.T, vectors [][]float32) *dense.Graphed {
	t.Helper()
	return densetest.Settle(t, eager(t, vectors), densetest.Slots(densetest.All(len(vectors), 0))).(*dense.Graphed)
}

func TestPlan(t *testing.T) {
	all := densetest.Vectors(3000, 1)
	if _, ok := eager(t, all[:200]).Plan(densetest.All(200, 0)); ok {
		t.Error("a graph is planned over few vectors")
	}
	p, ok := eager(t, all[:300]).Plan(densetest.All(300, 2))
	if ok {
		t.Errorf("dead vectors count: %v", p)
	}
	p, ok = eager(t, all[:600]).Plan(densetest.All(600, 2))
	if !ok || !p.Fresh || !slices.Equal(p.Slots, densetest.Slots(densetest.All(600, 2))) {
		t.Errorf("the first graph: %v, %v", p, ok)
	}
	v := settled(t, all[:1000])
	if slots, vectors := v.Covered(); slots != 1000 || vectors != 1000 {
		t.Errorf("%d slots, %d vectors", slots, vectors)
	}
	if p, ok := v.Extend(all[1000:1100]).(*dense.Graphed).Plan(densetest.All(1100, 0)); ok {
		t.Errorf("a graph is made larger by few: %v", p)
	}
	p, ok = v.Extend(all[1000:2000]).(*dense.Graphed).Plan(densetest.All(2000, 0))
	if !ok || p.Fresh || len(p.Slots) != 1000 || p.Slots[0] != 1000 {
		t.Errorf("many fresh vectors: %v, %v", p, ok)
	}
	if p, ok := v.Plan(densetest.All(1000, 4)); ok {
		t.Errorf("a graph of which a quarter is dead is made anew: %v", p)
	}
	p, ok = v.Plan(densetest.All(1000, 2))
	if !ok || !p.Fresh || len(p.Slots) != 500 {
		t.Errorf("half of it is dead: %v, %v", p, ok)
	}
	p, ok = v.Plan(bitset.New(1000))
	if !ok || !p.Fresh || len(p.Slots) != 0 {
		t.Errorf("all of it is dead: %v, %v", p, ok)
	}
	empty, err := v.Adopt(grow(t, v, p), present, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := empty.Plan(bitset.New(1000)); ok {
		t.Error("there is always more to do about nothing")
	}
}

func TestGraphThatDoesNotFitIsNotAdopted(t *testing.T) {
	all := densetest.Vectors(700, 2)
	v := settled(t, all[:300])
	more := v.Extend(all[300:]).(*dense.Graphed)
	p, ok := more.Plan(densetest.All(700, 0))
	if !ok {
		t.Fatal("nothing is planned")
	}
	g := grow(t, more, p)
	for name, tt := range map[string]struct {
		slotOf func(uint32) (uint32, bool)
		border int
	}{
		"beyond the border":  {present, 500},
		"beyond all slots":   {present, 701},
		"before its place":   {present, 299},
		"two keys in a slot": {func(key uint32) (uint32, bool) { return key / 2, true }, 700},
		"out of order":       {func(key uint32) (uint32, bool) { return 699 - key, true }, 700},
	} {
		if _, err := more.Adopt(g, tt.slotOf, tt.border); !errors.Is(err, dense.ErrAdopt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := more.Restore(g, present, 700); !errors.Is(err, dense.ErrAdopt) {
		t.Errorf("restored into a view that is not empty: %v", err)
	}
	if _, err := more.Adopt(g, present, 700); err != nil {
		t.Error(err)
	}
}

func TestCheckFindsAVectorThatIsNowhere(t *testing.T) {
	v := settled(t, densetest.Vectors(400, 3))
	if err := v.Check(densetest.All(400, 0), same); err != nil {
		t.Error(err)
	}
	if err := v.Check(densetest.All(400, 0), func(slot uint32) uint32 { return slot + 1 }); !errors.Is(err, dense.ErrAdopt) {
		t.Errorf("other keys: %v", err)
	}
	p := dense.Plan{Fresh: true, Slots: densetest.Slots(densetest.All(400, 3))}
	partly, err := v.Adopt(grow(t, v, p), present, 400)
	if err != nil {
		t.Fatal(err)
	}
	if err := partly.Check(densetest.All(400, 0), same); !errors.Is(err, dense.ErrAdopt) {
		t.Errorf("a third is missing: %v", err)
	}
	if err := partly.Check(densetest.All(400, 3), same); err != nil {
		t.Error(err)
	}
}

func TestMappedGraphAnswersAsTheOneInMemory(t *testing.T) {
	v := settled(t, densetest.Vectors(600, 4))
	kept, ok := v.File("of a test")
	if !ok {
		t.Fatal("there is no graph to keep")
	}
	path := filepath.Join(t.TempDir(), "graph")
	if err := kept.Save(path); err != nil {
		t.Fatal(err)
	}
	opened, err := hnsw.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	mapped, ok := v.Swap(kept, opened)
	if !ok {
		t.Fatal("the graph is not taken")
	}
	if _, ok := mapped.Swap(kept, opened); ok {
		t.Error("a view takes a graph that it does not have")
	}
	for _, q := range densetest.Vectors(20, 5) {
		want, err1 := v.Search(context.Background(), q, 10, densetest.All(600, 0), cmp.Compare[uint32])
		got, err2 := mapped.Search(context.Background(), q, 10, densetest.All(600, 0), cmp.Compare[uint32])
		if err1 != nil || err2 != nil || !slices.Equal(got, want) {
			t.Errorf("%v, want %v (%v, %v)", got, want, err1, err2)
		}
	}
	if err := mapped.Extend(densetest.Vectors(300, 6)).(*dense.Graphed).Check(densetest.All(900, 0), same); err != nil {
		t.Error(err)
	}
	if _, ok := eager(t, densetest.Vectors(10, 7)).File(""); ok {
		t.Error("a graph of nothing is kept")
	}
}
