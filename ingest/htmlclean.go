package ingest

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// What never holds text that a reader came for.
var (
	droppedElements = atoms(atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Iframe, atom.Frame, atom.Frameset,
		atom.Object, atom.Embed, atom.Applet, atom.Canvas, atom.Audio, atom.Video, atom.Svg, atom.Map, atom.Area,
		atom.Button, atom.Input, atom.Select, atom.Textarea, atom.Datalist, atom.Nav, atom.Menu, atom.Head, atom.Link, atom.Meta,
		atom.Rt, atom.Rp)
	droppedRoles = map[string]bool{"navigation": true, "banner": true, "contentinfo": true, "search": true, "menu": true,
		"menubar": true, "toolbar": true, "tablist": true, "dialog": true, "alertdialog": true, "complementary": true, "doc-toc": true}
	// Blocks by class or ID, and only while they hold less than half of the text: a site may call anything anything.
	droppedBlocks = nameSet(`breadcrumb breadcrumbs breadcrumb-nav nav navbar navigation nav-bar site-nav topnav bottomnav sidebar side-bar
		sidenav sphinxsidebar menu mobile-menu site-header site-footer page-header page-footer footer navheader navfooter docnav
		cookie cookies cookie-banner cookie-bar cookie-notice cookie-consent cookiebar cookieconsent consent consent-banner gdpr
		toc table-of-contents tableofcontents page-toc on-this-page toc-container toplang bottomlang language-switcher lang-switcher
		related relations prev-next pagination pager social share share-buttons social-share newsletter advert ads advertisement
		navbox catlinks printfooter vector-menu vector-dropdown mw-indicators gutter feedback page-feedback was-this-helpful`)
	// The same for whatever is named so: here the names leave no doubt, and some are of text in line.
	droppedNames = nameSet(`edit-link edit-page-link edit-this-page skip-link skip-to-content skiplink skip-nav headerlink heading-anchor
		header-anchor anchor-link anchorjs-link hash-link permalink noprint mw-editsection mw-jump-link mw-cite-backlink interlanguage-link
		sr-only visually-hidden visuallyhidden screen-reader-text copybtn linenos lineno line-numbers linenodiv`)
	skipText       = regexp.MustCompile(`(?i)^(skip|jump) (to|over) |^(zum inhalt|zur navigation|direkt zum inhalt|aller au contenu|saltar al contenido|ir al contenido|pular para)`)
	editText       = regexp.MustCompile(`(?i)^\W*((edit|improve) (this|the) (page|doc|docs|document|article|topic|section)|(edit|view|view source|see|open|show) (this page )?(on|in|at) (github|gitlab|bitbucket|wikidata)|(view|show|page) source|suggest (an? )?edits?|(report|open|raise) (an? )?(issue|bug|problem)( with (this|the) page)?|print this page|share this page|back to (the )?top|to (the )?top|top of (the )?page)\W*$`)
	anchorText     = regexp.MustCompile(`(?i)^(|[¶#§🔗∞⚓]\x{FE0F}?|link|permalink|anchor|top)$`)
	invisibleStyle = regexp.MustCompile(`(?i)(display\s*:\s*none|visibility\s*:\s*hidden)`)
	tabClass       = regexp.MustCompile(`(?i)(^|[\s_-])tabs?($|[\s_-]|-?(pane|panel|content))`)
	admonition     = regexp.MustCompile(`(?i)(^|[\s_-])(note|warning|caution|important|tip|hint|info|danger|attention|admonition|callout|example|key-?point|success)($|[\s_-])`)
)

func nameSet(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[name] = true
	}
	return set
}

// cleaner removes what surrounds the content of a page.
type cleaner struct {
	page    *html.Node
	lengths map[*html.Node]int // before cleaning
	total   int
	heading *html.Node // the first h1
}

func newCleaner(page *html.Node) *cleaner {
	c := &cleaner{page: page, lengths: textLengths(page)}
	for child := range page.ChildNodes() {
		c.total += c.lengths[child]
	}
	c.heading = find(page, func(n *html.Node) bool { return n.DataAtom == atom.H1 })
	return c
}

func (c *cleaner) clean() {
	c.children(c.page, false)
	c.linksBeforeHeading()
}

// linksBeforeHeading removes the blocks above the first h1 that are made of links: old pages mark
// their menus with nothing else.
func (c *cleaner) linksBeforeHeading() {
	var menus []*html.Node
	for n := range c.page.Descendants() {
		if n == c.heading {
			for _, menu := range menus {
				if menu.Parent != nil {
					menu.Parent.RemoveChild(menu)
				}
			}
			return
		}
		if isBlock(n) && madeOfLinks(n) {
			menus = append(menus, n)
		}
	}
}

