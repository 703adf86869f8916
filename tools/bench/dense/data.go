package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/viterin/vek/vek32"
)

// truthDepth is how many true neighbours of each query are written.
const truthDepth = 50

// dataset is what a run measures on. Vectors have unit length.
type dataset struct {
	dim         int
	base, query [][]float32
	truth       [][]int32 // nearest first
}

// clustered draws unit vectors around centres, a hundred to each, as embeddings of a corpus lie. Two
// vectors of a centre have a cosine of about 0.67; queries are drawn as the vectors are.
func clustered(n, queries, dim int, seed uint64) *dataset {
	const noise = 0.7
	centres := make([][]float32, max(n/100, 1))
	each(len(centres), func(i int) {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		centres[i] = make([]float32, dim)
		for j := range centres[i] {
			centres[i][j] = float32(rng.NormFloat64())
		}
	})
	draw := func(count int, stream uint64) [][]float32 {
		out := make([][]float32, count)
		each(count, func(i int) {
			rng := rand.New(rand.NewPCG(seed^stream, uint64(i)))
			c := centres[rng.IntN(len(centres))]
			v := make([]float32, dim)
			for j := range v {
				v[j] = c[j] + noise*float32(rng.NormFloat64())
			}
			vek32.MulNumber_Inplace(v, 1/vek32.Norm(v))
			out[i] = v
		})
		return out
	}
	return withTruth(draw(n, 1<<32), draw(queries, 2<<32), dim)
}

// withTruth finds the true neighbours by comparing with all.
func withTruth(base, query [][]float32, dim int) *dataset {
	d := &dataset{dim: dim, base: base, query: query, truth: make([][]int32, len(query))}
	each(len(query), func(i int) { d.truth[i] = nearest(base, query[i], truthDepth, nil) })
	return d
}

// nearest returns the k nearest of the allowed vectors, equal ones by their place.
func nearest(base [][]float32, query []float32, k int, allowed func(int) bool) []int32 {
	type scored struct {
		id  int32
		sim float32
	}
	all := make([]scored, 0, len(base))
	for i, v := range base {
		if allowed == nil || allowed(i) {
			all = append(all, scored{int32(i), vek32.Dot(query, v)})
		}
	}
	slices.SortFunc(all, func(a, b scored) int {
		switch {
		case a.sim > b.sim || a.sim == b.sim && a.id < b.id:
			return -1
		case a == b:
			return 0
		}
		return 1
	})
	out := make([]int32, 0, k)
	for _, s := range all[:min(k, len(all))] {
		out = append(out, s.id)
	}
	return out
}

// each calls do for 0 to n-1 from all cores.
func each(n int, do func(i int)) {
	var wg sync.WaitGroup
	workers := runtime.NumCPU()
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	wg.Wait()
}

// write puts a dataset into the files that dense.mjs reads too.
func (d *dataset) write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(
		writeRows(filepath.Join(dir, "base.f32"), d.base),
		writeRows(filepath.Join(dir, "query.f32"), d.query),
		writeRows(filepath.Join(dir, "truth.i32"), d.truth))
}

func writeRows[T float32 | int32](path string, rows [][]T) error {
	var out []byte
	for _, r := range rows {
		var err error
		if out, err = binary.Append(out, binary.LittleEndian, r); err != nil {
			return err
		}
	}
	return os.WriteFile(path, out, 0o600)
}

func readDataset(dir string, dim int) (*dataset, error) {
	d := &dataset{dim: dim}
	var err error
	if d.base, err = readRows[float32](filepath.Join(dir, "base.f32"), dim); err != nil {
		return nil, err
	}
	if d.query, err = readRows[float32](filepath.Join(dir, "query.f32"), dim); err != nil {
		return nil, err
	}
	d.truth, err = readRows[int32](filepath.Join(dir, "truth.i32"), truthDepth)
	if err == nil && (len(d.query) == 0 || len(d.truth) != len(d.query)) {
		err = fmt.Errorf("%s: %d queries and %d rows of truth", dir, len(d.query), len(d.truth))
	}
	return d, err
}

func readRows[T float32 | int32](path string, width int) ([][]T, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data)%(4*width) != 0 {
		return nil, fmt.Errorf("%s has no rows of %d", path, width)
	}
	all := make([]T, len(data)/4)
	for i := range all {
		bits := binary.LittleEndian.Uint32(data[4*i:])
		switch p := any(&all[i]).(type) {
		case *float32:
			*p = math.Float32frombits(bits)
		case *int32:
			*p = int32(bits)
		}
	}
	return slices.Collect(slices.Chunk(all, width)), nil
}
