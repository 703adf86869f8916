package eval

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// DefaultMeasures are what reports of retrieval show unless others are asked for.
func DefaultMeasures() []string {
	return []string{"ndcg@10", "recall@5", "recall@20", "recall@50", "recall@100", "mrr", "map", "precision@5"}
}

// Measure is a metric over judged rankings.
type Measure struct {
	Name   string // as it was asked for
	value  func(*Judged) (float64, bool)
	best   func(*Judged) (float64, bool) // of the best possible ranking; nil where none is best
	total  total
	cutoff int // the deepest rank it reads; 0 reads the whole ranking
}

// Value returns the metric of one ranking; ok is false where it is undefined.
func (m Measure) Value(j *Judged) (v float64, ok bool) { return m.value(j) }

// ParseMeasures reads names of measures. Every name of evaluation reports is known (recall@5, hit@5,
// all_evidence_recall@5, ceiling@5, normalised_recall@5, precision@5, r_precision, map, mrr, ndcg,
// ndcg@10, bpref), with dcg@10 and the exponential-gain forms dcg_exp@10 and ndcg_exp@10, and every
// numeric name that trec_eval prints (P_5, ndcg_cut_10, success_5, iprec_at_recall_0.20, ...).
func ParseMeasures(names ...string) ([]Measure, error) {
	var out []Measure
	var errs []error
	seen := map[string]bool{}
	for _, name := range names {
		m, err := parseMeasure(name)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("measure %q: %w", name, err))
		case seen[name]:
			errs = append(errs, fmt.Errorf("measure %q: named twice", name))
		default:
			m.Name = name
			out = append(out, m)
		}
		seen[name] = true
	}
	return out, errors.Join(errs...)
}

var errUnknownMeasure = errors.New("unknown; examples are recall@5, precision@5, ndcg@10, map, mrr, r_precision, P_5, ndcg_cut_10")

func parseMeasure(name string) (Measure, error) {
	if base, at, ok := strings.Cut(name, "@"); ok {
		k, err := parseCutoff(at)
		if err != nil {
			return Measure{}, err
		}
		if m, ok := cutMeasure(base, k); ok {
			m.cutoff = k
			return m, nil
		}
		return Measure{}, errUnknownMeasure
	}
	if m, ok := plainMeasure(name); ok {
		return m, nil
	}
	return trecFamily(name)
}

// maxCutoff bounds cut-offs: no ranking that is read here is longer.
const maxCutoff = 10_000_000

func parseCutoff(s string) (int, error) {
	k, err := strconv.Atoi(s)
	if err != nil || k < 1 || k > maxCutoff {
		return 0, fmt.Errorf("cut-off %q: a whole number from 1 to %d is needed", s, maxCutoff)
	}
	return k, nil
}

// cutMeasure is the measure base at cut-off k.
func cutMeasure(base string, k int) (Measure, bool) {
	switch base {
	case "recall":
		return ofUnits(recallAt(k), func(j *Judged) (float64, bool) { return j.ceilingAt(k) }), true
	case "hit":
		return ofUnits(func(j *Judged) float64 { return b2f(j.coveredAt(k) > 0) },
			func(j *Judged) (float64, bool) { return b2f(j.ceilingFor(k) > 0), j.units > 0 }), true
	case "all_evidence_recall":
		return ofUnits(func(j *Judged) float64 { return b2f(int(j.coveredAt(k)) == j.units) },
			func(j *Judged) (float64, bool) { return b2f(j.ceilingFor(k) == j.units), j.units > 0 }), true
	case "ceiling":
		ceiling := func(j *Judged) (float64, bool) { return j.ceilingAt(k) }
		return Measure{value: ceiling, best: ceiling}, true
	case "normalised_recall":
		return Measure{value: func(j *Judged) (float64, bool) {
			ceiling := float64(j.ceilingFor(k))
			if j.units == 0 || ceiling == 0 {
				return 0, false // nothing to divide by: no k results could cover anything
			}
			return min(1, j.coveredAt(k)/ceiling), true
		}, best: func(j *Judged) (float64, bool) { return 1, j.units > 0 && j.ceilingFor(k) > 0 }}, true
	case "precision":
		return ofUnits(func(j *Judged) float64 { return count(j.hits, k) / float64(k) },
			func(j *Judged) (float64, bool) { return float64(min(k, j.relevant)) / float64(k), j.units > 0 }), true
	case "map":
		return ofUnits(averagePrecision(k), nil), true
	case "mrr":
		return ofUnits(reciprocalRank(k), bestIsOne), true
	case "ndcg":
		return gainMeasure(k, linearGain), true
	case "ndcg_exp":
		return gainMeasure(k, exponentialGain), true
	case "dcg":
		return ofUnits(func(j *Judged) float64 { return dcg(j.grades, k, linearGain) }, nil), true
	case "dcg_exp":
		return ofUnits(func(j *Judged) float64 { return dcg(j.grades, k, exponentialGain) }, nil), true
	case "hits":
		return ofUnits(func(j *Judged) float64 { return count(j.hits, k) }, nil), true
	}
	return Measure{}, false
}

// plainMeasure is the measure without a cut-off that has this name.
func plainMeasure(name string) (Measure, bool) {
	switch name {
	case "map":
		return ofUnits(averagePrecision(maxCutoff), bestIsOne), true
	case "mrr", "recip_rank":
		return ofUnits(reciprocalRank(maxCutoff), bestIsOne), true
	case "r_precision", "Rprec":
		return ofUnits(func(j *Judged) float64 { return count(j.fresh, j.units) / float64(j.units) }, bestIsOne), true
	case "ndcg":
		return gainMeasure(math.MaxInt, linearGain), true
	case "bpref":
		return ofUnits(bpref, bestIsOne), true
	}
	return trecPlain(name)
}

// ofUnits makes a measure that is defined where there is something to find.
func ofUnits(value func(*Judged) float64, best func(*Judged) (float64, bool)) Measure {
	return Measure{value: func(j *Judged) (float64, bool) {
		if j.units == 0 {
			return 0, false
		}
		return value(j), true
	}, best: best}
}

func bestIsOne(j *Judged) (float64, bool) { return 1, j.units > 0 }

func recallAt(k int) func(*Judged) float64 {
	return func(j *Judged) float64 { return j.coveredAt(k) / float64(j.units) }
}

func averagePrecision(k int) func(*Judged) float64 {
	return func(j *Judged) float64 {
		sum, found := 0.0, 0.0
		for i, fresh := range j.fresh[:min(k, len(j.fresh))] {
			if fresh {
				found++
				sum += found / float64(i+1)
			}
		}
		return sum / float64(j.units)
	}
}

func reciprocalRank(k int) func(*Judged) float64 {
	return func(j *Judged) float64 {
		for i, hit := range j.hits[:min(k, len(j.hits))] {
			if hit {
				return 1 / float64(i+1)
			}
		}
		return 0
	}
}

// bpref looks at judged documents only: the share of relevant ones that are ranked above the
// documents judged not relevant.
func bpref(j *Judged) float64 {
	sum, above := 0.0, 0
	for i, grade := range j.grades {
		switch {
		case j.fresh[i]:
			sum++
			if above > 0 {
				sum -= float64(min(above, j.units)) / float64(min(j.nonRel, j.units))
			}
		case grade >= 0 && !j.hits[i]:
			above++
		}
	}
	return sum / float64(j.units)
}
