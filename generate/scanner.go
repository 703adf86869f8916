package generate

import (
	"regexp"
	"strconv"
	"strings"
)

// How much text is held back until it is decided what it is.
const (
	maxMarker     = 48  // bytes between brackets
	maxCodeSpan   = 512 // bytes of inline code
	maxBlank      = 64  // bytes of spaces
	maxName       = 32  // bytes looked back at for a name
	maxFenceClose = 128 // bytes of a line that may open or close a fence
)

// markerText is what stands between the brackets of a marker: numbers of at most three digits and
// ranges, in the ways in which models write them: [1], [1, 2], [1-3], [^1], [Source 1], [1; 2].
var markerText = regexp.MustCompile(`^\s*(?:\^|(?i:sources?|passages?|docs?|documents?)\s*:?\s*#?)?\s*(\d{1,3}(?:\s*[-–]\s*\d{1,3})?(?:\s*[,;&]\s*(?:\^|(?i:source|passage|doc|document)\s*)?\d{1,3}(?:\s*[-–]\s*\d{1,3})?)*)\s*$`)

var markerNumbers = regexp.MustCompile(`(\d{1,3})(?:\s*([-–])\s*(\d{1,3}))?`)

// scanner walks through Markdown that arrives in pieces and finds the citation markers in it. It
// decides about a piece of text only when nothing that follows can change the decision, so that the result
// is the same however the text was cut.
//
// In code, fenced or in backticks, nothing is a marker; neither is a link, [1](url), nor an escaped
// bracket. Text that cannot be a marker passes unchanged: [ ], [x], [note], [2024].
type scanner struct {
	// marker returns what a marker becomes. keep false takes it out, with the spaces before it. code
	// says that the marker stands right behind something like an identifier, as in a[0].
	marker func(m marker, code bool) (text string, keep bool)

	buf       string // undecided
	tail      string // the end of what has been decided, to look back at
	fence     string // the run of characters that opened the code block that we are in
	inLine    bool   // in a code block: behind the start of a line
	removed   bool   // a marker has just been taken out
	dropBlank bool   // the next spaces go, since a marker at the start of a line went
	out       strings.Builder
}

// marker is one bracketed citation as written.
type marker struct {
	text   string // "[1, 3-4]"
	ranges [][2]int
}

// write adds text and returns what has been decided by now.
func (s *scanner) write(text string) string {
	s.buf += text
	return s.run(false)
}

// close returns the rest: there is no more text.
func (s *scanner) close() string { return s.run(true) }

func (s *scanner) run(final bool) string {
	for s.buf != "" && s.step(final) {
	}
	text := s.out.String()
	s.out.Reset()
	return text
}

// emit passes the first n bytes of the buffer on.
func (s *scanner) emit(n int) { s.replace(n, s.buf[:n]) }

// replace passes text on in the place of the first n bytes of the buffer.
func (s *scanner) replace(n int, text string) {
	s.removed = false
	s.out.WriteString(text)
	s.tail += text
	if len(s.tail) > 2*maxMarker {
		s.tail = s.tail[len(s.tail)-maxMarker:]
	}
	s.buf = s.buf[n:]
}

// step decides about the start of the buffer; false means that more text is needed.
func (s *scanner) step(final bool) bool {
	if s.fence != "" {
		return s.inFence(final)
	}
	if s.tail == "" || s.tail[len(s.tail)-1] == '\n' {
		if opened, decided := s.openFence(final); opened || !decided {
			return decided
		}
	}
	drop := s.dropBlank
	s.dropBlank = false
	switch s.buf[0] {
	case ' ', '\t':
		return s.blank(final, drop)
	case '[':
		return s.bracket(0, final)
	case '`':
		return s.codeSpan(final)
	case '\\':
		if len(s.buf) == 1 && !final {
			return false
		}
		s.emit(min(2, len(s.buf)))
		return true
	}
	n := strings.IndexAny(s.buf, " \t[`\\\n")
	switch {
	case n < 0:
		n = len(s.buf)
	case s.buf[n] == '\n':
		n++
	}
	s.emit(n)
	return true
}

// blank decides about spaces: they go together with a marker that goes.
func (s *scanner) blank(final, drop bool) bool {
	n := len(s.buf) - len(strings.TrimLeft(s.buf, " \t"))
	switch {
	case drop:
		s.dropBlank = n == len(s.buf)
		s.buf = s.buf[n:]
	case n == len(s.buf) && n < maxBlank && !final:
		return false
	case n < len(s.buf) && s.buf[n] == '[' && n < maxBlank:
		return s.bracket(n, final)
	default:
		s.emit(min(n, maxBlank))
	}
	return true
}

