package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Searcher finds passages for a query, the part of the engine that retrieval evaluation needs.
// Results come best first, at most k, none twice, with finite scores that do not increase. A
// ranking that is not by one score (reranked results before others) gives 1/rank as its scores.
type Searcher interface {
	Search(ctx context.Context, query string, k int) ([]Ranked, error)
}

// Arm is one configuration under a name.
type Arm struct {
	Name     string
	Searcher Searcher
	Corpus   Corpus // what it searches, where that is not Options.Corpus: the same documents cut into other chunks
}

// Options say how retrieval is evaluated.
type Options struct {
	Measures   []string // 0 of them: DefaultMeasures
	Labels     LabelOptions
	Corpus     Corpus  // where labels are found; needed unless all labels are document IDs
	Flags      []Flag  // cohorts to report
	Depth      int     // results per query that are judged: documents, or chunks where labels name places in them; 0 means 100 or the largest cut-off, for runs from files all of them
	MaxChunks  int     // chunks asked for at most to reach Depth documents; 0 means 10 times Depth, as some documents fill many ranks
	Parallel   int     // searches at once; 0 means one a processor
	Resamples  int     // of the bootstrap; 0 means 10,000, which settles the second digit of an interval's width
	Confidence float64 // of intervals; 0 means 0.95
	Seed       uint64  // of the bootstrap
	InRunOnly  bool    // leave out judged queries that a run lacks, as trec_eval does without -c; otherwise they score 0
}

// Validate reports every problem of the options.
func (o Options) Validate() error {
	measures, err := ParseMeasures(o.Measures...)
	errs := []error{err, o.Labels.validate()}
	for name, n := range map[string]int{"depth": o.Depth, "max chunks": o.MaxChunks, "parallel": o.Parallel, "resamples": o.Resamples} {
		if n < 0 || n > maxCutoff {
			errs = append(errs, fmt.Errorf("%s %d is not within 0 to %d", name, n, maxCutoff))
		}
	}
	if !(o.Confidence >= 0 && o.Confidence < 1) {
		errs = append(errs, fmt.Errorf("confidence %g is not within 0 to 1", o.Confidence))
	}
	for _, m := range measures {
		if o.Depth > 0 && m.cutoff > o.Depth {
			errs = append(errs, fmt.Errorf("measure %s reads deeper than depth %d", m.Name, o.Depth))
		}
	}
	for _, f := range o.Flags {
		if _, _, err := f.Flagged(Scores{}); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// settled fills in the defaults and parses the measures.
func (o Options) settled() (Options, []Measure, error) {
	if len(o.Measures) == 0 {
		o.Measures = DefaultMeasures()
		if o.Depth > 0 {
			o.Measures = slices.DeleteFunc(o.Measures, func(name string) bool {
				m, err := parseMeasure(name)
				return err == nil && m.cutoff > o.Depth
			})
		}
	}
	if err := o.Validate(); err != nil {
		return o, nil, err
	}
	if o.Resamples == 0 {
		o.Resamples = 10_000
	}
	if o.Confidence == 0 {
		o.Confidence = 0.95
	}
	if o.Parallel == 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	measures, err := ParseMeasures(o.Measures...)
	return o, measures, err
}

// Retrieval runs every judged query of a dataset through every arm and measures the rankings. Arms
// run one after the other, so that none disturbs another; the queries of one in parallel. The first
// search that fails ends the evaluation: figures over the queries that happened to work would not
// be comparable. The first arm is the baseline of the differences.
func Retrieval(ctx context.Context, ds *Dataset, arms []Arm, opts Options) (*Report, error) {
	opts, measures, err := opts.settled()
	if err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", ds.Name, err)
	}
	if opts.Depth == 0 {
		opts.Depth = 100
		for _, m := range measures {
			opts.Depth = max(opts.Depth, m.cutoff)
		}
	}
	if opts.MaxChunks == 0 {
		opts.MaxChunks = 10 * opts.Depth
	}
	opts.MaxChunks = max(opts.MaxChunks, opts.Depth)
	if err := checkNames(arms); err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", ds.Name, err)
	}
	var judged []judgedRun
	for _, arm := range arms {
		corpus := opts.Corpus
		if arm.Corpus != nil {
			corpus = arm.Corpus
		}
		labels, err := Resolve(ctx, ds, corpus, opts.Labels)
		if err != nil {
			return nil, fmt.Errorf("arm %s: %w", arm.Name, err)
		}
		judged = append(judged, judgedRun{labels: labels})
	}
	if err := sameStates(arms, judged); err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", ds.Name, err)
	}
	for i, arm := range arms {
		if judged[i].run, err = searchAll(ctx, ds, judged[i].labels, arm, opts); err != nil {
			return nil, fmt.Errorf("evaluate %s: arm %s: %w", ds.Name, arm.Name, err)
		}
	}
	return report(ctx, ds, judged, measures, opts)
}

