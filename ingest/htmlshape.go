package ingest

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// shape rewrites the content of a page into elements that have a form in Markdown.
func shape(content *html.Node) {
	var elements []*html.Node
	for n := range content.Descendants() {
		if n.Type == html.TextNode {
			shapeText(n)
		} else if n.Type == html.ElementNode {
			elements = append(elements, n)
		}
	}
	// Innermost first, so that whoever looks at its children sees them done.
	for _, n := range slices.Backward(elements) {
		if n.Parent == nil {
			continue // inside something that was replaced
		}
		shapeElement(n)
	}
	mergeText(content)
}

// mergeText joins neighbouring text nodes. The converter would as well, in quadratic time.
func mergeText(root *html.Node) {
	var firsts []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.TextNode && n.NextSibling != nil && n.NextSibling.Type == html.TextNode &&
			(n.PrevSibling == nil || n.PrevSibling.Type != html.TextNode) {
			firsts = append(firsts, n)
		}
	}
	for _, first := range firsts {
		var b strings.Builder
		b.WriteString(first.Data)
		for next := first.NextSibling; next != nil && next.Type == html.TextNode; next = first.NextSibling {
			b.WriteString(next.Data)
			next.Parent.RemoveChild(next)
		}
		first.Data = b.String()
	}
}

// The converter escapes these two for HTML. They pass it as other characters and come back after it.
var (
	protectAngles = strings.NewReplacer("<", "\uE0F0", ">", "\uE0F1", "\uE0F0", "", "\uE0F1", "",
		"\u00A0", " ", "\u202F", " ", "\u00AD", "", "\u200B", "", "\u2060", "")
	restoreAngles = strings.NewReplacer("\uE0F0", "<", "\uE0F1", ">")
)

var blockStart = regexp.MustCompile("^\\s*(#{1,6}\\s|`{3}|~{3}|[-+*]\\s|\\d{1,9}[.)]\\s|\uE0F1\\s)")

