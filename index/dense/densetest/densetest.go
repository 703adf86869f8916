// Package densetest is what every dense.View has to keep to, as a test.
package densetest

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bits-and-blooms/bitset"

	"assay/index/dense"
	"assay/index/topk"
)

// Bounds are what an engine may leave to be desired.
type Bounds struct {
	Recall float64 // of 20, at least, where a graph is asked
	Copies bool    // whether of many equal vectors those that come first in order are found
}

const (
	dimensions = 16
	size       = 2300 // enough for a graph to be made
	copies     = 60   // of vector 0, the last ones
)

// Tie is an order of slots that has nothing to do with where they lie.
func Tie(a, b uint32) int { return cmp.Compare(a*2654435761, b*2654435761) }

// Vectors are unit vectors around centres.
func Vectors(n int, seed uint64) [][]float32 {
	centres := rand.New(rand.NewPCG(1, 1)) // the same for every seed
	mid := make([][]float64, 40)
	for i := range mid {
		mid[i] = make([]float64, dimensions)
		for j := range mid[i] {
			mid[i][j] = centres.NormFloat64()
		}
	}
	r := rand.New(rand.NewPCG(seed, 2))
	out := make([][]float32, n)
	for i := range out {
		c, v := mid[r.IntN(len(mid))], make([]float32, dimensions)
		for j := range v {
			v[j] = float32(c[j] + 0.7*r.NormFloat64())
		}
		out[i], _ = dense.Normalised(v, dimensions)
	}
	return out
}

// All is the set of the first n slots, but for every step-th when step is not 0.
func All(n, step int) *bitset.BitSet {
	out := bitset.New(uint(n))
	for i := range n {
		if step == 0 || i%step != 0 {
			out.Set(uint(i))
		}
	}
	return out
}

// Slots lists a set.
func Slots(set *bitset.BitSet) (out []uint32) {
	for slot := range set.EachSet() {
		out = append(out, uint32(slot))
	}
	return out
}

// Rows gives slots numbers that grow with them.
func Rows(slots []uint32) (out []uint32) {
	for _, slot := range slots {
		out = append(out, 3*slot+1)
	}
	return out
}

// Settle does all background work of a view of which all slots are live. rows are their keys.
func Settle(t testing.TB, v dense.View, rows []uint32) dense.View {
	t.Helper()
	g, ok := v.(*dense.Graphed)
	if !ok {
		return v
	}
	for range 3 {
		p, ok := g.Plan(All(g.Len(), 0))
		if !ok {
			return g
		}
		grown, err := g.Grow(context.Background(), p, func(slot uint32) uint32 { return rows[slot] }, 2)
		if err != nil {
			t.Fatal(err)
		}
		g, err = g.Adopt(grown, func(row uint32) (uint32, bool) {
			slot, ok := slices.BinarySearch(rows, row)
			return uint32(slot), ok
		}, g.Len())
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("there is always more to do")
	return nil
}

// Run tests an engine, of which empty makes an empty view.
func Run(t *testing.T, empty func(dimensions int) (dense.View, error), b Bounds) {
	vectors := Vectors(size, 3)
	for i := size - copies; i < size; i++ {
		vectors[i] = vectors[0]
	}
	exact := dense.NewExact(dimensions).Extend(vectors)
	start, err := empty(dimensions)
	if err != nil {
		t.Fatal(err)
	}
	given := make([][]float32, size)
	for i, v := range vectors {
		given[i] = slices.Clone(v)
	}
	view := start.Extend(given[:100]).Extend(given[100:])
	for _, v := range given { // they are the caller's
		clear(v)
	}
	view = Settle(t, view, Rows(Slots(All(size, 0))))
	s := suite{Bounds: b, start: start, vectors: vectors, queries: Vectors(30, 4), exact: exact, view: view}
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Empty", s.empty}, {"Results", s.results}, {"Copies", s.copies}, {"Vectors", s.vector},
		{"Extend", s.extend}, {"Compact", s.compact}, {"OlderViewsStay", s.olderViewsStay}, {"Cancelled", s.cancelled},
		{"ReadersBesideAWriter", s.readers},
	} {
		t.Run(test.name, test.run)
	}
}

