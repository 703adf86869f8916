package eval

import (
	"math"
	"slices"
)

// gain is what a grade is worth.
type gain func(grade int) float64

// linearGain is trec_eval's: the grade itself.
func linearGain(grade int) float64 { return float64(max(0, grade)) }

// exponentialGain is 2^grade - 1, as many papers on learning to rank have it.
func exponentialGain(grade int) float64 { return math.Exp2(float64(max(0, grade))) - 1 }

// dcg discounts by log2(rank+1). Grades of unjudged documents are negative and gain nothing.
func dcg(grades []int, k int, worth gain) float64 {
	sum := 0.0
	for i, grade := range grades[:min(k, len(grades))] {
		if grade >= 0 {
			if g := worth(grade); g != 0 {
				sum += g / math.Log2(float64(i+2))
			}
		}
	}
	return sum
}

// gainMeasure is normalised discounted cumulative gain. It keeps all grades, whatever the relevance
// level, and is undefined where nothing that is judged has a gain.
func gainMeasure(k int, worth gain) Measure {
	return Measure{value: func(j *Judged) (float64, bool) {
		gains := idealGains(j, worth)
		ideal := idealDCG(gains, k)
		return dcg(j.grades, k, worth) / ideal, ideal > 0
	}, best: func(j *Judged) (float64, bool) { return 1, len(idealGains(j, worth)) > 0 }}
}

// idealGains are the positive gains of all that is judged, highest first.
func idealGains(j *Judged, worth gain) []float64 {
	out := make([]float64, 0, len(j.ideal))
	for _, grade := range j.ideal {
		if g := worth(grade); g > 0 {
			out = append(out, g)
		}
	}
	if !slices.IsSortedFunc(out, descending) { // gains that were set by hand
		slices.SortFunc(out, descending)
	}
	return out
}

func descending(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

func idealDCG(gains []float64, k int) float64 {
	sum := 0.0
	for i, g := range gains[:min(k, len(gains))] {
		sum += g / math.Log2(float64(i+2))
	}
	return sum
}

// at returns s[i], or 0 past its end.
func at(s []float64, i int) float64 {
	if i < len(s) {
		return s[i]
	}
	return 0
}

func gradeGain(grades []int, i int) float64 {
	if i < len(grades) {
		return linearGain(grades[i])
	}
	return 0
}

// ndcgAtRelevant is nDCG averaged over the ranks of what has a gain (ndcg_rel); what was not
// retrieved counts with the gain at the end of the ranking over the whole ideal one.
func ndcgAtRelevant(j *Judged) (float64, bool) {
	ideal := idealGains(j, linearGain)
	if len(ideal) == 0 {
		return 0, false
	}
	got, best, sum, found := 0.0, 0.0, 0.0, 0
	for i := range max(len(j.grades), len(ideal)) {
		best += at(ideal, i) / math.Log2(float64(i+2))
		if g := gradeGain(j.grades, i); g > 0 {
			got += g / math.Log2(float64(i+2))
			sum += got / best
			found++
		}
	}
	sum += float64(len(ideal)-found) * got / best
	return sum / float64(len(ideal)), true
}

// ndcgAtLevels is nDCG averaged over the ranks at which the ideal ranking's gain changes (Rndcg), and
// over the end of the ranking where that is past the last of them.
func ndcgAtLevels(j *Judged) (float64, bool) {
	ideal := idealGains(j, linearGain)
	if len(ideal) == 0 || j.units == 0 {
		return 0, false
	}
	got, best, sum, points := 0.0, 0.0, 0.0, 0
	for i := 0; ; i++ {
		if i > 0 && i <= len(ideal) && at(ideal, i) != ideal[i-1] {
			sum += got / best
			points++
		}
		if i >= max(len(j.grades), len(ideal)) {
			break
		}
		got += gradeGain(j.grades, i) / math.Log2(float64(i+2))
		best += at(ideal, i) / math.Log2(float64(i+2))
	}
	if len(j.grades) > len(ideal)+1 {
		sum += got / best
		points++
	}
	return sum / float64(points), true
}

// normalisedGain is trec_eval's G: a gain counts less the more of what could have been gained
// before it was not.
func normalisedGain(j *Judged) (float64, bool) {
	ideal := idealGains(j, linearGain)
	if len(ideal) == 0 {
		return 0, false
	}
	got, cost, sum, all := 0.0, 0.0, 0.0, 0.0
	for i := range j.grades {
		g := gradeGain(j.grades, i)
		got += g
		cost += max(1, at(ideal, i)) // a rank costs one even where nothing is left to gain
		if g != 0 {
			sum += g / math.Log2(2+cost-got)
		}
	}
	for _, g := range ideal {
		all += g
	}
	return sum / all, true
}

// binaryGain is G with gains of 0 and 1.
func binaryGain(j *Judged) float64 {
	sum, found := 0.0, 0
	for i, fresh := range j.fresh {
		if fresh {
			found++
			sum += 1 / math.Log2(float64(3+i-found))
		}
	}
	return sum / float64(j.units)
}
