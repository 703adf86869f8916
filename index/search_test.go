package index_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"assay"
	"assay/index"
)

// randomIndex holds some documents, with what was put and a third of it deleted or replaced.
func randomIndex(t *testing.T, documents int) (*index.Index, map[string]index.Entry) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 5))
	ix := open(t, t.TempDir(), index.Options{Analyzer: "simple"})
	docs := map[string]index.Entry{}
	var b index.Batch
	for i := range documents {
		e := randomEntry(r, fmt.Sprint("d", i))
		b.Put, docs[e.Document.ID] = append(b.Put, e), e
	}
	if _, err := ix.Apply(t.Context(), testFingerprint, b); err != nil {
		t.Fatal(err)
	}
	b = index.Batch{}
	for i := range documents / 3 {
		id := fmt.Sprint("d", i)
		if i%2 == 0 {
			b.Delete = append(b.Delete, id)
			delete(docs, id)
			continue
		}
		e := randomEntry(r, id)
		b.Put, docs[id] = append(b.Put, e), e
	}
	if _, err := ix.Apply(t.Context(), testFingerprint, b); err != nil {
		t.Fatal(err)
	}
	return ix, docs
}

// nearest ranks all chunks whose document passes, with plain loops over float64.
func nearest(docs map[string]index.Entry, query []float32, f assay.Filter) []scored {
	unit := func(v []float32) []float64 {
		sum := 0.0
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		out := make([]float64, len(v))
		for i, x := range v {
			out[i] = float64(x) / math.Sqrt(sum)
		}
		return out
	}
	q := unit(query)
	var out []scored
	for _, e := range docs {
		if !f.Match(&e.Document) {
			continue
		}
		for i, c := range e.Chunks {
			dot := 0.0
			for j, x := range unit(e.Vectors[i]) {
				dot += x * q[j]
			}
			out = append(out, scored{c.ID, dot})
		}
	}
	slices.SortFunc(out, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.chunk, b.chunk)) })
	return out
}

func TestDenseEqualsALoopOverAllVectors(t *testing.T) {
	t.Parallel()
	ix, docs := randomIndex(t, 200)
	s := ix.Snapshot()
	defer s.Close()
	filters := []assay.Filter{
		{},
		{Conditions: []assay.Condition{{Field: "n", Op: assay.AnyOf, Values: []string{"1"}}}},
		{Conditions: []assay.Condition{{Field: "id", Op: assay.AnyOf, Values: []string{"d7", "d199"}}}},
		{Conditions: []assay.Condition{{Field: "id", Op: assay.Not, Values: []string{"d7"}}, {Field: "n", Op: assay.GTE, Values: []string{"1"}}}},
	}
	for seed := range 20 {
		query := vectorOf(5000+seed, testDimensions)
		for i := range query {
			query[i] *= 7 // the length of a query must not matter
		}
		for _, f := range filters {
			for _, k := range []int{1, 10, 1 << 40} {
				hits, err := s.Dense(t.Context(), query, k, f)
				if err != nil {
					t.Fatal(err)
				}
				want := nearest(docs, query, f)
				want = want[:min(k, len(want))]
				if len(hits) != len(want) {
					t.Fatalf("k %d: %d hits, want %d", k, len(hits), len(want))
				}
				for i, h := range hits {
					if math.Abs(h.Score-want[i].score) > 1e-5 {
						t.Fatalf("k %d, place %d: score %v, want %v", k, i, h.Score, want[i].score)
					}
				}
			}
		}
	}
}

func TestFilterLeavesKResultsWhereKExist(t *testing.T) {
	t.Parallel()
	ix, docs := randomIndex(t, 200)
	s := ix.Snapshot()
	defer s.Close()
	ref := &reference{o: index.Options{K1: 1.2, B: 0.75, TitleWeight: 2, HeadingWeight: 1, BodyWeight: 1}, docs: docs}
	owner := map[string]*assay.Document{}
	for _, e := range docs {
		for _, c := range e.Chunks {
			owner[c.ID] = &e.Document
		}
	}
	for _, f := range []assay.Filter{
		{Conditions: []assay.Condition{{Field: "n", Op: assay.AnyOf, Values: []string{"2"}}}},
		{Conditions: []assay.Condition{{Field: "uri", Op: assay.Prefix, Values: []string{"uri/d19"}}}},
		{Conditions: []assay.Condition{{Field: "n", Op: assay.AnyOf, Values: []string{"nothing has this"}}}},
	} {
		// Scores are those of the whole corpus: a filter selects, it does not change what a term is worth.
		want := slices.DeleteFunc(ref.search("ax tx cx"), func(s scored) bool { return !f.Match(owner[s.chunk]) })
		for range 2 { // the second time the filter is remembered
			for _, k := range []int{3, 1000} {
				hits, err := s.Lexical(t.Context(), "ax tx cx", k, f)
				if err != nil {
					t.Fatal(err)
				}
				if len(hits) != min(k, len(want)) {
					t.Fatalf("filter %v, k %d: %d hits, %d match", f, k, len(hits), len(want))
				}
				for i, h := range hits {
					if c, _, err := s.Chunk(h.Row); err != nil || c.ID != want[i].chunk || h.Score != want[i].score {
						t.Fatalf("filter %v, place %d: %s %v, want %s %v (%v)", f, i, c.ID, h.Score, want[i].chunk, want[i].score, err)
					}
				}
			}
		}
	}
}

