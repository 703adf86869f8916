package generate

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is what a unit was in its passage.
type kind int

const (
	sentence kind = iota
	item          // of a list without order
	step          // of a numbered list
	row           // of a table
	code          // a whole fenced block
)

// unit is the smallest piece of a passage that can be quoted.
type unit struct {
	passage int    // index of its passage
	place   int    // among all units
	kind    kind   //
	text    string // cleaned for reading
	label   string // "1." of a step
	block   int    // units of one paragraph, list or table share it
	section string // the last heading, or question, above it in the passage
	intro   int    // place of the sentence that introduces its list, table or code, or -1
	opening bool   // the first below its heading

	terms    []string
	distinct map[string]bool
}

// The limits of what is quoted whole. A "sentence" beyond is no sentence.
const (
	maxUnit = 1200 // bytes
	maxCode = 3000 // bytes
)

// blocks cuts passages into units.
type blocks struct {
	units   []unit
	passage int
	block   int
	section string
	fresh   bool // a heading has come and no unit since
	intro   int
}

var (
	headingLine   = regexp.MustCompile(`^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$`)
	listLine      = regexp.MustCompile(`^(\s*)([-*+•]|\d{1,3}[.)])\s+(.*)$`)
	underline     = regexp.MustCompile(`^ {0,3}(={3,}|-{3,})\s*$`)
	ruleLine      = regexp.MustCompile(`^\s*([-*_=]\s*){3,}$`)
	separatorLine = regexp.MustCompile(`^[\s|:-]*-[\s|:-]*$`)
	taskBox       = regexp.MustCompile(`^\[[ xX]\]\s+`)
)

// add cuts one passage.
func (b *blocks) add(passage int, text string) {
	b.passage, b.section, b.fresh, b.intro = passage, "", true, -1
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "":
			i++
		case isFence(trimmed):
			i = b.fenced(lines, i)
		case headingLine.MatchString(line):
			b.heading(headingLine.FindStringSubmatch(line)[1])
			i++
		case ruleLine.MatchString(line):
			i++
		case i+1 < len(lines) && underline.MatchString(lines[i+1]) && !strings.Contains(line, "|") && !listLine.MatchString(line):
			b.heading(trimmed)
			i += 2
		case strings.HasPrefix(trimmed, "|") || i+1 < len(lines) && strings.Contains(trimmed, "|") && strings.Contains(lines[i+1], "|") && separatorLine.MatchString(lines[i+1]):
			i = b.table(lines, i)
		case listLine.MatchString(line):
			i = b.list(lines, i)
		default:
			i = b.paragraph(lines, i)
		}
	}
}

func isFence(line string) bool {
	return strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~")
}

func (b *blocks) heading(text string) {
	b.section, b.fresh, b.intro = clean(text), true, -1
	b.block++
}

// put adds a unit. A text that says nothing is left out.
func (b *blocks) put(k kind, label, text string) {
	limit := maxUnit
	if k == code {
		limit = maxCode
	}
	if len(text) > limit || !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return
	}
	u := unit{passage: b.passage, place: len(b.units), kind: k, text: text, label: label, block: b.block, section: b.section, intro: -1, opening: b.fresh}
	if k != sentence {
		u.intro = b.intro
	}
	b.fresh = false
	b.units = append(b.units, u)
}

func (b *blocks) fenced(lines []string, i int) int {
	b.block++
	opener := strings.TrimSpace(lines[i])
	mark := opener[:runLength(opener, opener[0])]
	end := i + 1
	for end < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[end]), mark) {
		end++
	}
	indent := lines[i][:len(lines[i])-len(strings.TrimLeft(lines[i], " \t"))]
	var inside []string
	for _, line := range lines[i+1 : end] {
		inside = append(inside, strings.TrimPrefix(line, indent))
	}
	body := strings.Trim(strings.Join(inside, "\n"), "\n")
	if body != "" {
		b.put(code, "", opener+"\n"+body+"\n"+mark)
	}
	return min(end+1, len(lines))
}

