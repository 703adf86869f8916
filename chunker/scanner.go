package chunker

// nextCL100K returns the end of the piece at s[p], as the pattern of cl100k_base matches it:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
//	 ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func (c *classes) nextCL100K(s string, p int) int {
	class, size := c.at(s, p)
	switch {
	case class&letter != 0:
		return c.run(s, p+size, letter)
	case class == number:
		return c.digits(s, p)
	}
	if end := contraction(s, p); end > p {
		return end
	}
	if class != newline {
		if end := c.run(s, p+size, letter); end > p+size {
			return end
		}
	}
	if end := c.symbols(s, p); end > p {
		return c.run(s, end, newline)
	}
	return c.blanks(s, p)
}

// nextO200K returns the end of the piece at s[p], as the pattern of o200k_base matches it. With
// U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], L = [\p{Ll}\p{Lm}\p{Lo}\p{M}], C = (?i:'s|'t|'re|'ve|'m|'ll|'d):
//
//	[^\r\n\p{L}\p{N}]?U*L+C?|[^\r\n\p{L}\p{N}]?U+L*C?|\p{N}{1,3}|
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
func (c *classes) nextO200K(s string, p int) int {
	class, size := c.at(s, p)
	switch {
	case class&letter != 0:
		end, _ := c.word(s, p)
		return contraction(s, end)
	case class == number:
		return c.digits(s, p)
	case class == mark: // may be what precedes the word, or its first letter
		end, first := c.word(s, p+size)
		if !first {
			end, _ = c.word(s, p)
		}
		return contraction(s, end)
	case class != newline:
		if end, _ := c.word(s, p+size); end > p+size {
			return contraction(s, end)
		}
	}
	if end := c.symbols(s, p); end > p {
		for end < len(s) && (s[end] == '\n' || s[end] == '\r' || s[end] == '/') {
			end++
		}
		return end
	}
	return c.blanks(s, p)
}

// word returns the end of U*L+ at p and true, or else that of U+ (L* has nothing to match then) and
// false; p when neither matches.
func (c *classes) word(s string, p int) (end int, lowered bool) {
	const both = uncased | mark // in U and in L
	lastBoth := p
	for p < len(s) {
		class, size := c.at(s, p)
		if class == lower {
			return c.run(s, p+size, lower|both), true
		}
		if class&(upper|both) == 0 {
			break
		}
		p += size
		if class&both != 0 {
			lastBoth = p
			lowered = true
		}
	}
	if lowered { // U* gives back until L+ has one rune
		return lastBoth, true
	}
	return p, false
}

// digits returns the end of \p{N}{1,3} at p, where a number is.
func (c *classes) digits(s string, p int) int {
	for i := 0; i < 3 && p < len(s); i++ {
		class, size := c.at(s, p)
		if class != number {
			break
		}
		p += size
	}
	return p
}

// symbols returns the end of " ?[^\s\p{L}\p{N}]+" at p, or p.
func (c *classes) symbols(s string, p int) int {
	first := p
	if s[p] == ' ' {
		first++
	}
	if end := c.run(s, first, other|mark); end > first {
		return end
	}
	return p
}

// blanks returns the end of \s*[\r\n]+, \s+(?!\S) or \s+ at p, where white space is.
func (c *classes) blanks(s string, p int) int {
	end, lastLine, lastRune := p, p, p
	for end < len(s) {
		class, size := c.at(s, end)
		if class&(space|newline) == 0 {
			break
		}
		lastRune = end
		end += size
		if class == newline {
			lastLine = end
		}
	}
	switch {
	case lastLine > p:
		return lastLine
	case end == len(s) || lastRune == p:
		return end
	}
	return lastRune // the last blank goes with what follows
}

// contraction returns the end of (?i:'s|'t|'re|'ve|'m|'ll|'d) at p, or p.
func contraction(s string, p int) int {
	if p+1 >= len(s) || s[p] != '\'' {
		return p
	}
	switch first := s[p+1] | 0x20; first {
	case 's', 't', 'm', 'd':
		return p + 2
	case 'r', 'v', 'l':
		if p+2 < len(s) {
			second := s[p+2] | 0x20
			if first == 'l' && second == 'l' || first != 'l' && second == 'e' {
				return p + 3
			}
		}
	}
	return p
}
