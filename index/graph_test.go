package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"assay"
	"assay/index/dense"
)

const graphDimensions = 8

var graphFingerprint = Fingerprint{Embedder: assay.Model{Name: "test", Dimensions: graphDimensions}, Chunker: "test"}

// pages are documents of 50 chunks with random vectors, numbered from first on.
func pages(first, count int) (out []Entry) {
	for n := range count {
		id := fmt.Sprintf("page%03d", first+n)
		r := rand.New(rand.NewPCG(uint64(first+n), 3))
		d := assay.Document{ID: id, URI: id, Text: strings.Repeat("key. ", 50), Hash: id}
		e := Entry{Document: d}
		for i := range 50 {
			span := assay.Span{Start: 5 * i, End: 5*i + 4}
			e.Chunks = append(e.Chunks, assay.Chunk{ID: assay.ChunkID(id, span, "key."), DocID: id, Ordinal: i, Span: span, Tokens: 1, Text: "key."})
			v := make([]float32, graphDimensions)
			for j := range v {
				v[j] = float32(r.NormFloat64())
			}
			e.Vectors = append(e.Vectors, v)
		}
		out = append(out, e)
	}
	return out
}

type graphIndex struct {
	*Index
	t   *testing.T
	log *bytes.Buffer
}

// openGraphIndex opens an index that is checked when it is closed.
func openGraphIndex(t *testing.T, dir string, engine dense.Engine) *graphIndex {
	t.Helper()
	var log bytes.Buffer
	ix, err := Open(slog.New(slog.NewTextHandler(&log, nil)), dir, Options{Engine: string(engine)})
	if err != nil {
		t.Fatal(err)
	}
	out := &graphIndex{ix, t, &log}
	t.Cleanup(out.close)
	return out
}

// close may be called twice.
func (g *graphIndex) close() {
	if err := g.Check(context.Background()); err != nil && !errors.Is(err, ErrClosed) {
		g.t.Error(err)
	}
	if err := g.Close(); err != nil {
		g.t.Error(err)
	}
}

func (g *graphIndex) apply(b Batch) {
	g.t.Helper()
	if _, err := g.Apply(g.t.Context(), graphFingerprint, b); err != nil {
		g.t.Fatal(err)
	}
}

// settled returns the number of vectors in the graph when nothing is to do any more.
func (g *graphIndex) settled() int {
	g.t.Helper()
	if err := g.Settle(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
	return g.inGraph()
}

func (g *graphIndex) inGraph() int {
	view, ok := g.current.Load().vectors().(*dense.Graphed)
	if !ok {
		return 0
	}
	_, vectors := view.Covered()
	return vectors
}

// answers are the IDs that some searches bring.
func (g *graphIndex) answers() (out []string) {
	g.t.Helper()
	s := g.Snapshot()
	defer s.Close()
	r := rand.New(rand.NewPCG(5, 5))
	for range 20 {
		q := make([]float32, graphDimensions)
		for j := range q {
			q[j] = float32(r.NormFloat64())
		}
		hits, err := s.Dense(g.t.Context(), q, 10, assay.Filter{})
		if err != nil {
			g.t.Fatal(err)
		}
		for _, h := range hits {
			c, _, err := s.Chunk(h.Row)
			if err != nil {
				g.t.Fatal(err)
			}
			out = append(out, c.ID)
		}
	}
	return out
}

// agree demands that nearly all of what a graph finds is what a comparison with all finds.
func agree(t *testing.T, got, want []string) {
	t.Helper()
	hits := 0
	for i := range want { // of one search, ten at a time
		if i < len(got) && slices.Contains(got[i/10*10:min(i/10*10+10, len(got))], want[i]) {
			hits++
		}
	}
	if len(got) != len(want) || hits < len(want)*98/100 {
		t.Errorf("%d answers, of which %d are among the %d right ones", len(got), hits, len(want))
	}
}

func TestGraphIsMadeKeptAndFoundAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ix := openGraphIndex(t, dir, dense.EngineHNSW)
	ix.apply(Batch{Put: pages(0, 20)})
	if n := ix.settled(); n != 0 {
		t.Errorf("a graph is made of 1,000 vectors already: %d", n)
	}
	ix.apply(Batch{Put: pages(20, 70)})
	if n := ix.settled(); n != 4500 {
		t.Errorf("%d vectors are in the graph", n)
	}
	ix.apply(Batch{Put: pages(90, 10)}) // they are fresh
	before := ix.answers()
	ix.close()

	again := openGraphIndex(t, dir, dense.EngineHNSW)
	if n := again.inGraph(); n != 4500 {
		t.Errorf("%d vectors are in the graph after a start", n)
	}
	if got := again.answers(); !slices.Equal(got, before) {
		t.Error("another start answers in another way")
	}
	again.apply(Batch{Put: pages(100, 40)})
	if n := again.settled(); n != 7000 {
		t.Errorf("%d vectors are in the graph that grew", n)
	}
	grown := again.answers()
	again.close()
	exact := openGraphIndex(t, dir, dense.EngineExact)
	agree(t, grown, exact.answers())
	if _, err := os.Stat(exact.graphPath()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the graph's file stays with an engine that has no use for it: %v", err)
	}
}