// table writes each row as "Header: cell; Header: cell", which reads without the table.
func (b *blocks) table(lines []string, i int) int {
	b.block++
	var header []string
	for first := true; i < len(lines) && strings.Contains(lines[i], "|"); i++ {
		if separatorLine.MatchString(lines[i]) {
			continue
		}
		cells := splitRow(lines[i])
		if first && i+1 < len(lines) && separatorLine.MatchString(lines[i+1]) {
			header = cells
			first = false
			continue
		}
		first = false
		var parts []string
		for n, cell := range cells {
			switch {
			case cell == "":
			case n < len(header) && header[n] != "":
				parts = append(parts, header[n]+": "+cell)
			default:
				parts = append(parts, cell)
			}
		}
		b.put(row, "", strings.Join(parts, "; "))
	}
	b.intro = -1
	return i
}

// splitRow cuts a table row at the bars that are not escaped or in code.
func splitRow(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	var cells []string
	start, inCode := 0, false
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '`':
			inCode = !inCode
		case '|':
			if !inCode {
				cells = append(cells, clean(line[start:i]))
				start = i + 1
			}
		}
	}
	return append(cells, clean(line[start:]))
}

// list adds the items of a list, each with its continuation lines; nested ones stand for themselves.
func (b *blocks) list(lines []string, i int) int {
	b.block++
	for i < len(lines) {
		m := listLine.FindStringSubmatch(lines[i])
		if m == nil {
			break
		}
		text := m[3]
		for i++; i < len(lines); i++ {
			next := strings.TrimSpace(lines[i])
			if next == "" || listLine.MatchString(lines[i]) || isFence(next) || headingLine.MatchString(lines[i]) || strings.HasPrefix(next, "|") {
				break
			}
			text += " " + next
		}
		k, label := item, ""
		if m[2][0] >= '0' && m[2][0] <= '9' {
			k, label = step, m[2]
		}
		b.put(k, label, clean(taskBox.ReplaceAllString(text, "")))
		// Blank lines and code between items do not end the list.
		for next := i; next < len(lines); next++ {
			trimmed := strings.TrimSpace(lines[next])
			if trimmed == "" {
				continue
			}
			if listLine.MatchString(lines[next]) {
				i = next
			} else if isFence(trimmed) && lines[next][0] == ' ' {
				block, n := b.block, len(b.units)
				i = b.fenced(lines, next)
				for b.block = block; n < len(b.units); n++ {
					b.units[n].block = block // it belongs to its item
				}
				next = i - 1
				continue
			}
			break
		}
	}
	b.intro = -1
	return i
}

// paragraph adds the sentences of a paragraph. Lines that were wrapped are joined; short lines that
// end in no punctuation, as converted pages have them for headings and labels, stand alone.
func (b *blocks) paragraph(lines []string, i int) int {
	b.block++
	b.intro = -1
	var text, above string // what is open, and its last line
	flush := func() {
		for _, s := range sentences(clean(text)) {
			b.sentence(s)
		}
		text = ""
	}
	for start := i; i < len(lines); i++ {
		line := strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(lines[i]), ">"))
		if i > start && (line == "" || isFence(line) || ruleLine.MatchString(line) || headingLine.MatchString(lines[i]) || listLine.MatchString(lines[i]) || strings.HasPrefix(line, "|")) {
			break
		}
		if text != "" && !joins(above, line) {
			flush()
		}
		if text != "" {
			text += " "
		}
		text += line
		above = line
	}
	flush()
	return i
}

// joins reports whether the next line goes on with the sentence of the line above.
func joins(above, next string) bool {
	last, _ := utf8.DecodeLastRuneInString(above)
	first, _ := utf8.DecodeRuneInString(next)
	switch {
	case unicode.IsLower(first), ends(above):
		return true // behind an end the sentence splitter decides
	case strings.ContainsRune(":：", last):
		return false
	}
	return utf8.RuneCountInString(above) >= 60 || strings.ContainsRune(`,;-–(`, last)
}

// ends reports whether a text ends as sentences do.
func ends(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text, `"'”’)`+"`"))
	return strings.ContainsRune(`.!?。！？…`, last)
}

// sentence adds a sentence. A question heads what follows, as a heading does. Lines below one that ends
// in a colon, and that are no sentences themselves, are a list without marks.
func (b *blocks) sentence(text string) {
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？") {
		b.section, b.fresh = text, true
		return
	}
	if isColon(text) {
		n := len(b.units)
		if b.put(sentence, "", text); len(b.units) > n {
			b.intro = n
		}
		return
	}
	if b.intro >= 0 && !ends(text) {
		b.put(item, "", text)
		return
	}
	b.put(sentence, "", text)
	b.intro = -1
}