// judgedRun is a run with the labels that it is measured by.
type judgedRun struct {
	labels *Labels
	run    *Run
}

func checkNames(arms []Arm) error {
	if len(arms) == 0 {
		return errors.New("no arms")
	}
	seen := map[string]bool{}
	for _, arm := range arms {
		if seen[arm.Name] {
			return fmt.Errorf("two arms are named %q", arm.Name)
		}
		seen[arm.Name] = true
	}
	return nil
}

// sameStates refuses arms over corpora of which one lacks what labels name and another has it.
func sameStates(arms []Arm, judged []judgedRun) error {
	for i := range judged {
		for n, q := range judged[i].labels.Queries {
			if first := judged[0].labels.Queries[n]; q.State != first.State {
				return fmt.Errorf("query %s is %s for arm %s and %s for arm %s: the arms do not search the same documents", q.ID, first.State, arms[0].Name, q.State, arms[i].Name)
			}
		}
	}
	return nil
}

// ScoreRuns measures runs from files as Retrieval measures arms. Names in the runs are document IDs
// where judgments name documents, and chunk IDs otherwise.
func ScoreRuns(ctx context.Context, ds *Dataset, runs []*Run, opts Options) (*Report, error) {
	opts, measures, err := opts.settled()
	if err != nil {
		return nil, fmt.Errorf("score runs on %s: %w", ds.Name, err)
	}
	labels, err := Resolve(ctx, ds, opts.Corpus, opts.Labels)
	if err != nil {
		return nil, err
	}
	var arms []Arm
	var judged []judgedRun
	for _, run := range runs {
		arms = append(arms, Arm{Name: run.Name})
		judged = append(judged, judgedRun{labels, run})
	}
	if err := checkNames(arms); err != nil {
		return nil, fmt.Errorf("score runs on %s: %w", ds.Name, err)
	}
	return report(ctx, ds, judged, measures, opts)
}

// searchAll runs one arm over the judged queries.
func searchAll(ctx context.Context, ds *Dataset, labels *Labels, arm Arm, opts Options) (*Run, error) {
	lists := make([][]Ranked, len(ds.Queries))
	group, searching := errgroup.WithContext(ctx)
	group.SetLimit(opts.Parallel)
	for i := range ds.Queries {
		if labels.Queries[i].State != StateJudged {
			continue
		}
		if searching.Err() != nil {
			break
		}
		group.Go(func() error {
			list, err := search(searching, arm.Searcher, ds.Queries[i].Text, labels.Queries[i].Documents(), opts)
			if err != nil {
				return fmt.Errorf("query %s: %w", ds.Queries[i].ID, err)
			}
			lists[i] = list
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	run := &Run{Name: arm.Name, Lists: map[string][]Ranked{}}
	for i, list := range lists {
		if labels.Queries[i].State == StateJudged {
			run.Lists[ds.Queries[i].ID] = list
		}
	}
	return run, nil
}

// search asks for as many chunks as it takes to have opts.Depth documents.
func search(ctx context.Context, s Searcher, query string, documents bool, opts Options) ([]Ranked, error) {
	for k := opts.Depth; ; k = min(2*k, opts.MaxChunks) {
		list, err := s.Search(ctx, query, k)
		if err != nil {
			return nil, err
		}
		if err := checkRanking(list, k); err != nil {
			return nil, err
		}
		if !documents {
			return ordered(list, opts.Depth), nil
		}
		best := BestPerDocument(list, opts.Depth)
		for i := range best {
			best[i].ChunkID = "" // it stands for its document
		}
		if len(best) == opts.Depth || len(list) < k || k >= opts.MaxChunks {
			return best, nil
		}
	}
}

// checkRanking refuses what a searcher must not return.
func checkRanking(list []Ranked, k int) error {
	if len(list) > k {
		return fmt.Errorf("the searcher returned %d results where %d were asked for", len(list), k)
	}
	seen := make(map[[2]string]bool, len(list))
	for i, r := range list {
		id := [2]string{r.DocID, r.ChunkID}
		switch {
		case r.DocID == "":
			return fmt.Errorf("the searcher returned a result without a document ID at rank %d", i+1)
		case math.IsNaN(r.Score) || math.IsInf(r.Score, 0):
			return fmt.Errorf("the searcher returned a score that is no number at rank %d", i+1)
		case i > 0 && r.Score > list[i-1].Score:
			return fmt.Errorf("the searcher returned a higher score at rank %d than at rank %d; scores must not increase", i+1, i)
		case seen[id]:
			return fmt.Errorf("the searcher returned %s twice, the second time at rank %d", strings.TrimSpace(r.DocID+" "+r.ChunkID), i+1)
		}
		seen[id] = true
	}
	return nil
}
