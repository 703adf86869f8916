package chunker

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unit is the smallest thing that the packing of a section's text moves: a block that fits into a
// chunk, or else a part of one that does.
type unit struct {
	start, end int
	kind       kind
	before     strength // of the boundary before it
	keep       bool     // goes with what follows
	partial    bool     // less than a sentence
}

// strength says how good a place for a cut is.
type strength uint8

const (
	anywhere  strength = iota // between tokens, or after what goes with the next
	lineEnd                   // inside a sentence
	sentences                 // between sentences, table rows, lines of code, nested items
	items                     // between list items, at blank lines in code
	blocks                    // between blocks
	titles                    // before a line that looks like a heading
)

// appendBlock appends block b as one unit if it fits, else its parts.
func (s *splitter) appendBlock(b block) {
	at := blocks
	keep := b.kind == heading || goesWithNext(s.text[b.start:b.end])
	if keep && b.kind == paragraph && looksLikeTitle(s.text[b.start:b.end]) {
		at = titles
	}
	if n := len(s.units); n > 0 {
		last := &s.units[n-1]
		if b.kind == paragraph && isRule(s.text, lineAt(s.text, b.start, b.end)) { // a rule ends what is above
			if _, ok := s.counts.fits(last.start, b.end, s.size); ok {
				last.end = b.end
				return
			}
		}
		if last.keep {
			at = anywhere
		}
		// Headings must not stand alone, so a paragraph that has no room under them is cut.
		if b.kind == paragraph && s.onlyKept() {
			if _, ok := s.counts.fits(s.units[0].start, b.end, s.size); !ok {
				s.appendSentences(b.start, b.end, b.kind, at)
				return
			}
		}
	}
	if _, ok := s.counts.fits(b.start, b.end, s.size); ok {
		s.units = append(s.units, unit{start: b.start, end: b.end, kind: b.kind, before: at, keep: keep})
		return
	}
	switch b.kind {
	case table:
		s.appendRows(b.start, b.end, at)
	case code:
		s.appendCode(b.start, b.end, at)
	case list:
		s.appendItems(b.start, b.end, at)
	default:
		s.appendSentences(b.start, b.end, b.kind, at)
	}
}

// onlyKept says whether all units yet are headings and the like.
func (s *splitter) onlyKept() bool {
	return len(s.units) <= maxKept && !slices.ContainsFunc(s.units, func(u unit) bool { return !u.keep })
}

// maxKept is how many headings in a row are believed to be such.
const maxKept = 4

// appendWhole appends text[a:b] as one unit if it fits, else its sentences.
func (s *splitter) appendWhole(a, b int, k kind, at strength) {
	if start, end := trim(s.text, a, b); start == end {
		return
	} else if k != code { // code keeps the indentation of its first line
		a = start
	}
	_, b = trim(s.text, a, b)
	if _, ok := s.counts.fits(a, b, s.size); ok {
		s.units = append(s.units, unit{start: a, end: b, kind: k, before: at, keep: k == item && strings.HasSuffix(s.text[a:b], ":")})
		return
	}
	s.appendSentences(a, b, k, at)
}

// appendSentences appends the sentences of text[a:b], the lines of those that don't fit and the words
// of lines that don't; at is the strength of the boundary before the first.
func (s *splitter) appendSentences(a, b int, k kind, at strength) {
	for _, end := range appendSentences(nil, s.text, a, b) {
		start, stop := trim(s.text, a, end)
		a = end
		if start == stop {
			continue
		}
		if _, ok := s.counts.fits(start, stop, s.size); ok {
			s.units = append(s.units, unit{start: start, end: stop, kind: k, before: at})
		} else {
			s.appendLines(start, stop, k, at)
		}
		at = sentences
	}
}

func (s *splitter) appendLines(a, b int, k kind, at strength) {
	for a < b {
		l := lineAt(s.text, a, b)
		a = l.next()
		start, stop := trim(s.text, l.start, l.end)
		if start == stop {
			continue
		}
		if _, ok := s.counts.fits(start, stop, s.size); ok {
			s.units = append(s.units, unit{start: start, end: stop, kind: k, before: at, partial: true})
			at = lineEnd
			continue
		}
		for start < stop { // small windows, so that the packing can fill chunks with them
			end := s.counts.forward(start, stop, max(s.size/8, utf8.UTFMax))
			_, last := trim(s.text, start, end)
			s.units = append(s.units, unit{start: start, end: last, kind: k, before: at, partial: true})
			start, _ = trim(s.text, end, stop)
			at = anywhere
		}
		at = lineEnd
	}
}

// goesWithNext recognises a lead-in and a title: a paragraph to be kept with the block below it.
func goesWithNext(s string) bool {
	return strings.HasSuffix(s, ":") || strings.HasSuffix(s, "：") || looksLikeTitle(s)
}

// looksLikeTitle recognises headings of plain text: one short line without a stop, or a numbered one
// of a few lines ("3.2. How do I ...?").
func looksLikeTitle(s string) bool {
	const longestLine, longestNumbered = 80, 240 // bytes
	if len(s) > longestNumbered {
		return false
	}
	number := strings.TrimLeft(s, "0123456789")
	if len(number) < len(s) && strings.HasPrefix(number, ".") && strings.Count(s, "\n") < 4 {
		if rest := strings.TrimLeft(number, ".0123456789"); len(number)-len(rest) > 2 && strings.HasPrefix(rest, " ") {
			return true
		}
	}
	if len(s) > longestLine || strings.Contains(s, "\n") {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsLetter(last) || unicode.IsDigit(last) || last == '?' || last == ')' || last == '"'
}
