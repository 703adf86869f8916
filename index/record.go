package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"assay"
	"assay/index/bm25"
)

// documentRecord is a document as it is stored. Its text is apart, so that a passage can be cut out
// of it without reading the rest.
type documentRecord struct {
	Document assay.Document `json:"document"`
	FirstRow uint32         `json:"first_row"` // its chunks are the rows from here
	Rows     int            `json:"rows"`
	Tokens   int            `json:"tokens"`
	TextHash string         `json:"text_hash"`
}

// chunkRecord is a chunk as it is stored. Its text is a part of its document's.
type chunkRecord struct {
	chunk   assay.Chunk // without DocID and Text
	owner   uint32      // document number
	lengths bm25.Lengths
}

var errRecord = errors.New("the record cannot be read")

// maxHeadings bounds what a damaged record can make the decoder allocate, and what is stored.
const maxHeadings = 64

func (r *chunkRecord) encode() []byte {
	out := make([]byte, 0, 64)
	for _, n := range []uint64{
		uint64(r.owner), uint64(r.chunk.Ordinal), uint64(r.chunk.Span.Start), uint64(r.chunk.Span.End), uint64(r.chunk.Tokens),
		uint64(r.lengths[bm25.Title]), uint64(r.lengths[bm25.Heading]), uint64(r.lengths[bm25.Body]),
	} {
		out = binary.AppendUvarint(out, n)
	}
	text := func(s string) { out = append(binary.AppendUvarint(out, uint64(len(s))), s...) }
	text(r.chunk.ID)
	out = binary.AppendUvarint(out, uint64(len(r.chunk.Headings)))
	for _, h := range r.chunk.Headings {
		text(h)
	}
	return binary.BigEndian.AppendUint32(out, checksum(out))
}

// decodeChunk copies what it keeps, since the data belongs to a transaction.
func decodeChunk(data []byte) (r chunkRecord, err error) {
	end := len(data) - crc32.Size
	if end < 0 || checksum(data[:end]) != binary.BigEndian.Uint32(data[end:]) {
		return r, errRecord
	}
	data = data[:end]
	ok := true
	next := func() uint64 {
		n, size := binary.Uvarint(data)
		if size <= 0 {
			ok, data = false, nil
			return 0
		}
		data = data[size:]
		return n
	}
	text := func() string {
		n := next()
		if n > uint64(len(data)) {
			ok, data = false, nil
			return ""
		}
		s := string(data[:n])
		data = data[n:]
		return s
	}
	r.owner = uint32(next())
	r.chunk.Ordinal = int(next())
	r.chunk.Span = assay.Span{Start: int(next()), End: int(next())}
	r.chunk.Tokens = int(next())
	for i := range r.lengths {
		r.lengths[i] = uint32(next())
	}
	r.chunk.ID = text()
	count := next()
	if count > maxHeadings {
		return r, errRecord
	}
	for range count {
		r.chunk.Headings = append(r.chunk.Headings, text())
	}
	if !ok || len(data) != 0 {
		return r, errRecord
	}
	return r, nil
}

// checksum is CRC-32C, for which MakeTable returns the one table that it keeps.
func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// encodeVector writes a checksum and float32s, little endian.
func encodeVector(v []float32) []byte {
	out := make([]byte, crc32.Size, crc32.Size+4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	binary.BigEndian.PutUint32(out, checksum(out[crc32.Size:]))
	return out
}

// decodeVector checks the length and the checksum.
func decodeVector(data []byte, dimensions int) ([]float32, error) {
	out := make([]float32, dimensions)
	return out, decodeVectorInto(out, data)
}

func decodeVectorInto(out []float32, data []byte) error {
	if len(data) != crc32.Size+4*len(out) {
		return fmt.Errorf("the vector has %d bytes, %d dimensions have %d", len(data), len(out), crc32.Size+4*len(out))
	}
	body := data[crc32.Size:]
	if checksum(body) != binary.BigEndian.Uint32(data) {
		return errors.New("the vector has a wrong checksum")
	}
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(body[4*i:]))
	}
	return nil
}
