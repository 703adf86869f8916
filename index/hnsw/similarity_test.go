package hnsw

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/viterin/vek/vek32"
)

// withoutAcceleration runs do with the plain Go code that machines without AVX2 have.
func withoutAcceleration(do func()) {
	before := vek32.Info().Acceleration
	vek32.SetAcceleration(false)
	defer vek32.SetAcceleration(before)
	do()
}

// Both sum the same products in another order. The bound is that of float32 summation: each of n
// additions is off by at most half an ulp of a partial sum, which for unit vectors stays within 1.
func TestSimilarityAgreesWithPlainLoop(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	for _, dim := range []int{1, 3, 7, 8, 31, 32, 33, 256, 384, 1000, 1536} {
		for range 50 {
			v := clustered(2, dim, rng.Uint64())
			a, b := v[:dim], v[dim:]
			plain, exactly := float32(0), 0.0
			for i := range a {
				plain += a[i] * b[i]
				exactly += float64(a[i]) * float64(b[i])
			}
			var fallback float32
			withoutAcceleration(func() { fallback = similarity(a, b) })
			bound := float64(dim)*math.Pow(2, -24) + 1e-7
			for name, got := range map[string]float32{"accelerated": similarity(a, b), "fallback": fallback, "loop": plain} {
				if math.Abs(float64(got)-exactly) > bound {
					t.Errorf("%d dimensions, %s: %v, exactly %v", dim, name, got, exactly)
				}
			}
		}
	}
}

// The k nearest are the same wherever their similarities are further apart than rounding reaches.
func TestNeighboursAgreeWithoutAcceleration(t *testing.T) {
	const dim, n = 48, 1500
	all := clustered(n+40, dim, 33)
	queries := rows(all[n*dim:], dim)
	find := func() (out [][]Neighbour) {
		g := mustBuild(t, all[:n*dim], dim, Params{})
		for _, q := range queries {
			out = append(out, search(t, g, q, 10, 200, nil))
		}
		return out
	}
	with := find()
	var without [][]Neighbour
	withoutAcceleration(func() { without = find() })
	compared := 0
	for q := range with {
		for i := range with[q] {
			if math.Abs(float64(with[q][i].Similarity-without[q][i].Similarity)) > 1e-5 {
				t.Fatalf("query %d, place %d: %v and %v", q, i, with[q][i], without[q][i])
			}
			apart := func(j int) bool {
				return j < 0 || j >= len(with[q]) || math.Abs(float64(with[q][i].Similarity-with[q][j].Similarity)) > 1e-5
			}
			if i < len(with[q])-1 && apart(i-1) && apart(i+1) {
				compared++
				if with[q][i].ID != without[q][i].ID {
					t.Errorf("query %d, place %d: %v and %v", q, i, with[q][i], without[q][i])
				}
			}
		}
	}
	if compared < 300 {
		t.Errorf("only %d neighbours are far enough apart to compare", compared)
	}
}
