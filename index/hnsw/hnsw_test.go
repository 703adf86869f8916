package hnsw

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/bits-and-blooms/bitset"
)

// clustered returns n unit vectors around centres, as embeddings of a corpus lie.
func clustered(n, dim int, seed uint64) []float32 {
	rng := rand.New(rand.NewPCG(seed, 7))
	centres := make([][]float64, max(n/100, 1))
	for i := range centres {
		centres[i] = make([]float64, dim)
		for j := range centres[i] {
			centres[i][j] = rng.NormFloat64()
		}
	}
	out := make([]float32, 0, n*dim)
	for range n {
		c := centres[rng.IntN(len(centres))]
		v := make([]float64, dim)
		sum := 0.0
		for j := range v {
			v[j] = c[j] + 0.7*rng.NormFloat64()
			sum += v[j] * v[j]
		}
		for j := range v {
			out = append(out, float32(v[j]/math.Sqrt(sum)))
		}
	}
	return out
}

// exact is the oracle: the k nearest of the allowed nodes by comparing with all.
func exact(g *Graph, query []float32, k int, allowed *bitset.BitSet) []Neighbour {
	var all []Neighbour
	for id := range uint32(g.Len()) {
		if allowed == nil || allowed.Test(uint(id)) {
			all = append(all, Neighbour{id, similarity(query, g.Vector(id))})
		}
	}
	slices.SortFunc(all, compare)
	return all[:min(k, len(all))]
}

