package eval

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Flag marks queries whose scores meet all of its conditions, such as grounded_but_wrong:
// groundedness >= 0.8 and a low normalised recall.
type Flag struct {
	Name string      `json:"name"`
	All  []Condition `json:"all"`
}

// Condition compares one metric with a threshold.
type Condition struct {
	Metric    string  `json:"metric"`
	Op        string  `json:"op"` // "<", "<=", ">", ">=" or "="
	Threshold float64 `json:"threshold"`
}

// ParseFlag reads "name: metric<0.5, other>=0.8". Without a name the conditions are the name.
func ParseFlag(s string) (Flag, error) {
	name, rest, ok := strings.Cut(s, ":")
	if !ok {
		name, rest = s, s
	}
	f := Flag{Name: strings.TrimSpace(name)}
	for part := range strings.SplitSeq(rest, ",") {
		part = strings.TrimSpace(part)
		i := strings.IndexAny(part, "<>=")
		if i <= 0 {
			return Flag{}, fmt.Errorf("flag %q: condition %q: a metric, one of < <= > >= = and a number are needed", s, part)
		}
		op := part[i : i+1]
		if strings.HasPrefix(part[i+1:], "=") && op != "=" {
			op += "="
		}
		threshold, err := strconv.ParseFloat(strings.TrimSpace(part[i+len(op):]), 64)
		if err != nil || !(threshold-threshold == 0) {
			return Flag{}, fmt.Errorf("flag %q: condition %q: threshold is not a finite number", s, part)
		}
		f.All = append(f.All, Condition{strings.TrimSpace(part[:i]), op, threshold})
	}
	return f, nil
}

func (c Condition) holds(v float64) (bool, error) {
	switch c.Op {
	case "<":
		return v < c.Threshold, nil
	case "<=":
		return v <= c.Threshold, nil
	case ">":
		return v > c.Threshold, nil
	case ">=":
		return v >= c.Threshold, nil
	case "=":
		return v == c.Threshold, nil
	}
	return false, fmt.Errorf("comparison %q is none of < <= > >= =", c.Op)
}

// Flagged reports whether scores meet all conditions; known is false where a metric that a condition
// needs is undefined and no other condition has already failed.
func (f Flag) Flagged(s Scores) (flagged, known bool, err error) {
	if len(f.All) == 0 {
		return false, false, fmt.Errorf("flag %s: no conditions", f.Name)
	}
	known, failed := true, false
	for _, c := range f.All {
		v, ok := s.Value(c.Metric)
		holds, err := c.holds(v)
		switch {
		case err != nil:
			return false, false, fmt.Errorf("flag %s: %w", f.Name, err)
		case !ok:
			known = false
		case !holds:
			failed = true
		}
	}
	return known && !failed, known || failed, nil
}

// Outcome is what became of one judged query, and the best that could have.
type Outcome struct {
	QueryID string
	Units   int    // evidence units
	Scores  Scores // observed
	Oracle  Scores // of the best ranking or context of the same size; OracleContext makes them for contexts
}

// CohortReport says which queries a flag marks. Those that the oracle is marked for too are
// unreachable by construction: no retriever under this configuration could have done better, so
// they are counted apart and are no part of the rate.
type CohortReport struct {
	Flag        Flag     `json:"flag"`
	Queries     int      `json:"queries"`              // judged
	Undecided   int      `json:"undecided"`            // for which a metric is undefined
	Flagged     []string `json:"flagged"`              // marked, and the oracle is not
	Unreachable []string `json:"unreachable"`          // marked, and so is the oracle
	MeanUnits   *float64 `json:"mean_units,omitempty"` // evidence units of all marked ones, on average
	Rate        *float64 `json:"rate,omitempty"`       // flagged / (queries - undecided - unreachable)
	Warnings    []string `json:"warnings,omitempty"`
}

// Cohort applies a flag to the outcomes of judged queries and to their oracles. Marked queries are
// listed in order of ID.
func Cohort(flag Flag, outcomes []Outcome) (CohortReport, error) {
	r := CohortReport{Flag: flag, Queries: len(outcomes), Flagged: []string{}, Unreachable: []string{}}
	units, marked := 0, 0
	for _, o := range outcomes {
		flagged, known, err := flag.Flagged(o.Scores)
		if err != nil {
			return CohortReport{}, err
		}
		if !known {
			r.Undecided++
			continue
		}
		if !flagged {
			continue
		}
		units += o.Units
		marked++
		oracle, decided, err := flag.Flagged(o.Oracle)
		switch {
		case err != nil:
			return CohortReport{}, err
		case !decided:
			return CohortReport{}, fmt.Errorf("flag %s: query %s: its oracle lacks a metric that was observed", flag.Name, o.QueryID)
		case oracle:
			r.Unreachable = append(r.Unreachable, o.QueryID)
		default:
			r.Flagged = append(r.Flagged, o.QueryID)
		}
	}
	slices.Sort(r.Flagged)
	slices.Sort(r.Unreachable)
	if marked > 0 {
		mean := float64(units) / float64(marked)
		r.MeanUnits = &mean
	}
	if rest := r.Queries - r.Undecided - len(r.Unreachable); rest > 0 {
		rate := float64(len(r.Flagged)) / float64(rest)
		r.Rate = &rate
	}
	for _, c := range flag.All {
		if strings.HasPrefix(c.Metric, "recall@") || c.Metric == ContextRecall {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s cannot reach 1 where a query has more evidence than k; set the threshold on %s or on a hit", c.Metric, strings.Replace(strings.Replace(c.Metric, "recall@", "normalised_recall@", 1), ContextRecall, ContextNormalisedRecall, 1)))
		}
	}
	return r, nil
}
