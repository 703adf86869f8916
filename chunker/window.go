package chunker

import (
	"unicode"
	"unicode/utf8"
)

// forward returns where to cut text[a:b] so that its first part, without white space at its end, has
// at most limit tokens and is as long as piece boundaries allow. It cuts inside a piece only if that
// is more than half the limit. text[a] is not white space, and limit allows for one rune.
func (c *counts) forward(a, b, limit int) int {
	const perToken = 12 // bytes; most text has fewer, so the first look at a part of the rest is enough
	for look := perToken * limit; ; look *= 4 {
		until := runeFloor(c.text, min(b, a+look))
		if cut := c.forwardWithin(a, until, limit); cut < until || until == b {
			return cut
		}
	}
}

func (c *counts) forwardWithin(a, b, limit int) int {
	n, p := 0, a
	for i := c.piece(a); p < b; {
		end, tokens := 0, 0
		if c.start[i] == p && c.start[i+1] <= b {
			end, tokens = c.start[i+1], c.sum[i+1]-c.sum[i]
		} else {
			end = c.t.next(c.text[:b], p)
			tokens = c.tokens(p, end)
		}
		if n+tokens > limit {
			if p == a || tokens > limit/2 {
				if cut := c.cutPiece(a, p, end, limit, limit-n); cut > p {
					return cut
				}
			}
			break
		}
		n += tokens
		for p = end; c.start[i] < p; {
			i++
		}
	}
	for p > a && !c.cutFits(a, p, limit) { // without its blanks the last piece may need more tokens
		if p = c.start[c.piece(p-1)]; p <= a {
			break
		}
	}
	if p <= a {
		_, size := utf8.DecodeRuneInString(c.text[a:])
		return a + size
	}
	return p
}

// cutPiece returns the last token boundary of the piece text[p:end] after at most room tokens at which
// text[a:] can be cut, or p.
func (c *counts) cutPiece(a, p, end, limit, room int) int {
	ends := c.endsFrom(p)
	if len(ends) == 0 {
		c.ends = c.t.vocab.appendEnds(c.ends[:0], c.text, p, end)
		ends = c.ends
	}
	for i := min(room, len(ends)); i > 0; i-- {
		cut := ends[i-1]
		if runeFloor(c.text, cut) == cut && c.cutFits(a, cut, limit) {
			return cut
		}
	}
	return p
}

func (c *counts) cutFits(a, cut, limit int) bool {
	_, end := trim(c.text, a, cut)
	_, ok := c.fits(a, end, limit)
	return ok
}

// isWordStart says whether white space ends or begins at p.
func isWordStart(text string, p int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:p])
	after, _ := utf8.DecodeRuneInString(text[p:])
	return p == 0 || unicode.IsSpace(before) || unicode.IsSpace(after)
}

// windows cuts the whole text into windows of the configured size that overlap by up to the configured
// number of tokens, whatever its structure.
func (s *splitter) windows() {
	a, b := trim(s.text, 0, len(s.text))
	for covered := 0; a < b; {
		end := s.windowEnd(a, b, covered)
		_, stop := trim(s.text, a, end)
		if stop <= covered { // the repeated part leaves no room for more
			a, _ = trim(s.text, covered, b)
			continue
		}
		s.emit(a, stop, nil)
		if stop == b {
			return
		}
		covered = stop
		a = s.windowStart(a, stop, b)
	}
}

// windowEnd returns the end of the window from a on: where a word ends if that is within an eighth of
// the size and beyond what the window before has covered.
func (s *splitter) windowEnd(a, b, covered int) int {
	c := s.counts
	end := c.forward(a, b, s.size)
	if end >= b || isWordStart(s.text, end) {
		return end
	}
	for i := c.piece(end); i > 0 && c.start[i] > max(a, covered); i-- {
		p := c.start[i]
		if _, ok := c.fits(p, end, s.size/8); !ok {
			break
		}
		if p < end && isWordStart(s.text, p) && c.cutFits(a, p, s.size) {
			return p
		}
	}
	return end
}

// windowStart returns where the window after text[a:stop] begins: at the earliest word within the
// overlap, or else at the earliest token.
func (s *splitter) windowStart(a, stop, b int) int {
	c := s.counts
	begin, _ := trim(s.text, stop, b)
	if s.overlapping == 0 {
		return begin
	}
	word, token := begin, begin
	i := c.piece(stop - 1)
	for ; i >= 0 && c.start[i] > a; i-- {
		p, _ := trim(s.text, c.start[i], stop)
		if p == stop || p <= a {
			continue
		}
		if _, ok := c.fits(p, stop, s.overlapping); !ok {
			break
		}
		token = p
		if isWordStart(s.text, p) {
			word = p
		}
	}
	if word < begin {
		return word
	}
	if token == begin { // inside one long piece
		p := max(a, c.start[c.piece(stop-1)])
		c.ends = c.t.vocab.appendEnds(c.ends[:0], s.text, p, stop)
		for k := max(0, len(c.ends)-1-s.overlapping); k < len(c.ends); k++ {
			p := c.ends[k]
			if p > a && p < stop && runeFloor(s.text, p) == p && !isBlankAt(s.text, p) {
				if _, ok := c.fits(p, stop, s.overlapping); ok {
					return p
				}
			}
		}
	}
	return token
}

func isBlankAt(text string, p int) bool {
	r, _ := utf8.DecodeRuneInString(text[p:])
	return unicode.IsSpace(r)
}
