package hnsw

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"unsafe"
)

// ErrVectors is returned for vectors that no graph can be built over.
var ErrVectors = errors.New("hnsw: vectors")

// maxBatch is how many nodes are linked at once. They do not see each other through the graph, so
// they are compared with each other one by one, which costs half a batch per node.
const maxBatch = 256

// Extend returns a graph with further vectors, which get the ids that follow and are copied. They are
// to be finite, and of unit length where the nearest by angle are wanted. The result depends on the
// vectors, their division among calls and the parameters, not on the number of workers, which are
// goroutines; 0 means one for each core. Cancelling ctx ends it with ctx's error. g stays as it is.
func (g *Graph) Extend(ctx context.Context, vectors [][]float32, workers int) (*Graph, error) {
	for i, v := range vectors {
		if len(v) != g.dim {
			return nil, fmt.Errorf("%w: number %d has %d dimensions, the graph has %d", ErrVectors, i, len(v), g.dim)
		}
	}
	if uint64(g.Len())+uint64(len(vectors)) >= none {
		return nil, fmt.Errorf("%w: %d and %d more are too many for 32-bit ids", ErrVectors, g.Len(), len(vectors))
	}
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("hnsw: build: %w", err)
	}
	defer runtime.KeepAlive(g)
	out := g.grow(vectors)
	nodes := out.fold(g.Len())
	out.lay(g)
	b := &builder{g: out, workers: make([]worker, workers)}
	linked := g.Len() - len(g.twins)
	for len(nodes) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("hnsw: build: %w", err)
		}
		size := min(max(linked/16, 1), maxBatch, len(nodes))
		b.add(nodes[:size])
		nodes = nodes[size:]
		linked += size
	}
	return out, nil
}

// grow returns a graph with the vectors and without their links.
func (g *Graph) grow(vectors [][]float32) *Graph {
	out := &Graph{p: g.p, dim: g.dim, entry: g.entry, top: g.top, mapping: g.mapping}
	out.blocks = slices.Clone(g.blocks[:g.Len()>>blockShift])
	if used := g.Len() & blockMask; used > 0 { // the last block has no room, or its room is another graph's
		block := make([]float32, blockRows*g.dim)
		copy(block, g.blocks[len(out.blocks)][:used*g.dim])
		out.blocks = append(out.blocks, block)
	}
	n := g.Len() + len(vectors)
	out.kinds = make([]uint8, n)
	copy(out.kinds, g.kinds)
	for i, v := range vectors {
		id := g.Len() + i
		if id&blockMask == 0 {
			out.blocks = append(out.blocks, make([]float32, min(blockRows, n-id)*g.dim))
		}
		copy(out.Vector(uint32(id)), v)
	}
	return out
}

// fold finds the vectors from first on that are equal to an earlier one and makes them twins of it.
// It returns the others, which become nodes.
func (g *Graph) fold(first int) []uint32 {
	seed := maphash.MakeSeed()
	known := make(map[uint64][]uint32, g.Len()) // by hash, which only sorts: equality decides
	nodes := make([]uint32, 0, g.Len()-first)
	for id := range uint32(g.Len()) {
		row := g.Vector(id)
		h := maphash.Bytes(seed, unsafe.Slice((*byte)(unsafe.Pointer(&row[0])), 4*len(row)))
		same := slices.IndexFunc(known[h], func(other uint32) bool { return slices.Equal(g.Vector(other), row) })
		if same >= 0 {
			of := known[h][same]
			g.twins = append(g.twins, twin{of, id})
			g.kinds[of] |= hasTwins
			continue
		}
		known[h] = append(known[h], id)
		if int(id) >= first {
			nodes = append(nodes, id)
		}
	}
	slices.SortFunc(g.twins, compareTwins)
	return nodes
}

func compareTwins(a, b twin) int { return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(a.id, b.id)) }

// lay copies the links of a smaller graph and makes room for those of the further nodes.
func (g *Graph) lay(from *Graph) {
	n := g.Len()
	g.links0 = make([]uint32, n*2*g.p.M)
	g.offset = make([]uint32, n)
	copy(g.offset, from.offset)
	at := len(from.upper)
	twins := make(map[uint32]bool, len(g.twins))
	for _, t := range g.twins {
		twins[t.id] = true
	}
	for id := from.Len(); id < n; id++ {
		g.offset[id] = uint32(at)
		if twins[uint32(id)] {
			continue
		}
		layer := layerOf(g.p.Seed, id, g.p.M)
		g.kinds[id] |= uint8(layer)
		at += layer * g.p.M
	}
	g.upper = make([]uint32, at)
	for _, l := range []struct{ to, from []uint32 }{{g.links0, from.links0}, {g.upper, from.upper}} {
		for i := copy(l.to, l.from); i < len(l.to); i++ {
			l.to[i] = none
		}
	}
}
