package chunker

// section is a heading with the blocks up to the next one, or what stands before the first heading.
type section struct {
	blocks     []block // the heading included
	start, end int
	title      string
	depth      int  // number of headings on its path, its own included
	parent     int  // index of the section it is in, or -1
	next       int  // index of the first section after it that isn't inside it
	bare       bool // nothing but a heading
}

func parseSections(blocks []block) []section {
	var sections []section
	for i := 0; i < len(blocks); {
		j := i + 1
		for j < len(blocks) && blocks[j].kind != heading {
			j++
		}
		sections = append(sections, section{
			blocks: blocks[i:j], start: blocks[i].start, end: blocks[j-1].end,
			title: blocks[i].title, parent: -1, bare: j == i+1 && blocks[i].kind == heading,
		})
		i = j
	}
	var open []int // the path to the section before
	closeTo := func(level, next int) {
		for len(open) > 0 && sections[open[len(open)-1]].blocks[0].level >= level {
			sections[open[len(open)-1]].next = next
			open = open[:len(open)-1]
		}
	}
	for i := range sections {
		level := sections[i].blocks[0].level
		if level == 0 { // before the first heading: contains no others
			sections[i].next = i + 1
			continue
		}
		closeTo(level, i)
		if len(open) > 0 {
			sections[i].parent = open[len(open)-1]
		}
		open = append(open, i)
		sections[i].depth = len(open)
	}
	closeTo(0, len(sections))
	return sections
}

// pack is a chunk in the making out of whole sections. Its heading path is what their paths share.
type pack struct {
	start, end int // empty if equal
	first      int // section
	depth      int // length of the path
	bare       bool
}

func (p pack) empty() bool { return p.start == p.end }

// siblings cuts the sections from k to end, which have one parent, and what they contain. A section
// that fits into a chunk with all that it contains stays whole, and neighbours are packed together as
// long as they fit; p is what was packed before them. So a chunk holds either whole sections, each
// with its heading, or a part of one section.
func (s *splitter) siblings(k, end int, p pack) {
	for next := k; k < end; k = next {
		sec := &s.sections[k]
		next = sec.next
		last := s.sections[next-1].end
		if !p.empty() {
			if _, ok := s.counts.fits(p.start, last, s.size); ok {
				p.end, p.depth = last, min(p.depth, sec.depth-1)
				p.bare = p.bare && next == k+1 && sec.bare
				continue
			}
			if !p.bare {
				s.emit(p.start, p.end, s.path(p.first, p.depth))
				p = pack{}
			}
		}
		if p.empty() {
			p = pack{start: sec.start, end: last, first: k, depth: sec.depth, bare: next == k+1 && sec.bare}
			if _, ok := s.counts.fits(p.start, p.end, s.size); ok {
				continue
			}
		} else { // headings alone go with what follows
			p.depth = min(p.depth, sec.depth-1)
		}
		s.split(k, p)
		p = pack{}
	}
	if !p.empty() {
		s.emit(p.start, p.end, s.path(p.first, p.depth))
	}
}

// split cuts section k, which from p.start on doesn't fit into a chunk: first its own text, then the
// sections in it.
func (s *splitter) split(k int, p pack) {
	sec := &s.sections[k]
	if _, ok := s.counts.fits(p.start, sec.end, s.size); ok && sec.next > k+1 {
		p.end, p.bare = sec.end, sec.bare
		s.siblings(k+1, sec.next, p)
		return
	}
	s.body(k, p)
	s.siblings(k+1, sec.next, pack{})
}

// path returns the first depth headings on the path of section k.
func (s *splitter) path(k, depth int) []string {
	if depth <= 0 {
		return nil
	}
	for s.sections[k].depth > depth {
		k = s.sections[k].parent
	}
	path := make([]string, depth)
	for ; k >= 0; k = s.sections[k].parent {
		path[s.sections[k].depth-1] = s.sections[k].title
	}
	n := 0
	for _, title := range path {
		if title != "" {
			path[n] = title
			n++
		}
	}
	return path[:n]
}
