package generate

import (
	"slices"
	"strconv"
	"strings"

	"assay"
)

// citer resolves the markers of an answer to the passages that were sent.
type citer struct {
	scanner
	passages map[int]Passage
	cited    []int
	invalid  []string
}

func newCiter(passages []Passage) *citer {
	c := &citer{passages: make(map[int]Passage, len(passages))}
	for _, p := range passages {
		c.passages[p.Position] = p
	}
	c.marker = c.resolve
	return c
}

// resolve writes a marker's valid numbers as [1][3] and notes the others.
func (c *citer) resolve(m marker, code bool) (string, bool) {
	var valid []int
	var invalid []string
	for _, r := range m.ranges {
		all := true
		for n := r[0]; n <= r[1]; n++ {
			if _, sent := c.passages[n]; sent {
				valid = append(valid, n)
			} else {
				all = false
			}
		}
		switch {
		case all:
		case r[0] == r[1]:
			invalid = append(invalid, "["+strconv.Itoa(r[0])+"]")
		default:
			invalid = append(invalid, "["+strconv.Itoa(r[0])+"-"+strconv.Itoa(r[1])+"]")
		}
	}
	if code && len(valid) == 0 {
		return m.text, true
	}
	for _, text := range invalid {
		if !slices.Contains(c.invalid, text) {
			c.invalid = append(c.invalid, text)
		}
	}
	var out strings.Builder
	for _, n := range valid {
		if !slices.Contains(c.cited, n) {
			c.cited = append(c.cited, n)
		}
		out.WriteString("[" + strconv.Itoa(n) + "]")
	}
	return out.String(), len(valid) > 0
}

// citations are the cited passages in order of first use.
func (c *citer) citations() []assay.Citation {
	out := make([]assay.Citation, 0, len(c.cited))
	for _, n := range c.cited {
		p := c.passages[n]
		out = append(out, assay.Citation{
			Marker: "[" + strconv.Itoa(n) + "]", ChunkID: p.ChunkID, DocID: p.DocID, URI: p.URI,
			Title: p.Title, Heading: p.Heading, Span: p.Span, Position: n,
		})
	}
	return out
}