func madeOfLinks(n *html.Node) bool {
	const maxMenu = 1000 // bytes: more is a list that somebody came for
	all, linked, links := 0, 0, 0
	for d := range n.Descendants() {
		switch {
		case d.Type == html.TextNode:
			if all += len(strings.TrimSpace(d.Data)); all > maxMenu {
				return false
			}
		case d.DataAtom == atom.A:
			links++
			linked += len(strings.TrimSpace(textOf(d)))
		case d.DataAtom == atom.H1:
			return false
		}
	}
	return links >= 3 && linked*10 >= all*7
}

// children cleans below n; inside says that an article or the main element is above.
func (c *cleaner) children(n *html.Node, inside bool) {
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		switch {
		case child.Type == html.CommentNode:
			n.RemoveChild(child)
		case child.Type != html.ElementNode:
		case c.drops(child, inside):
			c.keepHeading(child)
			n.RemoveChild(child)
		default:
			c.children(child, inside || child.DataAtom == atom.Main || child.DataAtom == atom.Article || attr(child, "role") == "main")
		}
		child = next
	}
}

func (c *cleaner) drops(n *html.Node, inside bool) bool {
	role := strings.ToLower(attr(n, "role"))
	switch {
	case n.DataAtom == atom.Html || n.DataAtom == atom.Body || n.DataAtom == atom.Main || role == "main":
		return false
	case droppedElements[n.DataAtom] || droppedRoles[role]:
		return true
	case (n.DataAtom == atom.Header || n.DataAtom == atom.Footer) && !inside:
		return true
	case n.DataAtom == atom.Aside:
		return !admonition.MatchString(attr(n, "class"))
	case hidden(n, role):
		return true
	case n.DataAtom == atom.A && dropsLink(n):
		return true
	case n.DataAtom == atom.Sup && isReference(n):
		return true
	}
	return c.named(n) && c.lengths[n]*2 < c.total
}

// named reports whether the class or ID of the element says that it is not content.
func (c *cleaner) named(n *html.Node) bool {
	block := isBlock(n)
	for name := range strings.FieldsSeq(attr(n, "id") + " " + attr(n, "class")) {
		name = strings.ToLower(name)
		if droppedNames[name] || block && (droppedBlocks[name] || strings.HasPrefix(name, "cookie-")) {
			return true
		}
	}
	return false
}

// hidden spares tab panels: all but one of them are hidden, and all of them are content.
func hidden(n *html.Node, role string) bool {
	if role == "tabpanel" || attr(n, "hidden") == "until-found" {
		return false
	}
	return hasAttr(n, "hidden") || attr(n, "aria-hidden") == "true" ||
		n.DataAtom == atom.Dialog && !hasAttr(n, "open") ||
		invisibleStyle.MatchString(attr(n, "style")) && !tabClass.MatchString(attr(n, "class"))
}

// dropsLink finds the links that are about the page and not in it.
func dropsLink(n *html.Node) bool {
	text := strings.TrimSpace(textOf(n))
	if len(text) > 60 {
		return false
	}
	inPage := strings.HasPrefix(attr(n, "href"), "#")
	if text == "" && find(n, func(c *html.Node) bool { return c.DataAtom == atom.Img }) != nil {
		return false
	}
	return inPage && (anchorText.MatchString(text) || skipText.MatchString(text)) || editText.MatchString(text)
}

var reference = regexp.MustCompile(`^\[?[\w\s]{1,8}\]$`)

// isReference finds footnote marks, which read as numbers once they are in line.
func isReference(n *html.Node) bool {
	return strings.Contains(attr(n, "class"), "reference") || reference.MatchString(strings.TrimSpace(textOf(n)))
}

// keepHeading saves the only h1 of a page from an element that goes, most often a header.
func (c *cleaner) keepHeading(dropped *html.Node) {
	h := c.heading
	if h == nil {
		return
	}
	for p := h.Parent; p != nil; p = p.Parent {
		if p != dropped {
			continue
		}
		for n := range c.page.Descendants() {
			if n.DataAtom == atom.H1 && n != h {
				return
			}
		}
		h.Parent.RemoveChild(h)
		dropped.Parent.InsertBefore(h, dropped)
		c.children(h, true)
		return
	}
}
