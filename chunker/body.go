package chunker

import "slices"

// body cuts the own text of section k into chunks. p holds where the first begins, which is before the
// section if headings alone precede it, and the first one's path.
func (s *splitter) body(k int, p pack) {
	s.units = s.units[:0]
	for i, b := range s.sections[k].blocks {
		if i == 0 {
			b.start = p.start
		}
		s.appendBlock(b)
	}
	path, first := s.path(k, s.sections[k].depth), s.path(p.first, p.depth)
	start := s.units[0].start
	for i := 0; i < len(s.units); {
		j := s.fill(start, i)
		if j < len(s.units) {
			j = s.breakAt(start, i, j)
		}
		if i == 0 {
			s.emit(start, s.units[j-1].end, first)
		} else {
			s.emit(start, s.units[j-1].end, path)
		}
		if j < len(s.units) {
			start = s.overlap(start, i, j)
		}
		i = j
	}
}

// fill returns the index after the last unit that fits into a chunk from start on, where unit i is the
// first new one, and leaves the number of tokens up to each in s.filled. At least one fits: units are
// made so, and overlap leaves room for one.
func (s *splitter) fill(start, i int) int {
	s.filled = s.filled[:0]
	for ; i < len(s.units); i++ {
		n, ok := s.counts.fits(start, s.units[i].end, s.size)
		if !ok {
			break
		}
		s.filled = append(s.filled, n)
	}
	return i
}

// breakAt chooses the unit before which to cut a chunk that has room for units i to j-1: at the
// strongest boundary in its second half, the later the better. If two chunks can take all that is
// left, they share it evenly rather than leave a scrap.
func (s *splitter) breakAt(start, i, j int) int {
	low, half := s.size/2, 0
	if rest, ok := s.counts.fits(start, s.units[len(s.units)-1].end, 2*s.size-s.overlapping); ok {
		if least := max(rest/3, rest-s.size+s.overlapping); least <= s.filled[j-1-i] {
			low, half = least, rest/2
		}
	}
	best, bestAway := -1, 0
	for m := j; m > i; m-- {
		n := s.filled[m-1-i]
		if n < low {
			break
		}
		away := 0
		if half > 0 {
			away = max(n-half, half-n)
		}
		if best < 0 || s.units[m].before > s.units[best].before || s.units[m].before == s.units[best].before && away < bestAway {
			best, bestAway = m, away
		}
	}
	if best >= 0 && (s.units[best].before > anywhere || !s.units[best-1].keep) {
		return best
	}
	for m := j; m > i; m-- { // don't part a title or a lead-in from what follows, if anything else precedes it
		if !s.units[m-1].keep {
			return m
		}
	}
	return j
}

// overlap returns where the chunk that has unit j as its first new one begins: with as many whole
// sentences or list items of the chunk before it, which had units i to j-1 from start on, as
// the overlap and the room allow. Tables and code are not repeated.
func (s *splitter) overlap(start, i, j int) int {
	begin := s.units[j].start
	if s.overlapping == 0 {
		return begin
	}
	end := s.units[j-1].end
	// A chunk less than half full is repeated less in proportion, or it might be so as a whole.
	most := min(s.overlapping, 2*s.overlapping*s.filled[j-1-i]/s.size)
	for m := j - 1; m >= i; m-- {
		u := s.units[m]
		if u.partial || u.kind != paragraph && u.kind != list && u.kind != item {
			return begin
		}
		for _, from := range s.sentenceStarts(u) {
			if from <= start {
				return begin
			}
			if _, ok := s.counts.fits(from, end, most); !ok {
				return begin
			}
			if _, ok := s.counts.fits(from, s.units[j].end, s.size); !ok {
				return begin
			}
			begin = from
		}
	}
	return begin
}

// sentenceStarts returns where the sentences of a unit begin, the last first; an item is one.
func (s *splitter) sentenceStarts(u unit) []int {
	s.starts = s.starts[:0]
	if u.kind == item {
		return append(s.starts, u.start)
	}
	if u.kind == list {
		for p := u.start; p < u.end; {
			l := lineAt(s.text, p, u.end)
			if p == u.start || isItem(s.text, l) {
				s.starts = append(s.starts, l.first)
			}
			p = l.next()
			if f := itemFence(s.text, l); f.length > 0 {
				p = afterFence(s.text, l, f, u.end)
			}
		}
	} else {
		from := u.start
		s.ends = appendSentences(s.ends[:0], s.text, u.start, u.end)
		for _, end := range s.ends {
			if a, b := trim(s.text, from, end); a < b {
				s.starts = append(s.starts, a)
			}
			from = end
		}
	}
	slices.Reverse(s.starts)
	return s.starts
}
