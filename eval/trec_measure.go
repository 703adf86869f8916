package eval

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// trecPlain is a measure that trec_eval prints under a name without a parameter.
func trecPlain(name string) (Measure, bool) {
	switch name {
	case "num_ret":
		return counted(func(j *Judged) float64 { return float64(len(j.grades)) }), true
	case "num_rel":
		return counted(func(j *Judged) float64 { return float64(j.units) }), true
	case "num_rel_ret":
		return counted(func(j *Judged) float64 { return j.coveredAt(maxCutoff) }), true
	case "num_nonrel_judged_ret":
		return counted(func(j *Judged) float64 {
			n := 0.0
			for i, grade := range j.grades {
				n += b2f(grade >= 0 && !j.hits[i])
			}
			return n
		}), true
	case "gm_map":
		m := ofUnits(averagePrecision(maxCutoff), bestIsOne)
		m.total = totalGeometric
		return m, true
	case "gm_bpref":
		m := ofUnits(bpref, bestIsOne)
		m.total = totalGeometric
		return m, true
	case "infAP":
		return ofUnits(inferredAP, nil), true
	case "utility":
		return utility([]float64{1, -1, 0, 0}), true
	case "11pt_avg":
		return elevenPoints([]float64{0, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1}), true
	case "G":
		return Measure{value: normalisedGain}, true
	case "binG":
		return ofUnits(binaryGain, nil), true
	case "ndcg_rel":
		return Measure{value: ndcgAtRelevant}, true
	case "Rndcg":
		return Measure{value: ndcgAtLevels}, true
	case "set_P":
		return ofUnits(setPrecision, nil), true
	case "set_recall":
		return ofUnits(recallAt(maxCutoff), nil), true
	case "set_relative_P":
		return ofUnits(func(j *Judged) float64 {
			return share(j.coveredAt(maxCutoff), float64(min(j.units, len(j.grades))))
		}, nil), true
	case "set_map":
		return ofUnits(func(j *Judged) float64 { return setPrecision(j) * recallAt(maxCutoff)(j) }, nil), true
	case "set_F":
		return ofUnits(func(j *Judged) float64 {
			p, r := setPrecision(j), recallAt(maxCutoff)(j)
			return share(2*p*r, p+r)
		}, nil), true
	case "rbp":
		return ofUnits(rankBiasedPrecision, nil), true
	case "rbp_resid":
		return ofUnits(rankBiasedResidual, nil), true
	}
	return Measure{}, false
}

// trecFamily is a measure whose name ends in its parameter.
func trecFamily(name string) (Measure, error) {
	i := strings.LastIndexByte(name, '_')
	if i < 0 {
		return Measure{}, errUnknownMeasure
	}
	base, param := name[:i], name[i+1:]
	switch base {
	case "P", "recall", "ndcg_cut", "map_cut", "success", "relative_P", "unj":
		k, err := parseCutoff(param)
		if err != nil {
			return Measure{}, err
		}
		m := trecCut(base, k)
		m.cutoff = k
		return m, nil
	case "iprec_at_recall":
		level, err := parseNumbers(param, 1, 0, 1)
		if err != nil {
			return Measure{}, err
		}
		return ofUnits(func(j *Judged) float64 { return interpolatedPrecision(j, level[0]) }, nil), nil
	case "Rprec_mult":
		mult, err := parseNumbers(param, 1, 0, 1e6)
		if err != nil {
			return Measure{}, err
		}
		return ofUnits(func(j *Judged) float64 {
			k := int(mult[0]*float64(j.units) + 0.9)
			return share(count(j.fresh, k), float64(k))
		}, nil), nil
	case "utility":
		weights, err := parseNumbers(param, 4, -1e9, 1e9)
		if err != nil {
			return Measure{}, err
		}
		return utility(weights), nil
	case "11pt_avg":
		levels, err := parseNumbers(param, 0, 0, 1)
		if err != nil {
			return Measure{}, err
		}
		return elevenPoints(levels), nil
	case "ndcg":
		worth, err := parseGains(param)
		if err != nil {
			return Measure{}, err
		}
		return gainMeasure(math.MaxInt, worth), nil
	}
	return Measure{}, errUnknownMeasure
}

// trecCut is a measure at a cut-off, under trec_eval's name.
func trecCut(base string, k int) Measure {
	switch base {
	case "relative_P":
		return ofUnits(func(j *Judged) float64 { return j.coveredAt(k) / float64(min(k, j.units)) }, bestIsOne)
	case "unj":
		return Measure{value: func(j *Judged) (float64, bool) {
			n := 0.0
			for _, grade := range j.grades[:min(k, len(j.grades))] {
				n += b2f(grade < 0)
			}
			return n / float64(k), true
		}}
	}
	ours := map[string]string{"P": "precision", "recall": "recall", "ndcg_cut": "ndcg", "map_cut": "map", "success": "hit"}
	m, _ := cutMeasure(ours[base], k)
	return m
}

