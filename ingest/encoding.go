package ingest

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// detectSample is how much of a text in a legacy encoding the detector gets: enough for its
// statistics, and it runs at 20 MB/s.
const detectSample = 64 << 10

// decode converts text in any common encoding to UTF-8. In this order: a byte order mark, wide
// units seen by their zeros, valid UTF-8 (no other encoding produces it by chance), the declared
// charset if the bytes agree with it, and what the bytes look like.
func decode(raw []byte, declared string) (text string, warnings []string, err error) {
	if w, rest := wideEncoding(raw); w != nil {
		text, bad := w.decode(rest)
		return text, damage(bad, w.name), tooDamaged(bad, len(text), w.name)
	}
	raw = bytes.TrimPrefix(raw, bomUTF8)
	if utf8.Valid(raw) {
		if bytes.Contains(raw, []byte("\x1b$")) {
			if text, bad := decodeWith(japanese.ISO2022JP, raw); bad == 0 {
				return text, nil, nil
			}
		}
		return string(raw), nil, nil
	}
	if good, bad := countUTF8(raw); good > 10*bad {
		return strings.ToValidUTF8(string(raw), "\uFFFD"), damage(bad, "UTF-8"), nil
	}
	for _, name := range []string{declared, guess(raw)} {
		if enc := legacy(name); enc != nil {
			if text, bad := decodeWith(enc, raw); bad == 0 {
				return text, nil, nil
			} else if bad*50 < countHigh(raw) {
				return text, damage(bad, name), nil
			}
		}
	}
	text, _ = decodeWith(charmap.Windows1252, raw)
	// The unassigned places of Windows-1252 come out as C1 controls, which no text has.
	c1 := strings.Count(strings.Map(func(r rune) rune {
		if r >= 0x80 && r < 0xA0 {
			return 'x'
		}
		return ' '
	}, text), "x")
	return text, nil, tooDamaged(c1, countHigh(raw), "Windows-1252")
}

func damage(bad int, name string) []string {
	if bad == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d bytes are no %s and were replaced by U+FFFD", bad, name)}
}

func tooDamaged(bad, of int, name string) error {
	if bad*10 <= of {
		return nil
	}
	return skipf(SkipBadEncoding, "no encoding fits its bytes (%s comes nearest): save it as UTF-8", name)
}

// countUTF8 counts well-formed multi-byte sequences and malformed bytes.
func countUTF8(raw []byte) (good, bad int) {
	for i := 0; i < len(raw); {
		if raw[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n == 1 {
			bad++
		} else {
			good++
		}
		i += n
	}
	return good, bad
}

func countHigh(raw []byte) (n int) {
	for _, b := range raw {
		if b >= utf8.RuneSelf {
			n++
		}
	}
	return n
}

// legacy looks an encoding up by any of its names. UTF-8 and UTF-16 are nil: whoever declares
// them and isn't them is to be detected.
func legacy(name string) encoding.Encoding {
	switch strings.ToLower(name) {
	case "":
		return nil
	case "gb2312", "gbk":
		return simplifiedchinese.GB18030 // a superset of both, and what "GB2312" pages really use
	}
	enc, canonical := charset.Lookup(name)
	if enc == nil || strings.HasPrefix(canonical, "utf-") || canonical == "replacement" {
		return nil
	}
	return enc
}

// guess asks the detector about the parts that are not ASCII. Its Latin guesses can't be told from
// each other by statistics, so that they all become Windows-1252, by far the most frequent.
func guess(raw []byte) string {
	best := chardet.Detect(highSample(raw))
	if best.Confidence < 0.5 {
		return ""
	}
	switch name := strings.ToLower(best.Encoding); name {
	case "ascii", "utf-8", "iso-8859-1", "iso-8859-9", "windows-1254", "macroman":
		return "windows-1252"
	case "johab", "cp949", "uhc":
		return "euc-kr"
	case "cp932":
		return "shift_jis"
	default:
		if _, err := htmlindex.Get(name); err != nil {
			return ""
		}
		return name
	}
}

// highSample is the lines with bytes over 127, up to detectSample.
func highSample(raw []byte) []byte {
	if len(raw) <= detectSample {
		return raw
	}
	var sample []byte
	for line := range bytes.Lines(raw) {
		if countHigh(line) == 0 {
			continue
		}
		sample = append(sample, line[:min(len(line), detectSample-len(sample))]...)
		if len(sample) == detectSample {
			break
		}
	}
	return sample
}

// decodeWith counts what the encoding has no meaning for.
func decodeWith(enc encoding.Encoding, raw []byte) (text string, bad int) {
	out, err := enc.NewDecoder().Bytes(raw)
	if err != nil {
		return "", len(raw)
	}
	return string(out), bytes.Count(out, []byte("\uFFFD"))
}

var (
	metaCharset = regexp.MustCompile(`(?i)<meta[^>]{0,200}?charset\s*=\s*["']?\s*([a-z0-9_:.-]{2,40})`)
	xmlCharset  = regexp.MustCompile(`(?i)^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([a-z0-9_:.-]{2,40})`)
)

// declaredCharset is what a page says of itself in its first kilobytes.
func declaredCharset(raw []byte) string {
	head := raw[:min(len(raw), 8<<10)]
	for _, re := range []*regexp.Regexp{metaCharset, xmlCharset} {
		if m := re.FindSubmatch(head); m != nil {
			return string(m[1])
		}
	}
	return ""
}

// printableShare is the share of runes that a reader could see, or white space.
func printableShare(text string) float64 {
	seen, all := 0, 0
	for _, r := range text {
		all++
		if r != utf8.RuneError && (unicode.IsPrint(r) || unicode.IsSpace(r)) {
			seen++
		}
	}
	return float64(seen) / float64(max(all, 1))
}
