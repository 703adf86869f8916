// Package dense answers nearest-neighbour searches over unit vectors. A vector's place is its slot:
// the first has slot 0, and slots follow one another without gaps.
package dense

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/bits-and-blooms/bitset"

	"assay/index/topk"
)

// View is an immutable state of the vectors of a corpus, safe for any number of readers. What it
// returns never depends on what is done to views made from it later.
//
// It is the seam behind which the way of searching can be chosen. Exact compares the question with
// every vector and is the measure of all others; Graphed looks around in a graph.
type View interface {
	// Search returns at most k allowed slots, nearest first, ties ordered by tie. The query has the
	// dimension of the vectors and unit length; k is positive. Fewer than k are returned only where
	// fewer are allowed. A cancelled context ends it with the context's error.
	Search(ctx context.Context, query []float32, k int, allowed *bitset.BitSet, tie topk.Tie) ([]topk.Item, error)
	// Len is the number of slots.
	Len() int
	// Vector returns the vector of a slot, which the caller must not change, nor use when the view is
	// no longer reachable. It is nil for a slot that was not live when a graph was made.
	Vector(slot uint32) []float32
	// Extend returns a view with further vectors in the slots that follow. They are copied. Only the
	// newest view of a line may be extended, and by one goroutine at a time.
	Extend(vectors [][]float32) View
	// Compact returns a view with only these slots, which are ascending, renumbered from 0.
	Compact(keep []uint32) View
}

// Engine is a way of searching.
type Engine string

// The engines.
const (
	EngineExact Engine = "exact" // compares with every vector
	EngineHNSW  Engine = "hnsw"  // a graph of package hnsw
	EngineCoder Engine = "coder" // a graph of github.com/coder/hnsw
)

// Engines are all of them, the default first.
var Engines = []Engine{EngineHNSW, EngineExact, EngineCoder}

// New returns an empty view of an engine.
func New(e Engine, dimensions int) (View, error) {
	switch e {
	case EngineExact:
		return NewExact(dimensions), nil
	case EngineHNSW:
		g, err := newOwn(dimensions)
		if err != nil {
			return nil, err
		}
		return newGraphed(dimensions, g, ownTuning), nil
	case EngineCoder:
		return newGraphed(dimensions, newCoder(dimensions), coderTuning), nil
	}
	return nil, fmt.Errorf("dense: engine %q: choose one of %q", e, Engines)
}

// The ways in which a vector can be unusable.
var (
	ErrDimension = errors.New("wrong number of dimensions")
	ErrNotFinite = errors.New("a component is NaN or infinite")
	ErrZero      = errors.New("the vector has no direction: its length is zero")
)

// unitTolerance is how far from 1 a length may be for a vector to be kept bit for bit: float32
// rounding of a normalised vector of some thousand dimensions stays well under it.
const unitTolerance = 1e-6

// Normalised returns a copy of a vector with unit length, or says why there is none.
func Normalised(v []float32, dimensions int) ([]float32, error) {
	if len(v) != dimensions {
		return nil, fmt.Errorf("%w: %d, the corpus has %d", ErrDimension, len(v), dimensions)
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil, ErrNotFinite
	}
	if sum == 0 {
		return nil, ErrZero
	}
	out := make([]float32, len(v))
	length := math.Sqrt(sum)
	if math.Abs(length-1) < unitTolerance {
		copy(out, v)
		return out, nil
	}
	for i, x := range v {
		out[i] = float32(float64(x) / length)
	}
	return out, nil
}
