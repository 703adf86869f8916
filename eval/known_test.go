package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shared returns the path of a file of the public test data, or skips the test where it is absent.
func shared(t testing.TB, parts ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{"..", "..", "shared", "data"}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skip("the public test data is not beside the checkout: ", err)
	}
	return path
}

func openRun(t testing.TB, path string) *Run {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := ReadRun(path, f)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func openQrels(t testing.TB, path string) Qrels {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	qrels, err := ReadQrels(path, f)
	if err != nil {
		t.Fatal(err)
	}
	return qrels
}

func TestValuesOfTrecEvalAreReproduced(t *testing.T) {
	data, err := os.ReadFile(shared(t, "trec_eval", "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Name, Qrels, Run, Flags string
			Expected                map[string]map[string]any
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	checked, text := 0, 0
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			run := openRun(t, shared(t, "trec_eval", c.Run))
			qrels := openQrels(t, shared(t, "trec_eval", c.Qrels))
			opts := Options{InRunOnly: !strings.Contains(c.Flags, "-c")}
			if strings.Contains(c.Flags, "-M100") {
				opts.Depth = 100
			}
			if strings.Contains(c.Flags, "-l2") {
				opts.Labels.Level = 2
			}
			special := map[string]bool{"runid": true, "num_q": true, "relstring": true, "relstring_20": true}
			for name := range c.Expected["all"] {
				if !special[name] {
					opts.Measures = append(opts.Measures, name)
				}
			}
			deep := opts.Depth
			opts.Depth = 0 // trec_eval takes cut-offs past -M; so does a run that is cut beforehand
			for query, list := range run.Lists {
				run.Lists[query] = ordered(list, deep)
			}
			r, err := ScoreRuns(context.Background(), FromQrels(c.Qrels, qrels), []*Run{run}, opts)
			if err != nil {
				t.Fatal(err)
			}
			arm := r.Arms[0]
			single := map[string]Scores{}
			for _, q := range arm.Queries {
				single[q.ID] = q.Scores
			}
			for query, values := range c.Expected {
				for name, want := range values {
					number, isNumber := want.(float64)
					var got float64
					var ok bool
					switch {
					case name == "runid":
						if run.Name != want {
							t.Errorf("run is named %q, want %q", run.Name, want)
						}
						text++
						continue
					case !isNumber: // strings of digits for people, no measures
						text++
						continue
					case name == "num_q":
						got, ok = float64(len(arm.Queries)), true
					case query == "all":
						got, ok = arm.Means[name].Get()
					default:
						got, ok = single[query].Value(name)
					}
					if !ok || fmt.Sprintf("%.4f", got) != fmt.Sprintf("%.4f", number) {
						t.Errorf("query %s: %s = %.6f (defined: %v), want %.4f", query, name, got, ok, number)
					}
					checked++
				}
			}
		})
	}
	t.Logf("%d values and %d texts", checked, text)
	if checked < 799 {
		t.Errorf("only %d values were compared", checked)
	}
}

// vector is a small case with its right answer.
type vector struct {
	Source, Metric string
	Expected       any
	Qrels          map[string]int
	Run            map[string]float64
	Ranking        []string
	Queries        []vector
	Runs           []map[string]map[string]float64
	Retrieved      []string
	Reference      []string
	Verdicts       []int
	Relevance      [][]int
}

func (v vector) judged() *Judged {
	var list []Ranked
	for doc, score := range v.Run {
		list = append(list, Ranked{DocID: doc, Score: score})
	}
	for i, doc := range v.Ranking {
		list = append(list, Ranked{DocID: doc, Score: -float64(i)})
	}
	return Judge(list, v.Qrels, 1, 0)
}