func TestGraphIsMadeAnewWithoutTheDead(t *testing.T) {
	t.Parallel()
	ix := openGraphIndex(t, t.TempDir(), dense.EngineHNSW)
	ix.apply(Batch{Put: pages(0, 100)})
	if n := ix.settled(); n != 5000 {
		t.Fatalf("%d vectors are in the graph", n)
	}
	var ids []string
	for n := range 40 {
		ids = append(ids, fmt.Sprintf("page%03d", 2*n))
	}
	ix.apply(Batch{Delete: ids[:10]})
	if n := ix.settled(); n != 5000 {
		t.Errorf("%d vectors are in the graph, of which a tenth is dead", n)
	}
	for _, id := range ix.answers() {
		if slices.ContainsFunc(ids[:10], func(dead string) bool { return strings.HasPrefix(id, dead) }) {
			t.Fatalf("%s is found and was deleted", id)
		}
	}
	ix.apply(Batch{Delete: ids[10:]})
	if n := ix.settled(); n != 3000 {
		t.Errorf("%d vectors are in the graph", n)
	}
	ix.apply(Batch{Put: pages(0, 100)}) // replaces what is left
	if n := ix.settled(); n != 5000 {
		t.Errorf("%d vectors are in the graph", n)
	}
	graph := ix.answers()
	dir := filepath.Dir(ix.dir)
	ix.close()
	agree(t, graph, openGraphIndex(t, dir, dense.EngineExact).answers())
}

func TestUnusableGraphFileIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	var files [2][]byte
	var want []string
	for i, d := range []string{other, dir} {
		ix := openGraphIndex(t, d, dense.EngineHNSW)
		ix.apply(Batch{Put: pages(100*i, 84)})
		ix.settled()
		want = ix.answers()
		data, err := os.ReadFile(ix.graphPath())
		if err != nil {
			t.Fatal(err)
		}
		files[i] = data
		ix.close()
	}
	damaged := slices.Clone(files[1])
	damaged[len(damaged)/2] ^= 1
	for name, tt := range map[string]struct {
		file  []byte
		named string
	}{
		"damaged":       {damaged, "damaged"},
		"truncated":     {files[1][:1000], "damaged"},
		"another store": {files[0], "another store"},
		"missing":       {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "default", graphFile)
			err := os.WriteFile(path, tt.file, 0o600)
			if tt.file == nil {
				err = os.Remove(path)
			}
			if err := errors.Join(err, os.WriteFile(path+".17.tmp", []byte("x"), 0o600)); err != nil {
				t.Fatal(err)
			}
			ix := openGraphIndex(t, dir, dense.EngineHNSW)
			if n := ix.settled(); n != 4200 {
				t.Errorf("%d vectors are in the graph", n)
			}
			if got := ix.answers(); !slices.Equal(got, want) {
				t.Error("the graph made anew answers in another way")
			}
			ix.close()
			if !strings.Contains(ix.log.String(), tt.named) {
				t.Errorf("the log does not say what was wrong: %s", ix.log)
			}
			if unfinished, err := filepath.Glob(path + ".*"); err != nil || len(unfinished) > 0 {
				t.Errorf("%v, %v", unfinished, err)
			}
		})
	}
}

