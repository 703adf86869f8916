package generate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"assay"
)

// SupportOptions configure a Verifier. The zero value of a field means its default.
type SupportOptions struct {
	// Similarity, if given, says how alike two texts are in meaning, between 0 and 1. With it a
	// sentence that says the same in other words is told from one that says something else.
	Similarity func(a, b string) float64
	// MinSupport is the support from which on a sentence counts as supported. Default
	// DefaultMinSupport.
	MinSupport float64
}

// DefaultMinSupport tells sentences that their passage supports from others best, by measurement
// (docs/context.md).
const DefaultMinSupport = 0.5

// Validate reports everything that is wrong with the options.
func (o SupportOptions) Validate() error {
	if math.IsNaN(o.MinSupport) || o.MinSupport < 0 || o.MinSupport > 1 {
		return fmt.Errorf("generate.min_support is %v; it must be between 0 and 1", o.MinSupport)
	}
	return nil
}

// Verifier checks whether the passages that an answer cites support the sentences that cite them. It
// reads words and their meaning, not logic: it finds sentences that speak of something else than
// their source or state numbers that the source does not have, and does not find a source that is turned
// round with its own words. It is safe for concurrent use if its functions are.
type Verifier struct{ o SupportOptions }

// NewVerifier returns a Verifier.
func NewVerifier(o SupportOptions) (*Verifier, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.MinSupport == 0 {
		o.MinSupport = DefaultMinSupport
	}
	return &Verifier{o}, nil
}

// How support is put together. Terms carry more than the similarity, which is high for all texts on one
// subject.
const (
	termShare     = 0.7
	missingNumber = 0.5 // what is left of the support when a number is not in the source
	numberWeight  = 1.5 // of a number or name among the terms
	likelyUnits   = 3   // sentences of a passage that are compared in meaning
)

// Verify sets each citation's verdict: true when every sentence that cites the passage is supported by
// it, or by all passages that the sentence cites where this one has its part in it. text is the
// answer, with markers that are all resolved.
func (v *Verifier) Verify(text string, passages []Passage, citations []assay.Citation) []assay.Citation {
	byPosition := make(map[int]Passage, len(passages))
	for _, p := range passages {
		byPosition[p.Position] = p
	}
	verdicts := make(map[int]bool)
	for _, c := range claims(text) {
		var cited []Passage
		for _, n := range c.positions {
			if p, sent := byPosition[n]; sent {
				cited = append(cited, p)
			}
		}
		together := v.Support(c.text, cited...)
		for _, p := range cited {
			alone := together
			if len(cited) > 1 {
				alone = v.Support(c.text, p)
			}
			ok := alone >= v.o.MinSupport || together >= v.o.MinSupport && alone >= v.o.MinSupport/2
			if earlier, seen := verdicts[p.Position]; seen {
				ok = ok && earlier
			}
			verdicts[p.Position] = ok
		}
	}
	out := slices.Clone(citations)
	for i := range out {
		if ok, checked := verdicts[out[i].Position]; checked {
			out[i].Verified = &ok
		}
	}
	return out
}

// Support is how much of a sentence is in the passages together, between 0 and 1: the share of its
// terms, and the similarity to the sentences of theirs that share most of them. A sentence without
// terms of its own, such as "Yes.", is supported by anything.
func (v *Verifier) Support(sentence string, passages ...Passage) float64 {
	a := newAnalyser(sentence)
	wanted := field{}
	for _, t := range a.terms(sentence) {
		wanted[t] = true
	}
	if len(wanted) == 0 {
		return 1
	}
	var b blocks
	d := &reading{a: a}
	there := field{}
	for i, p := range passages {
		b.add(i, p.Text)
		for _, part := range []string{p.Title, p.Heading, p.Text} {
			for _, t := range a.terms(part) {
				there[t] = true
			}
		}
	}
	names := a.names(sentence)
	total, found, numbers := 0.0, 0.0, true
	for t := range wanted {
		w := 1.0
		if names[t] {
			w = numberWeight
		}
		has := d.has(there, t)
		total, found = total+w, found+w*has
		if has == 0 && isNumber(t) {
			numbers = false
		}
	}
	support := found / total
	if v.o.Similarity != nil {
		support = termShare*support + (1-termShare)*v.likest(sentence, wanted, a, b.units)
	}
	if !numbers {
		support *= missingNumber
	}
	return support
}

// likest is the similarity of a sentence to the most similar of the units that share most terms with it.
func (v *Verifier) likest(sentence string, wanted field, a *analyser, units []unit) float64 {
	type scored struct{ place, shared int }
	var likely []scored
	for i := range units {
		shared := 0
		for _, t := range a.terms(units[i].text) {
			if wanted[t] {
				shared++
			}
		}
		likely = append(likely, scored{i, shared})
	}
	slices.SortStableFunc(likely, func(x, y scored) int { return y.shared - x.shared })
	best := 0.0
	for _, l := range likely[:min(likelyUnits, len(likely))] {
		if s := v.o.Similarity(sentence, units[l.place].text); s > best { // never for NaN
			best = min(s, 1)
		}
	}
	return best
}

func isNumber(term string) bool {
	return term != "" && !strings.ContainsFunc(term, func(r rune) bool { return !unicode.IsDigit(r) })
}

// claim is a sentence of an answer with the positions of the passages that it cites.
type claim struct {
	text      string
	positions []int
}

// claims cuts an answer at its markers. A group of markers belongs to the sentence, or the part of one, that
// it stands in or behind.
func claims(answer string) []claim {
	const edge = "\x00"
	s := scanner{marker: func(m marker, code bool) (string, bool) {
		if code {
			return m.text, true
		}
		return edge + m.text + edge, true
	}}
	marked := s.write(strings.ReplaceAll(answer, edge, "")) + s.close()
	parts := strings.Split(marked, edge) // text, marker, text, marker, ..., text
	var out []claim
	open := "" // text since the last marker
	for i := 0; i+1 < len(parts); i += 2 {
		open += parts[i]
		positions := positionsIn(parts[i+1])
		if text := lastStatement(open); text != "" {
			out = append(out, claim{text, positions})
		} else if n := len(out); n > 0 {
			out[n-1].positions = append(out[n-1].positions, positions...)
		}
		open = ""
	}
	return out
}

func positionsIn(m string) []int {
	parsed, _ := parseMarker(strings.Trim(m, "[]"))
	var out []int
	for _, r := range parsed.ranges {
		for n := r[0]; n <= r[1]; n++ {
			out = append(out, n)
		}
	}
	return out
}

// lastStatement is the last block of code of a text, or its last sentence, or "" when there are but
// signs.
func lastStatement(text string) string {
	text = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(text), ".,;:!?)"))
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return ""
	}
	if body, ok := strings.CutSuffix(text, "```"); ok {
		return body[strings.LastIndex(body, "```")+1:]
	}
	lines := strings.Split(text, "\n")
	last := clean(lines[len(lines)-1])
	if s := sentences(last); len(s) > 0 {
		return s[len(s)-1]
	}
	return last
}
