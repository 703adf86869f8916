package chunker

import (
	"slices"
	"sort"
)

// maxKeptPiece is the number of tokens from which a piece's token boundaries are kept: a megabyte
// without a break is one piece, and is to be merged once.
const maxKeptPiece = 64

// counts is a text split once into the pieces of its encoding. It answers how many tokens any part of
// the text has when that part is counted by itself, and looks at the text again only at the edges.
//
// That is exact because the patterns look ahead but never back. From the first piece boundary that it
// meets, a scan of text[a:b] takes the same pieces as the scan of the whole text did, up to the piece
// that b cuts. The one look-ahead, \s+(?!\S), makes a difference only to a piece that ends at b in
// white space; so b must follow something else (or be a).
type counts struct {
	t     *Tokenizer
	text  string
	start []int // of each piece, then len(text)
	sum   []int // of the tokens before each piece, then all
	long  []longPiece
	ends  []int // scratch of forward and windowStart
	hint  int   // the piece found last: questions come mostly in order of place
}

// longPiece has the ends of the tokens of a long piece.
type longPiece struct {
	start, end int
	ends       []int
}

func newCounts(t *Tokenizer, text string) *counts {
	c := &counts{t: t, text: text, start: make([]int, 0, len(text)/4+2), sum: make([]int, 0, len(text)/4+2)}
	n := 0
	for p := 0; p < len(text); {
		end := t.next(text, p)
		c.start, c.sum = append(c.start, p), append(c.sum, n)
		if end-p < maxKeptPiece {
			n += t.vocab.countPiece(text, p, end)
		} else if ends := t.vocab.appendEnds(nil, text, p, end); len(ends) < maxKeptPiece {
			n += len(ends)
		} else {
			n += len(ends)
			c.long = append(c.long, longPiece{p, end, ends})
		}
		p = end
	}
	c.start, c.sum = append(c.start, len(text)), append(c.sum, n)
	return c
}

// piece returns the index of the piece that holds the byte at p, or the number of pieces.
func (c *counts) piece(p int) int {
	low, high := c.hint, len(c.start)-1
	if c.start[low] > p {
		low, high = 0, low
	} else {
		for step := 1; low+step < high; step *= 2 { // gallop from the last one
			if c.start[low+step] > p {
				high = low + step
				break
			}
			low += step
		}
	}
	i := low + sort.Search(high-low, func(i int) bool { return c.start[low+i+1] > p })
	c.hint = i
	return i
}

// count returns Count(text[a:b]), where b follows something that is not white space.
func (c *counts) count(a, b int) int {
	n, _ := c.upTo(a, b, len(c.text))
	return n
}

// fits says whether text[a:b] has at most limit tokens, and if so how many.
func (c *counts) fits(a, b, limit int) (int, bool) {
	if b-a > limit*c.t.vocab.maxLen {
		return 0, false // spares looking into a piece of a megabyte
	}
	return c.upTo(a, b, limit)
}

func (c *counts) upTo(a, b, limit int) (n int, ok bool) {
	if a >= b {
		return 0, true
	}
	i := c.piece(a)
	p := a
	for p < b && c.start[i] != p { // find the first common boundary
		end := c.t.next(c.text[:b], p)
		n += c.tokens(p, end)
		p = end
		for c.start[i] < p {
			i++
		}
	}
	if p >= b {
		return n, n <= limit
	}
	last := c.piece(b)
	n += c.sum[last] - c.sum[i]
	if n > limit {
		return n, false
	}
	for p = c.start[last]; p < b; { // the piece that b cuts
		end := c.t.next(c.text[:b], p)
		n += c.tokens(p, end)
		p = end
	}
	return n, n <= limit
}

// tokens counts the piece text[p:end]. Inside a long piece it is the number of token boundaries passed
// if both of its ends are such: no merge crosses a boundary, so each side merges as it would alone.
// (What is short enough to be a token itself is looked up, as not every token is reached by merges.)
func (c *counts) tokens(p, end int) int {
	if end-p > c.t.vocab.maxLen {
		if ends := c.endsFrom(p); len(ends) > 0 {
			if i, ok := slices.BinarySearch(ends, end); ok {
				return i + 1
			}
		}
	}
	return c.t.vocab.countPiece(c.text, p, end)
}

// endsFrom returns the ends of the tokens from p to the end of the long piece around it, if there is
// such a piece and one of its tokens begins at p.
func (c *counts) endsFrom(p int) []int {
	i := sort.Search(len(c.long), func(i int) bool { return c.long[i].end > p })
	if i == len(c.long) || c.long[i].start > p {
		return nil
	}
	long := c.long[i]
	if p == long.start {
		return long.ends
	}
	if i, ok := slices.BinarySearch(long.ends, p); ok {
		return long.ends[i+1:]
	}
	return nil
}
