package ingest

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// normalise gives every text the same line endings and the same form of each character, and takes
// out what no reader sees: control characters and byte order marks.
func normalise(text string) string {
	text = normaliseLineEndings(text)
	if strings.ContainsFunc(text, invisible) {
		text = strings.Map(func(r rune) rune {
			if invisible(r) {
				return -1
			}
			return r
		}, text)
	}
	return norm.NFC.String(text)
}

// lineEndings are the other ways in which a line ends. A form feed is one: a page ends there.
var lineEndings = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\f", "\n", "\v", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n\n")

func normaliseLineEndings(text string) string { return lineEndings.Replace(text) }

func invisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ', r >= 0x7f && r < 0xa0, r == '\uFEFF':
		return true
	}
	return false
}
