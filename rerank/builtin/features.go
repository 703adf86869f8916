package builtin

import (
	"math"
	"slices"

	"github.com/viterin/vek/vek32"
)

// reading is everything that the features of one request are computed from.
type reading struct {
	x        *lexicon
	q        question
	m        *meaning
	passages []passage
	average  float64 // words of a passage
}

// FeatureNames names the features in the order of Features.
func FeatureNames() []string {
	return slices.Concat(lexicalNames, meaningNames, listNames, []string{"length", "question_length", "sentences"})
}

// Features reads a question and texts, and returns the features of each text.
func Features(v Vectors, query string, texts []string) [][]float64 {
	r := &reading{x: newLexicon(), m: newMeaning(v, query)}
	table, _ := loadFrequencies()
	r.q = r.x.readQuestion(query, v, r.m.one, table)
	r.passages = make([]passage, len(texts))
	for i, text := range texts {
		r.passages[i] = r.x.readPassage(text)
		r.average += float64(r.passages[i].length)
	}
	r.average = max(1, r.average/float64(max(1, len(texts))))
	r.q.index(len(r.x.stems))
	r.q.weighTerms(r.x, r.passages)
	out := make([][]float64, len(texts))
	meants := make([]meant, len(texts))
	for i := range texts {
		f := make([]float64, 0, len(FeatureNames()))
		f = r.lexicalFeatures(&r.passages[i], f)
		out[i], meants[i] = r.meaningFeatures(&r.passages[i], f)
	}
	r.listFeatures(out, meants)
	for i := range out {
		out[i] = append(out[i], math.Log1p(float64(r.passages[i].length)), float64(len(r.q.terms)), math.Log1p(float64(len(r.passages[i].sentences))))
	}
	return out
}

var listNames = []string{"first", "first_gap", "bm25_table_gap", "bm25_list_gap", "cosine_gap", "maxsim_gap", "feedback_cosine", "feedback_gap", "feedback_terms", "feedback_terms_gap", "neighbours"}

func column(name string) int {
	return slices.Index(slices.Concat(lexicalNames, meaningNames), name)
}

// listFeatures compare the texts with each other: with the best of them, and with what those texts
// have in common that look best at first.
func (r *reading) listFeatures(f [][]float64, meants []meant) {
	n := len(f)
	if n == 0 {
		return
	}
	bmS, bmL, cos, sim := column("bm25_table"), column("bm25_both"), column("cosine_titled"), column("maxsim")
	top := func(c int) float64 {
		t := f[0][c]
		for _, x := range f {
			t = max(t, x[c])
		}
		return max(t, 1e-9)
	}
	tS, tL, tC, tM := top(bmS), top(bmL), top(cos), top(sim)
	first := make([]float64, n)
	for i, x := range f {
		first[i] = x[bmS]/tS + 0.5*x[bmL]/tL + x[cos]/tC + 0.5*x[sim]/tM
	}
	best := slices.Max(first)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case first[a] > first[b]:
			return -1
		case first[a] < first[b]:
			return 1
		}
		return 0
	})
	weights := make([]float64, n)
	for k, i := range order {
		if k < 8 {
			weights[i] = math.Exp(4 * (first[i] - best))
		}
	}
	// What the best have in common: a vector, and stems.
	centre := make([]float32, r.m.dims)
	total := 0.0
	model := map[int32]float64{}
	df := map[int32]int{}
	for i := range r.passages {
		seen := map[int32]float64{}
		for _, id := range r.passages[i].words {
			if w := r.x.words[id]; !w.stop {
				seen[w.stem]++
			}
		}
		for s, c := range seen {
			df[s]++
			if weights[i] > 0 {
				model[s] += weights[i] * saturate(c, r.passages[i].length, r.average)
			}
		}
		if weights[i] > 0 {
			axpy(centre, meants[i].vector, float32(weights[i]))
			total += weights[i]
		}
	}
	type expansion struct {
		stem   int32
		weight float64
	}
	var terms []expansion
	for s, w := range model {
		if r.q.of[s] >= 0 || df[s] < 2 {
			continue
		}
		idf := math.Log(1 + (float64(n)-float64(df[s])+0.5)/(float64(df[s])+0.5))
		terms = append(terms, expansion{s, w * idf / total})
	}
	slices.SortFunc(terms, func(a, b expansion) int {
		switch {
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		}
		return int(a.stem - b.stem)
	})
	terms = terms[:min(len(terms), 30)]
	value := make(map[int32]float64, len(terms))
	sum := 0.0
	for _, t := range terms {
		value[t.stem] = t.weight
		sum += t.weight
	}
	cosines, expanded, near := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range f {
		// Without itself, or a text that is among the best would be like itself.
		own := make([]float32, r.m.dims)
		copy(own, centre)
		if weights[i] > 0 {
			axpy(own, meants[i].vector, -float32(weights[i]))
		}
		normalise(own)
		cosines[i] = float64(vek32.Dot(own, meants[i].vector))
		counts := map[int32]float64{}
		for _, id := range r.passages[i].words {
			s := r.x.words[id].stem
			if _, ok := value[s]; ok {
				counts[s]++
			}
		}
		for _, t := range terms {
			if c := counts[t.stem]; c > 0 {
				expanded[i] += t.weight * saturate(c, r.passages[i].length, r.average)
			}
		}
		if sum > 0 {
			expanded[i] /= sum
		}
		for k, j := range order {
			if k < 5 && j != i {
				near[i] = max(near[i], float64(vek32.Dot(meants[i].vector, meants[j].vector)))
			}
		}
	}
	tF, tE := max(slices.Max(cosines), 1e-9), max(slices.Max(expanded), 1e-9)
	for i, x := range f {
		f[i] = append(x, first[i], first[i]-best, x[bmS]/tS, x[bmL]/tL, x[cos]/tC, x[sim]/tM, cosines[i], cosines[i]/tF, expanded[i], expanded[i]/tE, near[i])
	}
}
