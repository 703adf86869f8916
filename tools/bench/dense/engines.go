package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"time"

	"github.com/bits-and-blooms/bitset"
	"github.com/philippgille/chromem-go"

	"assay/index/dense"
	"assay/index/hnsw"
)

// measureAll runs measurements one after the other.
func measureAll(d *dataset, dir string, names []string, profile string) error {
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, name := range names {
		var err error
		switch name {
		case "exact", "hnsw", "coder":
			err = d.engine(dense.Engine(name))
		case "graph":
			err = d.graph(dir)
		case "chromem":
			err = d.chromem()
		case "codes":
			err = d.codes()
		case "filters":
			err = d.filters()
		case "deletes":
			err = d.deletes()
		default:
			err = fmt.Errorf("unknown measurement %q", name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// built is an engine's view with all background work done.
type built struct {
	view dense.View
	rows []uint32 // keys of the slots
	live *bitset.BitSet
}

func newBuilt(engine dense.Engine, dim int) (*built, error) {
	v, err := dense.New(engine, dim)
	return &built{view: v, live: bitset.New(0)}, err
}

func (b *built) add(vectors [][]float32) {
	b.view = b.view.Extend(vectors)
	for range vectors {
		b.live.Set(uint(len(b.rows)))
		b.rows = append(b.rows, uint32(len(b.rows)))
	}
}

// settle does the background work on so many goroutines.
func (b *built) settle(workers int) error {
	for {
		g, ok := b.view.(*dense.Graphed)
		if !ok {
			return nil
		}
		p, ok := g.Plan(b.live)
		if !ok {
			return nil
		}
		grown, err := g.Grow(context.Background(), p, func(slot uint32) uint32 { return b.rows[slot] }, workers)
		if err != nil {
			return err
		}
		if b.view, err = g.Adopt(grown, func(row uint32) (uint32, bool) {
			slot, ok := slices.BinarySearch(b.rows, row)
			return uint32(slot), ok
		}, g.Len()); err != nil {
			return err
		}
	}
}

func (b *built) search(allowed *bitset.BitSet) searcher {
	tie := func(x, y uint32) int { return cmp.Compare(x, y) }
	return func(query []float32, k int) ([]int32, error) {
		items, err := b.view.Search(context.Background(), query, k, allowed, tie)
		out := make([]int32, len(items))
		for i, item := range items {
			out[i] = int32(item.Slot)
		}
		return out, err
	}
}

// engine measures a dense engine as the index uses it.
func (d *dataset) engine(engine dense.Engine) error {
	before := heap()
	b, err := newBuilt(engine, d.dim)
	if err != nil {
		return err
	}
	cpus := runtime.GOMAXPROCS(1)
	start := cpu()
	b.add(d.base)
	if err := b.settle(1); err != nil {
		return err
	}
	took := cpu() - start
	runtime.GOMAXPROCS(cpus)
	n := float64(len(d.base))
	if err := d.say(result{Index: string(engine), Threads: 1, BuildPerVector: took / n, BytesPerVector: (heap()-before)/n - float64(4*d.dim)}); err != nil {
		return err
	}
	search := b.search(b.live)
	if err := d.measure(string(engine), "", search); err != nil {
		return err
	}
	err = d.throughput(string(engine), "", func() searcher { return search })
	runtime.KeepAlive(b)
	return err
}

// graph measures the graph by itself, with different ef: built, saved, and mapped again. One that is
// in the folder already is taken as it is, so that searches alone can be measured.
func (d *dataset) graph(dir string) error {
	path := filepath.Join(dir, "graph")
	file, err := hnsw.Open(path)
	if err != nil {
		if file, err = d.build(); err != nil {
			return err
		}
		if err := file.Save(path); err != nil {
			return err
		}
	}
	start := time.Now()
	if file, err = hnsw.Open(path); err != nil {
		return err
	}
	if err := d.say(result{Index: "graph", Setting: "mapped", OpenMillis: float64(time.Since(start).Microseconds()) / 1000}); err != nil {
		return err
	}
	for _, ef := range []int{50, 64, 100, 128, 200} {
		if err := d.measure("graph", fmt.Sprintf("ef%d", ef), graphSearch(file.Graph, ef, nil)); err != nil {
			return err
		}
	}
	return nil
}

func graphSearch(g *hnsw.Graph, ef int, allowed func(uint32) bool) searcher {
	var found []hnsw.Neighbour
	return func(q []float32, k int) ([]int32, error) {
		found = found[:0]
		err := g.Search(context.Background(), q, max(ef, k), allowed, func(n hnsw.Neighbour) { found = append(found, n) })
		slices.SortFunc(found, func(a, b hnsw.Neighbour) int {
			return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.ID, b.ID))
		})
		out := make([]int32, 0, k)
		for _, n := range found[:min(k, len(found))] {
			out = append(out, int32(n.ID))
		}
		return out, err
	}
}

// build builds the graph on one core.
func (d *dataset) build() (*hnsw.File, error) {
	g, err := hnsw.New(d.dim, hnsw.Params{})
	if err != nil {
		return nil, err
	}
	before := cpu()
	if g, err = g.Extend(context.Background(), d.base, 1); err != nil {
		return nil, err
	}
	keys := make([]uint32, g.Len())
	for i := range keys {
		keys[i] = uint32(i)
	}
	n := float64(len(d.base))
	return &hnsw.File{Graph: g, Label: "benchmark", Keys: keys}, d.say(result{Index: "graph", Setting: "M16 efC128", Threads: 1,
		BuildPerVector: (cpu() - before) / n, BytesPerVector: float64(g.Overhead()) / n})
}

// chromem measures chromem-go, which compares with every vector.
func (d *dataset) chromem() error {
	before := heap()
	ctx := context.Background()
	never := func(context.Context, string) ([]float32, error) { return nil, fmt.Errorf("nothing is to be embedded") }
	c, err := chromem.NewDB().CreateCollection("benchmark", nil, never)
	if err != nil {
		return err
	}
	docs := make([]chromem.Document, len(d.base))
	for i, v := range d.base {
		docs[i] = chromem.Document{ID: strconv.Itoa(i), Embedding: slices.Clone(v), Content: "-"}
	}
	start := cpu()
	if err := c.AddDocuments(ctx, docs, 1); err != nil {
		return err
	}
	n := float64(len(d.base))
	took := (cpu() - start) / n
	docs = nil
	if err := d.say(result{Index: "chromem-go", Threads: 1, BuildPerVector: took, BytesPerVector: (heap()-before)/n - float64(4*d.dim)}); err != nil {
		return err
	}
	few := *d // it takes long
	few.query, few.truth = d.query[:min(50, len(d.query))], d.truth[:min(50, len(d.query))]
	return few.measure("chromem-go", "", func(query []float32, k int) ([]int32, error) {
		found, err := c.QueryEmbedding(ctx, query, k, nil, nil)
		out := make([]int32, len(found))
		for i, f := range found {
			id, err := strconv.Atoi(f.ID)
			if err != nil {
				return nil, err
			}
			out[i] = int32(id)
		}
		return out, err
	})
}