type suite struct {
	Bounds
	start   dense.View
	vectors [][]float32
	queries [][]float32
	exact   dense.View
	view    dense.View
}

func search(t testing.TB, v dense.View, query []float32, k int, allowed *bitset.BitSet) []topk.Item {
	t.Helper()
	items, err := v.Search(context.Background(), query, k, allowed, Tie)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

// check compares results with the exact ones, whatever is demanded of recall: as many as there are,
// allowed, each once, with the right score, in order. It returns how many are among the exact ones.
func check(t testing.TB, got, want []topk.Item, score func(slot uint32) float64, allowed *bitset.BitSet) (hits int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d results, there are %d", len(got), len(want))
	}
	seen := map[uint32]bool{}
	for i, item := range got {
		if seen[item.Slot] || !allowed.Test(uint(item.Slot)) {
			t.Fatalf("slot %d is returned twice or is not allowed", item.Slot)
		}
		seen[item.Slot] = true
		if math.Abs(item.Score-score(item.Slot)) > 1e-5 {
			t.Fatalf("slot %d has score %v, want %v", item.Slot, item.Score, score(item.Slot))
		}
		if i > 0 && cmp.Or(cmp.Compare(item.Score, got[i-1].Score), Tie(got[i-1].Slot, item.Slot)) > 0 {
			t.Fatalf("place %d: %v after %v", i, item, got[i-1])
		}
	}
	for _, item := range want {
		if seen[item.Slot] {
			hits++
		}
	}
	return hits
}

// compare holds a view against the exact one over the same slots.
func (s *suite) compare(t *testing.T, view, exact dense.View, k int, allowed *bitset.BitSet, least float64) {
	t.Helper()
	hits, all := 0, 0
	for _, q := range s.queries {
		want := search(t, exact, q, k, allowed)
		hits += check(t, search(t, view, q, k, allowed), want, func(slot uint32) float64 { return dot(q, exact.Vector(slot)) }, allowed)
		all += len(want)
	}
	if float64(hits) < least*float64(all) {
		t.Errorf("%d of %d allowed: recall@%d is %.3f, want %.3f", allowed.Count(), exact.Len(), k, float64(hits)/float64(all), least)
	}
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i, x := range a {
		sum += float64(x) * float64(b[i])
	}
	return sum
}

func (s *suite) empty(t *testing.T) {
	v := s.start
	if got := search(t, v, s.queries[0], 5, All(10, 0)); v.Len() != 0 || len(got) != 0 {
		t.Errorf("%d slots, %v", v.Len(), got)
	}
	if got := v.Compact(nil); got.Len() != 0 {
		t.Errorf("%d slots", got.Len())
	}
}

func (s *suite) results(t *testing.T) {
	for _, percent := range []int{100, 50, 10, 1} {
		allowed := bitset.New(size)
		for i := range size {
			if i*37%100 < percent {
				allowed.Set(uint(i))
			}
		}
		s.compare(t, s.view, s.exact, 20, allowed, s.Recall)
		s.compare(t, s.view, s.exact, 1, allowed, s.Recall)
	}
	one, none := bitset.New(size).Set(1234), bitset.New(size)
	beyond := All(2*size, 0) // slots that the view does not have
	s.compare(t, s.view, s.exact, 20, one, 1)
	s.compare(t, s.view, s.exact, 20, none, 1)
	s.compare(t, s.view, s.exact, 2*size, beyond, 1)
}

func (s *suite) copies(t *testing.T) {
	allowed := All(size, 3)
	q := s.vectors[0]
	for _, k := range []int{1, copies / 3, copies, 2 * copies} {
		got, want := search(t, s.view, q, k, allowed), search(t, s.exact, q, k, allowed)
		check(t, got, want, func(slot uint32) float64 { return dot(q, s.vectors[slot]) }, allowed)
		if first := min(k, copies/2); s.Copies && !slices.Equal(got[:first], want[:first]) {
			t.Errorf("k %d: %v, want %v", k, got[:first], want[:first])
		}
	}
}

func (s *suite) vector(t *testing.T) {
	for slot := range uint32(size) {
		if !slices.Equal(s.view.Vector(slot), s.vectors[slot]) {
			t.Fatalf("slot %d has another vector", slot)
		}
	}
}