// bracket decides about the bracket that opens behind the first blank bytes of the buffer.
func (s *scanner) bracket(blank int, final bool) bool {
	inside := s.buf[blank+1:]
	end := strings.IndexAny(inside, "[]\n")
	if end < 0 && len(inside) <= maxMarker && !final {
		return false
	}
	if end < 0 || end > maxMarker || inside[end] != ']' {
		s.emit(blank + 1)
		return true
	}
	m, ok := parseMarker(inside[:end])
	if !ok {
		s.emit(blank + 1)
		return true
	}
	length := blank + 1 + end + 1
	if len(s.buf) == length && !final {
		return false // a link's "(" may follow
	}
	if len(s.buf) > length && s.buf[length] == '(' {
		s.emit(length)
		return true
	}
	code := blank == 0 && !s.removed && s.behindIdentifier(m)
	text, keep := s.marker(m, code)
	if keep {
		s.replace(length, s.buf[:blank]+text)
		return true
	}
	s.removed, s.dropBlank = true, s.tail == "" || s.tail[len(s.tail)-1] == '\n'
	s.buf = s.buf[length:]
	return true
}

// behindIdentifier reports whether a bracket is rather an index than a citation: behind a name with
// an underscore or a dollar sign, of one or two letters, or with the index 0.
func (s *scanner) behindIdentifier(m marker) bool {
	start := len(s.tail)
	for start > max(0, len(s.tail)-maxName) && isIdentifier(s.tail[start-1]) {
		start--
	}
	name := s.tail[start:]
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return len(name) <= 2 || strings.ContainsAny(name, "_$") || len(m.ranges) == 1 && m.ranges[0] == [2]int{0, 0}
}

func isIdentifier(b byte) bool {
	return b == '_' || b == '$' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// codeSpan decides about a run of backticks: with a run of the same length on the same line it
// encloses code, otherwise it is text.
func (s *scanner) codeSpan(final bool) bool {
	line, _, whole := strings.Cut(s.buf[:min(len(s.buf), maxCodeSpan)], "\n")
	run := runLength(line, '`')
	for i := run; i < len(line); {
		if line[i] != '`' {
			i++
			continue
		}
		n := runLength(line[i:], '`')
		if n == run && i+n < maxCodeSpan && (i+n < len(line) || whole || final) {
			s.emit(i + n)
			return true
		}
		i += n
	}
	if len(line) < maxCodeSpan && !whole && !final {
		return false
	}
	s.emit(run)
	return true
}

// openFence decides whether the line at the start of the buffer opens a code block.
func (s *scanner) openFence(final bool) (opened, decided bool) {
	line := strings.TrimLeft(s.buf, " ")
	indent := len(s.buf) - len(line)
	if indent > maxBlank {
		return false, true
	}
	if line == "" {
		return false, final
	}
	if line[0] != '`' && line[0] != '~' {
		return false, true
	}
	run := runLength(line, line[0])
	switch {
	case run >= maxFenceClose:
		return false, true
	case run == len(line) && !final:
		return false, false
	case run < 3:
		return false, true
	}
	s.fence, s.inLine = line[:run], true
	s.emit(indent + run)
	return true, true
}

// inFence passes code on, a line or a part of one at a time.
func (s *scanner) inFence(final bool) bool {
	if !s.inLine {
		line, _, whole := strings.Cut(s.buf, "\n")
		text := strings.Trim(line, " \t")
		run := runLength(text, s.fence[0])
		closes := run >= len(s.fence) && run == len(text)
		if may := run == len(text) && len(line) < maxFenceClose; may && !whole && !final {
			return false
		}
		if closes && len(line) < maxFenceClose {
			s.fence = ""
			s.emit(len(line))
			return true
		}
	}
	n := strings.IndexByte(s.buf, '\n') + 1
	s.inLine = n == 0
	if n == 0 {
		n = len(s.buf)
	}
	s.emit(n)
	return true
}

// runLength is the number of times that b stands at the start of s.
func runLength(s string, b byte) int {
	n := 0
	for n < len(s) && s[n] == b {
		n++
	}
	return n
}

// parseMarker reads what stands between brackets. A range that does not ascend, or starts at 0 as
// a character class does, is no marker.
func parseMarker(inside string) (marker, bool) {
	match := markerText.FindStringSubmatch(inside)
	if match == nil {
		return marker{}, false
	}
	m := marker{text: "[" + inside + "]"}
	for _, n := range markerNumbers.FindAllStringSubmatch(match[1], -1) {
		first, _ := strconv.Atoi(n[1]) // at most three digits
		last := first
		if n[2] != "" {
			if last, _ = strconv.Atoi(n[3]); first == 0 || last <= first {
				return marker{}, false
			}
		}
		m.ranges = append(m.ranges, [2]int{first, last})
	}
	return m, true
}

// neutralise rewrites the markers of a text that is not an answer, so that they cannot be taken for
// citations: [3] becomes (3). Code keeps its brackets.
func neutralise(text string) string {
	if !strings.Contains(text, "[") {
		return text
	}
	s := scanner{marker: func(m marker, code bool) (string, bool) {
		if code {
			return m.text, true
		}
		return "(" + strings.TrimSpace(m.text[1:len(m.text)-1]) + ")", true
	}}
	return s.write(text) + s.close()
}

// dropMarkers takes all markers out, as from an earlier answer that cited other passages.
func dropMarkers(text string) string {
	s := scanner{marker: func(m marker, code bool) (string, bool) { return m.text, code }}
	return s.write(text) + s.close()
}