// counted makes a measure that is always defined and is added up over queries.
func counted(value func(*Judged) float64) Measure {
	return Measure{value: func(j *Judged) (float64, bool) { return value(j), true }, total: totalSum}
}

// share is a quotient that is 0 where there is nothing to divide.
func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

func setPrecision(j *Judged) float64 {
	return share(count(j.hits, len(j.hits)), float64(len(j.hits)))
}

func utility(w []float64) Measure {
	return ofUnits(func(j *Judged) float64 {
		found, ret, rel := j.coveredAt(maxCutoff), float64(len(j.grades)), float64(j.units)
		return w[0]*found + w[1]*(ret-found) + w[2]*(rel-found) + w[3]*(found-ret-rel)
	}, nil)
}

func elevenPoints(levels []float64) Measure {
	return ofUnits(func(j *Judged) float64 {
		sum := 0.0
		for _, level := range levels {
			sum += interpolatedPrecision(j, level)
		}
		return sum / float64(len(levels))
	}, nil)
}

// interpolatedPrecision is the best precision at any rank at which recall has reached the level.
func interpolatedPrecision(j *Judged, level float64) float64 {
	need, found, best := math.Round(level*float64(j.units)), 0.0, 0.0
	for i, fresh := range j.fresh {
		found += b2f(fresh)
		if found >= need {
			best = max(best, found/float64(i+1))
		}
	}
	return best
}

// inferredAP estimates average precision from a judged sample of the pool (Yilmaz and Aslam).
func inferredAP(j *Judged) float64 {
	const epsilon = 0.00001
	sum, rel, nonRel, unjudged := 0.0, 0.0, 0.0, 0.0
	for i, grade := range j.grades {
		switch {
		case grade == gradeNotPooled:
		case grade == gradeUnjudged:
			unjudged++
		case !j.fresh[i]:
			nonRel++
		default:
			above := float64(i)
			sum += 1 / (above + 1)
			if i > 0 {
				sum += (rel + nonRel + unjudged) / (above + 1) * (rel + epsilon) / (rel + nonRel + 2*epsilon)
			}
			rel++
		}
	}
	return sum / float64(j.units)
}

// persistence is the chance that a reader goes on to the next result, in rank-biased precision.
const persistence = 0.9

func rankBiasedPrecision(j *Judged) float64 {
	top := 1.0
	if len(j.ideal) > 0 {
		top = max(1, float64(j.ideal[0]))
	}
	sum, weight := 0.0, 1.0
	for i := range j.grades {
		sum += gradeGain(j.grades, i) / top * weight
		weight *= persistence
	}
	return (1 - persistence) * sum
}

// rankBiasedResidual is how much of rank-biased precision hangs on what nobody judged.
func rankBiasedResidual(j *Judged) float64 {
	sum, weight := 0.0, 1.0
	for _, grade := range j.grades {
		if grade < 0 {
			sum += weight
		}
		weight *= persistence
	}
	if sum == 0 {
		return 0
	}
	return weight + (1-persistence)*sum
}

// parseNumbers reads a list separated by commas of n numbers, or of any number of them where n is 0.
func parseNumbers(s string, n int, low, high float64) ([]float64, error) {
	parts := strings.Split(s, ",")
	if n > 0 && len(parts) != n {
		return nil, fmt.Errorf("parameter %q: %d numbers are needed", s, n)
	}
	out := make([]float64, 0, len(parts))
	for _, part := range parts {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil || !(v >= low && v <= high) {
			return nil, fmt.Errorf("parameter %q: a number from %g to %g is needed", part, low, high)
		}
		out = append(out, v)
	}
	return out, nil
}

// parseGains reads "1=3,2=9": what grades are worth; others keep their own value.
func parseGains(s string) (gain, error) {
	set := map[int]float64{}
	for pair := range strings.SplitSeq(s, ",") {
		left, right, _ := strings.Cut(pair, "=")
		grade, err := strconv.Atoi(left)
		if err != nil || grade < 0 {
			return nil, fmt.Errorf("gain %q: grade=gain is needed, such as 2=9", pair)
		}
		worth, err := parseNumbers(right, 1, -1e9, 1e9)
		if err != nil {
			return nil, err
		}
		set[grade] = worth[0]
	}
	return func(grade int) float64 {
		if worth, ok := set[grade]; ok {
			return worth
		}
		return linearGain(grade)
	}, nil
}
