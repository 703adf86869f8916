package index_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"assay"
	"assay/index"
)

// reference is BM25F as the textbook has it, over documents in memory.
type reference struct {
	o    index.Options
	docs map[string]index.Entry // by document ID
}

type scored struct {
	chunk string
	score float64
}

// fields are a chunk's terms per field, title first. The corpus of these tests consists of lower-case
// words, for which the analyser "simple" does nothing but split.
func fields(e *index.Entry, c assay.Chunk) [3][]string {
	return [3][]string{strings.Fields(e.Document.Title), strings.Fields(strings.Join(c.Headings, " ")), strings.Fields(c.Text)}
}

func (r *reference) search(query string) []scored {
	weights := [3]float64{r.o.TitleWeight, r.o.HeadingWeight, r.o.BodyWeight}
	var totals [3]int
	n := 0
	chunks := map[string][3][]string{}
	for _, e := range r.docs {
		for _, c := range e.Chunks {
			fs := fields(&e, c)
			chunks[c.ID] = fs
			n++
			for f := range fs {
				totals[f] += len(fs[f])
			}
		}
	}
	average := 0.0
	for f, total := range totals {
		average += weights[f] * float64(total)
	}
	average /= float64(n)
	scores := map[string]float64{}
	terms := strings.Fields(query)
	slices.Sort(terms)
	for i := 0; i < len(terms); {
		term, times := terms[i], 0
		for ; i < len(terms) && terms[i] == term; i++ {
			times++
		}
		tfs, df := map[string]float64{}, 0
		for id, fs := range chunks {
			tf, present := 0.0, false
			for f, words := range fs {
				for _, w := range words {
					if w == term {
						tf += weights[f]
						present = true
					}
				}
			}
			if present {
				tfs[id] = tf
				df++
			}
		}
		idf := math.Log(1 + (float64(n-df)+0.5)/(float64(df)+0.5))
		for id, tf := range tfs {
			length := 0.0
			for f, words := range chunks[id] {
				length += weights[f] * float64(len(words))
			}
			scores[id] += float64(times) * idf * tf * (r.o.K1 + 1) / (tf + r.o.K1*(1-r.o.B+r.o.B*length/average))
		}
	}
	var out []scored
	for id, score := range scores {
		out = append(out, scored{id, score})
	}
	slices.SortFunc(out, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.chunk, b.chunk))
	})
	return out
}

func words(r *rand.Rand, n int) string {
	out := make([]string, n)
	for i := range out {
		// Squared, so that there are frequent and rare words.
		x := r.Float64()
		out[i] = string(rune('a'+int(x*x*20))) + "x"
	}
	return strings.Join(out, " ")
}

// randomEntry is a document of up to four chunks, under one of few IDs, so that many are replaced.
func randomEntry(r *rand.Rand, id string) index.Entry {
	d := assay.Document{ID: id, URI: "uri/" + id, Title: words(r, r.IntN(4)), Metadata: assay.Metadata{"n": {fmt.Sprint(r.IntN(3))}}}
	d.Text = words(r, 1+r.IntN(60))
	e := index.Entry{Document: d}
	chunks := 1 + r.IntN(min(4, len(d.Text)/3+1))
	for i := range chunks {
		// Words are two letters and a blank, so chunks can begin at every third byte.
		start, end := i*len(d.Text)/chunks/3*3, (i+1)*len(d.Text)/chunks/3*3
		if i == chunks-1 {
			end = len(d.Text)
		}
		c := chunkOf(d, start, end, i)
		if r.IntN(2) == 0 {
			c.Headings = []string{words(r, 1), words(r, 2)}
		}
		if c.Text != "" && !slices.ContainsFunc(e.Chunks, func(o assay.Chunk) bool { return o.ID == c.ID }) {
			e.Chunks = append(e.Chunks, c)
			e.Vectors = append(e.Vectors, vectorOf(r.IntN(1000), testDimensions))
		}
	}
	return e
}

