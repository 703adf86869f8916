package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// ReportSchema names the shape of Report in JSON; it changes when a field changes its meaning.
const ReportSchema = "assay.retrieval/v1"

// Report is an evaluation of retrieval.
type Report struct {
	Schema      string       `json:"schema"`
	Dataset     DatasetInfo  `json:"dataset"`
	Measures    []string     `json:"measures"`
	Depth       int          `json:"depth"` // results per query that were judged; 0 means all
	Level       int          `json:"relevance_level"`
	Arms        []ArmReport  `json:"arms"`
	Differences []Difference `json:"differences"`
}

// DatasetInfo identifies a dataset and counts its queries by what their labels amount to.
type DatasetInfo struct {
	Name         string `json:"name"`
	Hash         string `json:"hash"`
	Queries      int    `json:"queries"`
	Judged       int    `json:"judged"`
	Unjudged     int    `json:"unjudged"`
	Unanswerable int    `json:"unanswerable"`
	Unresolved   int    `json:"unresolved"` // with a label that resolves to nothing; see problems
}

// ArmReport is what one arm reached.
type ArmReport struct {
	Name    string             `json:"name"`
	Means   map[string]Summary `json:"means"`   // by measure
	Missing int                `json:"missing"` // judged queries that the run lacks
	Queries []QueryScores      `json:"queries"` // in order of ID
	Cohorts []CohortReport     `json:"cohorts,omitempty"`
	// Problems of the labels against what the arm searched.
	Problems []Problem `json:"problems,omitempty"`
	Run      *Run      `json:"-"` // the rankings themselves, for WriteRun
}

// QueryScores are the metrics of one judged query.
type QueryScores struct {
	ID       string `json:"id"`
	Units    int    `json:"units"`    // evidence units
	Returned int    `json:"returned"` // results
	Scores   Scores `json:"scores"`
	Oracle   Scores `json:"oracle"` // of the best possible ranking
}

// Difference is how an arm differs from the baseline, over the queries for which both are defined.
type Difference struct {
	Arm      string   `json:"arm"`
	Baseline string   `json:"baseline"`
	Measure  string   `json:"measure"`
	Interval Interval `json:"interval"`
}

// WriteJSON writes the report. The same evaluation gives the same bytes.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// report measures runs against their labels.
func report(ctx context.Context, ds *Dataset, judged []judgedRun, measures []Measure, opts Options) (*Report, error) {
	r := &Report{Schema: ReportSchema, Depth: opts.Depth, Level: max(1, opts.Labels.Level), Differences: []Difference{}}
	r.Dataset = DatasetInfo{Name: ds.Name, Hash: ds.Hash(), Queries: len(ds.Queries)}
	for _, q := range judged[0].labels.Queries {
		switch q.State {
		case StateJudged:
			r.Dataset.Judged++
		case StateUnjudged:
			r.Dataset.Unjudged++
		case StateUnanswerable:
			r.Dataset.Unanswerable++
		case StateUnresolved:
			r.Dataset.Unresolved++
		}
	}
	for _, m := range measures {
		r.Measures = append(r.Measures, m.Name)
	}
	for _, j := range judged {
		arm, err := armReport(j.labels, j.run, measures, opts)
		if err != nil {
			return nil, fmt.Errorf("evaluate %s: arm %s: %w", ds.Name, j.run.Name, err)
		}
		r.Arms = append(r.Arms, arm)
	}
	return r, r.compare(ctx, measures, opts)
}

// armReport measures one run. Queries come in order of ID, so that nothing depends on the order of
// lines in a file.
func armReport(labels *Labels, run *Run, measures []Measure, opts Options) (ArmReport, error) {
	arm := ArmReport{Name: run.Name, Means: map[string]Summary{}, Run: run, Queries: []QueryScores{}, Problems: labels.Problems}
	if err := labels.checkRun(run); err != nil {
		return ArmReport{}, err
	}
	byID := slices.Clone(labels.Queries)
	slices.SortFunc(byID, func(a, b *QueryLabels) int { return strings.Compare(a.ID, b.ID) })
	tallies := make([]Tally, len(measures))
	for i, m := range measures {
		tallies[i].kind = m.total
	}
	var outcomes []Outcome
	for _, q := range byID {
		if q.State != StateJudged {
			continue
		}
		list, ok := run.Lists[q.ID]
		if !ok {
			arm.Missing++
			if opts.InRunOnly {
				continue
			}
		}
		if !q.Documents() {
			list = chunkNames(list)
		}
		j := q.judge(list, opts.Depth)
		s := QueryScores{ID: q.ID, Units: len(q.Units), Returned: len(j.grades), Scores: Scores{}, Oracle: Scores{}}
		for i, m := range measures {
			v, ok := m.Value(j)
			tallies[i].Add(v, ok)
			s.Scores.set(m.Name, v, ok)
			if m.best != nil {
				v, ok = m.best(j)
			}
			s.Oracle.set(m.Name, v, ok)
		}
		arm.Queries = append(arm.Queries, s)
		outcomes = append(outcomes, Outcome{QueryID: s.ID, Units: s.Units, Scores: s.Scores, Oracle: s.Oracle})
	}
	for i, m := range measures {
		arm.Means[m.Name] = tallies[i].Summary()
	}
	for _, flag := range opts.Flags {
		cohort, err := Cohort(flag, outcomes)
		if err != nil {
			return ArmReport{}, err
		}
		arm.Cohorts = append(arm.Cohorts, cohort)
	}
	return arm, nil
}

// chunkNames reads the names of a run from a file as chunk IDs.
func chunkNames(list []Ranked) []Ranked {
	if len(list) == 0 || list[0].ChunkID != "" {
		return list
	}
	out := slices.Clone(list)
	for i := range out {
		out[i].ChunkID = out[i].DocID
	}
	return out
}

// compare fills in the differences to the first arm.
func (r *Report) compare(ctx context.Context, measures []Measure, opts Options) error {
	base := map[string]Scores{}
	for _, q := range r.Arms[0].Queries {
		base[q.ID] = q.Scores
	}
	for _, arm := range r.Arms[1:] {
		for _, m := range measures {
			if m.total != totalMean {
				continue
			}
			var diffs []float64
			for _, q := range arm.Queries {
				a, ok := q.Scores.Value(m.Name)
				b, inBase := base[q.ID].Value(m.Name)
				if ok && inBase {
					diffs = append(diffs, a-b)
				}
			}
			interval, ok, err := Bootstrap(ctx, diffs, opts.Confidence, opts.Resamples, opts.Seed)
			if err != nil {
				return fmt.Errorf("compare %s with %s: %w", arm.Name, r.Arms[0].Name, err)
			}
			if ok {
				r.Differences = append(r.Differences, Difference{arm.Name, r.Arms[0].Name, m.Name, interval})
			}
		}
	}
	return nil
}

// Unjudged names the run's queries that a dataset does not judge: their results count for nothing.
func (run *Run) Unjudged(ds *Dataset) []string {
	judged := map[string]bool{}
	for _, q := range ds.Queries {
		judged[q.ID] = len(q.Evidence) > 0
	}
	var out []string
	for _, id := range slices.Sorted(maps.Keys(run.Lists)) {
		if !judged[id] {
			out = append(out, id)
		}
	}
	return out
}
