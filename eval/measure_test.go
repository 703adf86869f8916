package eval

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func rankingOf(docs ...string) []Ranked {
	var out []Ranked
	for i, doc := range docs {
		out = append(out, Ranked{DocID: doc, Score: float64(-i)})
	}
	return out
}

func TestMeasuresOfSmallRankings(t *testing.T) {
	graded := map[string]int{"2": 5, "4": 4, "5": 3, "10": 2}
	ranx := []string{"1", "2", "3", "4", "5"}
	sixteen := map[string]int{}
	for _, doc := range names("r", 16) {
		sixteen[doc] = 1
	}
	for _, c := range []struct {
		measure string
		ranking []string
		grades  map[string]int
		want    float64
	}{
		{"precision@1", []string{"a", "x", "b", "y", "z"}, map[string]int{"a": 1, "b": 1}, 1},
		{"precision@3", []string{"a", "x", "b", "y", "z"}, map[string]int{"a": 1, "b": 1}, 2. / 3},
		{"precision@5", []string{"a", "x", "b", "y", "z"}, map[string]int{"a": 1, "b": 1}, .4},
		{"map", []string{"a", "x", "b", "y", "z"}, map[string]int{"a": 1, "b": 1}, (1 + 2./3) / 2},
		{"precision@5", []string{"a"}, map[string]int{"a": 1}, .2}, // a short list is no better list
		{"ceiling@5", nil, sixteen, .3125},
		{"recall@5", names("r", 16), sixteen, .3125},
		{"normalised_recall@5", names("r", 16), sixteen, 1},
		{"all_evidence_recall@5", names("r", 16), sixteen, 0},
		{"all_evidence_recall@16", names("r", 16), sixteen, 1},
		{"hit@1", []string{"x", "a"}, map[string]int{"a": 1}, 0},
		{"hit@2", []string{"x", "a"}, map[string]int{"a": 1}, 1},
		{"mrr", []string{"x", "a"}, map[string]int{"a": 1}, .5},
		{"mrr@1", []string{"x", "a"}, map[string]int{"a": 1}, 0},
		{"dcg@10", ranx, graded, 6.037913421854484},
		{"ndcg@10", ranx, graded, .6108112659356222},
		{"ndcg_exp@10", ranx, graded, .6347656803723495},
		{"ndcg", []string{"b", "a"}, map[string]int{"a": 1, "b": 0}, .6309297535714575},
		{"r_precision", []string{"2", "4", "3", "1", "5"}, map[string]int{"1": 1, "2": 1, "3": 1}, 2. / 3},
		{"bpref", []string{"a", "x", "b", "y", "c"}, map[string]int{"a": 1, "b": 1, "x": 0, "y": 0}, .75}, // c is not judged
		{"bpref", []string{"x", "y", "a"}, map[string]int{"a": 1, "x": 0, "y": 0}, 0},
	} {
		measures, err := ParseMeasures(c.measure)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := measures[0].Value(Judge(rankingOf(c.ranking...), c.grades, 1, 0))
		if !ok || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s of %v = %v (defined: %v), want %v", c.measure, c.ranking, got, ok, c.want)
		}
	}
}

func TestTiesAreBrokenAsTrecEvalBreaksThem(t *testing.T) {
	list := []Ranked{{DocID: "a", Score: 1}, {DocID: "c", Score: 1}, {DocID: "b", Score: 2}, {DocID: "B", Score: 1}}
	var got []string
	for _, r := range BestPerDocument(list, 0) {
		got = append(got, r.DocID)
	}
	if want := []string{"b", "c", "a", "B"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if list[0].DocID != "a" {
		t.Error("the caller's list was reordered")
	}
}

func TestBestChunkStandsForItsDocument(t *testing.T) {
	list := []Ranked{{"a", "a1", .9}, {"a", "a2", .8}, {"b", "b1", .7}, {"a", "a3", .6}, {"c", "c1", .5}}
	var got []string
	for _, r := range BestPerDocument(list, 2) {
		got = append(got, r.ChunkID)
	}
	if want := []string{"a1", "b1"}; !slices.Equal(got, want) {
		t.Errorf("chunks %v, want %v", got, want)
	}
}

func TestMeasuresAreUndefinedWithoutSomethingToFind(t *testing.T) {
	j := Judge(rankingOf("a", "b"), map[string]int{"a": 0}, 1, 0)
	for _, name := range []string{"recall@5", "hit@5", "all_evidence_recall@5", "ceiling@5", "normalised_recall@5", "precision@5", "r_precision", "map", "mrr", "ndcg", "ndcg@10", "bpref", "Rndcg", "ndcg_rel", "G", "infAP", "gm_map", "set_F", "rbp", "iprec_at_recall_0.50"} {
		measures, err := ParseMeasures(name)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := measures[0].Value(j); ok {
			t.Errorf("%s = %v, want it undefined", name, v)
		}
	}
}

func TestUnknownMeasuresAreAllNamed(t *testing.T) {
	_, err := ParseMeasures("recall@5", "recal@5", "recall@0", "P_x", "utility_1,2", "ndcg_1=NaN", "iprec_at_recall_NaN", "map", "map")
	if err == nil {
		t.Fatal("accepted")
	}
	for _, name := range []string{"recal@5", "recall@0", "P_x", "utility_1,2", "ndcg_1=NaN", "iprec_at_recall_NaN", "named twice"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q is not named in: %v", name, err)
		}
	}
}

// randomCase makes a ranking and judgments with ties, several grades and unjudged documents.
func randomCase(rng *rand.Rand) ([]Ranked, map[string]int) {
	var list []Ranked
	grades := map[string]int{}
	for i := range 1 + rng.IntN(40) {
		doc := fmt.Sprint("d", i)
		if rng.IntN(3) > 0 {
			list = append(list, Ranked{DocID: doc, Score: float64(rng.IntN(10))})
		}
		if rng.IntN(3) == 0 {
			grades[doc] = rng.IntN(5) - 1
		}
	}
	return list, grades
}