// The scores of a corpus depend on what is in it and on nothing else: not on how it was cut into
// batches, what was replaced or deleted on the way, or how segments were merged.
func TestScoresEqualTextbookBM25FWhateverTheHistory(t *testing.T) {
	t.Parallel()
	o := index.Options{Analyzer: "simple", K1: 1.2, B: 0.75, TitleWeight: 2, HeadingWeight: 1.5, BodyWeight: 1}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			ix := open(t, t.TempDir(), o)
			ref := &reference{o: o, docs: map[string]index.Entry{}}
			for range 12 {
				var b index.Batch
				touched := map[string]bool{}
				for range 1 + r.IntN(30) {
					id := fmt.Sprint("d", r.IntN(80))
					if touched[id] {
						continue
					}
					touched[id] = true
					if r.IntN(4) == 0 {
						b.Delete = append(b.Delete, id)
						delete(ref.docs, id)
						continue
					}
					e := randomEntry(r, id)
					b.Put = append(b.Put, e)
					ref.docs[id] = e
				}
				if _, err := ix.Apply(t.Context(), testFingerprint, b); err != nil {
					t.Fatal(err)
				}
				compareScores(t, ix, ref, r)
			}
			// The same corpus, made in one step.
			var whole index.Batch
			for _, id := range slices.Sorted(mapKeys(ref.docs)) {
				whole.Put = append(whole.Put, ref.docs[id])
			}
			once := open(t, t.TempDir(), o)
			if _, err := once.Apply(t.Context(), testFingerprint, whole); err != nil {
				t.Fatal(err)
			}
			compareScores(t, once, ref, r)
		})
	}
}

func mapKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func compareScores(t *testing.T, ix *index.Index, ref *reference, r *rand.Rand) {
	t.Helper()
	s := ix.Snapshot()
	defer s.Close()
	for range 5 {
		query := words(r, 1+r.IntN(6))
		hits, err := s.Lexical(t.Context(), query, 1<<30, assay.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		want := ref.search(query)
		if len(hits) != len(want) {
			t.Fatalf("query %q: %d hits, want %d", query, len(hits), len(want))
		}
		for i, h := range hits {
			c, _, err := s.Chunk(h.Row)
			if err != nil {
				t.Fatal(err)
			}
			// The scores are equal to the bit, since both add in the order of the terms.
			if c.ID != want[i].chunk || h.Score != want[i].score || h.Rank != i+1 {
				t.Fatalf("query %q, place %d: chunk %s with %v at rank %d, want %s with %v", query, i, c.ID, h.Score, h.Rank, want[i].chunk, want[i].score)
			}
		}
	}
}

func TestLongQueryKeepsItsRarestTerms(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{Analyzer: "simple", MaxQueryTerms: 2})
	var b index.Batch
	for i, text := range []string{"common often rare", "common often", "common often", "common"} {
		d := assay.Document{ID: fmt.Sprint(i), Text: text}
		b.Put = append(b.Put, index.Entry{Document: d, Chunks: []assay.Chunk{chunkOf(d, 0, len(text), 0)}, Vectors: [][]float32{vectorOf(i, testDimensions)}})
	}
	if _, err := ix.Apply(t.Context(), testFingerprint, b); err != nil {
		t.Fatal(err)
	}
	s := ix.Snapshot()
	defer s.Close()
	// "absent" occurs nowhere and must not take the place of a term that does.
	hits, err := s.Lexical(t.Context(), "absent common often rare", 10, assay.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(hits) != 3 {
		t.Errorf("%d hits, want the 3 chunks that hold one of the two rarest terms", len(hits))
	}
}

func TestQuerySyntaxIsPlainText(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	d := assay.Document{ID: "1", Text: "rotate the signing key"}
	e := index.Entry{Document: d, Chunks: []assay.Chunk{chunkOf(d, 0, len(d.Text), 0)}, Vectors: [][]float32{vectorOf(1, testDimensions)}}
	if _, err := ix.Apply(t.Context(), testFingerprint, index.Batch{Put: []index.Entry{e}}); err != nil {
		t.Fatal(err)
	}
	s := ix.Snapshot()
	defer s.Close()
	for query, want := range map[string]int{
		`"rotate" AND -key^3 title:(~2`: 1, "*": 0, "rot*": 0, "/.*/": 0, "": 0, " \x00\xff": 0, "the of and": 0, "ROTATING": 1,
	} {
		hits, err := s.Lexical(t.Context(), query, 10, assay.Filter{})
		if err != nil || len(hits) != want {
			t.Errorf("query %q: %d hits, %v; want %d", query, len(hits), err, want)
		}
	}
}
