package builtin

import "math"

// tally is what one passage has of the question's terms.
type tally struct {
	tf, head []float64
	exact    []bool
	matches  []match
	best     [kinds]float64 // the most that one sentence covers
	second   [kinds]float64
}

// match is a place at which a term stands.
type match struct{ at, term int }

// weights is a sum for each kind of weight.
type weights [kinds]float64

func (w *weights) add(t *term, by float64) {
	for k := range w {
		w[k] += t.weight[k] * by
	}
}

// over divides by another sum, where there is one.
func (w weights) over(sum *weights) weights {
	for k := range w {
		w[k] = share(w[k], sum[k])
	}
	return w
}

func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}

// tally reads a passage once.
func (r *reading) tally(p *passage) *tally {
	q, n := &r.q, len(r.q.terms)
	t := &tally{tf: make([]float64, n), head: make([]float64, n), exact: make([]bool, n)}
	in := make([]bool, n) // the sentence
	sentence := 0
	closeSentence := func() {
		var s weights
		for i, found := range in {
			if found {
				s.add(&q.terms[i], 1)
			}
		}
		clear(in)
		for k, v := range s {
			if v > t.best[k] {
				t.best[k], t.second[k] = v, t.best[k]
			} else {
				t.second[k] = max(t.second[k], v)
			}
		}
	}
	for at, id := range p.words {
		for at >= p.head && sentence < len(p.ends) && at >= p.ends[sentence] {
			closeSentence()
			sentence++
		}
		i := q.of[r.x.words[id].stem]
		if i < 0 {
			continue
		}
		t.tf[i]++
		if at < p.head {
			t.head[i]++
		} else {
			in[i] = true
		}
		if !t.exact[i] {
			for _, s := range q.terms[i].surfaces {
				t.exact[i] = t.exact[i] || s == id
			}
		}
		t.matches = append(t.matches, match{at, int(i)})
	}
	closeSentence()
	return t
}

// lexicalFeatures compare the words of a passage with those of the question.
func (r *reading) lexicalFeatures(p *passage, out []float64) []float64 {
	q, t := &r.q, r.tally(p)
	var sum, sumQ, cover, head, exact, bm25 weights
	var heaviest, hit, inAll, codes float64
	matched := 0
	for i := range q.terms {
		term := &q.terms[i]
		count := float64(term.count)
		sum.add(term, 1)
		sumQ.add(term, count)
		found := t.tf[i] > 0
		if w := term.weight[byTable]; w > heaviest {
			heaviest, hit = w, 0
			if found {
				hit = 1
			}
		}
		if !found {
			continue
		}
		matched++
		inAll += t.tf[i]
		cover.add(term, 1)
		if t.head[i] > 0 {
			head.add(term, 1)
		}
		if t.exact[i] {
			exact.add(term, 1)
		}
		if term.code {
			codes++
		}
		bm25.add(term, count*saturate(t.tf[i]+t.head[i], p.length, r.average))
	}
	best, second := weights(t.best).over(&sum), weights(t.second).over(&sum)
	full := bm25
	cover, head, exact, bm25 = cover.over(&sum), head.over(&sum), exact.over(&sum), bm25.over(&sumQ)
	for _, w := range []weights{cover, head, best, bm25} {
		out = append(out, w[:]...)
	}
	first := 1.0
	if len(t.matches) > 0 {
		first = float64(t.matches[0].at) / float64(p.length)
	}
	codeShare := 0.0
	if q.codes > 0 {
		codeShare = codes/float64(q.codes) - 0.5
	}
	ordered, near, anyPair := r.proximity(t.matches)
	run := longestRun(r.x, q.words, p.words)
	return append(out, exact[byVector], exact[byTable], second[byTable], math.Log1p(full[byTable]),
		ordered, near, anyPair, run/float64(max(1, len(q.words))), run,
		hit, float64(matched), share(float64(matched), float64(len(q.terms))), codeShare,
		share(inAll, float64(p.length)), first)
}

var lexicalNames = func() []string {
	var out []string
	for _, what := range []string{"cover", "head", "sentence", "bm25"} {
		for _, kind := range []string{"vector", "list", "table", "both"} {
			out = append(out, what+"_"+kind)
		}
	}
	return append(out, "exact_vector", "exact_table", "sentence_second", "bm25_sum",
		"pairs_ordered", "pairs_near", "pairs_any", "run_share", "run",
		"heaviest", "matched", "matched_share", "codes",
		"density", "first_match")
}()

// proximity looks at terms near each other: the share of the question's neighbours that are
// neighbours in the text, in the same order within three words and in any order within eight, and any two terms.
func (r *reading) proximity(matches []match) (ordered, near, anyPair float64) {
	q := &r.q
	const isOrdered, isNear = 1, 2
	pairs, sum := map[[2]int]int{}, 0.0
	weight := func(a, b int) float64 { return min(q.terms[a].weight[byTable], q.terms[b].weight[byTable]) }
	for k := 0; k+1 < len(q.order); k++ {
		a, b := int(q.order[k]), int(q.order[k+1])
		if _, known := pairs[[2]int{a, b}]; a != b && !known {
			pairs[[2]int{a, b}] = 0
			sum += weight(a, b)
		}
	}
	closest := map[[2]int]int{}
	for k, m := range matches {
		for j := k - 1; j >= 0 && m.at-matches[j].at <= 8; j-- {
			a, b := matches[j].term, m.term
			if a == b {
				continue
			}
			gap := m.at - matches[j].at
			if state, ok := pairs[[2]int{a, b}]; ok {
				if gap <= 3 {
					state |= isOrdered
				}
				pairs[[2]int{a, b}] = state | isNear
			}
			if state, ok := pairs[[2]int{b, a}]; ok {
				pairs[[2]int{b, a}] = state | isNear
			}
			key := [2]int{min(a, b), max(a, b)}
			if g, ok := closest[key]; !ok || gap < g {
				closest[key] = gap
			}
		}
	}
	for k := 0; k+1 < len(q.order); k++ {
		a, b := int(q.order[k]), int(q.order[k+1])
		state := pairs[[2]int{a, b}]
		if state&isOrdered != 0 {
			ordered += weight(a, b)
		}
		if state&isNear != 0 {
			near += weight(a, b)
		}
		delete(pairs, [2]int{a, b})
	}
	for a := range q.terms {
		for b := a + 1; b < len(q.terms); b++ {
			if gap, ok := closest[[2]int{a, b}]; ok {
				anyPair += weight(a, b) / float64(gap)
			}
		}
	}
	total := 0.0
	for i := range q.terms {
		total += q.terms[i].weight[byTable]
	}
	return share(ordered, sum), share(near, sum), share(anyPair, total)
}

// saturate is BM25's saturation of a term's count in a text of so many words.
func saturate(tf float64, length int, average float64) float64 {
	const k1, b = 1.2, 0.6
	return tf * (k1 + 1) / (tf + k1*(1-b+b*float64(length)/average))
}

// longestRun is the number of words in the longest run that both have, by stems, if it has two words
// at least.
func longestRun(x *lexicon, q, p []int32) float64 {
	row := make([]int16, len(q)+1)
	longest := int16(0)
	for _, w := range p {
		s := x.words[w].stem
		for j := len(q); j >= 1; j-- {
			if x.words[q[j-1]].stem == s {
				row[j] = row[j-1] + 1
				longest = max(longest, row[j])
			} else {
				row[j] = 0
			}
		}
	}
	if longest < 2 {
		return 0
	}
	return float64(longest)
}