func (s *suite) extend(t *testing.T) {
	further := Vectors(500, 5)
	view, exact := s.view.Extend(further), s.exact.Extend(further)
	for i, v := range further[:20] {
		if got := search(t, view, v, 1, All(view.Len(), 0)); len(got) != 1 || got[0].Slot != uint32(size+i) {
			t.Errorf("a vector that was just added is not found: %v", got)
		}
	}
	s.compare(t, view, exact, 20, All(exact.Len(), 0), s.Recall)
	s.compare(t, view, exact, 20, All(exact.Len(), 2), s.Recall)
}

func (s *suite) compact(t *testing.T) {
	further := Vectors(300, 6)
	view, exact := s.view.Extend(further), s.exact.Extend(further)
	for round := range 2 { // what was compacted can be extended and compacted again
		var keep []uint32
		for slot := range uint32(exact.Len()) {
			if slot%5 != 1 {
				keep = append(keep, slot)
			}
		}
		view, exact = view.Compact(keep), exact.Compact(keep)
		for slot := range uint32(exact.Len()) {
			if !slices.Equal(view.Vector(slot), exact.Vector(slot)) {
				t.Fatalf("round %d: slot %d has another vector", round, slot)
			}
		}
		s.compare(t, view, exact, 20, All(exact.Len(), 0), s.Recall)
		more := Vectors(50, 7)
		view, exact = view.Extend(more), exact.Extend(more)
		s.compare(t, view, exact, 20, All(exact.Len(), 4), s.Recall)
	}
	if view = view.Compact(nil); view.Len() != 0 || len(search(t, view, s.queries[0], 5, All(9, 0))) != 0 {
		t.Errorf("%d slots are left of none", view.Len())
	}
}

func (s *suite) olderViewsStay(t *testing.T) {
	allowed := All(size, 0)
	before := make([][]topk.Item, len(s.queries))
	for i, q := range s.queries {
		before[i] = search(t, s.view, q, 20, allowed)
	}
	more := s.view.Extend(Vectors(1200, 8))
	more.Compact([]uint32{1, 2, size + 5})
	keep := Slots(All(more.Len(), 4))
	rows := Rows(keep)
	settled := Settle(t, more.Compact(keep), rows) // extends a graph
	exact := s.exact.Extend(Vectors(1200, 8)).Compact(keep)
	s.compare(t, settled, exact, 20, All(len(keep), 0), s.Recall)
	half := Slots(All(len(keep), 2))
	for i, slot := range half {
		rows[i] = rows[slot]
	}
	rows = rows[:len(half)]
	settled = Settle(t, settled.Compact(half), rows) // makes it anew
	s.compare(t, settled, exact.Compact(half), 20, All(len(half), 0), s.Recall)
	for i, q := range s.queries {
		if got := search(t, s.view, q, 20, allowed); !slices.Equal(got, before[i]) {
			t.Errorf("query %d: %v, before %v", i, got, before[i])
		}
	}
	if s.view.Len() != size {
		t.Errorf("%d slots", s.view.Len())
	}
}

func (s *suite) cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, allowed := range []*bitset.BitSet{All(size, 0), bitset.New(size).Set(7)} {
		if got, err := s.view.Search(ctx, s.queries[0], 5, allowed, Tie); !errors.Is(err, context.Canceled) || got != nil {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// Readers of a view see all of it, whatever a writer makes of it meanwhile.
func (s *suite) readers(t *testing.T) {
	var current atomic.Pointer[dense.View]
	current.Store(&s.view)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for r := range 3 {
		readers.Go(func() {
			for i := r; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				view := *current.Load()
				items, err := view.Search(context.Background(), s.queries[i%len(s.queries)], 20, All(view.Len(), 0), Tie)
				if err != nil || len(items) != 20 {
					t.Errorf("%d results, %v", len(items), err)
					return
				}
			}
		})
	}
	view := s.view
	for part := range slices.Chunk(Vectors(300, 9), 30) {
		next := view.Extend(part)
		view = next
		current.Store(&next)
	}
	next := view.Compact(Slots(All(view.Len(), 6)))
	current.Store(&next)
	close(stop)
	readers.Wait()
}
