package eval

import (
	"fmt"
	"math"
	"testing"

	"assay"
)

// passagesOf makes passages of 10 tokens each, one a document.
func passagesOf(docs ...string) []assay.ContextPassage {
	var out []assay.ContextPassage
	for i, doc := range docs {
		out = append(out, assay.ContextPassage{Position: i + 1, DocID: doc, ChunkID: "c_" + doc, Tokens: 10, Span: assay.Span{End: 10}})
	}
	return out
}

// labelled makes judged labels of whole documents.
func labelled(docs ...string) *QueryLabels {
	q := &QueryLabels{State: StateJudged, level: 1, overlap: .5, grades: map[string]int{}}
	for _, doc := range docs {
		q.grades[doc] = 1
		q.Units = append(q.Units, Unit{DocID: doc, Grade: 1})
	}
	return q
}

func scoreOf(t *testing.T, passages []assay.ContextPassage, keep int, q *QueryLabels) Scores {
	t.Helper()
	s, err := ScoreContext(passages, keep, q)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names(prefix string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s%02d", prefix, i))
	}
	return out
}

func TestContextMetrics(t *testing.T) {
	sixteen := names("r", 16)
	noise := names("n", 20)
	for _, c := range []struct {
		name     string
		sent     []string
		relevant []string
		keep     int
		want     Scores
		absent   []string
	}{
		{name: "relevant at 1 and 3 of five", sent: []string{"a", "x", "b", "y", "z"}, relevant: []string{"a", "b"},
			want: Scores{ContextPrecision: .4, ContextPrecisionRanked: (1 + 2./3) / 2, FirstRelevantPosition: 1, ContextRecall: 1, SignalShare: .4, ContextTokens: 50}},
		{name: "without positions 4 and 5", sent: []string{"a", "x", "b"}, relevant: []string{"a", "b"},
			want: Scores{ContextPrecision: 2. / 3, ContextPrecisionRanked: (1 + 2./3) / 2}},
		{name: "relevant at 1 and 2", sent: []string{"a", "b", "x", "y", "z"}, relevant: []string{"a", "b"},
			want: Scores{ContextPrecisionRanked: 1}},
		{name: "sixteen relevant, five sent, all of them relevant", sent: sixteen[:5], relevant: sixteen, keep: 5,
			want: Scores{ContextCeiling: .3125, ContextRecall: .3125, ContextNormalisedRecall: 1, ContextHit: 1, ContextAllEvidence: 0}},
		{name: "three relevant of twenty", sent: append(sixteen[:3:3], noise[:17]...), relevant: sixteen[:3],
			want: Scores{ContextPrecision: .15, ContextAllEvidence: 1}},
		{name: "nothing relevant", sent: noise[:4], relevant: []string{"a"},
			want:   Scores{ContextPrecision: 0, ContextPrecisionRanked: 0, ContextRecall: 0, ContextHit: 0, SignalShare: 0},
			absent: []string{FirstRelevantPosition}},
		{name: "nothing sent, where five could have been", relevant: []string{"a"}, keep: 5,
			want:   Scores{ContextRecall: 0, ContextCeiling: 1, ContextNormalisedRecall: 0, ContextTokens: 0, ContextPrecisionRanked: 0},
			absent: []string{ContextPrecision, SignalShare, FirstRelevantPosition}},
		{name: "nothing sent by design", relevant: []string{"a"},
			want: Scores{ContextCeiling: 0}, absent: []string{ContextNormalisedRecall}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := scoreOf(t, passagesOf(c.sent...), c.keep, labelled(c.relevant...))
			for name, want := range c.want {
				if v, ok := got.Value(name); !ok || math.Abs(v-want) > 1e-12 {
					t.Errorf("%s = %v (defined: %v), want %v", name, v, ok, want)
				}
			}
			for _, name := range c.absent {
				if v, ok := got.Value(name); ok {
					t.Errorf("%s = %v, want it undefined", name, v)
				}
			}
		})
	}
}

func TestContextOfAnUnjudgedQueryHasOnlyItsTokens(t *testing.T) {
	for _, q := range []*QueryLabels{nil, {State: StateUnjudged}, {State: StateUnanswerable}, {State: StateUnresolved, Units: []Unit{{DocID: "a"}}}} {
		got := scoreOf(t, passagesOf("a", "b"), 2, q)
		if len(got) != 1 || got[ContextTokens] != 20 {
			t.Errorf("labels %+v: %v, want only the tokens", q, got)
		}
	}
}

func TestTalliesCountWhatIsUndefined(t *testing.T) {
	var all Tallies
	all.Add(scoreOf(t, passagesOf("a", "x"), 2, labelled("a")))
	all.Add(scoreOf(t, passagesOf("x", "y"), 2, labelled("a")))
	all.Add(scoreOf(t, passagesOf("x", "y"), 2, nil))
	s := all.Summaries()
	if first := s[FirstRelevantPosition]; first.N != 1 || first.Undefined != 2 || *first.Value != 1 {
		t.Errorf("first relevant position: %+v", first)
	}
	if tokens := s[ContextTokens]; tokens.N != 3 || tokens.Undefined != 0 || *tokens.Value != 20 {
		t.Errorf("tokens: %+v", tokens)
	}
	if recall := s[ContextRecall]; recall.N != 2 || *recall.Value != .5 {
		t.Errorf("recall: %+v", recall)
	}
}

func BenchmarkScoreContexts(b *testing.B) {
	const contexts = 100_000
	manifests := make([]assay.Manifest, 100)
	labels := make([]*QueryLabels, len(manifests))
	for i := range manifests {
		manifests[i].Config.Keep = 20
		docs := names("n", 18)
		docs = append(docs, "a", "b")
		manifests[i].Context.Passages = passagesOf(docs...)
		labels[i] = labelled("a", "b", "c")
	}
	b.ReportAllocs()
	for b.Loop() {
		var all Tallies
		for i := range contexts {
			scores, err := ScoreManifest(&manifests[i%len(manifests)], labels[i%len(labels)])
			if err != nil {
				b.Fatal(err)
			}
			all.Add(scores)
		}
		if n := all.Summaries()[ContextRecall].N; n != contexts {
			b.Fatal(n)
		}
	}
}