func TestPublishedVectorsAreReproduced(t *testing.T) {
	data, err := os.ReadFile(shared(t, "metrics_expected", "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 38 {
		t.Fatalf("%d vectors, want 38", len(vectors))
	}
	for i, v := range vectors {
		t.Run(fmt.Sprint(i, " ", v.Metric), func(t *testing.T) { v.check(t) })
	}
}

func (v vector) check(t *testing.T) {
	name := v.Metric
	for full, ours := range map[string]string{
		"dcg@10 (linear gain)": "dcg@10", "ndcg@10 (linear gain)": "ndcg@10",
		"dcg@10 (exponential gain 2^rel-1)": "dcg_exp@10", "ndcg@10 (exponential gain 2^rel-1)": "ndcg_exp@10",
		"reciprocal_rank@5": "mrr@5", "hits@5 (mean of two queries)": "hits@5", "hit_rate@5 (mean of two queries)": "hit@5",
		"hit_rate": "hit@5",
	} {
		if name == full {
			name = ours
		}
	}
	switch {
	case v.Runs != nil:
		v.checkFusion(t)
	case v.Retrieved != nil || v.Verdicts != nil:
		v.checkContext(t)
	default:
		var judged []*Judged
		for _, row := range v.Relevance {
			judged = append(judged, judgedRow(row))
		}
		for _, q := range v.Queries {
			judged = append(judged, q.judged())
		}
		if len(judged) == 0 {
			judged = append(judged, v.judged())
		}
		measures, err := ParseMeasures(name)
		if err != nil {
			t.Fatal(err)
		}
		var tally Tally
		for _, j := range judged {
			tally.Add(measures[0].Value(j))
		}
		near(t, tally.Summary(), v.Expected.(float64))
	}
}

// judgedRow is a ranking given by the relevance of its results, for a query with one right answer.
func judgedRow(row []int) *Judged {
	var list []Ranked
	grades := map[string]int{"right": 1}
	for i, rel := range row {
		doc := fmt.Sprint("wrong", i)
		if rel == 1 {
			doc = "right"
		}
		list = append(list, Ranked{DocID: doc, Score: -float64(i)})
	}
	return Judge(list, grades, 1, 0)
}

func (v vector) checkFusion(t *testing.T) {
	var runs []*Run
	for _, lists := range v.Runs {
		run := &Run{Lists: map[string][]Ranked{}}
		for query, docs := range lists {
			for doc, score := range docs {
				run.Lists[query] = append(run.Lists[query], Ranked{DocID: doc, Score: score})
			}
		}
		runs = append(runs, run)
	}
	fused := FuseRuns("rrf", 0, runs...)
	for query, docs := range v.Expected.(map[string]any) {
		if len(fused.Lists[query]) != len(docs.(map[string]any)) {
			t.Errorf("query %s: %d documents", query, len(fused.Lists[query]))
		}
		for _, r := range fused.Lists[query] {
			if want := docs.(map[string]any)[r.DocID].(float64); math.Abs(r.Score-want) > 1e-12 {
				t.Errorf("query %s: %s has %v, want %v", query, r.DocID, r.Score, want)
			}
		}
	}
}

func (v vector) checkContext(t *testing.T) {
	q := &QueryLabels{State: StateJudged, level: 1, grades: map[string]int{}}
	docs := v.Retrieved
	relevant := v.Reference
	for i, verdict := range v.Verdicts {
		docs = append(docs, fmt.Sprint(i))
		if verdict == 1 {
			relevant = append(relevant, fmt.Sprint(i))
		}
	}
	if len(relevant) == 0 {
		relevant = []string{"elsewhere"}
	}
	for _, doc := range relevant {
		q.grades[doc] = 1
		q.Units = append(q.Units, Unit{DocID: doc, Grade: 1})
	}
	metric := ContextPrecisionRanked
	switch v.Metric {
	case "id_based_context_recall":
		metric = ContextRecall
	case "id_based_context_precision":
		metric = ContextPrecision
	}
	got, ok := scoreOf(t, passagesOf(docs...), 0, q).Value(metric)
	if want := v.Expected.(float64); !ok || math.Abs(got-want) > 1e-9 {
		t.Errorf("%s = %v, want %v", metric, got, want)
	}
}

func near(t *testing.T, s Summary, want float64) {
	t.Helper()
	if got, ok := s.Get(); !ok || math.Abs(got-want) > 1e-9 {
		t.Errorf("got %v (defined: %v), want %v", got, ok, want)
	}
}
