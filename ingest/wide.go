package ingest

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// wide is an encoding in units of two or four bytes.
type wide struct {
	name string
	unit int
	enc  encoding.Encoding
	bom  []byte
}

var (
	bomUTF8 = []byte("\xEF\xBB\xBF")

	// UTF-32LE comes before UTF-16LE, whose mark begins like its own.
	wides = []*wide{
		{"UTF-32LE", 4, utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), []byte("\xFF\xFE\x00\x00")},
		{"UTF-32BE", 4, utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), []byte("\x00\x00\xFE\xFF")},
		{"UTF-16LE", 2, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), []byte("\xFF\xFE")},
		{"UTF-16BE", 2, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), []byte("\xFE\xFF")},
	}
)

// wideEncoding recognises UTF-16 and UTF-32 by their mark or by where the zeros are; rest is raw
// without the mark. It is nil for everything else.
func wideEncoding(raw []byte) (w *wide, rest []byte) {
	for _, w := range wides {
		if bytes.HasPrefix(raw, w.bom) {
			return w, raw[len(w.bom):]
		}
	}
	head := raw[:min(len(raw), 4096)&^3]
	if bytes.IndexByte(head, 0) < 0 {
		return nil, raw
	}
	for _, w := range wides {
		if w.fits(head) {
			// The zeros of a table of numbers look the same, its characters don't.
			if text, bad := w.decode(head); bad <= 1 && printableShare(text) > 0.95 {
				return w, raw
			}
		}
	}
	return nil, raw
}

// fits looks at the high bytes: in UTF-32 every unit is a rune, in UTF-16 the spaces and line ends
// of any script have a zero there, and few characters have one in the low byte.
func (w *wide) fits(head []byte) bool {
	if w.unit == 4 {
		var order binary.ByteOrder = binary.LittleEndian
		if w.bom[0] == 0 {
			order = binary.BigEndian
		}
		for i := 0; i < len(head); i += 4 {
			if r := order.Uint32(head[i:]); r == 0 || r > 0x10FFFF {
				return false
			}
		}
		return len(head) >= 8
	}
	zeros := [2]int{}
	for i, b := range head {
		if b == 0 {
			zeros[i&1]++
		}
	}
	high, low := zeros[1], zeros[0]
	if w.bom[0] == 0xFE {
		high, low = low, high
	}
	return high >= 2 && high*100 >= len(head) && low*4 <= high
}

// decode counts the units that are no characters. A cut last unit is dropped.
func (w *wide) decode(raw []byte) (text string, bad int) {
	return decodeWith(w.enc, raw[:len(raw)-len(raw)%w.unit])
}