// shapeText cleans a text node, and keeps one that begins like a heading, a fence or a list from
// being taken for it.
func shapeText(n *html.Node) {
	n.Data = normalise(protectAngles.Replace(n.Data))
	if beginsBlock(n) && blockStart.MatchString(n.Data) {
		i := len(n.Data) - len(strings.TrimLeft(n.Data, " \t\n"))
		for n.Data[i] >= '0' && n.Data[i] <= '9' {
			i++
		}
		n.Data = n.Data[:i] + `\` + n.Data[i:]
	}
}

// beginsBlock reports whether nothing visible stands before the text in its block, code apart.
func beginsBlock(n *html.Node) bool {
	for p := n; p.Parent != nil; p = p.Parent {
		if prev := p.PrevSibling; prev != nil && !isBlock(prev) && (prev.Type != html.TextNode || strings.TrimSpace(prev.Data) != "") {
			return false
		}
		switch p.Parent.DataAtom {
		case atom.Pre, atom.Code, atom.Kbd, atom.Samp, atom.Var, atom.Tt:
			return false
		}
		if isBlock(p.Parent) {
			h := p.Parent.DataAtom
			return h != atom.H1 && h != atom.H2 && h != atom.H3 && h != atom.H4 && h != atom.H5 && h != atom.H6
		}
	}
	return true
}

var blocks = atoms(atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Body, atom.Br, atom.Caption, atom.Center, atom.Dd, atom.Details,
	atom.Dialog, atom.Div, atom.Dl, atom.Dt, atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.H1, atom.H2,
	atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hr, atom.Li, atom.Main, atom.Ol, atom.P, atom.Pre, atom.Section,
	atom.Summary, atom.Table, atom.Tbody, atom.Td, atom.Tfoot, atom.Th, atom.Thead, atom.Tr, atom.Ul)

func isBlock(n *html.Node) bool { return n.Type == html.ElementNode && blocks[n.DataAtom] }

func shapeElement(n *html.Node) {
	switch n.DataAtom {
	case atom.Img:
		if alt := attr(n, "alt"); strings.ContainsFunc(alt, isWord) { // arrows and bullets decorate
			replace(n, alt)
		} else {
			n.Parent.RemoveChild(n)
		}
	case atom.Wbr:
		n.Parent.RemoveChild(n)
	case atom.A:
		shapeLink(n)
	case atom.Pre:
		shapeCode(n)
	case atom.Code, atom.Samp, atom.Kbd, atom.Tt:
		shapeInlineCode(n)
	case atom.Table:
		shapeTable(n)
	case atom.B, atom.Strong, atom.Em, atom.I:
		// Emphasis over whole blocks, or over nothing, comes from a tag that was never closed.
		if find(n, isBlock) != nil || strings.TrimSpace(textOf(n)) == "" {
			unwrap(n)
		}
	case atom.Q:
		n.Parent.InsertBefore(textNode("“"), n)
		n.Parent.InsertBefore(textNode("”"), n.NextSibling)
		unwrap(n)
	case atom.Sup:
		// 10<sup>6</sup> is not 106.
		if text := strings.TrimSpace(textOf(n)); text != "" && !plainSuperscript.MatchString(text) {
			before, after := "^", ""
			if strings.ContainsAny(text, " +-−*/") && len(text) > 2 {
				before, after = "^(", ")"
			}
			n.Parent.InsertBefore(textNode(before), n)
			n.Parent.InsertBefore(textNode(after), n.NextSibling)
		}
		unwrap(n)
	case atom.Hr:
		// A line between sections says nothing that the headings don't.
		n.Data, n.DataAtom = "div", atom.Div
	case atom.Math:
		replace(n, attr(n, "alttext"))
	}
}

// plainSuperscript are ordinals and marks, which read well in line.
var plainSuperscript = regexp.MustCompile(`(?i)^(st|nd|rd|th|er|re|e|ème|o|a|os|as|ª|º|tm|sm|™|®|©|\*+|†|‡)$`)

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// replace puts plain text in the place of an element; without any, the element's own text.
func replace(n *html.Node, text string) {
	if text == "" {
		text = textOf(n) // shaped already
	} else {
		text = protectAngles.Replace(normalise(text))
	}
	text = strings.Join(strings.Fields(text), " ")
	n.Parent.InsertBefore(textNode(text), n)
	n.Parent.RemoveChild(n)
}

// escapeTarget encodes what would end the target of a link in Markdown.
var escapeTarget = strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E")

var schemes = regexp.MustCompile(`^(mailto:|https?://)`)

// shapeLink keeps the target of a link where a reader of an answer could follow it: absolute
// addresses, unless the text says the same already.
func shapeLink(n *html.Node) {
	href := attr(n, "href")
	text := strings.TrimSpace(textOf(n))
	u, err := url.Parse(href)
	keep := err == nil && text != "" && len(href) <= 2<<10 && (u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "mailto")
	if keep {
		bare := strings.TrimSuffix(schemes.ReplaceAllString(href, ""), "/")
		if plain, err := url.PathUnescape(bare); err == nil {
			bare = plain
		}
		keep = !strings.Contains(text, bare) && find(n, isBlock) == nil
	}
	if !keep {
		unwrap(n)
		return
	}
	n.Attr = []html.Attribute{{Key: "href", Val: escapeTarget.Replace(u.String())}}
}

var (
	languageClass = regexp.MustCompile(`(?i)(?:^|\s)(?:language|lang|highlight-source|highlight|brush:|sourceCode|src)[-:\s]\s*([a-z0-9+#_.-]{1,20})(?:\s|;|$)`)
	noLanguage    = map[string]bool{"default": true, "text": true, "none": true, "plaintext": true, "highlight": true, "plain": true, "notranslate": true, "code": true}
)

// shapeCode finds the language where the common generators put it: on the block, on the code in it,
// or on the two elements around it.
func shapeCode(n *html.Node) {
	var around []*html.Node
	if code := find(n, func(c *html.Node) bool { return c.DataAtom == atom.Code }); code != nil {
		around = append(around, code)
	}
	around = append(around, n)
	for p := n.Parent; p != nil && len(around) < 4; p = p.Parent {
		around = append(around, p)
	}
	language := ""
	for _, el := range around {
		if language = attr(el, "data-lang"); language == "" {
			language = attr(el, "data-language")
		}
		if m := languageClass.FindStringSubmatch(attr(el, "class")); language == "" && m != nil {
			language = m[1]
		}
		if language != "" {
			break
		}
	}
	language = strings.ToLower(language)
	if strings.ContainsAny(language, " \t\n`~") || noLanguage[language] {
		language = ""
	}
	setText(n, codeText(n))
	n.Attr = nil
	if language != "" {
		n.Attr = []html.Attribute{{Key: "class", Val: "language-" + language}}
	}
}

// codeText is the text of code, markup within it apart: breaks and blocks are line ends.
func codeText(root *html.Node) string {
	var b strings.Builder
	for n := range root.Descendants() {
		switch {
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
		case n.DataAtom == atom.Br, isBlock(n) && b.Len() > 0 && !strings.HasSuffix(b.String(), "\n"):
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func setText(n *html.Node, text string) {
	for c := n.FirstChild; c != nil; c = n.FirstChild {
		n.RemoveChild(c)
	}
	n.AppendChild(textNode(text))
}

// shapeInlineCode makes plain text of what is in the code, and a block of code that has its lines
// broken by hand and a paragraph for itself.
func shapeInlineCode(n *html.Node) {
	if n.Parent.DataAtom == atom.Pre {
		return
	}
	if find(n, func(c *html.Node) bool { return c.DataAtom == atom.Br }) != nil && aloneInBlock(n) {
		for c := range n.Descendants() {
			if c.Type == html.TextNode { // the line ends of the source are only spaces
				c.Data = strings.ReplaceAll(c.Data, "\n", " ")
			}
		}
		var lines []string
		for line := range strings.SplitSeq(codeText(n), "\n") {
			lines = append(lines, strings.TrimSpace(line))
		}
		n.Data, n.DataAtom, n.Attr = "pre", atom.Pre, nil
		setText(n, strings.Trim(strings.Join(lines, "\n"), "\n"))
		if p := n.Parent; p.DataAtom == atom.P {
			p.Data, p.DataAtom = "div", atom.Div
		}
		return
	}
	// Quotes in the manner of TeX would read as a fence beside the marks of code.
	if prev := n.PrevSibling; prev != nil && prev.Type == html.TextNode && strings.HasSuffix(prev.Data, "``") {
		prev.Data = strings.TrimSuffix(prev.Data, "``") + "“"
		if next := n.NextSibling; next != nil && next.Type == html.TextNode && strings.HasPrefix(next.Data, "''") {
			next.Data = "”" + next.Data[2:]
		}
	}
	setText(n, codeText(n))
}

func aloneInBlock(n *html.Node) bool {
	for sibling := range n.Parent.ChildNodes() {
		if sibling != n && (sibling.Type != html.TextNode || strings.TrimSpace(sibling.Data) != "") {
			return false
		}
	}
	switch n.Parent.DataAtom {
	case atom.P, atom.Div, atom.Blockquote, atom.Dd, atom.Li, atom.Section, atom.Article:
		return true
	}
	return false
}
