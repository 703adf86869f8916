package generate

import (
	"context"
	"math"
	"regexp"
	"strings"

	"assay"
)

// What a term of the question is worth where it stands. A unit is read with what stands around it:
// "It takes 14 days." answers under the heading "Refunds".
const (
	inUnit     = 1.0
	inIntro    = 0.8
	inSection  = 0.8
	inPrevious = 0.5
	inHeading  = 0.6 // the passage's heading path
	inTitle    = 0.5
)

// field is the terms of a text around units.
type field map[string]bool

// page is a passage as units are read in it.
type page struct {
	title, heading field
	all            field
	coverage       float64 // of the question by the whole passage
}

// reading is everything that scores are computed from.
type reading struct {
	a     *analyser
	q     *question
	units []unit
	pages []page
	past  field            // terms of the previous question, when this one says little by itself
	heads map[string]field // terms of section headings
}

func (x *Extractive) read(ctx context.Context, r Request) (*reading, error) {
	a := newAnalyser(r.Question)
	var b blocks
	for i, p := range r.Passages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b.add(i, p.Text)
	}
	d := &reading{a: a, units: b.units, heads: map[string]field{}}
	fields := d.fields
	for i := range d.units {
		u := &d.units[i]
		u.terms = a.terms(u.text)
		u.distinct = fields(u.text)
		if _, done := d.heads[u.section]; !done {
			d.heads[u.section] = fields(u.section)
		}
	}
	d.q = newQuestion(r.Question, a, d.units)
	for _, p := range r.Passages {
		g := page{title: fields(p.Title), heading: fields(p.Heading), all: fields(p.Text)}
		g.coverage = d.q.covered(func(t string) float64 {
			return max(d.has(g.all, t), d.has(g.title, t), d.has(g.heading, t))
		})
		d.pages = append(d.pages, g)
	}
	if len(d.q.terms) <= 2 {
		d.past = fields(lastQuestion(r.History))
	}
	return d, nil
}

func lastQuestion(history []assay.Message) string {
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Role == "user" {
			return history[i].Content
		}
	}
	return ""
}

func (d *reading) fields(text string) field {
	out := field{}
	for _, t := range d.a.terms(text) {
		out[t] = true
	}
	return out
}

// has says how much of a term is in a field. German joins words, so that a part counts there.
func (d *reading) has(f field, term string) float64 {
	if f[term] {
		return 1
	}
	if d.a.german && len(term) >= minPart {
		for t := range f {
			if strings.Contains(t, term) || len(t) >= minPart && strings.Contains(term, t) {
				return 0.8
			}
		}
	}
	return 0
}

const minPart = 5 // bytes of a word that may be a part of a longer one

// support is how much of the question a unit covers with what stands around it.
func (d *reading) support(u *unit) float64 {
	g := d.pages[u.passage]
	section := d.heads[u.section]
	var intro, previous field
	if u.intro >= 0 {
		intro = d.units[u.intro].distinct
	}
	if p := u.place - 1; p >= 0 && d.units[p].passage == u.passage && d.units[p].section == u.section && d.units[p].kind == sentence {
		previous = d.units[p].distinct
	}
	return d.q.covered(func(t string) float64 {
		return max(
			inUnit*d.has(u.distinct, t), inIntro*d.has(intro, t), inSection*d.has(section, t),
			inHeading*d.has(g.heading, t), inTitle*d.has(g.title, t), inPrevious*d.has(previous, t),
		)
	})
}

// score ranks units: by what they cover, whether they hold what the question asks for, and where
// they stand.
func (d *reading) score(u *unit) float64 {
	direct := d.q.covered(func(t string) float64 { return d.has(u.distinct, t) })
	s := 0.7*d.support(u) + 0.3*direct + 0.15*d.q.adjacent(u.terms)
	if len(d.past) > 0 {
		found := 0
		for t := range d.past {
			if u.distinct[t] || d.heads[u.section][t] || d.pages[u.passage].title[t] {
				found++
			}
		}
		s += 0.2 * float64(found) / float64(len(d.past))
	}
	s *= d.q.suits(u)
	switch n := len(u.terms); {
	case n < 3:
		s *= 0.6
	case n < 5:
		s *= 0.85
	case n > 50 && u.kind != code:
		s *= 0.85
	}
	if u.opening {
		s *= 1.05
	}
	s *= d.form(u)
	s *= 0.75 + 0.25*d.pages[u.passage].coverage
	s *= 1 + 0.2/float64(1+u.passage)
	return s
}

// likeness says how alike in meaning the units are to the question: 1 is the most alike of them and 0 the
// average, since every embedder has its own scale. It is nil without a Similarity.
func (x *Extractive) likeness(ctx context.Context, d *reading, question string) ([]float64, error) {
	if x.opts.Similarity == nil || len(d.units) == 0 {
		return nil, nil
	}
	out := make([]float64, len(d.units))
	most, sum := math.Inf(-1), 0.0
	for i := range d.units {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text := d.units[i].text
		if section := d.units[i].section; section != "" {
			text = section + ": " + text
		}
		s := x.opts.Similarity(question, text)
		if math.IsNaN(s) {
			s = 0
		}
		out[i] = s
		most, sum = max(most, s), sum+s
	}
	average := sum / float64(len(out))
	for i, s := range out {
		out[i] = max(0, s-average) / max(most-average, 1e-9)
	}
	return out, nil
}

// form marks down what is not fit to be quoted: a sentence that announces what is not there, and the
// menus and headings that conversion left run together.
func (d *reading) form(u *unit) float64 {
	switch {
	case u.kind == code:
		return 0.75 // it holds many words and explains none
	case isColon(u.text):
		if next := u.place + 1; next < len(d.units) && d.units[next].intro == u.place {
			return 1
		}
		return 0.5
	case len(joined.FindAllString(u.text, 3)) == 3, strings.Contains(u.text, "{{"):
		return 0.4
	case pointer.MatchString(u.text):
		return 0.85
	case u.kind == sentence && !ends(u.text) && len(u.terms) > 12:
		return 0.5
	case u.kind == sentence && !ends(u.text):
		return 0.8
	}
	return 1
}

// pointer is a sentence that says where something stands instead of saying it.
var pointer = regexp.MustCompile(`(?i)(^|[;,:(] ?|\. )(see|read|siehe|vgl\.) (?:the |also |section |die |den |das |\x60)?\S+`)

// joined is where two words have lost the space between them.
var joined = regexp.MustCompile(`\p{Ll}\p{Lu}\p{Ll}`)
