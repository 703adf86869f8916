package builtin

import "math"

// question is the query of a request in numbers.
type question struct {
	words []int32
	terms []term  // distinct stems that say what it is about
	of    []int32 // by stem: the index of its term, or -1
	order []int32 // the terms in the order of the question, with repetitions
	codes int
}

// term is one stem of the question.
type term struct {
	stem     int32
	surfaces []int32
	count    int
	code     bool
	weight   [kinds]float64
}

// The kinds of weight that a term has.
const (
	byVector = iota // how much it counts in any text, by the vectors' weights
	byList          // how rare it is among the candidates
	byTable         // how rare it is in English
	byBoth          // the last two together
	kinds
)

// readQuestion reads a query. If it consists of stop words alone, these are what it is about.
func (x *lexicon) readQuestion(text string, v Vectors, scratch []float32, table frequencies) question {
	var q question
	q.words, _ = x.appendWords(nil, nil, text, maxQueryWords)
	all := true
	for _, id := range q.words {
		all = all && x.words[id].stop
	}
	index := map[int32]int32{}
	for _, id := range q.words {
		w := x.words[id]
		if w.stop && !all {
			continue
		}
		i, ok := index[w.stem]
		if !ok {
			i = int32(len(q.terms))
			index[w.stem] = i
			q.terms = append(q.terms, term{stem: w.stem, code: w.code})
			q.terms[i].weight[byVector] = staticWeight(v, scratch, x.stems[w.stem])
			q.terms[i].weight[byTable] = table.of(x.stems[w.stem])
			if w.code {
				q.codes++
			}
		}
		t := &q.terms[i]
		t.count++
		known := false
		for _, s := range t.surfaces {
			known = known || s == id
		}
		if !known {
			t.surfaces = append(t.surfaces, id)
		}
		q.order = append(q.order, i)
	}
	return q
}

// index makes the table from stems to terms, once all texts have been read.
func (q *question) index(stems int) {
	q.of = make([]int32, stems)
	for i := range q.of {
		q.of[i] = -1
	}
	for i, t := range q.terms {
		q.of[t.stem] = int32(i)
	}
}

// weighTerms sets how rare each term is among the passages.
func (q *question) weighTerms(x *lexicon, passages []passage) {
	found := make([]int, len(q.terms))
	seen := make([]int, len(q.terms))
	for n := range passages {
		for _, id := range passages[n].words {
			if i := q.of[x.words[id].stem]; i >= 0 && seen[i] != n+1 {
				seen[i] = n + 1
				found[i]++
			}
		}
	}
	for i := range q.terms {
		df, n := float64(found[i]), float64(len(passages))
		w := &q.terms[i].weight
		w[byList] = math.Log(1 + (n-df+0.5)/(df+0.5))
		w[byBoth] = w[byTable] * (0.5 + w[byList])
	}
}

// staticWeight is the weight of a word's heaviest piece; a word in several pieces is a rare one.
func staticWeight(v Vectors, scratch []float32, word string) float64 {
	ids := v.Tokens(word)
	if len(ids) == 0 {
		return 1
	}
	heaviest := 0.0
	for _, id := range ids {
		heaviest = max(heaviest, float64(v.TokenVector(scratch, id)))
	}
	if len(ids) > 1 {
		heaviest = max(heaviest, 0.6)
	}
	return heaviest
}
