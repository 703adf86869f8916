package index_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"assay"
	"assay/index"
)

func TestEmbeddingCache(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ix := open(t, dir, index.Options{})
	model := assay.Model{Name: "m", Dimensions: 4}
	a, b := []float32{1, 2, 3, 4}, []float32{-0.5, 0, float32(math.Pi), math.SmallestNonzeroFloat32}
	if err := ix.PutVectors(model, []string{"a", "b"}, [][]float32{a, b}); err != nil {
		t.Fatal(err)
	}
	checkAndClose(t, ix)
	ix = open(t, dir, index.Options{})
	if err := ix.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := ix.GetVectors(model, []string{"b", "unknown", "a", "b"})
	if err != nil || len(got) != 4 || !slices.Equal(got[0], b) || got[1] != nil || !slices.Equal(got[2], a) || !slices.Equal(got[3], b) {
		t.Errorf("%v, %v", got, err)
	}
	for _, other := range []assay.Model{{Name: "m", Dimensions: 5}, {Name: "n", Dimensions: 4}, {Name: "", Dimensions: 4}} {
		if got, err := ix.GetVectors(other, []string{"a"}); err != nil || got[0] != nil {
			t.Errorf("model %+v has %v, %v", other, got, err)
		}
	}
	if err := ix.PutVectors(model, []string{"a"}, [][]float32{b}); err != nil {
		t.Fatal(err)
	}
	if got, err := ix.GetVectors(model, []string{"a"}); err != nil || !slices.Equal(got[0], b) {
		t.Errorf("replaced: %v, %v", got, err)
	}
	for name, err := range map[string]error{
		"too few":   ix.PutVectors(model, []string{"x", "y"}, [][]float32{a}),
		"dimension": ix.PutVectors(model, []string{"x"}, [][]float32{a[1:]}),
		"NaN":       ix.PutVectors(model, []string{"x"}, [][]float32{{1, 2, 3, float32(math.NaN())}}),
	} {
		if !errors.Is(err, index.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEmbeddingCacheForgetsTheOldestFirst(t *testing.T) {
	t.Parallel()
	const limit = 20_000
	ix := open(t, t.TempDir(), index.Options{CacheBytes: limit})
	model := assay.Model{Name: "m", Dimensions: 64}
	put := 0
	for range 20 {
		var hashes []string
		var vectors [][]float32
		for range 10 {
			hashes, vectors = append(hashes, fmt.Sprint("hash", put)), append(vectors, vectorOf(put, 64))
			put++
		}
		if err := ix.PutVectors(model, hashes, vectors); err != nil {
			t.Fatal(err)
		}
	}
	var all []string
	for i := range put {
		all = append(all, fmt.Sprint("hash", i))
	}
	got, err := ix.GetVectors(model, all)
	if err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(got, func(v []float32) bool { return v != nil })
	if first < put-limit/256 || first > put-limit/400 {
		t.Errorf("the first of %d that is left is %d", put, first)
	}
	for i := first; i < put; i++ {
		if !slices.Equal(got[i], vectorOf(i, 64)) {
			t.Errorf("vector %d is not what was put", i)
		}
	}
}
