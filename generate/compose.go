package generate

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// write puts the chosen units into words: passages in the order of their best unit, units of a
// passage in its own order, each with its citation.
func (x *Extractive) write(d *reading, passages []Passage, chosen []int, scores []float64) []string {
	best := map[int]float64{}
	for _, i := range chosen {
		best[d.units[i].passage] = max(best[d.units[i].passage], scores[i])
	}
	slices.SortFunc(chosen, func(a, b int) int {
		p, q := d.units[a].passage, d.units[b].passage
		if p != q {
			return cmp.Or(cmp.Compare(best[q], best[p]), cmp.Compare(p, q))
		}
		return cmp.Compare(a, b)
	})
	var pieces []string
	for n, i := range chosen {
		u := &d.units[i]
		var before *unit
		if n > 0 {
			before = &d.units[chosen[n-1]]
		}
		text := u.text
		introduced := u.intro >= 0 && slices.Contains(chosen, u.intro)
		if u.kind != code {
			text = x.standalone(d, u, passages[u.passage], before, introduced)
		}
		switch u.kind {
		case step:
			text = u.label + " " + text
		case item:
			if introduced || before != nil && before.block == u.block {
				text = "- " + text
			}
		}
		mark := " "
		if u.kind == code {
			mark = "\n"
		}
		pieces = append(pieces, separator(u, before, strings.HasPrefix(text, "- "))+text+mark+passages[u.passage].Marker)
	}
	return pieces
}

func separator(u, before *unit, bullet bool) string {
	switch {
	case before == nil:
		return ""
	case u.kind == code, before.kind == code, u.passage != before.passage:
		return "\n\n"
	case u.kind == step && before.kind != step:
		return "\n\n"
	case u.kind == step, u.kind == row, bullet, before.kind != sentence:
		return "\n"
	}
	return " "
}

// standalone makes a fragment understandable by what stands above it.
func (x *Extractive) standalone(d *reading, u *unit, p Passage, before *unit, introduced bool) string {
	if introduced || u.kind == step || before != nil && before.passage == u.passage && before.section == u.section {
		return u.text
	}
	if u.intro >= 0 {
		return strings.TrimRight(d.units[u.intro].text, ":：") + ": " + u.text
	}
	last, _ := utf8.DecodeLastRuneInString(u.text)
	whole := isColon(u.text) || strings.ContainsRune(`.!。！)`, last) && len(u.terms) >= 4
	if u.kind == sentence && whole {
		return u.text
	}
	head := u.section
	if head == "" {
		head = p.Heading[strings.LastIndex(p.Heading, " > ")+1:]
		head = strings.TrimPrefix(strings.TrimSpace(head), "> ")
	}
	if head = strings.TrimRight(strings.TrimSpace(neutralise(head)), ":："); head == "" || strings.Contains(u.text, head) {
		return u.text
	}
	if last, _ := utf8.DecodeLastRuneInString(head); last == '?' || last == '？' {
		return head + " " + u.text
	}
	return head + ": " + u.text
}
