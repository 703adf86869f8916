package eval

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"assay"
)

func TestCohortThatIsUnreachableByConstruction(t *testing.T) {
	// 100 queries, five chunks each. 67 have two relevant chunks and find both; 33 have 16 on average and
	// find what five chunks can hold at best, except two that find nothing at all.
	var outcomes []Outcome
	hits, units := 0.0, 0
	for i := range 100 {
		relevant := names(fmt.Sprintf("q%02d-", i), 2)
		if i < 33 {
			relevant = names(fmt.Sprintf("q%02d-", i), 15+i%3)
		}
		sent := relevant[:min(5, len(relevant))]
		if i < 2 {
			sent = names("wrong", 5)
		}
		labels := labelled(relevant...)
		m := &assay.Manifest{Config: assay.ManifestConfig{Keep: 5}, Context: assay.ManifestContext{Passages: passagesOf(sent...)}}
		scores, err := ScoreManifest(m, labels)
		if err != nil {
			t.Fatal(err)
		}
		hits += scores[ContextHit]
		if i < 33 {
			units += len(relevant)
		}
		outcomes = append(outcomes, Outcome{QueryID: fmt.Sprintf("q%02d", i), Units: len(relevant), Scores: scores, Oracle: OracleContext(scores)})
	}
	if hits != 98 || units != 33*16 {
		t.Fatalf("the case has %v hits and %d units", hits, units)
	}
	flag, err := ParseFlag("low recall: context_recall<0.5")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Cohort(flag, outcomes)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Unreachable) != 33 || len(got.Flagged) != 0 || got.Rate == nil || *got.Rate != 0 || *got.MeanUnits != 16 {
		t.Errorf("unreachable %d, flagged %d, rate %v, units %v", len(got.Unreachable), len(got.Flagged), got.Rate, got.MeanUnits)
	}
	if len(got.Warnings) != 1 {
		t.Errorf("warnings %q, want one about raw recall", got.Warnings)
	}

	// On what was possible, the two that found nothing are the ones that went wrong.
	flag, err = ParseFlag("context_normalised_recall < 0.5")
	if err != nil {
		t.Fatal(err)
	}
	got, err = Cohort(flag, outcomes)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Unreachable) != 0 || len(got.Flagged) != 2 || *got.Rate != .02 || len(got.Warnings) != 0 {
		t.Errorf("on normalised recall: %+v", got)
	}
}

func TestCohortsOfRankingsUseTheirOracle(t *testing.T) {
	qrels := Qrels{"many": {}, "few": {"a": 1}}
	for _, doc := range names("r", 16) {
		qrels["many"][doc] = 1
	}
	run := &Run{Name: "r", Lists: map[string][]Ranked{"many": rankingOf(names("r", 16)...), "few": rankingOf("x", "y")}}
	flag, err := ParseFlag("recall@5<=0.5, precision@5<2")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ScoreRuns(context.Background(), FromQrels("d", qrels), []*Run{run}, Options{Measures: []string{"recall@5", "precision@5"}, Flags: []Flag{flag}})
	if err != nil {
		t.Fatal(err)
	}
	c := r.Arms[0].Cohorts[0]
	if fmt.Sprint(c.Flagged, c.Unreachable, *c.Rate) != "[few] [many] 1" {
		t.Errorf("flagged %v, unreachable %v, rate %v", c.Flagged, c.Unreachable, *c.Rate)
	}
}

func TestFlagsWithoutAMetricAreUndecided(t *testing.T) {
	flag, err := ParseFlag("grounded_but_wrong: groundedness>=0.8, context_hit=0")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Cohort(flag, []Outcome{
		{QueryID: "no verdict", Scores: Scores{ContextHit: 0}, Oracle: Scores{ContextHit: 1}},
		{QueryID: "a hit decides", Scores: Scores{ContextHit: 1}, Oracle: Scores{ContextHit: 1}},
		{QueryID: "wrong", Scores: Scores{ContextHit: 0, "groundedness": .9}, Oracle: Scores{ContextHit: 1, "groundedness": .9}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Undecided != 1 || len(got.Flagged) != 1 || *got.Rate != .5 {
		t.Errorf("%+v", got)
	}
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, s := range []string{"", "x", "x:", "x: <0.5", "x: recall@5<", "x: recall@5<NaN", "x: recall@5<Inf", "x: recall@5=>0.5"} {
		if f, err := ParseFlag(s); err == nil {
			t.Errorf("%q was read as %+v", s, f)
		}
	}
	if _, err := Cohort(Flag{Name: "empty"}, []Outcome{{}}); err == nil {
		t.Error("a flag without conditions marks")
	}
	if _, err := Cohort(Flag{Name: "blind", All: []Condition{{"m", "<", 2}}}, []Outcome{{QueryID: "q7", Scores: Scores{"m": 1}}}); err == nil || !strings.Contains(err.Error(), "q7") {
		t.Errorf("an outcome without an oracle: %v", err)
	}
	if _, err := Cohort(Flag{Name: "op", All: []Condition{{"m", "!", 1}}}, []Outcome{{Scores: Scores{"m": 1}}}); err == nil {
		t.Error("an unknown comparison passes")
	}
}

func TestBootstrap(t *testing.T) {
	ctx := context.Background()
	values := []float64{.1, .2, .15, .3, .05, .12, .2, .18}
	a, ok, err := Bootstrap(ctx, values, .95, 2000, 7)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	b, _, _ := Bootstrap(ctx, values, .95, 2000, 7)
	if a != b {
		t.Errorf("the same seed gives %+v and %+v", a, b)
	}
	if !(a.Low < a.Mean && a.Mean < a.High) || !a.Excludes(0) || a.Excludes(a.Mean) || a.Low < .05 || a.High > .3 {
		t.Errorf("interval %+v", a)
	}
	wide, _, _ := Bootstrap(ctx, values, .99, 2000, 7)
	if wide.High-wide.Low <= a.High-a.Low {
		t.Error("more confidence gives no wider interval")
	}
	if same, ok, _ := Bootstrap(ctx, []float64{0, 0, 0}, .95, 100, 1); !ok || same.Low != 0 || same.High != 0 || same.Excludes(0) {
		t.Errorf("no differences at all: %+v", same)
	}
	if _, ok, _ := Bootstrap(ctx, []float64{1}, .95, 100, 1); ok {
		t.Error("one value has an interval")
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := Bootstrap(stopped, values, .95, 2000, 7); err == nil {
		t.Error("a cancelled bootstrap goes on")
	}
}