func mustBuild(t testing.TB, vectors []float32, dim int, p Params) *Graph {
	t.Helper()
	g, err := New(dim, p)
	if err == nil {
		g, err = g.Extend(context.Background(), rows(vectors, dim), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func rows(vectors []float32, dim int) [][]float32 { return slices.Collect(slices.Chunk(vectors, dim)) }

// search returns the k nearest of what a search yields.
func search(t testing.TB, g *Graph, query []float32, k, ef int, allowed *bitset.BitSet) []Neighbour {
	t.Helper()
	accepts := func(id uint32) bool { return allowed.Test(uint(id)) }
	if allowed == nil {
		accepts = nil
	}
	var found []Neighbour
	if err := g.Search(context.Background(), query, max(k, ef), accepts, func(n Neighbour) { found = append(found, n) }); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(found, compare)
	return found[:min(k, len(found))]
}

// recall is the share of the exact k nearest that searches return.
func recall(t testing.TB, g *Graph, queries []float32, k, ef int, allowed *bitset.BitSet) float64 {
	t.Helper()
	hits, want := 0, 0
	for q := range slices.Chunk(queries, g.dim) {
		got := search(t, g, q, k, ef, allowed)
		truth := make(map[uint32]bool)
		for _, n := range exact(g, q, k, allowed) {
			truth[n.ID] = true
		}
		for _, n := range got {
			if truth[n.ID] {
				hits++
			}
		}
		want += len(truth)
	}
	return float64(hits) / float64(want)
}

func TestRecall(t *testing.T) {
	const dim = 64
	all := clustered(5100, dim, 1)
	vectors, queries := all[:5000*dim], all[5000*dim:]
	g := mustBuild(t, vectors, dim, Params{})
	for _, tt := range []struct {
		k, ef int
		least float64
	}{{1, 64, 0.99}, {10, 64, 0.99}, {50, 128, 0.99}} {
		if got := recall(t, g, queries, tt.k, tt.ef, nil); got < tt.least {
			t.Errorf("recall@%d with ef %d is %.4f, want at least %.2f", tt.k, tt.ef, got, tt.least)
		}
	}
	for _, percent := range []int{50, 10, 1} {
		allowed := bitset.New(5000)
		for id := range 5000 {
			if id*37%100 < percent {
				allowed.Set(uint(id))
			}
		}
		if got := recall(t, g, queries, 10, 64, allowed); got < 0.98 {
			t.Errorf("recall@10 where %d %% are allowed is %.4f", percent, got)
		}
	}
}

func TestResultDoesNotDependOnCores(t *testing.T) {
	vectors := clustered(2000, 16, 3)
	before := runtime.GOMAXPROCS(1)
	one := mustBuild(t, vectors, 16, Params{})
	runtime.GOMAXPROCS(7)
	seven := mustBuild(t, vectors, 16, Params{})
	runtime.GOMAXPROCS(before)
	if !equal(one, seven) {
		t.Error("the graph differs between one core and seven")
	}
	if other := mustBuild(t, vectors, 16, Params{Seed: 2}); slices.Equal(one.kinds, other.kinds) {
		t.Error("the seed changes nothing")
	}
}

func TestGraphInvariants(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 17, 300, 1500} {
		for _, m := range []int{2, 5, 16} {
			g := mustBuild(t, clustered(n, 8, uint64(n)), 8, Params{M: m, EfConstruction: 40})
			checkGraph(t, g)
			if n == 0 {
				continue
			}
			got := search(t, g, g.Vector(0), n, n, nil)
			if m == 16 && len(got) != n {
				t.Errorf("n %d, M %d: only %d nodes are reached", n, m, len(got))
			}
		}
	}
}

func checkGraph(t *testing.T, g *Graph) {
	t.Helper()
	for id := range uint32(g.Len()) {
		for layer := 0; layer <= g.layers(id); layer++ {
			list := g.links(id, layer)
			end := slices.Index(list, none)
			if end < 0 {
				end = len(list)
			}
			seen := map[uint32]bool{id: true}
			for _, to := range list[:end] {
				if seen[to] {
					t.Fatalf("node %d links to %d twice, or to itself, on layer %d", id, to, layer)
				}
				seen[to] = true
				if int(to) >= g.Len() || g.layers(to) < layer {
					t.Fatalf("node %d links to %d, which is not on layer %d", id, to, layer)
				}
			}
			for _, free := range list[end:] {
				if free != none {
					t.Fatalf("node %d has a gap in its links on layer %d", id, layer)
				}
			}
		}
	}
}

func TestEqualVectorsAreAllFound(t *testing.T) {
	const dim = 8
	distinct := clustered(300, dim, 9)
	var vectors []float32
	for i := range 1500 { // five copies of each, spread over the ids
		at := i % 300 * dim
		vectors = append(vectors, distinct[at:at+dim]...)
	}
	g := mustBuild(t, vectors, dim, Params{})
	checkGraph(t, g)
	odd := bitset.New(1500)
	for id := uint(1); id < 1500; id += 2 {
		odd.Set(id)
	}
	for _, allowed := range []*bitset.BitSet{nil, odd} {
		for q := range slices.Chunk(distinct[:50*dim], dim) {
			got := search(t, g, q, 20, 64, allowed)
			if want := exact(g, q, 20, allowed); !slices.Equal(got, want) {
				t.Fatalf("got %v\nwant %v", got, want)
			}
		}
	}
}

func TestBadInput(t *testing.T) {
	ctx := context.Background()
	for _, dim := range []int{0, -1, maxDimensions + 1} {
		if _, err := New(dim, Params{}); !errors.Is(err, ErrVectors) {
			t.Errorf("%d dimensions: %v", dim, err)
		}
	}
	if _, err := New(3, Params{M: 1, EfConstruction: -1}); err == nil {
		t.Error("bad parameters are accepted")
	}
	g := mustBuild(t, clustered(10, 4, 1), 4, Params{})
	if _, err := g.Extend(ctx, [][]float32{{1, 2, 3}}, 0); !errors.Is(err, ErrVectors) {
		t.Errorf("a vector of another dimension: %v", err)
	}
	ignore := func(Neighbour) {}
	if err := g.Search(ctx, make([]float32, 3), 1, nil, ignore); !errors.Is(err, ErrQuery) {
		t.Errorf("a query of another dimension: %v", err)
	}
	if err := g.Search(ctx, make([]float32, 4), 0, nil, ignore); !errors.Is(err, ErrQuery) {
		t.Errorf("ef = 0: %v", err)
	}
	if got := search(t, mustBuild(t, nil, 4, Params{}), make([]float32, 4), 5, 5, nil); len(got) != 0 {
		t.Errorf("an empty graph: %v", got)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := g.Extend(cancelled, rows(clustered(10, 4, 1), 4), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled build: %v", err)
	}
	if err := g.Search(cancelled, g.Vector(0), 1, nil, ignore); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled search: %v", err)
	}
}

// equal compares all that makes a graph.
func equal(a, b *Graph) bool {
	return a.entry == b.entry && a.top == b.top && slices.Equal(a.links0, b.links0) && slices.Equal(a.upper, b.upper) &&
		slices.Equal(a.kinds, b.kinds) && slices.Equal(a.offset, b.offset) && slices.Equal(a.twins, b.twins)
}

func TestExtendedGraphFindsAllAndOlderOnesStay(t *testing.T) {
	const dim = 24
	all := rows(clustered(4000, dim, 11), dim)
	copy(all[3000:], all[:50]) // copies that come later than what they are copies of
	queries := slices.Concat(rows(clustered(50, dim, 12), dim)...)
	g, _ := New(dim, Params{})
	var graphs []*Graph
	var links [][]uint32
	for _, part := range [][][]float32{all[:1], all[1:700], all[700:1024], all[1024:2500], all[2500:]} {
		var err error
		if g, err = g.Extend(t.Context(), part, 0); err != nil {
			t.Fatal(err)
		}
		checkGraph(t, g)
		graphs, links = append(graphs, g), append(links, slices.Clone(g.links0))
	}
	for i, g := range graphs {
		if !slices.Equal(g.links0, links[i]) {
			t.Errorf("graph %d has changed", i)
		}
		for id := range uint32(g.Len()) {
			if !slices.Equal(g.Vector(id), all[id]) {
				t.Fatalf("graph %d: vector %d is another one", i, id)
			}
		}
		if got := recall(t, g, queries, 10, 100, nil); got < 0.99 {
			t.Errorf("graph %d, of %d vectors: recall %.4f", i, g.Len(), got)
		}
	}
	if len(g.twins) != 50 {
		t.Errorf("%d twins, want 50", len(g.twins))
	}
}

func TestSearchesRunSideBySide(t *testing.T) {
	const dim = 16
	vectors := clustered(2000, dim, 5)
	g := mustBuild(t, vectors, dim, Params{})
	want := make([][]Neighbour, 20)
	for i := range want {
		want[i] = search(t, g, g.Vector(uint32(i)), 10, 50, nil)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range want {
				if got := search(t, g, g.Vector(uint32(i)), 10, 50, nil); !slices.Equal(got, want[i]) {
					t.Errorf("query %d: %v, alone it was %v", i, got, want[i])
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{2000, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			vectors := clustered(n, 384, 1)
			for b.Loop() {
				mustBuild(b, vectors, 384, Params{})
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/vector")
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	const dim, n = 384, 20000
	all := clustered(n+200, dim, 1)
	g := mustBuild(b, all[:n*dim], dim, Params{})
	queries := all[n*dim:]
	for _, ef := range []int{50, 64, 100, 200} {
		b.Run(fmt.Sprintf("ef=%d", ef), func(b *testing.B) {
			i := 0
			for b.Loop() {
				search(b, g, queries[i*dim:(i+1)*dim], 50, ef, nil)
				i = (i + 1) % 200
			}
			b.ReportMetric(recall(b, g, queries, 50, ef, nil), "recall@50")
			b.ReportMetric(float64(g.Overhead())/n, "B/vector")
		})
	}
}
