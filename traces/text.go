package traces

import (
	"strings"
	"unicode/utf8"
)

// indexed is the length up to which backends index values.
const indexed = 256

// short cuts a value that people search for to what backends index.
func short(text string) string { return shorten(text, indexed) }

// shorten cuts text to at most max bytes, between two characters. What is no UTF-8 is replaced: one
// such value would make the whole message with all its spans impossible to encode.
func shorten(text string, max int) string {
	text = text[:min(len(text), max+utf8.UTFMax)] // the rest is cut off in any case
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= max {
		return text
	}
	for max > 0 && !utf8.RuneStart(text[max]) {
		max--
	}
	return text[:max]
}
