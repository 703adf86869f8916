package generate

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
)

const (
	meaning       = 0.3  // of a score is likeness in meaning, where it can be had
	relativeScore = 0.65 // of the best unit's; what is below is about something else
	otherPassage  = 0.9  // of its score counts for a unit of another passage than the best one's
	sameText      = 0.7  // share of common terms from which on two units say the same
)

// pick chooses the units of the answer and writes them. No piece means that nothing answers.
func (x *Extractive) pick(ctx context.Context, r Request) (pieces []string, coverage float64, err error) {
	d, err := x.read(ctx, r)
	if err != nil || len(d.q.terms) == 0 {
		return nil, 0, err
	}
	likeness, err := x.likeness(ctx, d, r.Question)
	if err != nil {
		return nil, 0, err
	}
	scores := make([]float64, len(d.units))
	for i := range d.units {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		scores[i] = d.score(&d.units[i])
		if likeness != nil {
			scores[i] = (1-meaning)*scores[i] + meaning*likeness[i]
		}
		coverage = max(coverage, d.coverage(&d.units[i]))
	}
	if len(d.units) == 0 || coverage < x.opts.MinCoverage*lenience(len(d.q.terms)) {
		return nil, coverage, nil
	}
	chosen := x.procedure(d, coverage)
	if chosen == nil {
		chosen = x.units(d, scores)
	}
	return x.write(d, r.Passages, chosen, scores), coverage, nil
}

// coverage is how much of the question a unit answers: half what it covers with its surroundings, half what
// its whole passage covers. It decides about refusing.
func (d *reading) coverage(u *unit) float64 {
	return (d.support(u) + d.pages[u.passage].coverage) / 2
}

// lenience lowers the minimum for long questions: of many terms a good answer repeats fewer. It is 1
// up to 3 terms and 0.75 from 9 on.
func lenience(terms int) float64 {
	return 1 - 0.25*float64(min(max(terms-3, 0), 6))/6
}

// procedure returns the numbered list that answers a question for a way to do something, if one is
// about it as much as the best unit is.
func (x *Extractive) procedure(d *reading, coverage float64) []int {
	if d.q.expects != procedure {
		return nil
	}
	var answer []int
	answerScore := 0.0
	for start := 0; start < len(d.units); {
		end := start + 1
		for end < len(d.units) && d.units[end].block == d.units[start].block && d.units[end].passage == d.units[start].passage {
			end++
		}
		if d.units[start].kind == step && end-start >= 2 {
			g := d.pages[d.units[start].passage]
			all := d.q.covered(func(t string) float64 {
				most := max(inSection*d.has(d.heads[d.units[start].section], t), inHeading*d.has(g.heading, t), 0.8*d.has(g.title, t))
				if i := d.units[start].intro; i >= 0 {
					most = max(most, d.has(d.units[i].distinct, t))
				}
				for i := start; i < end; i++ {
					most = max(most, d.has(d.units[i].distinct, t))
				}
				return most
			})
			s := all * (1 + 0.2/float64(1+d.units[start].passage))
			if number := strings.TrimRight(d.units[start].label, ".)"); number != "1" && number != "0" {
				s *= 0.85 // the rest of a list whose beginning is in another chunk
			}
			if all >= 0.85*coverage && s > answerScore {
				answer, answerScore = x.whole(d, start, end), s
			}
		}
		start = end
	}
	return answer
}

// whole is a list with its introduction, as much of it as may be quoted.
func (x *Extractive) whole(d *reading, start, end int) []int {
	var out []int
	if i := d.units[start].intro; i >= 0 {
		out = append(out, i)
	}
	tokens := 0
	for i := start; i < end; i++ {
		if tokens += x.opts.Count(d.units[i].text); tokens > x.opts.MaxListTokens && i > start {
			break
		}
		out = append(out, i)
	}
	return out
}

// units picks the best units one after another, each for what it adds to those before.
func (x *Extractive) units(d *reading, scores []float64) []int {
	order := make([]int, len(d.units))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	top := order[0]
	floor := relativeScore * scores[top]
	order = order[:min(len(order), 64)]

	var chosen []int
	covered := field{}
	tokens, picks := 0, 0
	for picks < x.opts.MaxSentences {
		next, nextGain := -1, 0.0
		for _, i := range order {
			gain, fresh := scores[i], 0.0
			if d.units[i].passage != d.units[top].passage {
				gain *= otherPassage
			}
			if slices.Contains(chosen, i) || gain < floor {
				continue
			}
			alike := 0.0
			for _, c := range chosen {
				alike = max(alike, overlap(d.units[i].distinct, d.units[c].distinct))
				if c == i-1 && d.units[c].block == d.units[i].block {
					gain *= 1.1 // goes on where a chosen one stops
				}
			}
			if alike >= sameText {
				continue
			}
			for _, t := range d.q.terms {
				if !covered[t] && d.units[i].distinct[t] {
					fresh += d.q.weights[t]
				}
			}
			if gain *= (1 - 0.4*alike) * (1 + 0.4*fresh/max(d.q.total, 1e-9)); gain > nextGain || gain == nextGain && next >= 0 && i < next {
				next, nextGain = i, gain
			}
		}
		if next < 0 {
			break
		}
		added := x.withContext(d, next, chosen)
		cost := 0
		for _, i := range added {
			cost += x.opts.Count(d.units[i].text)
		}
		if len(chosen) > 0 && tokens+cost > x.opts.MaxTokens {
			order = slices.DeleteFunc(order, func(i int) bool { return i == next })
			continue
		}
		chosen = append(chosen, added...)
		picks++
		if len(added) > 1 && d.units[next].kind == sentence && !isColon(d.units[next].text) {
			picks++ // a sentence and the one before it
		}
		tokens += cost
		for _, i := range added {
			for t := range d.units[i].distinct {
				covered[t] = true
			}
		}
	}
	return chosen
}

func isColon(text string) bool { return strings.HasSuffix(text, ":") || strings.HasSuffix(text, "：") }

// withContext is a unit with what it cannot stand without: the list that a sentence announces, the
// sentence that a piece of code illustrates, the sentence that a pronoun refers to.
func (x *Extractive) withContext(d *reading, i int, chosen []int) []int {
	u := &d.units[i]
	var out []int
	switch {
	case u.kind == sentence && isColon(u.text):
		end := i + 1
		for end < len(d.units) && d.units[end].intro == i {
			end++
		}
		if end > i+1 {
			out = x.whole(d, i+1, end)
		}
	case u.kind == code && u.intro >= 0:
		out = []int{u.intro, i}
	case u.kind == sentence && i > 0 && refersBack(u.text) && d.units[i-1].block == u.block && d.units[i-1].passage == u.passage:
		out = []int{i - 1, i}
	}
	if !slices.Contains(out, i) {
		out = append(out, i)
	}
	return slices.DeleteFunc(out, func(n int) bool { return slices.Contains(chosen, n) })
}

var pronouns = set(`it its this that they these those their he she such otherwise then so instead however also both es sie er dies diese dieser dieses
dann dort sonst dabei dafür damit dazu these`)

func refersBack(text string) bool {
	first := strings.ToLower(text)
	if end := strings.IndexFunc(first, func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
		first = first[:end]
	}
	return pronouns[first]
}

// overlap is the share of the smaller set that is in the larger.
func overlap(a, b field) float64 {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) == 0 {
		return 0
	}
	n := 0
	for t := range a {
		if b[t] {
			n++
		}
	}
	return float64(n) / float64(len(a))
}
