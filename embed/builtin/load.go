package builtin

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
)

// The file: a header of 64 bytes (all numbers little-endian), then the vocabulary, the scales and
// the rows. tools/distil writes it.
//
//	 0  magic "ASSAYVEC"
//	 8  version of the format, uint32
//	12  CRC-32C of all that follows this field, uint32
//	16  rows, uint32
//	20  dimensions, uint32
//	24  bytes of the vocabulary, uint32
//	28  name of the model, 36 bytes, filled up with zeros
//	64  the vocabulary: one piece a line, each ended by a newline
//	    the scales: a uint16 for each row
//	    the rows: dimensions int8 for each row
const (
	magic         = "ASSAYVEC"
	formatVersion = 1
	headerSize    = 64
)

//go:embed weights.bin
var weights []byte

// ErrFormat is returned by Load when the embedded file is not one that this version can read, or is
// damaged.
var ErrFormat = errors.New("builtin: bad weights file")

var load = sync.OnceValues(func() (*Model, error) { return parse(weights) })

// Load returns the model. The first call reads it, all others share it.
func Load() (*Model, error) { return load() }

func parse(file []byte) (*Model, error) {
	if len(file) < headerSize || string(file[:8]) != magic {
		return nil, fmt.Errorf("%w: no header", ErrFormat)
	}
	number := func(at int) int { return int(binary.LittleEndian.Uint32(file[at:])) }
	if v := number(8); v != formatVersion {
		return nil, fmt.Errorf("%w: version %d, want %d", ErrFormat, v, formatVersion)
	}
	if sum := crc32.Checksum(file[16:], crc32.MakeTable(crc32.Castagnoli)); sum != uint32(number(12)) {
		return nil, fmt.Errorf("%w: the checksum is wrong", ErrFormat)
	}
	rows, dims, vocabSize := number(16), number(20), number(24)
	if rows < 1 || dims < 1 || uint64(headerSize)+uint64(vocabSize)+uint64(rows)*uint64(2+dims) != uint64(len(file)) {
		return nil, fmt.Errorf("%w: %d bytes for %d rows of %d dimensions", ErrFormat, len(file), rows, dims)
	}
	m := &Model{name: strings.TrimRight(string(file[28:headerSize]), "\x00"), dims: dims}
	file = file[headerSize:]
	pieces := strings.Split(strings.TrimSuffix(string(file[:vocabSize]), "\n"), "\n")
	if len(pieces) != rows {
		return nil, fmt.Errorf("%w: %d pieces for %d rows", ErrFormat, len(pieces), rows)
	}
	var ok bool
	if m.vocab, ok = newVocabulary(pieces); !ok {
		return nil, fmt.Errorf("%w: no [UNK] in the vocabulary", ErrFormat)
	}
	file = file[vocabSize:]
	m.scales = make([]uint16, rows)
	for i := range m.scales {
		m.scales[i] = binary.LittleEndian.Uint16(file[2*i:])
	}
	m.rows = file[2*rows:]
	if m.weigh(); m.weights[m.vocab.unknown] == 0 {
		return nil, fmt.Errorf("%w: the vector of [UNK] is zero", ErrFormat)
	}
	return m, nil
}
