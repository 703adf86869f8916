package chunker

// kind is what a block, or a part of one, is.
type kind uint8

const (
	paragraph kind = iota
	heading
	list
	item // a part of a list
	table
	code
)

// block is a run of lines that belong together. It starts at its first and ends after its last
// character that is not blank.
type block struct {
	kind       kind
	start, end int
	level      int    // of a heading, 1 to 6
	title      string // of a heading
}

// maxSetext bounds the line that an underline makes a heading, in bytes: a longer one is a paragraph
// with a rule under it.
const maxSetext = 160

// parseBlocks reads a Markdown-like text line by line. Text without any markup is paragraphs, and so
// is everything that isn't recognised; block quotes and indented code are paragraphs too.
func parseBlocks(text string) []block {
	var blocks []block
	for p := 0; p < len(text); {
		l := lineAt(text, p, len(text))
		if l.blank() {
			p = l.next()
			continue
		}
		b, next := blockAt(text, l)
		b.start, b.end = trim(text, l.first, next)
		blocks = append(blocks, b)
		p = next
	}
	return blocks
}

// blockAt reads the block that starts with line l and returns where the text goes on.
func blockAt(text string, l line) (block, int) {
	limit := len(text)
	if f := fenceAt(text, l); f.length > 0 {
		return block{kind: code}, afterFence(text, l, f, limit)
	}
	if level, title := atxHeading(text, l); level > 0 {
		return block{kind: heading, level: level, title: title}, min(l.next(), limit)
	}
	if isTable(text, l) {
		for l.next() < limit {
			next := lineAt(text, l.next(), limit)
			if next.blank() || !isRow(text, next) {
				break
			}
			l = next
		}
		return block{kind: table}, min(l.next(), limit)
	}
	if isItem(text, l) {
		return block{kind: list}, afterList(text, l)
	}
	for first := l; l.next() < limit; {
		next := lineAt(text, l.next(), limit)
		if l == first && l.end-l.first <= maxSetext && !isRule(text, l) {
			if level := setextLevel(text, next); level > 0 {
				return block{kind: heading, level: level, title: title(text[l.first:l.end])}, min(next.next(), limit)
			}
		}
		if next.blank() || startsBlock(text, next) {
			break
		}
		l = next
	}
	return block{kind: paragraph}, min(l.next(), limit)
}

// startsBlock says whether l ends a paragraph above it.
func startsBlock(text string, l line) bool {
	level, _ := atxHeading(text, l)
	return level > 0 || fenceAt(text, l).length > 0 || isItem(text, l) || isTable(text, l)
}

// isTable says whether a table starts at l: two rows make one, with or without a delimiter row.
func isTable(text string, l line) bool {
	return isRow(text, l) && l.next() < len(text) && isRow(text, lineAt(text, l.next(), len(text)))
}

// afterList returns where the text goes on after the list that starts with line l. Lines right under
// an item belong to it, and after a blank line those that are indented further than the list.
func afterList(text string, l line) int {
	limit, indent := len(text), l.indent
	for {
		end := min(l.next(), limit)
		if f := itemFence(text, l); f.length > 0 {
			end = afterFence(text, l, f, limit)
		}
		next, gap := end, false
		for next < limit {
			l = lineAt(text, next, limit)
			if !l.blank() {
				break
			}
			next, gap = l.next(), true
		}
		if next >= limit {
			return end
		}
		if level, _ := atxHeading(text, l); level > 0 && l.indent <= indent {
			return end
		}
		if gap && l.indent < indent+2 && !isItem(text, l) {
			return end
		}
	}
}
