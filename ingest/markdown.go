package ingest

import (
	"path"
	"regexp"
	"strings"

	"assay"
)

func isMDX(name string) bool { return strings.EqualFold(path.Ext(name), ".mdx") }

// parseMarkdown fills the document from Markdown: front matter becomes fields, comments go, the rest
// stays as it is written.
func parseMarkdown(doc *assay.Document, text string, mdx bool) (warnings []string) {
	meta, body, err := frontMatter(text)
	if err != nil {
		warnings = append(warnings, "front matter kept as text: "+err.Error())
	}
	describe(doc, meta)
	doc.Text = dropInvisible(body, mdx)
	if doc.Title == "" {
		doc.Title = markdownTitle(doc.Text)
	}
	return warnings
}

// lineScanner walks over the lines of Markdown and knows which of them are code.
type lineScanner struct {
	fence string // the open one
}

var fenceStart = regexp.MustCompile("^ {0,3}(?:[-*+>] +|\\d{1,9}[.)] +|> ?)*(`{3,}|~{3,})([^`]*)$|^\\s*(`{3,}|~{3,})([^`]*)$")

// code reports whether the line belongs to a fenced block, fences included.
func (s *lineScanner) code(line string) bool {
	if s.fence == "" && !strings.Contains(line, "```") && !strings.Contains(line, "~~~") {
		return false // nearly all lines
	}
	line = strings.TrimRight(line, "\n")
	if s.fence != "" {
		trimmed := strings.TrimLeft(line, " \t>")
		if rest, ok := strings.CutPrefix(trimmed, s.fence); ok && strings.Trim(rest, s.fence[:1]+" \t") == "" {
			s.fence = ""
		}
		return true
	}
	m := fenceStart.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	s.fence = m[1] + m[3]
	return true
}

var mdxModule = regexp.MustCompile(`^(import\s.*\bfrom\s+['"].*|import\s+['"].*|export\s+(const|default|let|var|function)\b.*[;)}'"]\s*)$`)

// dropInvisible removes HTML comments outside code and, from MDX, its one-line import and export
// statements. A comment that never ends is text.
func dropInvisible(text string, mdx bool) string {
	if !strings.Contains(text, "<!--") && !mdx {
		return text
	}
	var out strings.Builder
	out.Grow(len(text))
	var lines lineScanner
	for len(text) > 0 {
		line, _, _ := strings.Cut(text, "\n")
		switch {
		case lines.code(line):
		case mdx && mdxModule.MatchString(line):
			text = text[min(len(line)+1, len(text)):]
			continue
		default:
			rest, ended := dropComments(&out, text)
			if !ended {
				out.WriteString(rest)
				return out.String()
			}
			text = rest
			continue
		}
		end := min(len(line)+1, len(text))
		out.WriteString(text[:end])
		text = text[end:]
	}
	return out.String()
}

// dropComments writes the line that text begins with, and the last line of each comment in it,
// without the comments. rest is what follows; ended is false for a comment that never ends.
func dropComments(out *strings.Builder, text string) (rest string, ended bool) {
	ticks, written := 0, false
	end := lineEnd(text)
	for {
		start := commentStart(text[:end], &ticks)
		if start < 0 {
			out.WriteString(text[:end])
			return text[end:], true
		}
		stop := strings.Index(text[start:], "-->")
		if stop < 0 {
			return text, false
		}
		out.WriteString(text[:start])
		written = written || strings.TrimSpace(text[:start]) != ""
		after := start + stop + len("-->")
		text, end = text[after:], end-after
		if end < 0 { // the comment went over the end of the line
			end = lineEnd(text)
		}
		if !written && strings.HasPrefix(text, "\n") {
			return text[1:], true // a comment alone on its lines leaves none
		}
	}
}

func lineEnd(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}

// commentStart finds the next comment that is not in inline code; ticks counts the marks of code so
// far.
func commentStart(line string, ticks *int) int {
	for offset := 0; ; {
		i := strings.Index(line[offset:], "<!--")
		if i < 0 {
			return -1
		}
		*ticks += strings.Count(line[offset:offset+i], "`")
		if offset += i; *ticks%2 == 0 {
			return offset
		}
		offset += len("<!--")
	}
}

// maxHeadingLine bounds the lines that are looked at for a heading.
const maxHeadingLine = 4 << 10

var (
	atxHeading = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$`)
	underline  = regexp.MustCompile(`^ {0,3}(=+|-{2,}|~{3,})[ \t]*$`)
	headingID  = regexp.MustCompile(`\s*\{[#:][^}]*\}$`)
	inlineLink = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// markdownTitle is the first heading, without its markup.
func markdownTitle(text string) string {
	var lines lineScanner
	previous := ""
	for line := range strings.Lines(text) {
		if lines.code(line) {
			previous = ""
			continue
		}
		line = strings.TrimRight(line, "\n")
		if len(line) > maxHeadingLine {
			previous = ""
			continue
		}
		if m := atxHeading.FindStringSubmatch(line); m != nil {
			if title := plainTitle(m[1]); title != "" {
				return title
			}
		}
		if previous != "" && underline.MatchString(line) {
			return plainTitle(previous)
		}
		previous = strings.TrimSpace(line)
		if strings.HasPrefix(previous, "|") || strings.HasPrefix(previous, "- ") {
			previous = "" // a dashed line below a table row or a list item is no heading
		}
	}
	return ""
}

// textTitle is the heading that reStructuredText and AsciiDoc begin with. Plain text has none: its
// dashed lines mean anything.
func textTitle(text, ext string) string {
	lines := strings.SplitN(strings.TrimLeft(text, "\n "), "\n", 4)
	switch strings.ToLower(ext) {
	case ".adoc", ".asciidoc":
		if title, ok := strings.CutPrefix(lines[0], "= "); ok {
			return plainTitle(title)
		}
	case ".rst":
		if len(lines) >= 3 && rstLine.MatchString(lines[0]) && rstLine.MatchString(lines[2]) {
			return plainTitle(lines[1])
		}
		if len(lines) >= 2 && rstLine.MatchString(lines[1]) {
			return plainTitle(lines[0])
		}
	}
	return ""
}

var rstLine = regexp.MustCompile("^[=~*+#^\"'`_-]{3,}\\s*$")

// maxTitle bounds a title: it is shown beside every passage.
const maxTitle = 300

func plainTitle(s string) string {
	s = headingID.ReplaceAllString(strings.TrimSpace(s), "")
	s = inlineLink.ReplaceAllString(s, "$1")
	return oneLine(titleMarkup.Replace(s))
}

var titleMarkup = strings.NewReplacer("**", "", "`", "", `\`, "")

// oneLine makes a title of any text.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxTitle {
		return s
	}
	return strings.ToValidUTF8(s[:maxTitle], "") + "…"
}