// allMeasures has every measure at several cut-offs.
func allMeasures(t *testing.T) []Measure {
	var list []string
	for _, k := range []int{1, 2, 3, 5, 10, 20, 50} {
		for _, base := range []string{"recall", "hit", "all_evidence_recall", "ceiling", "normalised_recall", "precision", "ndcg", "ndcg_exp", "map", "mrr", "dcg", "hits"} {
			list = append(list, fmt.Sprintf("%s@%d", base, k))
		}
		for _, base := range []string{"relative_P", "unj"} {
			list = append(list, fmt.Sprintf("%s_%d", base, k))
		}
	}
	list = append(list, "r_precision", "map", "mrr", "ndcg", "bpref", "infAP", "G", "binG", "Rndcg", "ndcg_rel", "set_F", "set_P", "set_map", "set_relative_P", "rbp", "rbp_resid", "11pt_avg", "Rprec_mult_0.40", "iprec_at_recall_0.30")
	measures, err := ParseMeasures(list...)
	if err != nil {
		t.Fatal(err)
	}
	return measures
}

func TestPropertiesOfMeasures(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	measures := allMeasures(t)
	unbounded := []string{"dcg", "hits", "rbp_resid"}
	for range 3000 {
		list, grades := randomCase(rng)
		level := 1 + rng.IntN(3)
		j := Judge(list, grades, level, 0)
		scores := Scores{}
		for _, m := range measures {
			v, ok := m.Value(j)
			if ok && (math.IsNaN(v) || v < 0) {
				t.Fatalf("%s = %v", m.Name, v)
			}
			bounded := !slices.ContainsFunc(unbounded, func(p string) bool { return strings.HasPrefix(m.Name, p) })
			if ok && bounded && v > 1+1e-9 {
				t.Fatalf("%s = %v, above 1, for %v against %v at level %d", m.Name, v, list, grades, level)
			}
			scores.set(m.Name, v, ok)
			if best := m.best; best != nil && ok {
				if b, ok := best(j); ok && v > b+1e-9 {
					t.Fatalf("%s = %v, better than the best possible %v", m.Name, v, b)
				}
			}
		}
		before := 0.0
		for _, k := range []int{1, 2, 3, 5, 10, 20, 50} {
			recall, ok := scores.Value(fmt.Sprint("recall@", k))
			if !ok {
				break
			}
			all, hit := scores[fmt.Sprint("all_evidence_recall@", k)], scores[fmt.Sprint("hit@", k)]
			if recall < before {
				t.Fatalf("recall@%d fell from %v to %v", k, before, recall)
			}
			if all > recall || recall > hit {
				t.Fatalf("at %d all evidence %v, recall %v, hit %v", k, all, recall, hit)
			}
			before = recall
		}
		rng.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
		again := Judge(list, grades, level, 0)
		for _, m := range measures {
			v, ok := m.Value(again)
			if old, defined := scores.Value(m.Name); ok != defined || (ok && v != old) {
				t.Fatalf("%s = %v before and %v after shuffling the results", m.Name, old, v)
			}
		}
	}
}

func TestSumsDoNotDependOnOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		values := make([]float64, 1+rng.IntN(100))
		for i := range values {
			values[i] = rng.NormFloat64() * math.Pow(10, float64(rng.IntN(20)-10))
		}
		var first Tally
		for _, v := range values {
			first.Add(v, true)
		}
		rng.Shuffle(len(values), func(a, b int) { values[a], values[b] = values[b], values[a] })
		var second Tally
		for _, v := range values {
			second.Add(v, true)
		}
		a, _ := first.Summary().Get()
		b, _ := second.Summary().Get()
		if a != b {
			t.Fatalf("%v and %v", a, b)
		}
	}
	var exact Tally
	for _, v := range []float64{1e16, 1, 1, -1e16} {
		exact.Add(v, true)
	}
	near(t, exact.Summary(), .5)
	var nothing Tally
	nothing.Add(math.NaN(), true)
	nothing.Add(0, false)
	if s := nothing.Summary(); s.Value != nil || s.Undefined != 2 {
		t.Errorf("a mean over nothing: %+v", s)
	}
}

func TestBestCoverOfUnits(t *testing.T) {
	for _, c := range []struct {
		name string
		sets [][]int
		n, k int
		want int
	}{
		{"one unit a chunk", [][]int{{0}, {1}, {2}, {3}}, 4, 3, 3},
		{"a chunk with two units", [][]int{{0, 1}, {2}, {3}}, 4, 2, 3},
		{"greedy is not best", [][]int{{0, 1, 2, 3}, {0, 1, 4}, {2, 3, 5}}, 6, 2, 6},
		{"no chunk has it", nil, 3, 5, 0},
		{"k of none", [][]int{{0}}, 1, 0, 0},
		{"overlapping chunks", [][]int{{0}, {0}, {0, 1}, {1}}, 2, 1, 2},
	} {
		if got := maxCover(c.sets, c.n, c.k); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	// A hard instance ends, and what it gives is no less than what can be reached.
	rng := rand.New(rand.NewPCG(5, 6))
	var sets [][]int
	for range 60 {
		sets = append(sets, rng.Perm(200)[:12])
	}
	got := maxCover(sets, 200, 12)
	reached := map[int]bool{}
	for _, set := range sets[:12] {
		for _, u := range set {
			reached[u] = true
		}
	}
	if got < len(reached) || got > 144 {
		t.Errorf("%d, with %d reached by any twelve", got, len(reached))
	}
}
