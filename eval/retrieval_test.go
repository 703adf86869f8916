package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

// fake is a searcher that answers from a table and remembers what it was asked.
type fake struct {
	answers map[string][]Ranked
	err     error

	mu    sync.Mutex // guards asked
	asked []int
}

func (f *fake) Search(_ context.Context, query string, k int) ([]Ranked, error) {
	f.mu.Lock()
	f.asked = append(f.asked, k)
	f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	list := f.answers[query]
	return list[:min(k, len(list))], nil
}

// rude answers whatever it likes.
type rude []Ranked

func (r rude) Search(context.Context, string, int) ([]Ranked, error) { return r, nil }

func smallDataset() *Dataset {
	one := 1
	return &Dataset{Name: "small", Queries: []Query{
		{ID: "q2", Text: "two", Evidence: []Evidence{{Doc: "b", Grade: &one}, {Doc: "c", Grade: &one}}},
		{ID: "q3", Text: "nobody judged this"},
		{ID: "q1", Text: "one", Evidence: []Evidence{{Doc: "a", Grade: &one}}},
	}}
}

func TestRetrievalOfSeveralArms(t *testing.T) {
	good := &fake{answers: map[string][]Ranked{
		"one": {{"a", "a1", 3}, {"a", "a2", 2}, {"x", "x1", 1}},
		"two": {{"b", "b1", 3}, {"c", "c1", 2}},
	}}
	bad := &fake{answers: map[string][]Ranked{"one": {{"x", "x1", 3}, {"a", "a1", 2}}}}
	r, err := Retrieval(context.Background(), smallDataset(), []Arm{{Name: "good", Searcher: good}, {Name: "bad", Searcher: bad}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Dataset; d.Queries != 3 || d.Judged != 2 || d.Unjudged != 1 {
		t.Errorf("counts %+v", d)
	}
	for name, want := range map[string][2]float64{"recall@5": {1, .5}, "mrr": {1, .25}, "precision@5": {.3, .1}, "ndcg@10": {1, .6309297535714575 / 2}} {
		near(t, r.Arms[0].Means[name], want[0])
		near(t, r.Arms[1].Means[name], want[1])
	}
	if len(good.asked) != 2 {
		t.Errorf("%d searches for two judged queries", len(good.asked))
	}
	if ids := []string{r.Arms[1].Queries[0].ID, r.Arms[1].Queries[1].ID}; !slices.Equal(ids, []string{"q1", "q2"}) {
		t.Errorf("queries in the order %v", ids)
	}
	if n := len(r.Differences); n != len(DefaultMeasures()) || r.Differences[0].Interval.Mean >= 0 || r.Differences[0].Baseline != "good" {
		t.Errorf("%d differences, the first %+v", n, r.Differences[0])
	}
	// The run that was searched, written and read back, has the same figures.
	var b bytes.Buffer
	if err := WriteRun(&b, r.Arms[0].Run); err != nil {
		t.Fatal(err)
	}
	run, err := ReadRun("f", &b)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ScoreRuns(context.Background(), smallDataset(), []*Run{run}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range r.Arms[0].Means {
		near(t, again.Arms[0].Means[name], *s.Value)
	}
}

func TestReportsDoNotDependOnTheOrderOfLinesOrOnTiming(t *testing.T) {
	ds := &Dataset{Name: "d"}
	searchers := []*fake{{answers: map[string][]Ranked{}}, {answers: map[string][]Ranked{}}}
	for i := range 60 {
		id := fmt.Sprintf("q%02d", i)
		ds.Queries = append(ds.Queries, Query{ID: id, Text: id, Evidence: []Evidence{{Doc: fmt.Sprint("d", i%7)}, {Doc: fmt.Sprint("d", i%5)}}})
		for n := range 7 {
			for s, searcher := range searchers {
				searcher.answers[id] = append(searcher.answers[id], Ranked{DocID: fmt.Sprint("d", (n*(s+2)+i)%7), Score: float64(-n / 2)})
			}
		}
	}
	write := func(parallel int) string {
		r, err := Retrieval(context.Background(), ds, []Arm{{Name: "a", Searcher: searchers[0]}, {Name: "b", Searcher: searchers[1]}}, Options{Parallel: parallel, Resamples: 500, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first := write(1)
	slices.Reverse(ds.Queries)
	if write(8) != first {
		t.Error("the same evaluation gave another report")
	}
	if strings.Contains(first, "NaN") || !strings.Contains(first, `"schema": "assay.retrieval/v1"`) {
		t.Error("not the report that was promised")
	}
}

func TestSearchGoesDeeperUntilThereAreEnoughDocuments(t *testing.T) {
	var chunks []Ranked
	for i := range 100 {
		chunks = append(chunks, Ranked{DocID: fmt.Sprint("d", i/10), ChunkID: fmt.Sprint("c", i), Score: float64(-i)})
	}
	one := &Dataset{Name: "d", Queries: []Query{{ID: "q", Text: "q", Evidence: []Evidence{{Doc: "d4"}}}}}
	f := &fake{answers: map[string][]Ranked{"q": chunks}}
	r, err := Retrieval(context.Background(), one, []Arm{{Name: "a", Searcher: f}}, Options{Depth: 5, Measures: []string{"recall@5", "mrr"}})
	if err != nil {
		t.Fatal(err)
	}
	near(t, r.Arms[0].Means["recall@5"], 1)
	near(t, r.Arms[0].Means["mrr"], .2)
	if !slices.Equal(f.asked, []int{5, 10, 20, 40, 50}) {
		t.Errorf("asked for %v chunks", f.asked)
	}
	f = &fake{answers: map[string][]Ranked{"q": chunks}}
	if r, err = Retrieval(context.Background(), one, []Arm{{Name: "a", Searcher: f}}, Options{Depth: 5, MaxChunks: 12, Measures: []string{"recall@5"}}); err != nil {
		t.Fatal(err)
	}
	near(t, r.Arms[0].Means["recall@5"], 0)
	if !slices.Equal(f.asked, []int{5, 10, 12}) {
		t.Errorf("asked for %v chunks, against the limit", f.asked)
	}
}

func TestRetrievalOverEvidenceUnits(t *testing.T) {
	corpus := (&memory{}).chunked("r.md", runbook, 30)
	c := corpus.chunks["r.md"]
	ds := dataset(t, `{"id":"q","text":"q","evidence":[{"doc":"r.md","start":0,"end":20},{"doc":"r.md","start":5,"end":19},{"doc":"r.md","start":62,"end":70}]}`)
	f := &fake{answers: map[string][]Ranked{"q": {{"r.md", c[1].ID, 4}, {"r.md", c[0].ID, 3}, {"r.md", c[2].ID, 2}}}}
	r, err := Retrieval(context.Background(), ds, []Arm{{Name: "a", Searcher: f}}, Options{Corpus: corpus, Measures: []string{"recall@1", "recall@2", "recall@3", "ceiling@1", "ceiling@2", "normalised_recall@2", "precision@3", "all_evidence_recall@3", "mrr"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"recall@1": 0, "recall@2": 2. / 3, "recall@3": 1, "ceiling@1": 2. / 3, "ceiling@2": 1,
		"normalised_recall@2": 2. / 3, "precision@3": 2. / 3, "all_evidence_recall@3": 1, "mrr": .5} {
		if got := r.Arms[0].Queries[0].Scores[name]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
}

func TestArmsOverOtherChunkings(t *testing.T) {
	ds := dataset(t, `{"id":"q","text":"q","evidence":[{"doc":"r.md","quote":"Then wait."}]}`)
	arm := func(name string, size int) (Arm, *memory) {
		corpus := (&memory{}).chunked("r.md", runbook, size)
		f := &fake{answers: map[string][]Ranked{}}
		for i, c := range corpus.chunks["r.md"] {
			f.answers["q"] = append(f.answers["q"], Ranked{DocID: "r.md", ChunkID: c.ID, Score: float64(-i)})
		}
		return Arm{Name: name, Searcher: f, Corpus: corpus}, corpus
	}
	whole, _ := arm("whole", 1000)
	small, corpus := arm("small", 30)
	r, err := Retrieval(context.Background(), ds, []Arm{whole, small}, Options{Measures: []string{"mrr"}})
	if err != nil {
		t.Fatal(err)
	}
	near(t, r.Arms[0].Means["mrr"], 1)
	if v, _ := r.Arms[1].Means["mrr"].Get(); v == 1 || len(r.Arms[1].Problems) > 1 {
		t.Errorf("in chunks of 30: mrr %v, problems %v", v, r.Arms[1].Problems)
	}
	// Labels found in one chunking and results of another must not pass for misses.
	whole.Corpus = nil
	if _, err := Retrieval(context.Background(), ds, []Arm{whole}, Options{Corpus: corpus}); !errors.Is(err, ErrOtherChunking) {
		t.Errorf("results of another chunking: %v", err)
	}
	other := (&memory{}).chunked("s.md", runbook, 30)
	whole.Corpus = other
	if _, err := Retrieval(context.Background(), ds, []Arm{small, whole}, Options{}); err == nil || !strings.Contains(err.Error(), "same documents") {
		t.Errorf("arms over different documents: %v", err)
	}
}

func TestRunsOfChunksAreScoredByTheirIDs(t *testing.T) {
	corpus := (&memory{}).chunked("r.md", runbook, 80)
	ds := dataset(t, `{"id":"q","text":"q","evidence":[{"doc":"r.md","quote":"Then wait."}]}`)
	run := &Run{Name: "r", Lists: map[string][]Ranked{"q": rankingOf("c_elsewhere", corpus.chunks["r.md"][0].ID)}}
	r, err := ScoreRuns(context.Background(), ds, []*Run{run}, Options{Corpus: corpus, Measures: []string{"mrr"}})
	if err != nil {
		t.Fatal(err)
	}
	near(t, r.Arms[0].Means["mrr"], .5)
}

func TestPublicCollectionsAreRead(t *testing.T) {
	for name, want := range map[string][3]int{"scifact": {300, 300, 5183}, "cranfield": {225, 225, 1400}, "cisi": {112, 76, 1460},
		"anthropic_docs": {100, 100, 232}, "hotpotqa_small": {100, 100, 994}, "debian_faq": {119, 119, 146}} {
		c, err := OpenCollection(shared(t, name), "")
		if err != nil {
			t.Fatal(err)
		}
		ds, err := c.Dataset()
		if err != nil {
			t.Fatal(err)
		}
		docs := 0
		for _, err := range c.Documents() {
			if err != nil {
				t.Fatal(err)
			}
			docs++
		}
		judged := 0
		for _, q := range ds.Queries {
			if len(q.Evidence) > 0 {
				judged++
			}
		}
		if got := [3]int{len(ds.Queries), judged, docs}; got != want {
			t.Errorf("%s has %v queries, judged ones and documents, want %v", name, got, want)
		}
	}
}

func TestMissingQueriesOfARunScoreZeroUnlessAskedOtherwise(t *testing.T) {
	run := &Run{Name: "r", Lists: map[string][]Ranked{"q1": {{DocID: "a", Score: 1}}, "q9": {{DocID: "a", Score: 1}}}}
	for inRunOnly, want := range map[bool]float64{false: .5, true: 1} {
		r, err := ScoreRuns(context.Background(), smallDataset(), []*Run{run}, Options{Measures: []string{"mrr"}, InRunOnly: inRunOnly})
		if err != nil {
			t.Fatal(err)
		}
		near(t, r.Arms[0].Means["mrr"], want)
		if r.Arms[0].Missing != 1 {
			t.Errorf("%d missing", r.Arms[0].Missing)
		}
	}
	if got := run.Unjudged(smallDataset()); !slices.Equal(got, []string{"q9"}) {
		t.Errorf("unjudged queries of the run: %v", got)
	}
}

func TestSearchersThatBreakTheirContractAreRefused(t *testing.T) {
	many := make(rude, 101)
	for i := range many {
		many[i].DocID = fmt.Sprint(i)
	}
	for says, s := range map[string]Searcher{
		"101 results":    many,
		"no number":      rude{{DocID: "a", Score: math.NaN()}},
		"higher score":   rude{{DocID: "a", Score: 1}, {DocID: "b", Score: 2}},
		"twice":          rude{{DocID: "a", Score: 1}, {DocID: "a", Score: 1}},
		"document ID":    rude{{ChunkID: "c"}},
		"out of service": &fake{err: errors.New("out of service")},
	} {
		_, err := Retrieval(context.Background(), smallDataset(), []Arm{{Name: "arm 1", Searcher: s}}, Options{})
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "arm 1") || !strings.Contains(err.Error(), "query q") {
			t.Errorf("%s: %v", says, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Retrieval(ctx, smallDataset(), []Arm{{Name: "a", Searcher: &fake{}}}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestBadOptionsAreAllNamed(t *testing.T) {
	err := Options{Measures: []string{"recall@50", "nonsense"}, Depth: 10, Parallel: -1, Confidence: 1, Flags: []Flag{{Name: "hollow"}}}.Validate()
	for _, says := range []string{"recall@50 reads deeper", "nonsense", "parallel", "confidence", "hollow"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is not in: %v", says, err)
		}
	}
	if _, err := Retrieval(context.Background(), smallDataset(), nil, Options{}); err == nil {
		t.Error("no arms are an evaluation")
	}
	arms := []Arm{{Name: "a", Searcher: &fake{}}, {Name: "a", Searcher: &fake{}}}
	if _, err := Retrieval(context.Background(), smallDataset(), arms, Options{}); err == nil || !strings.Contains(err.Error(), "two arms") {
		t.Errorf("two arms of one name: %v", err)
	}
}

func TestTablesFitTheTerminal(t *testing.T) {
	run := func(name string) *Run {
		return &Run{Name: name, Lists: map[string][]Ranked{"q1": {{DocID: "a", Score: 1}}}}
	}
	flag, err := ParseFlag("an unusually long name for a flag, at that: recall@5<0.9")
	if err != nil {
		t.Fatal(err)
	}
	for _, measures := range [][]string{nil, {"recall@5", "all_evidence_recall@100", "normalised_recall@100", "ndcg_cut_10", "iprec_at_recall_0.20", "utility_1,-1,0,0", "gm_map", "num_rel", "ndcg_1=3,2=9,3=10,4=11,5=12,6=13,7=14,8=15,9=16"}} {
		r, err := ScoreRuns(context.Background(), smallDataset(), []*Run{run("short"), run(strings.Repeat("very long name ", 9)), run("名前\n名前名前名前名前名前名前名前名前名前名前")}, Options{Measures: measures, Flags: []Flag{flag}})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := r.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		for l := range strings.SplitSeq(b.String(), "\n") {
			if w := text.StringWidth(l); w > TableWidth {
				t.Errorf("%d columns: %s", w, l)
			}
		}
		for _, says := range []string{"2 judged, 1 unjudged", "short", "recall@5", "lacks 1 judged"} {
			if !strings.Contains(b.String(), says) {
				t.Errorf("%q is not in\n%s", says, b.String())
			}
		}
		t.Log("\n" + b.String())
	}
}
