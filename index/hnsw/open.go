package hnsw

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"slices"

	"github.com/blevesearch/mmap-go"
)

// mapping is a file in memory. It is unmapped when nothing points to it any more.
type mapping struct{ bytes mmap.MMap }

// Open maps a file that Save has written. Every byte is covered by a checksum, which is compared, and
// every link is checked to lead somewhere, so that no search can fail on what is in the file. Damage
// is a *CorruptError, another format a *VersionError. The file may be removed or replaced while it is
// open, but not be written to.
func Open(path string) (*File, error) {
	if !littleEndian() {
		return nil, errByteOrder
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("hnsw: open: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hnsw: open: %w", err), f.Close())
	}
	if info.Size() == 0 {
		return nil, errors.Join(&CorruptError{Path: path, Section: "header", What: "the file is empty"}, f.Close())
	}
	bytes, err := mmap.Map(f, mmap.RDONLY, 0)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("hnsw: open: map %s: %w", path, err)
	}
	m := &mapping{bytes}
	// An error of unmapping has nobody to go to, and leaves address space behind, nothing else.
	runtime.AddCleanup(m, func(b mmap.MMap) { _ = b.Unmap() }, bytes)
	defer runtime.KeepAlive(m)
	return decode(path, bytes, m)
}

// decode makes a file of its bytes, which it keeps.
func decode(path string, file []byte, m *mapping) (*File, error) {
	h, err := decodeHeader(path, file)
	if err != nil {
		return nil, err
	}
	var parts [sections][]byte
	for i, s := range h.table {
		parts[i] = file[s.offset : s.offset+s.length : s.offset+s.length]
		if got := crc32.Checksum(parts[i], castagnoli); got != s.crc {
			return nil, &CorruptError{path, sectionNames[i], int64(s.offset), fmt.Sprintf("its checksum is %08x, recorded is %08x", got, s.crc)}
		}
	}
	g := &Graph{
		p: Params{int(h.m), int(h.efc), h.seed}, dim: int(h.dim), entry: h.entry, top: int(h.topPlus1) - 1,
		kinds: parts[kindsSection], offset: slice[uint32](parts[offsetSection]), links0: slice[uint32](parts[links0Section]),
		upper: slice[uint32](parts[upperSection]), twins: slice[twin](parts[twinsSection]), mapping: m,
	}
	vectors := slice[float32](parts[vectorsSection])
	for len(vectors) > 0 {
		size := min(blockRows*g.dim, len(vectors))
		g.blocks = append(g.blocks, vectors[:size:size])
		vectors = vectors[size:]
	}
	if bad, what := g.verify(); what != "" {
		return nil, &CorruptError{path, sectionNames[bad], int64(h.table[bad].offset), what}
	}
	return &File{Graph: g, Label: string(parts[labelSection]), Keys: slices.Clone(slice[uint32](parts[keysSection]))}, nil
}

// verify checks what searches rely on, and says what is wrong in which section.
func (g *Graph) verify() (bad int, what string) {
	n, at := g.Len(), 0
	if n > 0 && (int(g.entry) >= n || g.top < 0 || g.layers(g.entry) < g.top) {
		return kindsSection, "the entry node is not on the top layer"
	}
	if n == 0 && g.top != -1 {
		return kindsSection, "there is a top layer without nodes"
	}
	for id := range n {
		layers := g.layers(uint32(id))
		if layers > maxLayer || int(g.offset[id]) != at {
			return offsetSection, fmt.Sprintf("node %d has no place for its links", id)
		}
		at += layers * g.p.M
	}
	if at != len(g.upper) {
		return upperSection, fmt.Sprintf("there are %d links, %d are expected", len(g.upper), at)
	}
	for i, to := range g.links0 {
		if to != none && int(to) >= n {
			return links0Section, fmt.Sprintf("node %d links to %d, which is none of %d", i/(2*g.p.M), to, n)
		}
	}
	for id := range n {
		for layer := 1; layer <= g.layers(uint32(id)); layer++ {
			for _, to := range g.links(uint32(id), layer) {
				if to != none && (int(to) >= n || g.layers(to) < layer) {
					return upperSection, fmt.Sprintf("node %d links to %d, which is not on layer %d", id, to, layer)
				}
			}
		}
	}
	for i, t := range g.twins {
		if int(t.of) >= n || int(t.id) >= n || t.of >= t.id || g.kinds[t.of]&hasTwins == 0 || i > 0 && compareTwins(g.twins[i-1], t) >= 0 {
			return twinsSection, fmt.Sprintf("pair %d is out of order", i)
		}
	}
	return 0, ""
}
