package chunker

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// appendSentences appends the end of each sentence of text[a:b], after its closing quotes and
// brackets; the last end is b.
func appendSentences(dst []int, text string, a, b int) []int {
	start := a
	for p := a; p < b; {
		c := text[p]
		if c < utf8.RuneSelf && c != '.' && c != '!' && c != '?' {
			p++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[p:b])
		if !isStop(r) {
			p += size
			continue
		}
		stop := p
		for p < b { // "?!", "...", and what closes after it
			r, size := utf8.DecodeRuneInString(text[p:b])
			if !isStop(r) && !isCloser(r) {
				break
			}
			p += size
		}
		if p < b && endsSentence(text, start, stop, p, b) {
			dst = append(dst, p)
			start = p
		}
	}
	return append(dst, b)
}

func isStop(r rune) bool {
	switch r {
	case '.', '!', '?', '…', '。', '！', '？', '．', '｡', '؟', '।':
		return true
	}
	return false
}

// isFullWidth tells the stops that no blank follows in running text.
func isFullWidth(r rune) bool {
	switch r {
	case '。', '！', '？', '．', '｡':
		return true
	}
	return false
}

func isCloser(r rune) bool {
	switch r {
	case '"', '\'', ')', ']', '}', '*', '_', '”', '’', '»', '›', '」', '』', '）', '】', '》':
		return true
	}
	return false
}

// endsSentence judges the stop at text[stop], whose closers end at end, in a sentence from start on.
func endsSentence(text string, start, stop, end, b int) bool {
	r, size := utf8.DecodeRuneInString(text[stop:end])
	next, _ := utf8.DecodeRuneInString(text[end:b])
	if isFullWidth(r) {
		return true
	}
	if !unicode.IsSpace(next) {
		return false // a decimal, a version, an address, a file name
	}
	if r != '.' && r != '…' {
		return true
	}
	next = firstRune(text[end:b])
	if r == '…' || stop+size < end && text[stop+size] == '.' { // an ellipsis may go on
		return !unicode.IsLower(next)
	}
	word := lastWord(text[start:stop])
	switch abbreviation(strings.ToLower(word)) {
	case always:
		return false
	case beforeNumber:
		return !unicode.IsNumber(next)
	case beforeLower:
		return !unicode.IsLower(next) && !unicode.IsNumber(next)
	}
	if r, size := utf8.DecodeRuneInString(word); size == len(word) && unicode.IsUpper(r) && r != 'I' {
		return false // an initial
	}
	return !isEnumerator(text[start:stop])
}

// firstRune returns the first rune after blanks, opening quotes and brackets.
func firstRune(s string) rune {
	for _, r := range s {
		if !unicode.IsSpace(r) && !strings.ContainsRune("\"'([{“‘«*_", r) {
			return r
		}
	}
	return utf8.RuneError
}

// lastWord returns what stands before a stop: the letters, digits and inner dots at the end of s.
func lastWord(s string) string {
	const longest = 24 // bytes; no abbreviation is longer
	from := len(s)
	for from > 0 && len(s)-from < longest {
		r, size := utf8.DecodeLastRuneInString(s[:from])
		if r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		from -= size
	}
	return s[from:]
}

// usage says when a word with a stop is an abbreviation inside a sentence.
type usage uint8

const (
	never        usage = iota
	always             // "e.g. this"
	beforeNumber       // "No. 5", while "no." may end a sentence
	beforeLower        // "etc. and" and "et al. 2002", while "etc. The" begins another
)

func abbreviation(word string) usage {
	switch word {
	case "e.g", "eg", "i.e", "ie", "cf", "viz", "vs", "v", "mr", "mrs", "ms", "dr", "prof", "st", "messrs", "gen", "sen", "rep", "gov", "hon", "rev",
		"approx", "esp", "resp", "incl", "excl", "fig", "figs", "eq", "eqs", "sect", "z.b", "d.h", "bzw", "p.ej", "a.k.a", "c.f":
		return always
	case "no", "nos", "vol", "vols", "ch", "chap", "sec", "p", "pp", "art", "par", "ver", "nr", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "version":
		return beforeNumber
	case "etc", "al", "inc", "ltd", "co", "corp", "jr", "sr", "dept", "est", "ed", "eds", "a.m", "p.m", "u.s", "u.k", "u.n", "e.u", "ph.d", "min", "max", "usw":
		return beforeLower
	}
	return never
}

// isEnumerator recognises "3", "2.1" and "b" before a stop: the number of an item, not a sentence.
func isEnumerator(s string) bool {
	const longest = 12 // bytes
	s = strings.TrimSpace(s)
	if len(s) > longest {
		return false
	}
	letters := 0
	for _, r := range s {
		if unicode.IsLetter(r) {
			letters++
		} else if !unicode.IsDigit(r) && r != '.' && r != '(' {
			return false
		}
	}
	return letters == 0 || letters == 1 && len(s) == 1
}
