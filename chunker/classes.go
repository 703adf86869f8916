package chunker

import (
	"unicode"
	"unicode/utf8"
)

// Classes of runes that the patterns of the encodings tell apart, one bit each so that a set of them
// is a mask.
const (
	other   uint8 = 1 << iota // neither letter, mark, number nor white space
	mark                      // \p{M}
	upper                     // \p{Lu}, \p{Lt}
	lower                     // \p{Ll}
	uncased                   // \p{Lm}, \p{Lo}
	number                    // \p{N}
	space                     // \s but for line ends
	newline                   // [\r\n]

	letter = upper | lower | uncased
)

// classes has the class of every rune.
type classes [utf8.MaxRune + 1]uint8

func newClasses() *classes {
	c := new(classes)
	for i := range c {
		c[i] = other
	}
	c.set(mark, unicode.M)
	c.set(upper, unicode.Lu, unicode.Lt)
	c.set(lower, unicode.Ll)
	c.set(uncased, unicode.Lm, unicode.Lo)
	c.set(number, unicode.N)
	c.set(space, unicode.White_Space)
	c['\r'], c['\n'] = newline, newline
	return c
}

func (c *classes) set(class uint8, tables ...*unicode.RangeTable) {
	for _, table := range tables {
		for _, r := range table.R16 {
			for i := int(r.Lo); i <= int(r.Hi); i += int(r.Stride) {
				c[i] = class
			}
		}
		for _, r := range table.R32 {
			for i := int(r.Lo); i <= int(r.Hi); i += int(r.Stride) {
				c[i] = class
			}
		}
	}
}

// at returns the class and the length of the rune at s[p]. A byte that is not UTF-8 is a rune of its own.
func (c *classes) at(s string, p int) (class uint8, size int) {
	if b := s[p]; b < utf8.RuneSelf {
		return c[b], 1
	}
	r, size := utf8.DecodeRuneInString(s[p:])
	return c[r], size
}

// run returns the end of the longest run of runes of the given classes from p on.
func (c *classes) run(s string, p int, mask uint8) int {
	for p < len(s) {
		if b := s[p]; b < utf8.RuneSelf {
			if c[b]&mask == 0 {
				break
			}
			p++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[p:])
		if c[r]&mask == 0 {
			break
		}
		p += size
	}
	return p
}
