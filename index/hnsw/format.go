package hnsw

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"unsafe"
)

// The file is a header, which has a table of sections, and the sections, which begin at multiples of
// align so that they can be used where they are mapped. Everything is little endian. Each section has
// a CRC-32C in the table; the header has its own.
//
//	 0  magic, 8 bytes
//	 8  version
//	12  CRC-32C of the header, these four bytes as zero
//	16  size of the file, 8 bytes
//	24  number of vectors, 8 bytes
//	32  seed, 8 bytes
//	40  dimensions
//	44  M
//	48  efConstruction
//	52  entry node
//	56  top layer + 1
//	60  number of sections
//	64  for each section: offset and length in bytes, 8 bytes each, its CRC-32C, and four of zero
const (
	magic      = "assaygr\n"
	version    = 1
	align      = 64
	tableAt    = 64
	entryBytes = 24
	headerSize = tableAt + sections*entryBytes
)

// The sections, in their order in the file.
const (
	labelSection   = iota // the owner's words on what the graph is of
	keysSection           // for each vector the owner's number of it
	kindsSection          // for each vector a byte
	offsetSection         // for each vector a number
	links0Section         // for each vector 2M numbers
	upperSection          // for each layer of each vector M numbers
	twinsSection          // pairs of numbers
	vectorsSection        // for each vector its components
	sections
)

var sectionNames = [sections]string{"label", "keys", "kinds", "offsets", "links of layer 0", "links of upper layers", "twins", "vectors"}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CorruptError says what is wrong with a file, and where.
type CorruptError struct {
	Path    string
	Section string // "header" or a section's name
	Offset  int64  // of the section in the file
	What    string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("hnsw: graph file %s is damaged: %s at offset %d: %s", e.Path, e.Section, e.Offset, e.What)
}

// VersionError is returned for a file of a format that this version cannot read.
type VersionError struct {
	Path    string
	Version uint32
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("hnsw: graph file %s has format %d, this program reads %d", e.Path, e.Version, version)
}

type header struct {
	size, n, seed                uint64
	dim, m, efc, entry, topPlus1 uint32
	table                        [sections]section
}

type section struct {
	offset, length uint64
	crc            uint32
}

func (h *header) encode() []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, headerSize), magic...)
	b = le.AppendUint32(b, version)
	b = le.AppendUint32(b, 0)
	for _, x := range []uint64{h.size, h.n, h.seed} {
		b = le.AppendUint64(b, x)
	}
	for _, x := range []uint32{h.dim, h.m, h.efc, h.entry, h.topPlus1, sections} {
		b = le.AppendUint32(b, x)
	}
	for _, s := range h.table {
		b = le.AppendUint64(b, s.offset)
		b = le.AppendUint64(b, s.length)
		b = le.AppendUint32(b, s.crc)
		b = le.AppendUint32(b, 0)
	}
	le.PutUint32(b[12:], crc32.Checksum(b, castagnoli))
	return b
}

// decodeHeader reads the header of a whole file and checks all that can be checked without the
// sections' contents.
func decodeHeader(path string, file []byte) (*header, error) {
	damaged := func(what string, args ...any) error {
		return &CorruptError{Path: path, Section: "header", What: fmt.Sprintf(what, args...)}
	}
	le := binary.LittleEndian
	if len(file) < 12 || string(file[:8]) != magic {
		return nil, damaged("it does not begin as a graph file does")
	}
	if v := le.Uint32(file[8:]); v != version {
		return nil, &VersionError{path, v}
	}
	if len(file) < headerSize {
		return nil, damaged("the file ends in it")
	}
	b := append([]byte(nil), file[:headerSize]...)
	sum := le.Uint32(b[12:])
	clear(b[12:16])
	if got := crc32.Checksum(b, castagnoli); got != sum {
		return nil, damaged("its checksum is %08x, recorded is %08x", got, sum)
	}
	h := &header{
		size: le.Uint64(b[16:]), n: le.Uint64(b[24:]), seed: le.Uint64(b[32:]),
		dim: le.Uint32(b[40:]), m: le.Uint32(b[44:]), efc: le.Uint32(b[48:]), entry: le.Uint32(b[52:]), topPlus1: le.Uint32(b[56:]),
	}
	if h.size != uint64(len(file)) {
		return nil, damaged("the file has %d bytes, recorded are %d", len(file), h.size)
	}
	if le.Uint32(b[60:]) != sections || h.n >= none || h.dim < 1 || h.dim > maxDimensions || h.topPlus1 > maxLayer+1 || h.m > 128 ||
		(Params{int(h.m), int(h.efc), h.seed}).Validate() != nil || h.m == 0 || h.efc == 0 || h.seed == 0 {
		return nil, damaged("its numbers make no sense")
	}
	end := uint64(headerSize)
	for i := range h.table {
		s := section{le.Uint64(b[tableAt+i*entryBytes:]), le.Uint64(b[tableAt+i*entryBytes+8:]), le.Uint32(b[tableAt+i*entryBytes+16:])}
		if s.offset%align != 0 || s.offset < end || s.offset > h.size || s.length > h.size-s.offset {
			return nil, damaged("the %s are not inside the file", sectionNames[i])
		}
		end = s.offset + s.length
		h.table[i] = s
	}
	for i, want := range map[int]uint64{keysSection: 4 * h.n, kindsSection: h.n, offsetSection: 4 * h.n,
		links0Section: 8 * h.n * uint64(h.m), vectorsSection: 4 * h.n * uint64(h.dim)} {
		if h.table[i].length != want {
			return nil, damaged("the %s take %d bytes, %d are expected", sectionNames[i], h.table[i].length, want)
		}
	}
	if h.table[upperSection].length%(4*uint64(h.m)) != 0 || h.table[twinsSection].length%8 != 0 {
		return nil, damaged("the sections have lengths that make no sense")
	}
	return h, nil
}

// bytesOf shows a slice of numbers as it lies in memory.
func bytesOf[T uint32 | float32 | twin](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// slice shows bytes, which begin at a multiple of four, as a slice of numbers.
func slice[T uint32 | float32 | twin](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}