func TestEqualScoresAreOrderedByChunkID(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	var b index.Batch
	for _, id := range []string{"m", "a", "z", "k"} {
		d := assay.Document{ID: id, Text: "the same passage"}
		b.Put = append(b.Put, index.Entry{Document: d, Chunks: []assay.Chunk{chunkOf(d, 0, len(d.Text), 0)}, Vectors: [][]float32{vectorOf(1, testDimensions)}})
	}
	if _, err := ix.Apply(t.Context(), testFingerprint, b); err != nil {
		t.Fatal(err)
	}
	s := ix.Snapshot()
	defer s.Close()
	for _, k := range []int{2, 4} {
		lexical, err1 := s.Lexical(t.Context(), "passage", k, assay.Filter{})
		dense, err2 := s.Dense(t.Context(), vectorOf(1, testDimensions), k, assay.Filter{})
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		for name, hits := range map[string][]index.Hit{"lexical": lexical, "dense": dense} {
			var ids []string
			for _, h := range hits {
				c, _, err := s.Chunk(h.Row)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, c.ID)
			}
			if len(ids) != k || !slices.IsSorted(ids) {
				t.Errorf("%s, k %d: %v are not in the order of their IDs", name, k, ids)
			}
		}
	}
}

func TestUnusableSearches(t *testing.T) {
	t.Parallel()
	ix, _ := randomIndex(t, 20)
	s := ix.Snapshot()
	defer s.Close()
	query := vectorOf(1, testDimensions)
	for _, k := range []int{0, -1, math.MinInt} {
		lexical, err1 := s.Lexical(t.Context(), "ax", k, assay.Filter{})
		dense, err2 := s.Dense(t.Context(), query, k, assay.Filter{})
		if len(lexical)+len(dense) > 0 || err1 != nil || err2 != nil {
			t.Errorf("k %d: %d and %d hits, %v, %v; want none and no error", k, len(lexical), len(dense), err1, err2)
		}
	}
	nan, inf := slices.Clone(query), slices.Clone(query)
	nan[3], inf[3] = float32(math.NaN()), float32(math.Inf(-1))
	for name, v := range map[string][]float32{"short": query[1:], "long": append(slices.Clone(query), 1), "none": nil, "NaN": nan, "infinite": inf, "zero": make([]float32, testDimensions)} {
		if hits, err := s.Dense(t.Context(), v, 5, assay.Filter{}); !errors.Is(err, assay.ErrInvalid) || hits != nil {
			t.Errorf("%s vector: %d hits and error %v", name, len(hits), err)
		}
	}
	malformed := assay.Filter{Conditions: []assay.Condition{{Field: "n", Op: assay.GT}}}
	if _, err := s.Lexical(t.Context(), "ax", 5, malformed); !errors.Is(err, assay.ErrFilter) {
		t.Errorf("filter without a value: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err1 := s.Lexical(cancelled, "ax", 5, assay.Filter{})
	_, err2 := s.Dense(cancelled, query, 5, assay.Filter{})
	if !errors.Is(err1, context.Canceled) || !errors.Is(err2, context.Canceled) {
		t.Errorf("cancelled: %v, %v", err1, err2)
	}
}

func TestEmptyIndexAnswersWithNothing(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	s := ix.Snapshot()
	defer s.Close()
	lexical, err1 := s.Lexical(t.Context(), "anything", 5, assay.Filter{})
	dense, err2 := s.Dense(t.Context(), vectorOf(1, 3), 5, assay.Filter{})
	if len(lexical)+len(dense) > 0 || err1 != nil || err2 != nil {
		t.Errorf("%d and %d hits, %v, %v", len(lexical), len(dense), err1, err2)
	}
	if s.Documents()+s.Chunks()+s.Tokens() != 0 || s.Generation() != 0 {
		t.Errorf("%d documents, %d chunks, %d tokens, generation %d", s.Documents(), s.Chunks(), s.Tokens(), s.Generation())
	}
	if _, _, err := s.Chunk(0); !errors.Is(err, index.ErrNotFound) {
		t.Errorf("row 0: %v", err)
	}
	if _, err := s.Document("a"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("document: %v", err)
	}
}
