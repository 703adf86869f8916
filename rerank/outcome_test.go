package rerank

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"assay"
)

func candidates(n int) []assay.Candidate {
	out := make([]assay.Candidate, n)
	for i := range out {
		out[i] = assay.Candidate{ChunkID: fmt.Sprintf("c%02d", n-i), Fused: &assay.Placing{Rank: i + 1, Score: 1 / float64(60+i)}}
	}
	return out
}

func order(cands []assay.Candidate) string {
	var ids []string
	for _, c := range cands {
		ids = append(ids, c.ChunkID)
	}
	return strings.Join(ids, " ")
}

func TestApplyOrdersByScoreThenFusedRank(t *testing.T) {
	in := candidates(4)
	o := Outcome{Status: assay.RerankOK, Scores: []float64{0.2, 0.9, 0.2, 0.95}}
	out := Apply(in, o)
	if got := order(out); got != "c01 c03 c04 c02" {
		t.Errorf("order %s", got)
	}
	for i, c := range out {
		if c.Rerank.Rank != i+1 {
			t.Errorf("%s has rank %d at place %d", c.ChunkID, c.Rerank.Rank, i)
		}
	}
	if order(in) != "c04 c03 c02 c01" || in[0].Rerank != nil {
		t.Error("the caller's candidates were changed")
	}
	if got := order(Apply(candidates(6), o)); got != "c03 c05 c06 c04 c02 c01" {
		t.Errorf("candidates beyond those sent: %s", got)
	}
}

func TestApplyKeepsTheFusedOrderUnlessTheRankingIsWhole(t *testing.T) {
	for _, status := range []assay.RerankStatus{
		assay.RerankDisabled, assay.RerankSkipped, assay.RerankTimeout, assay.RerankHTTPError, assay.RerankUnavailable,
		assay.RerankBadResponse, assay.RerankPartial, assay.RerankCircuitOpen, assay.RerankCancelled,
	} {
		out := Apply(candidates(3), Outcome{Status: status, Scores: []float64{0, 0.5, 0.9}, Scored: []bool{false, true, true}})
		if order(out) != "c03 c02 c01" || slices.ContainsFunc(out, func(c assay.Candidate) bool { return c.Rerank != nil }) {
			t.Errorf("%s: %+v", status, out)
		}
	}
}

func TestApplyIsAPermutationWithDescendingScores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOf(rapid.SampledFrom([]float64{-1, 0, 0.5, 0.5, 1e-300, 7})).Draw(t, "scores")
		in := candidates(len(scores))
		out := Apply(in, Outcome{Status: assay.RerankOK, Scores: scores})
		a, b := strings.Fields(order(in)), strings.Fields(order(out))
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			t.Fatalf("lost candidates: %v, %v", a, b)
		}
		for i := 1; i < len(out); i++ {
			p, c := out[i-1], out[i]
			if p.Rerank.Score < c.Rerank.Score || p.Rerank.Score == c.Rerank.Score && p.Fused.Rank > c.Fused.Rank {
				t.Fatalf("place %d is out of order", i)
			}
		}
	})
}

func TestPolicyDecidesHowManyAreKept(t *testing.T) {
	for _, tc := range []struct {
		policy       assay.FallbackPolicy
		fallbackKeep int
		want         int
		fails        bool
	}{
		{"", 0, 5, false}, // it ranked
		{assay.FallbackFused, 9, 5, false},
		{assay.FallbackWiden, 0, 10, false},
		{assay.FallbackWiden, 8, 8, false},
		{assay.FallbackWiden, 3, 5, false}, // never fewer than with a ranking
		{assay.FallbackFail, 0, 0, true},
	} {
		o := Outcome{Status: assay.RerankTimeout, Reason: "no ranking within 1s", Fallback: tc.policy, fallbackKeep: tc.fallbackKeep}
		n, err := o.Keep(5)
		if n != tc.want || errors.Is(err, ErrRequired) != tc.fails {
			t.Errorf("%q, %d: keep %d, %v", tc.policy, tc.fallbackKeep, n, err)
		}
		if tc.fails && !strings.Contains(err.Error(), "no ranking within 1s") {
			t.Errorf("error %v does not say why", err)
		}
	}
}

func TestManifestAndStageTellTheSame(t *testing.T) {
	o := Outcome{Status: assay.RerankPartial, Model: "ce", Candidates: 40, ScoredCount: 32, Attempts: 3, Latency: 120 * time.Millisecond,
		Timeout: time.Second, Reason: "scored only 32", Err: errors.New("scored only 32"), Fallback: assay.FallbackWiden}
	want := assay.ManifestReranker{Status: "partial", Model: "ce", Candidates: 40, Scored: 32, LatencyMS: 120, TimeoutMS: 1000, Attempts: 3, Fallback: "widen", Error: "scored only 32"}
	if got := o.Manifest(); got != want {
		t.Errorf("manifest %+v", got)
	}
	s := o.Stage()
	if s.Name != assay.StageRerank || s.Status != assay.StatusError || s.Fallback != "widen" || s.Reason != o.Reason || s.Duration != o.Latency {
		t.Errorf("stage %+v", s)
	}
}
