package ingest

import (
	"context"
	"io"
	"strings"

	"assay"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// parseHTML fills the document from a page: fields from its head, and the part that a reader came
// for as Markdown.
func parseHTML(ctx context.Context, doc *assay.Document, src string, maxNodes int) error {
	src, err := guardHTML(ctx, src, maxNodes)
	if err != nil {
		return err
	}
	page, err := html.Parse(&pollingReader{ctx, strings.NewReader(src)})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return skipf(SkipMalformed, "the HTML can't be parsed: %w", err)
	}
	describe(doc, pageMetadata(page))
	c := newCleaner(page)
	c.clean()
	content := mainContent(page)
	heading := firstHeading(content)
	doc.Title = pageTitle(doc.Title, heading)
	shape(content)
	doc.Text, err = toMarkdown(ctx, content)
	return err
}

// pollingReader ends the parsing when ctx does.
type pollingReader struct {
	ctx context.Context
	r   io.Reader
}

func (p *pollingReader) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}

// mainContent is the element that holds most of the text, as the page itself marks it; the whole
// body where it marks none.
func mainContent(page *html.Node) *html.Node {
	body := find(page, func(n *html.Node) bool { return n.DataAtom == atom.Body })
	if body == nil {
		return page
	}
	lengths := textLengths(body)
	for _, marked := range []func(*html.Node) bool{
		func(n *html.Node) bool { return n.DataAtom == atom.Main || attr(n, "role") == "main" },
		func(n *html.Node) bool { return n.DataAtom == atom.Article },
	} {
		// The largest: a page may have several articles, and one is not the page then.
		var best *html.Node
		for n := range body.Descendants() {
			if n.Type == html.ElementNode && marked(n) && (best == nil || lengths[n] > lengths[best]) {
				best = n
			}
		}
		if best != nil && lengths[best]*2 > lengths[body] {
			return best
		}
	}
	return body
}

// textLengths is the number of bytes that a reader may see, white space apart, below each element.
func textLengths(root *html.Node) map[*html.Node]int {
	lengths := map[*html.Node]int{}
	var count func(*html.Node) int
	count = func(n *html.Node) int {
		if n.Type == html.TextNode {
			return len(strings.TrimSpace(n.Data))
		}
		total := 0
		switch n.DataAtom {
		case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Head:
			return 0
		}
		for child := range n.ChildNodes() {
			total += count(child)
		}
		if n.Type == html.ElementNode {
			lengths[n] = total
		}
		return total
	}
	count(root)
	return lengths
}

// firstHeading is the first h1, or the first h2 of a page that begins with that.
func firstHeading(root *html.Node) string {
	for _, level := range []atom.Atom{atom.H1, atom.H2} {
		if h := find(root, func(n *html.Node) bool { return n.DataAtom == level }); h != nil {
			return oneLine(textOf(h))
		}
	}
	return ""
}

// titleSeparators stand between the title of a page and the name of its site.
var titleSeparators = []string{" - ", " – ", " — ", " | ", " · ", " :: ", " » "}

// pageTitle is the title without the name of the site, which is recognised by the first heading
// being the rest.
func pageTitle(title, heading string) string {
	if title == "" {
		return heading
	}
	for _, sep := range titleSeparators {
		n := len(title) - len(heading) // of what would be the separator and the site
		if heading == "" || n <= len(sep) {
			continue
		}
		if start := title[:len(heading)]; strings.EqualFold(start, heading) && strings.HasPrefix(title[len(heading):], sep) {
			return start
		}
		if end := title[n:]; strings.EqualFold(end, heading) && strings.HasSuffix(title[:n], sep) {
			return end
		}
	}
	return title
}

func find(root *html.Node, match func(*html.Node) bool) *html.Node {
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && match(n) {
			return n
		}
	}
	return nil
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return strings.TrimSpace(a.Val)
		}
	}
	return ""
}

func hasAttr(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return true
		}
	}
	return false
}

func textOf(root *html.Node) string {
	var b strings.Builder
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return b.String()
}

// unwrap puts the children of n in its place.
func unwrap(n *html.Node) {
	for child := n.FirstChild; child != nil; child = n.FirstChild {
		n.RemoveChild(child)
		n.Parent.InsertBefore(child, n)
	}
	n.Parent.RemoveChild(n)
}

func textNode(s string) *html.Node { return &html.Node{Type: html.TextNode, Data: s} }
