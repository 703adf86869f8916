package eval

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"assay"
)

// normalised is a text in which every run of white space is one space, none at the ends, with the
// place of each of its bytes in the original. Marks of emphasis and code are left out, and bars between
// cells are white space: a quote is written as a page is read, whatever its Markdown looks like.
type normalised struct {
	text []byte
	at   []int
}

func normalise(s string) normalised {
	n := normalised{text: make([]byte, 0, len(s)), at: make([]int, 0, len(s))}
	space := false
	for i, r := range s {
		switch {
		case unicode.IsSpace(r) || r == '|':
			space = true
			continue
		case r == '*' || r == '`':
			continue
		}
		if space && len(n.text) > 0 {
			n.text = append(n.text, ' ')
			n.at = append(n.at, i-1)
		}
		space = false
		_, size := utf8.DecodeRuneInString(s[i:])
		for b := range size {
			n.text = append(n.text, s[i+b])
			n.at = append(n.at, i+b)
		}
	}
	return n
}

// maxOccurrences bounds the places of one quote: a quote that is found more often says nothing.
const maxOccurrences = 1000

// find returns the spans of the original at which the quote stands, white space and marks aside.
func (n normalised) find(quote string) []assay.Span {
	want := normalise(quote).text
	var spans []assay.Span
	for from := 0; len(want) > 0 && len(spans) < maxOccurrences; {
		i := bytes.Index(n.text[from:], want)
		if i < 0 {
			break
		}
		i += from
		spans = append(spans, assay.Span{Start: n.at[i], End: n.at[i+len(want)-1] + 1})
		from = i + len(want)
	}
	return spans
}
