package builtin

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWordRunes is the longest word that is cut into pieces; BERT makes a longer one unknown.
const maxWordRunes = 100

// A vocabulary knows the word pieces and cuts texts into them as BERT's uncased tokenizer does:
// clean, strip accents, lower-case, split at white space, punctuation and CJK characters, then
// take the longest known piece from the left until the word is used up. Where it differs from the
// tokenizers library, it is because Go knows newer characters than Unicode 8.
type vocabulary struct {
	start   map[string]int32 // pieces that begin a word
	inner   map[string]int32 // pieces that go on with one, without their "##"
	longest int              // bytes of the longest piece
	unknown int32
}

// newVocabulary reads one piece a line; a piece's id is its line's number, from 0.
func newVocabulary(pieces []string) (*vocabulary, bool) {
	v := &vocabulary{
		start:   make(map[string]int32, len(pieces)),
		inner:   make(map[string]int32, len(pieces)/4),
		unknown: -1,
	}
	for id, piece := range pieces {
		m := v.start
		if len(piece) > 2 && piece[:2] == "##" {
			m, piece = v.inner, piece[2:]
		}
		m[piece] = int32(id)
		v.longest = max(v.longest, len(piece))
	}
	id, ok := v.start["[UNK]"]
	v.unknown = id
	// The special pieces are no words: a text that spells one has brackets and letters.
	for _, special := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		delete(v.start, special)
	}
	return v, ok
}

// classes of a byte below utf8.RuneSelf.
const (
	isLetter = iota // also digits
	isSpace
	isPunct
	isDropped
)

var class, lower = asciiTables()

func asciiTables() (class, lower [utf8.RuneSelf]byte) {
	for i := range class {
		c := byte(i)
		lower[i] = c
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			class[i] = isSpace
		case c < ' ' || c == 0x7f:
			class[i] = isDropped
		case 'A' <= c && c <= 'Z':
			lower[i] = c + 'a' - 'A'
		case '0' <= c && c <= '9' || 'a' <= c && c <= 'z':
		default:
			class[i] = isPunct
		}
	}
	return class, lower
}

// buffers are what cutting a text needs besides its result; kept, they make it free of allocations.
type buffers struct {
	word       []byte
	decomposed []byte // one character in normal form D
}

// appendIDs appends the pieces of text to ids.
func (v *vocabulary) appendIDs(ids []int32, buf *buffers, text string) []int32 {
	word := buf.word[:0]
	runes := 0
	flush := func() {
		if runes > 0 {
			ids = v.appendWord(ids, word, runes)
			word, runes = word[:0], 0
		}
	}
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			i++
			switch class[c] {
			case isLetter:
				word = append(word, lower[c])
				runes++
			case isSpace:
				flush()
			case isPunct:
				flush()
				word, runes = append(word, c), 1
				flush()
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		s := text[i : i+size]
		i += size
		switch {
		case dropped(r):
		case unicode.IsSpace(r) || unicode.Is(unicode.Z, r):
			flush()
		case isCJK(r):
			flush()
			word, runes = append(word, s...), 1
			flush()
		default:
			buf.decomposed = appendDecomposed(buf.decomposed[:0], r, s)
			for b := buf.decomposed; len(b) > 0; {
				r, size := utf8.DecodeRune(b)
				b = b[size:]
				switch r = unicode.ToLower(r); {
				case unicode.Is(unicode.Mn, r):
				case r < utf8.RuneSelf && class[r] == isPunct || unicode.IsPunct(r):
					flush()
					word, runes = utf8.AppendRune(word, r), 1
					flush()
				default:
					word = utf8.AppendRune(word, r)
					runes++
				}
			}
		}
	}
	flush()
	buf.word = word
	return ids
}

// appendDecomposed appends the canonical decomposition of r, whose bytes are s. It is what
// norm.NFD.AppendString does for one character, without its allocation.
func appendDecomposed(dst []byte, r rune, s string) []byte {
	// Hangul syllables decompose by arithmetic (Unicode, section 3.12).
	const base, leading, vowel, trailing, count = 0xac00, 0x1100, 0x1161, 0x11a7, 11172
	if i := r - base; 0 <= i && i < count {
		dst = utf8.AppendRune(dst, leading+i/(21*28))
		dst = utf8.AppendRune(dst, vowel+i%(21*28)/28)
		if i%28 != 0 {
			dst = utf8.AppendRune(dst, trailing+i%28)
		}
		return dst
	}
	if d := norm.NFD.PropertiesString(s).Decomposition(); d != nil {
		return append(dst, d...)
	}
	return append(dst, s...)
}

// appendWord cuts one word. A word of which any part is unknown is unknown as a whole.
func (v *vocabulary) appendWord(ids []int32, word []byte, runes int) []int32 {
	if id, ok := v.start[string(word)]; ok { // nearly every word
		return append(ids, id)
	}
	if runes > maxWordRunes {
		return append(ids, v.unknown)
	}
	first := len(ids)
	pieces := v.start
	for len(word) > 0 {
		end := min(len(word), v.longest)
		for ; end > 0; end-- {
			if id, ok := pieces[string(word[:end])]; ok {
				ids = append(ids, id)
				break
			}
		}
		if end == 0 {
			return append(ids[:first], v.unknown)
		}
		word, pieces = word[end:], v.inner
	}
	return ids
}

// dropped says whether BERT's cleaning removes r: control and format characters, private use,
// and the replacement character that stands for broken bytes.
func dropped(r rune) bool {
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)
}

// isCJK says whether r is a word of its own: an ideograph, but not Hangul or kana, which are
// written with spaces or are cut into pieces.
func isCJK(r rune) bool {
	switch {
	case r < 0x3400:
		return false
	case r <= 0x4dbf, 0x4e00 <= r && r <= 0x9fff, 0xf900 <= r && r <= 0xfaff,
		0x20000 <= r && r <= 0x2a6df, 0x2a700 <= r && r <= 0x2b73f, 0x2b740 <= r && r <= 0x2b81f,
		0x2b820 <= r && r <= 0x2ceaf, 0x2f800 <= r && r <= 0x2fa1f:
		return true
	}
	return false
}
