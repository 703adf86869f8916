// Package hnsw is a graph for approximate nearest-neighbour search by inner product: vectors in,
// neighbours out, and no knowledge of documents. It follows Malkov and Yashunin, "Efficient and
// robust approximate nearest neighbor search using hierarchical navigable small world graphs" (2018),
// with the diversity heuristic of their Algorithm 4 and 2M links on layer 0.
//
// A Graph is immutable, and any number of readers may search it. Extend makes a larger one of it, in
// parallel and yet the same whatever the number of cores. Save writes one to a file, from which Open
// maps it into memory.
//
// Distances are computed by github.com/viterin/vek, which has AVX2 code for amd64 and plain Go for
// everything else. Both sum the same products, but in another order, so that similarities agree to
// within float32 rounding (about 1e-6 for unit vectors) and neighbours only where they differ by more
// than that. On one machine every result is the same bit for bit.
package hnsw

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/viterin/vek/vek32"
)

// Params shape a graph. The zero value of a field means its default.
type Params struct {
	M              int    // links of a node on the layers above 0, and half of those on layer 0; default 16
	EfConstruction int    // candidates considered for a node's links; default 128
	Seed           uint64 // of the layers that nodes are drawn into; default 1
}

// WithDefaults fills in what is not set.
func (p Params) WithDefaults() Params {
	if p.M == 0 {
		p.M = 16
	}
	if p.EfConstruction == 0 {
		p.EfConstruction = 128
	}
	if p.Seed == 0 {
		p.Seed = 1
	}
	return p
}

// Validate reports every parameter that cannot be used.
func (p Params) Validate() error {
	p = p.WithDefaults()
	var errs []error
	if p.M < 2 || p.M > 128 {
		errs = append(errs, fmt.Errorf("hnsw: M is %d; it must be between 2 and 128", p.M))
	}
	if p.EfConstruction < p.M || p.EfConstruction > 10_000 {
		errs = append(errs, fmt.Errorf("hnsw: efConstruction is %d; it must be between M (%d) and 10,000", p.EfConstruction, p.M))
	}
	return errors.Join(errs...)
}

const (
	// none marks the places of a link list that are not taken; they are at its end.
	none = math.MaxUint32
	// maxLayer bounds the height of the graph. With M = 2 and four billion nodes 32 layers are expected.
	maxLayer = 32
	// maxDimensions bounds a vector. No model in use comes near it.
	maxDimensions = 1 << 16

	// layerBits of a node's entry in kinds are its top layer; the others say what else it is.
	layerBits = 0x3f
	hasTwins  = 0x80

	blockShift = 10
	blockRows  = 1 << blockShift // vectors that lie in one contiguous block
	blockMask  = blockRows - 1
)

// Graph is a graph over n vectors, which have the ids 0 to n-1.
type Graph struct {
	p      Params
	dim    int
	blocks [][]float32 // blockRows vectors each, but for the last; a larger graph shares the full ones

	entry  uint32   // where a search begins: a node of the top layer
	top    int      // the top layer; -1 without nodes
	links0 []uint32 // n rows of 2M: the links on layer 0
	// The links above layer 0: node id has kinds[id]&layerBits of them, in rows of M that begin at
	// upper[offset[id]].
	kinds  []uint8
	offset []uint32
	upper  []uint32
	twins  []twin // sorted

	mapping *mapping // what the slices point into; nil when they are on the heap
	scratch scratchPool
}

// twin is a vector that is equal to an earlier one. It has no links of its own and is found beside the
// earlier one. Without this, the many copies of one text that a corpus has would link to each other
// alone and to few of themselves.
type twin struct{ of, id uint32 }

// New returns a graph without vectors.
func New(dim int, p Params) (*Graph, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if dim < 1 || dim > maxDimensions {
		return nil, fmt.Errorf("%w: %d dimensions; there must be between 1 and %d", ErrVectors, dim, maxDimensions)
	}
	return &Graph{p: p.WithDefaults(), dim: dim, top: -1}, nil
}

// Len is the number of vectors.
func (g *Graph) Len() int { return len(g.kinds) }

// Dimensions is the length of a vector.
func (g *Graph) Dimensions() int { return g.dim }

// Params are the parameters that the graph was built with.
func (g *Graph) Params() Params { return g.p }

// Vector returns a vector, which the caller must not change, and must not use when the graph is no
// longer reachable: the graph may be mapped from a file.
func (g *Graph) Vector(id uint32) []float32 {
	at := int(id&blockMask) * g.dim
	return g.blocks[id>>blockShift][at : at+g.dim : at+g.dim]
}

// Overhead is the number of bytes that the graph takes over its vectors.
func (g *Graph) Overhead() int {
	return 4*(len(g.links0)+len(g.offset)+len(g.upper)+2*len(g.twins)) + len(g.kinds)
}

// layers is the top layer of a node.
func (g *Graph) layers(id uint32) int { return int(g.kinds[id] & layerBits) }

// links returns a node's link list on a layer, free places included.
func (g *Graph) links(id uint32, layer int) []uint32 {
	if layer == 0 {
		width := 2 * g.p.M
		at := int(id) * width
		return g.links0[at : at+width : at+width]
	}
	at := int(g.offset[id]) + (layer-1)*g.p.M
	return g.upper[at : at+g.p.M : at+g.p.M]
}

// twinsOf returns a node's twins.
func (g *Graph) twinsOf(id uint32) []twin {
	if g.kinds[id]&hasTwins == 0 {
		return nil
	}
	first, _ := slices.BinarySearchFunc(g.twins, twin{of: id}, compareTwins)
	last := first
	for last < len(g.twins) && g.twins[last].of == id {
		last++
	}
	return g.twins[first:last]
}

// similarity is the inner product: the higher, the nearer.
func similarity(a, b []float32) float32 { return vek32.Dot(a, b) }

// layerOf draws a node's top layer: 0 for most, each further one 1/M as likely. It depends on the seed
// and the id alone.
func layerOf(seed uint64, id int, m int) int {
	x := seed + uint64(id+1)*0x9e3779b97f4a7c15 // splitmix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	u := (float64(x>>11) + 0.5) / (1 << 53) // in (0, 1)
	return min(int(-math.Log(u)/math.Log(float64(m))), maxLayer)
}
