package generate

import (
	"html"
	"regexp"
	"strings"

	"github.com/rivo/uniseg"
)

var (
	imageMark    = regexp.MustCompile(`!\[([^\]]*)\]\([^)\s]*(?:\s+"[^"]*")?\)`)
	linkMark     = regexp.MustCompile(`\[([^\[\]]+)\](?:\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+"[^"]*")?\)|\[[^\]]*\])`)
	strongMark   = regexp.MustCompile(`\*\*(\S(?:.*?\S)?)\*\*|\b__(\S(?:.*?\S)?)__\b`)
	emphasisMark = regexp.MustCompile(`(^|[\s(>"'])[*_]([^\s*_](?:[^*_]*[^\s*_])?)[*_]($|[\s).,;:!?"'<])`)
	// Tags of HTML only: <id> is something that the reader is to fill in.
	tagMark    = regexp.MustCompile(`(?i)</?(?:a|abbr|b|br|center|code|dd|details|div|dl|dt|em|font|h[1-6]|hr|i|img|kbd|li|ol|p|pre|small|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|tt|u|ul|wbr)(?:\s[^<>]*)?/?>`)
	autoLink   = regexp.MustCompile(`<(https?://[^<>\s]+)>`)
	escapeMark = regexp.MustCompile("\\\\([\\\\`*_{}\\[\\]()#+.!|~-])")
)

// clean takes the markup out of a line of Markdown, so that it can be read and quoted. Code in
// backticks stays as it is.
func clean(text string) string {
	parts := strings.Split(text, "`")
	if len(parts)%2 == 0 { // a backtick without a partner
		parts = []string{strings.ReplaceAll(text, "`", "'")}
	}
	// Emphasis and links may enclose code, so code is set aside under a sign that no text has.
	var outside strings.Builder
	for i, part := range parts {
		if i%2 == 0 {
			outside.WriteString(strings.ReplaceAll(part, "\x00", ""))
		} else {
			outside.WriteByte(0)
		}
	}
	s := outside.String()
	s = autoLink.ReplaceAllString(s, "$1")
	s = tagMark.ReplaceAllString(s, " ")
	s = imageMark.ReplaceAllString(s, "$1")
	s = linkMark.ReplaceAllString(s, "$1")
	s = strongMark.ReplaceAllString(s, "$1$2")
	s = emphasisMark.ReplaceAllString(s, "$1$2$3")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "***", ""), "**", "")
	s = escapeMark.ReplaceAllString(s, "$1")
	s = html.UnescapeString(s)
	s = strings.Join(strings.Fields(s), " ")
	s = neutralise(s)
	var out strings.Builder
	next := 1
	for _, r := range s {
		if r != 0 {
			out.WriteRune(r)
			continue
		}
		if next < len(parts) { // as many signs as pieces of code, unless a link was dropped with its address
			out.WriteString("`" + parts[next] + "`")
			next += 2
		}
	}
	return out.String()
}

// abbreviations end in a full stop that ends no sentence.
var abbreviations = set(`e.g. i.e. etc. vs. cf. dr. mr. mrs. ms. prof. no. fig. sec. approx. incl. max. min. resp. inc. ltd. st.
z.b. d.h. u.a. bzw. ca. nr. abs. vgl. usw. ggf. evtl. inkl. max. min. s.o. o.ä.`)

// sentences cuts a paragraph by the Unicode rules, and joins again what was cut behind an
// abbreviation or inside code.
func sentences(text string) []string {
	var out []string
	state := -1
	open := ""
	for text != "" {
		var s string
		s, text, state = uniseg.FirstSentenceInString(text, state)
		open += s
		trimmed := strings.TrimSpace(open)
		last := trimmed[strings.LastIndexAny(trimmed, " (")+1:]
		if text != "" && (abbreviations[strings.ToLower(last)] || strings.Count(trimmed, "`")%2 == 1 || len(last) == 2 && last[1] == '.') {
			continue
		}
		if trimmed != "" {
			out = append(out, trimmed)
		}
		open = ""
	}
	return out
}
