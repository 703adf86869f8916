package chunker

import "strings"

// appendRows appends the rows of a table, the header with the first of them.
func (s *splitter) appendRows(a, b int, at strength) {
	head := 2
	if first := lineAt(s.text, a, b); first.next() < b {
		if second := lineAt(s.text, first.next(), b); strings.Trim(s.text[second.first:second.end], "|-:=+ \t") == "" {
			head = 3
		}
	}
	start := a
	for n := 1; a < b; n++ {
		l := lineAt(s.text, a, b)
		a = l.next()
		if n < head && a < b {
			continue
		}
		if _, ok := s.counts.fits(start, l.end, s.size); !ok && n == head {
			for p := start; p < l.end; { // no room for a header and a row
				row := lineAt(s.text, p, l.end)
				p = row.next()
				s.appendWhole(row.start, row.end, table, at)
				at = sentences
			}
		} else {
			s.appendWhole(start, l.end, table, at)
		}
		start, at = a, sentences
	}
}

// appendCode appends the lines of a code block, the marks at its ends with the lines beside them.
func (s *splitter) appendCode(a, b int, at strength) {
	start, n := a, 0
	for p := a; p < b; {
		l := lineAt(s.text, p, b)
		p = l.next()
		if n++; n == 1 && p < b {
			continue
		}
		if l.blank() {
			if start < l.start {
				continue
			}
			start, at = p, items
			continue
		}
		if p < b { // is the next one the last?
			if next := lineAt(s.text, p, b); next.next() >= b {
				if _, ok := s.counts.fits(start, next.end, s.size); ok {
					l, p = next, next.next()
				}
			}
		}
		s.appendWhole(start, l.end, code, at)
		start, at = p, sentences
	}
}

// appendItems appends the items of a list, the code blocks in it for themselves.
func (s *splitter) appendItems(a, b int, at strength) {
	outer, start := lineAt(s.text, a, b).indent, a
	flush := func(end int, k kind, next strength) {
		if strings.TrimSpace(s.text[start:end]) != "" {
			if _, ok := s.counts.fits(start, end, s.size); !ok && k == code {
				s.appendCode(start, end, at)
			} else {
				s.appendWhole(start, end, k, at)
			}
			at = next
		}
		start = end
	}
	for p := a; p < b; {
		l := lineAt(s.text, p, b)
		p = l.next()
		if l.start > a && isItem(s.text, l) {
			next := sentences
			if l.indent <= outer {
				next = items
			}
			flush(l.start, item, next)
		}
		if f := itemFence(s.text, l); f.length > 0 {
			if p = afterFence(s.text, l, f, b); !isItem(s.text, l) {
				flush(l.start, item, sentences)
				flush(p, code, sentences)
			}
		}
	}
	flush(b, item, blocks)
}