// A store that was put back to an earlier state gives the same rows to other chunks.
func TestGraphOfAnotherHistoryIsNotUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "default", storeFile)
	ix := openGraphIndex(t, dir, dense.EngineHNSW)
	ix.apply(Batch{Put: pages(0, 10)})
	ix.close()
	early, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	ix = openGraphIndex(t, dir, dense.EngineHNSW)
	ix.apply(Batch{Put: pages(100, 84)})
	ix.settled()
	ix.close()
	if err := os.WriteFile(store, early, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "default", bm25Folder)); err != nil {
		t.Fatal(err)
	}
	ix = openGraphIndex(t, dir, dense.EngineHNSW)
	if log := ix.log.String(); ix.inGraph() != 0 || !strings.Contains(log, "does not agree with the store") {
		t.Errorf("%d vectors are in the graph; log: %s", ix.inGraph(), log)
	}
	ix.apply(Batch{Put: pages(200, 84)})
	n, got := ix.settled(), ix.answers()
	ix.close()
	agree(t, got, openGraphIndex(t, dir, dense.EngineExact).answers())
	if n != 4700 {
		t.Errorf("%d vectors are in the graph", n)
	}
}

func TestResetForgetsTheGraph(t *testing.T) {
	t.Parallel()
	ix := openGraphIndex(t, t.TempDir(), dense.EngineHNSW)
	ix.apply(Batch{Put: pages(0, 84)})
	ix.settled()
	if err := ix.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := ix.settled(); n != 0 || len(ix.answers()) != 0 {
		t.Errorf("%d vectors are in the graph of nothing", n)
	}
	ix.apply(Batch{Put: pages(0, 84)})
	if n := ix.settled(); n != 4200 {
		t.Errorf("%d vectors are in the graph", n)
	}
}

// Whatever the background work is at, searches bring ten answers, none of them dead.
func TestGraphGrowsWhileIndexIsReadAndWritten(t *testing.T) {
	t.Parallel()
	ix := openGraphIndex(t, t.TempDir(), dense.EngineHNSW)
	ix.apply(Batch{Put: pages(0, 84)})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if n := len(ix.answers()); n != 200 {
					t.Errorf("%d answers", n)
					return
				}
			}
		})
	}
	for n := range 4 {
		b := Batch{Put: pages(84+5*n, 5)}
		for i := range 5 {
			b.Delete = append(b.Delete, fmt.Sprintf("page%03d", 4*n+i))
		}
		ix.apply(b)
		if n == 1 {
			ix.settled()
		}
	}
	ix.settled()
	close(stop)
	readers.Wait()
	if err := ix.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Rows that were not live when a graph was begun can be so when it is ready, below its last row: a
// corpus that was made anew beside this one has taken its place.
func TestGraphThatLacksALiveRowIsNotUsed(t *testing.T) {
	t.Parallel()
	ix := openGraphIndex(t, t.TempDir(), dense.EngineHNSW)
	ix.apply(Batch{Put: pages(0, 84)})
	ix.settled()
	s := ix.current.Load()
	view := s.vectors().(*dense.Graphed)
	plan := dense.Plan{Fresh: true, Slots: []uint32{0, 1, 2, 4}}
	grown, err := view.Grow(t.Context(), plan, func(slot uint32) uint32 { return s.table.rows[slot] }, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := ix.adopt(grown, s.table.rows[4]); err == nil {
		t.Error("a graph that answers for less than the present one is taken")
	}
	if err := ix.adopt(grown, s.table.rows[len(s.table.rows)-1]); err != nil {
		t.Error(err)
	}
	if n := ix.inGraph(); n != 4200 {
		t.Errorf("%d vectors are in the graph", n)
	}
}

func TestSettleEndsWithTheIndexOrTheContext(t *testing.T) {
	ix := openGraphIndex(t, t.TempDir(), dense.EngineHNSW)
	ix.close()
	if err := ix.Settle(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := Open(slog.New(slog.DiscardHandler), t.TempDir(), Options{Engine: "flat"}); err == nil || !strings.Contains(err.Error(), "flat") {
		t.Errorf("an unknown engine: %v", err)
	}
}
