package ingest

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of a table in Markdown, whose rows all get as many cells as the widest one.
const (
	maxTableCells = 100_000
	maxSpanCells  = 10_000    // cells that spans may add
	maxSpanText   = 256 << 10 // text that spans may repeat
	maxSpan       = 1000      // of one cell; HTML's own limit for columns
)

// shapeTable decides between a table of data, whose cells become one line each, and one that lays
// out a page, which is taken apart. Tables inside it are done already.
func shapeTable(t *html.Node) {
	rows := tableRows(t)
	if isBulletList(rows) {
		makeList(t, rows)
		return
	}
	if isLayout(t, rows) {
		takeApart(t)
		return
	}
	cells, repeated := 0, 0
	for i, row := range rows {
		for _, cell := range row {
			flatten(cell)
			down := min(span(cell, "rowspan"), len(rows)-i)
			cells += down*span(cell, "colspan") - 1
			repeated += (down - 1) * len(textOf(cell))
		}
	}
	for i, row := range rows {
		for _, cell := range row {
			down, across := min(span(cell, "rowspan"), len(rows)-i), span(cell, "colspan")
			if cell.Attr = nil; cells <= maxSpanCells && repeated <= maxSpanText {
				spread(cell, down, across)
			}
		}
	}
}

// spread puts empty cells beside one that spans columns. A row that it spans gets its text again,
// since a row is read by itself; a column does not.
func spread(cell *html.Node, down, across int) {
	if down > 1 {
		cell.Attr = []html.Attribute{{Key: "rowspan", Val: strconv.Itoa(down)}}
	}
	for range across - 1 {
		empty := &html.Node{Type: html.ElementNode, Data: cell.Data, DataAtom: cell.DataAtom, Attr: cell.Attr}
		cell.Parent.InsertBefore(empty, cell.NextSibling)
	}
}

// tableRows are the cells of the table's own rows.
func tableRows(t *html.Node) [][]*html.Node {
	var rows [][]*html.Node
	var collect func(*html.Node)
	collect = func(n *html.Node) {
		for child := range n.ChildNodes() {
			switch child.DataAtom {
			case atom.Thead, atom.Tbody, atom.Tfoot:
				collect(child)
			case atom.Tr:
				var cells []*html.Node
				for cell := range child.ChildNodes() {
					if cell.DataAtom == atom.Td || cell.DataAtom == atom.Th {
						cells = append(cells, cell)
					}
				}
				if len(cells) > 0 {
					rows = append(rows, cells)
				}
			}
		}
	}
	collect(t)
	return rows
}

// isBulletList finds the lists of old pages: a table whose first column is bullets.
func isBulletList(rows [][]*html.Node) bool {
	for _, row := range rows {
		if len(row) != 2 || !strings.Contains("•·*-–‣◦", strings.TrimSpace(textOf(row[0]))) || strings.TrimSpace(textOf(row[0])) == "" {
			return false
		}
	}
	return len(rows) > 0
}

func makeList(t *html.Node, rows [][]*html.Node) {
	list := &html.Node{Type: html.ElementNode, Data: "ul", DataAtom: atom.Ul}
	for _, row := range rows {
		item := row[1]
		item.Parent.RemoveChild(item)
		item.Data, item.DataAtom, item.Attr = "li", atom.Li, nil
		list.AppendChild(item)
	}
	t.Parent.InsertBefore(list, t)
	t.Parent.RemoveChild(t)
}

func isLayout(t *html.Node, rows [][]*html.Node) bool {
	if role := attr(t, "role"); role == "presentation" || role == "none" {
		return true
	}
	widest, headers, blocks := 0, false, false
	for _, row := range rows {
		widest = max(widest, len(row))
		for _, cell := range row {
			headers = headers || cell.DataAtom == atom.Th
			blocks = blocks || find(cell, notInCell) != nil
		}
	}
	return widest <= 1 || len(rows) == 1 && !headers || blocks || widest*len(rows) > maxTableCells
}

// notInCell are elements that lose their meaning in a single line.
func notInCell(n *html.Node) bool {
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Table, atom.Dl, atom.Blockquote:
		return true
	case atom.Pre:
		return strings.Contains(strings.TrimSpace(textOf(n)), "\n")
	case atom.P:
		return len(textOf(n)) > 1000
	}
	return false
}

// takeApart turns a table into blocks, a row at a time.
func takeApart(t *html.Node) {
	var rename func(*html.Node)
	rename = func(n *html.Node) {
		for child := range n.ChildNodes() {
			switch child.DataAtom {
			case atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th, atom.Caption, atom.Colgroup:
				rename(child)
			}
		}
		n.Data, n.DataAtom, n.Attr = "div", atom.Div, nil
	}
	rename(t)
}

// inCell escapes what would end a cell, in code as well: there it is the rule of the tables.
var inCell = strings.NewReplacer("\n", " ", "|", `\|`, `\|`, `\|`)

// flatten makes one line of a cell: blocks are parted by spaces, the items of lists by semicolons.
func flatten(cell *html.Node) {
	var inner []*html.Node
	for n := range cell.Descendants() {
		if n.Type == html.TextNode {
			n.Data = inCell.Replace(n.Data)
		} else if isBlock(n) {
			inner = append(inner, n)
		}
	}
	for _, n := range inner {
		if n.DataAtom != atom.Li {
			n.Parent.InsertBefore(textNode(" "), n)
			n.Parent.InsertBefore(textNode(" "), n.NextSibling)
		} else if previousItem(n) {
			n.Parent.InsertBefore(textNode("; "), n)
		}
		if n.DataAtom == atom.Pre {
			n.Data, n.DataAtom, n.Attr = "code", atom.Code, nil
			continue
		}
		unwrap(n)
	}
}

// previousItem is asked in document order, when the items before are unwrapped and their text is
// what is left of them.
func previousItem(li *html.Node) bool {
	for p := li.PrevSibling; p != nil; p = p.PrevSibling {
		if strings.TrimSpace(p.Data) != "" {
			return true
		}
	}
	return false
}

func span(cell *html.Node, name string) int {
	n, err := strconv.Atoi(attr(cell, name))
	if err != nil || n < 1 {
		return 1
	}
	return min(n, maxSpan)
}
