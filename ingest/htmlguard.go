package ingest

import (
	"context"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// The HTML parser refuses a page nested deeper than 512 elements, and repeats every open formatting
// element in each new block, so that a small page can become a huge tree. Both are seen in the
// tokens, before there is a tree.
const (
	maxHTMLNesting    = 100 // of elements that need an end tag; each brings up to four that do not
	maxHTMLFormatting = 8
	maxHTMLIndent     = 20 // lists, quotes and tables, whose lines grow with each level
)

// guardHTML returns the source without the tags that nest deeper than anybody means, keeping their
// text, and an error if the tree would have too many nodes.
func guardHTML(ctx context.Context, src string, maxNodes int) (string, error) {
	g := guard{z: html.NewTokenizer(strings.NewReader(src)), open: map[atom.Atom]int{}, dropped: map[atom.Atom]int{}}
	kept := 0 // of src, up to the first dropped tag
	var out strings.Builder
	for i := 0; ; i++ {
		if i%4096 == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		token := g.z.Next()
		raw := g.z.Raw()
		if token == html.ErrorToken {
			if err := g.z.Err(); err != io.EOF {
				return "", skipf(SkipMalformed, "the HTML can't be read: %w", err)
			}
			break
		}
		size := len(raw)
		drop := g.drop(token)
		if g.nodes > maxNodes {
			return "", skipf(SkipTooLarge, "a page of more than %d HTML nodes: raise the limit, or split the page", maxNodes)
		}
		switch {
		case drop && out.Len() == 0:
			out.WriteString(src[:kept])
			out.WriteByte(' ') // also marks that something was dropped
		case drop:
		case out.Len() > 0:
			out.WriteString(src[kept : kept+size])
		}
		kept += size
	}
	if out.Len() == 0 {
		return src, nil
	}
	out.WriteString(src[kept:])
	return out.String(), nil
}

// customElement stands for all names that HTML does not know; they nest like any other.
const customElement = ^atom.Atom(0)

type guard struct {
	z          *html.Tokenizer
	open       map[atom.Atom]int // of elements that need an end tag
	dropped    map[atom.Atom]int // start tags whose end tags are still to be dropped
	depth      int
	formatting int
	nodes      int // estimate of the tree's size, never too low by more than the implied elements
}

// drop accounts for a token and reports whether it is to be left out.
func (g *guard) drop(token html.TokenType) bool {
	if token != html.EndTagToken {
		g.nodes++
	}
	if token != html.StartTagToken && token != html.EndTagToken {
		return false
	}
	name, _ := g.z.TagName()
	tag := atom.Lookup(name)
	if tag == 0 {
		tag = customElement
	}
	if optionalEnd[tag] {
		g.nodes += g.formatting
		return false
	}
	if token == html.EndTagToken {
		if g.dropped[tag] > 0 {
			g.dropped[tag]--
			return true
		}
		if g.open[tag] > 0 {
			g.open[tag]--
			g.depth--
			if formatting[tag] {
				g.formatting--
			}
		}
		return false
	}
	if voidElement[tag] {
		return false
	}
	if tag == atom.A && g.open[tag] > 0 {
		return false // the parser closes the one before
	}
	if g.depth >= maxHTMLNesting || formatting[tag] && g.formatting >= maxHTMLFormatting || indenting[tag] && g.open[tag] >= maxHTMLIndent {
		g.dropped[tag]++
		return true
	}
	g.open[tag]++
	g.depth++
	if formatting[tag] {
		g.formatting++
	} else {
		g.nodes += g.formatting
	}
	return false
}

func atoms(list ...atom.Atom) map[atom.Atom]bool {
	set := make(map[atom.Atom]bool, len(list))
	for _, a := range list {
		set[a] = true
	}
	return set
}

// The sets of the HTML standard that matter here.
var (
	optionalEnd = atoms(atom.Html, atom.Head, atom.Body, atom.P, atom.Li, atom.Dt, atom.Dd, atom.Option, atom.Optgroup,
		atom.Tr, atom.Td, atom.Th, atom.Thead, atom.Tbody, atom.Tfoot, atom.Colgroup, atom.Caption, atom.Rp, atom.Rt)
	voidElement = atoms(atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link,
		atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr)
	formatting = atoms(atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small,
		atom.Strike, atom.Strong, atom.Tt, atom.U)
	indenting = atoms(atom.Ul, atom.Ol, atom.Dl, atom.Blockquote, atom.Table)
)
