package retriever

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"assay"
	"assay/index"
)

func hits(rows ...index.Row) []index.Hit {
	out := make([]index.Hit, len(rows))
	for i, row := range rows {
		out[i] = index.Hit{Row: row, Rank: i + 1, Score: 1 / float64(i+1)}
	}
	return out
}

func TestFuseIsReciprocalRankFusion(t *testing.T) {
	o := Options{Fusion: RRF, DenseWeight: 1, LexicalWeight: 1}.WithDefaults()
	got := fuse(hits(1, 2, 3), hits(3, 4), o)
	want := []struct {
		row   index.Row
		score float64
	}{{3, 1./63 + 1./61}, {1, 1. / 61}, {2, 1. / 62}, {4, 1. / 62}}
	if len(got) != len(want) {
		t.Fatalf("%d results", len(got))
	}
	for i, w := range want {
		if got[i].row != w.row || math.Abs(got[i].score-w.score) > 1e-15 {
			t.Errorf("place %d is row %d with %.6f, want row %d with %.6f", i+1, got[i].row, got[i].score, w.row, w.score)
		}
	}
	if f := got[0]; f.dense.Rank != 3 || f.lexical.Rank != 1 {
		t.Errorf("the places in the channels are lost: %+v", f)
	}
	o.LexicalWeight = 3
	if got := fuse(hits(1), hits(2), o); got[0].row != 2 || got[0].score != 3./61 {
		t.Errorf("with a weight of 3 row %d leads with %.6f", got[0].row, got[0].score)
	}
}

func TestFuseByConvexCombination(t *testing.T) {
	o := Options{Fusion: Convex, DenseWeight: 1, LexicalWeight: 3}.WithDefaults()
	dense := []index.Hit{{Row: 1, Rank: 1, Score: 0.8}, {Row: 2, Rank: 2, Score: 0.4}, {Row: 3, Rank: 3, Score: -0.1}}
	lexical := []index.Hit{{Row: 2, Rank: 1, Score: 12}, {Row: 4, Rank: 2, Score: 3}}
	got := fuse(dense, lexical, o)
	want := map[index.Row]float64{2: 0.25*0.5 + 0.75, 1: 0.25, 4: 0.75 * 0.25, 3: 0}
	for i, row := range []index.Row{2, 1, 4, 3} {
		if got[i].row != row || math.Abs(got[i].score-want[row]) > 1e-12 {
			t.Errorf("place %d is row %d with %.4f, want row %d with %.4f", i+1, got[i].row, got[i].score, row, want[row])
		}
	}
	for name, list := range map[string][]fused{"no lexical hit": fuse(dense, nil, o), "no hit": fuse(nil, nil, o), "no positive score": fuse(dense[2:], nil, o)} {
		for _, f := range list {
			if math.IsNaN(f.score) || f.score < 0 {
				t.Errorf("%s: score %g", name, f.score)
			}
		}
	}
}

// wordEmbedder is a deterministic embedding: each word adds to a few dimensions.
type wordEmbedder struct{ err error }

func (wordEmbedder) Model() assay.Model { return assay.Model{Name: "words", Dimensions: 32} }

func (w wordEmbedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if w.err != nil {
		return nil, w.err
	}
	return embedWords(text), ctx.Err()
}

