package chunker

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// line is one line of a text, without its end.
type line struct {
	start, end int
	indent     int // columns of blanks before the first character; a tab is four
	first      int // offset of that character; end when the line is blank
}

func (l line) blank() bool { return l.first == l.end }

// next is where the following line starts.
func (l line) next() int { return l.end + 1 }

// lineAt returns the line of text[:limit] that starts at p.
func lineAt(text string, p, limit int) line {
	l := line{start: p, end: limit}
	if i := strings.IndexByte(text[p:limit], '\n'); i >= 0 {
		l.end = p + i
	}
	for l.first = p; l.first < l.end; l.first++ {
		switch text[l.first] {
		case ' ':
			l.indent++
		case '\t':
			l.indent += 4
		default:
			if rest := strings.TrimSpace(text[l.first:l.end]); rest == "" {
				l.first = l.end // blanks of another kind
			}
			return l
		}
	}
	return l
}

// trim narrows text[a:b] by the white space at both ends.
func trim(text string, a, b int) (int, int) {
	b = a + len(strings.TrimRightFunc(text[a:b], unicode.IsSpace))
	return b - len(strings.TrimLeftFunc(text[a:b], unicode.IsSpace)), b
}

// fence is the opening of a code block; a zero one is none.
type fence struct {
	char   byte
	length int
}

// fenceAt recognises ``` and ~~~ openings.
func fenceAt(text string, l line) fence {
	s := text[l.first:l.end]
	if len(s) < 3 || s[0] != '`' && s[0] != '~' {
		return fence{}
	}
	n := len(s) - len(strings.TrimLeft(s, s[:1]))
	if n < 3 || s[0] == '`' && strings.IndexByte(s[n:], '`') >= 0 {
		return fence{}
	}
	return fence{s[0], n}
}

// closes says whether l ends the code block that f opened.
func (f fence) closes(text string, l line) bool {
	s := strings.TrimRight(text[l.first:l.end], " \t\r")
	return len(s) >= f.length && strings.Trim(s, string(f.char)) == ""
}

// afterFence returns where the text goes on after the code block that f opened in line l: after the
// closing line, or at limit.
func afterFence(text string, l line, f fence, limit int) int {
	for p := l.next(); p < limit; {
		l = lineAt(text, p, limit)
		p = l.next()
		if f.closes(text, l) {
			return min(p, limit)
		}
	}
	return limit
}

// atxHeading returns the level of "## Heading", or 0, and its text.
func atxHeading(text string, l line) (int, string) {
	s := text[l.first:l.end]
	level := len(s) - len(strings.TrimLeft(s, "#"))
	if level < 1 || level > 6 || l.indent > 3 {
		return 0, ""
	}
	s = s[level:]
	if s != "" && s[0] != ' ' && s[0] != '\t' {
		return 0, ""
	}
	s = strings.TrimSpace(s)
	if bare := strings.TrimRight(s, "#"); bare == "" || strings.HasSuffix(bare, " ") {
		s = bare // closing marks
	}
	return level, title(s)
}

// setextLevel returns 1 for a line of "=", 2 for one of "-", or 0.
func setextLevel(text string, l line) int {
	s := strings.TrimRight(text[l.first:l.end], " \t\r")
	switch {
	case l.indent > 3 || len(s) < 3:
		return 0
	case strings.Trim(s, "=") == "":
		return 1
	case strings.Trim(s, "-") == "":
		return 2
	}
	return 0
}

// isRule recognises a line of three or more "-", "*", "_", "=" or "~", also spaced ones.
func isRule(text string, l line) bool {
	s := text[l.first:l.end]
	if len(s) < 3 || strings.IndexByte("-*_=~", s[0]) < 0 {
		return false
	}
	return strings.Trim(s, s[:1]+" \t\r") == ""
}

// isRow recognises a line of a table by its column mark.
func isRow(text string, l line) bool { return strings.IndexByte(text[l.first:l.end], '|') >= 0 }

// isItem recognises the first line of a list item.
func isItem(text string, l line) bool { return marker(text, l) > 0 }

// marker returns the length of "-", "*", "+", "•", "3." or "3)" with a blank after it, or 0.
func marker(text string, l line) int {
	s := text[l.first:l.end]
	n := 0
	switch {
	case s == "":
		return 0
	case s[0] == '-' || s[0] == '*' || s[0] == '+':
		n = 1
	case strings.HasPrefix(s, "•"):
		n = len("•")
	default:
		for n < len(s) && n < 9 && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		if n == 0 || n == len(s) || s[n] != '.' && s[n] != ')' {
			return 0
		}
		n++
	}
	if n == len(s) || s[n] != ' ' && s[n] != '\t' || isRule(text, l) {
		return 0
	}
	return n + 1
}

// itemFence is fenceAt for the lines of a list, where a code block may open behind a marker.
func itemFence(text string, l line) fence {
	if n := marker(text, l); n > 0 {
		l.first += n
		l.first = l.end - len(strings.TrimLeft(text[l.first:l.end], " \t"))
	}
	return fenceAt(text, l)
}

// maxTitle bounds a heading, in bytes: it is repeated in every chunk of its section.
const maxTitle = 200

// title cleans a heading of emphasis, code marks and link targets.
func title(s string) string {
	s = strings.NewReplacer("**", "", "`", "").Replace(s[:runeFloor(s, min(len(s), 4*maxTitle))])
	for {
		mid := strings.Index(s, "](")
		if mid < 0 {
			break
		}
		text, end := strings.LastIndexByte(s[:mid], '['), strings.IndexByte(s[mid:], ')')
		if text < 0 || end < 0 {
			break
		}
		s = s[:text] + s[text+1:mid] + s[mid+end+1:]
	}
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), string(utf8.RuneError))
	if len(s) > maxTitle {
		s = s[:runeFloor(s, maxTitle)] + "…"
	}
	return s
}