func embedWords(text string) []float32 {
	v := make([]float32, 32)
	v[0] = 0.01 // no vector is zero
	for _, word := range strings.Fields(strings.ToLower(text)) {
		h := fnv.New32a()
		h.Write([]byte(word))
		v[h.Sum32()%32]++
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// corpus indexes one document per text, with the ID d0, d1, ...
func corpus(t *testing.T, texts ...string) *index.Snapshot {
	t.Helper()
	ix, err := index.Open(slog.New(slog.DiscardHandler), t.TempDir(), index.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var batch index.Batch
	for i, text := range texts {
		id := fmt.Sprint("d", i)
		span := assay.Span{End: len(text)}
		batch.Put = append(batch.Put, index.Entry{
			Document: assay.Document{ID: id, URI: "/" + id, Title: "T" + id, Hash: "h", Text: text, Metadata: assay.Metadata{"parity": {fmt.Sprint(i % 2)}}},
			Chunks:   []assay.Chunk{{ID: assay.ChunkID(id, span, text), DocID: id, Span: span, Tokens: len(strings.Fields(text)), Text: text}},
			Vectors:  [][]float32{embedWords(text)},
		})
	}
	f := index.Fingerprint{Embedder: wordEmbedder{}.Model(), Chunker: "whole"}
	if _, err := ix.Apply(t.Context(), f, batch); err != nil {
		t.Fatal(err)
	}
	snap := ix.Snapshot()
	t.Cleanup(func() {
		snap.Close()
		if err := ix.Check(context.Background()); err != nil {
			t.Error(err)
		}
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
	})
	return snap
}

func quiet(ctx context.Context, _ assay.StageName) (context.Context, func(assay.Stage)) {
	return ctx, func(assay.Stage) {}
}

func newRetriever(t *testing.T, e Embedder, o Options) *Retriever {
	t.Helper()
	r, err := New(slog.New(slog.DiscardHandler), e, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// statuses writes stages as "embed ok, dense ok".
func statuses(stages []assay.Stage) string {
	var out []string
	for _, s := range stages {
		out = append(out, fmt.Sprintf("%s %s", s.Name, s.Status))
	}
	return strings.Join(out, ", ")
}

func TestRetrieveFusesBothChannels(t *testing.T) {
	snap := corpus(t, "rotate the signing key", "refund policy for plans", "key rotation in the changelog", "the weather")
	var seen []assay.StageName
	observe := func(ctx context.Context, _ assay.StageName) (context.Context, func(assay.Stage)) {
		return ctx, func(s assay.Stage) { seen = append(seen, s.Name) }
	}
	got, err := newRetriever(t, wordEmbedder{}, Options{}).Retrieve(t.Context(), snap, assay.Query{Text: "rotate the signing key"}, observe)
	if err != nil {
		t.Fatal(err)
	}
	if want := "embed ok, dense ok, lexical ok, fuse ok"; statuses(got.Stages) != want || fmt.Sprint(seen) != "[embed dense lexical fuse]" {
		t.Errorf("stages %s, observed %v", statuses(got.Stages), seen)
	}
	best := got.Candidates[0]
	if best.DocID != "d0" || best.Dense.Rank != 1 || best.Lexical.Rank != 1 || best.Fused.Rank != 1 || best.Text != "rotate the signing key" || best.Title != "Td0" {
		t.Errorf("the best candidate is %+v", best)
	}
	for i, c := range got.Candidates {
		if c.Fused.Rank != i+1 || c.Dense == nil && c.Lexical == nil {
			t.Errorf("candidate %d has the places %+v", i, c)
		}
	}
}

func TestFilterHoldsInBothChannels(t *testing.T) {
	snap := corpus(t, "key one", "key two", "key three", "key four")
	f := assay.Filter{Conditions: []assay.Condition{{Field: "parity", Op: assay.AnyOf, Values: []string{"1"}}}}
	got, err := newRetriever(t, wordEmbedder{}, Options{}).Retrieve(t.Context(), snap, assay.Query{Text: "key", Filter: f}, quiet)
	if err != nil || len(got.Candidates) != 2 {
		t.Fatalf("%d candidates, %v", len(got.Candidates), err)
	}
	for _, c := range got.Candidates {
		if c.DocID != "d1" && c.DocID != "d3" || c.Dense == nil || c.Lexical == nil {
			t.Errorf("%+v passed", c)
		}
	}
	f.Conditions[0].Values[0] = "nothing"
	if got, err := newRetriever(t, wordEmbedder{}, Options{}).Retrieve(t.Context(), snap, assay.Query{Text: "key", Filter: f}, quiet); err != nil || len(got.Candidates) != 0 {
		t.Errorf("a filter that nothing passes returned %d candidates, %v", len(got.Candidates), err)
	}
}

func TestDepthBoundsTheCandidates(t *testing.T) {
	snap := corpus(t, "key a", "key b", "key c", "key d", "key e")
	for _, depth := range []int{1, 3, 10} {
		got, err := newRetriever(t, wordEmbedder{}, Options{Depth: 2}).Retrieve(t.Context(), snap, assay.Query{Text: "key", Depth: depth}, quiet)
		if err != nil || len(got.Candidates) != min(depth, 5) {
			t.Errorf("depth %d: %d candidates, %v", depth, len(got.Candidates), err)
		}
	}
}

func TestAFailingChannelDegradesVisibly(t *testing.T) {
	snap := corpus(t, "rotate the key", "refund")
	tests := []struct {
		name   string
		err    error
		status string
	}{
		{"error", errors.New("the endpoint answered 500"), "embed error, dense skipped, lexical ok, fuse ok"},
		{"unreachable", fmt.Errorf("dial: %w", assay.ErrUnavailable), "embed unavailable, dense skipped, lexical ok, fuse ok"},
		{"timeout", context.DeadlineExceeded, "embed timeout, dense skipped, lexical ok, fuse ok"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := newRetriever(t, wordEmbedder{tt.err}, Options{}).Retrieve(t.Context(), snap, assay.Query{Text: "key"}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			if statuses(got.Stages) != tt.status {
				t.Errorf("stages %s, want %s", statuses(got.Stages), tt.status)
			}
			if s := got.Stages[0]; s.Fallback != "lexical channel alone" || s.Reason == "" {
				t.Errorf("the embed stage is %+v", s)
			}
			if len(got.Candidates) != 1 || got.Candidates[0].Dense != nil {
				t.Errorf("candidates %+v", got.Candidates)
			}
		})
	}
	t.Run("policy fail", func(t *testing.T) {
		_, err := newRetriever(t, wordEmbedder{errors.New("500")}, Options{OnFailure: Fail}).Retrieve(t.Context(), snap, assay.Query{Text: "key"}, quiet)
		if !errors.Is(err, assay.ErrDegraded) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no other channel", func(t *testing.T) {
		_, err := newRetriever(t, wordEmbedder{errors.New("500")}, Options{DenseWeight: 1}).Retrieve(t.Context(), snap, assay.Query{Text: "key"}, quiet)
		if err == nil || !strings.Contains(err.Error(), "no channel") {
			t.Errorf("error %v", err)
		}
	})
}

// hanging never answers before its context ends.
type hanging struct{ wordEmbedder }

func (hanging) EmbedQuery(ctx context.Context, _ string) ([]float32, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestTheDeadlineIsReached(t *testing.T) {
	snap := corpus(t, "rotate the key")
	got, err := newRetriever(t, hanging{}, Options{Timeout: 200 * time.Millisecond}).Retrieve(t.Context(), snap, assay.Query{Text: "key"}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if got.Stages[0].Status != assay.StatusTimeout || len(got.Candidates) > 1 {
		t.Errorf("stages %s", statuses(got.Stages))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newRetriever(t, hanging{}, Options{}).Retrieve(ctx, snap, assay.Query{Text: "key"}, quiet); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that went away: %v", err)
	}
}

func TestAChannelWithoutWeightIsOff(t *testing.T) {
	snap := corpus(t, "rotate the key", "refund")
	got, err := newRetriever(t, hanging{}, Options{LexicalWeight: 1}).Retrieve(t.Context(), snap, assay.Query{Text: "key"}, quiet)
	if err != nil || statuses(got.Stages) != "embed disabled, dense disabled, lexical ok, fuse ok" {
		t.Errorf("stages %s, %v", statuses(got.Stages), err)
	}
}

func TestOptionsReportEveryProblem(t *testing.T) {
	err := Options{Depth: -1, RRFK: -1, DenseWeight: -1, OnFailure: "ignore"}.Validate()
	for _, key := range []string{"retriever.depth", "retriever.rrf_k", "weights", "retriever.on_failure"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v does not name %s", err, key)
		}
	}
}
