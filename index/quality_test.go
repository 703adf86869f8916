package index_test

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"assay"
	"assay/index"
)

// collection is a public retrieval collection in the BEIR layout.
type collection struct {
	corpus  []record
	queries []record
	qrels   map[string]map[string]int // query -> document -> gain
}

type record struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

func loadCollection(tb testing.TB, name string) *collection {
	tb.Helper()
	dir := filepath.Join("..", "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(dir); err != nil {
		tb.Skipf("the public collection %s is not there", name)
	}
	c := &collection{qrels: map[string]map[string]int{}}
	lines(tb, filepath.Join(dir, "corpus.jsonl"), func(line []byte) {
		c.corpus = append(c.corpus, decode[record](tb, line))
	})
	lines(tb, filepath.Join(dir, "queries.jsonl"), func(line []byte) {
		c.queries = append(c.queries, decode[record](tb, line))
	})
	header := true
	lines(tb, filepath.Join(dir, "qrels.tsv"), func(line []byte) {
		parts := strings.Split(string(line), "\t")
		if header {
			header = false
			return
		}
		gain, err := strconv.Atoi(parts[2])
		if err != nil {
			tb.Fatal(err)
		}
		if c.qrels[parts[0]] == nil {
			c.qrels[parts[0]] = map[string]int{}
		}
		c.qrels[parts[0]][parts[1]] = gain
	})
	return c
}

func lines(tb testing.TB, path string, each func([]byte)) {
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		each(scanner.Bytes())
	}
	if err := scanner.Err(); err != nil {
		tb.Fatal(err)
	}
}

func decode[T any](tb testing.TB, data []byte) (out T) {
	if err := json.Unmarshal(data, &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

// entries makes one chunk of each document.
func (c *collection) entries() []index.Entry {
	var out []index.Entry
	for i, r := range c.corpus {
		d := assay.Document{ID: r.ID, URI: r.ID, Title: r.Title, Text: r.Text}
		e := index.Entry{Document: d}
		if r.Title != "" || r.Text != "" {
			e.Chunks = []assay.Chunk{chunkOf(d, 0, len(d.Text), 0)}
			e.Vectors = [][]float32{vectorOf(i, testDimensions)}
		}
		out = append(out, e)
	}
	return out
}

// ndcg is the mean nDCG@10 of the lexical channel, with linear gain and log2 discount as trec_eval
// computes it, over all judged queries.
func (c *collection) ndcg(tb testing.TB, s *index.Snapshot) float64 {
	sum, judged := 0.0, 0
	for _, q := range c.queries {
		gains := c.qrels[q.ID]
		ideal := slices.Sorted(func(yield func(int) bool) {
			for _, g := range gains {
				if g > 0 && !yield(-g) {
					return
				}
			}
		})
		if len(ideal) == 0 {
			continue
		}
		judged++
		hits, err := s.Lexical(tb.Context(), q.Text, 10, assay.Filter{})
		if err != nil {
			tb.Fatal(err)
		}
		dcg, best := 0.0, 0.0
		for i, h := range hits {
			_, d, err := s.Chunk(h.Row)
			if err != nil {
				tb.Fatal(err)
			}
			dcg += float64(max(gains[d.ID], 0)) / math.Log2(float64(i+2))
		}
		for i, g := range ideal[:min(10, len(ideal))] {
			best += float64(-g) / math.Log2(float64(i+2))
		}
		sum += dcg / best
	}
	return sum / float64(judged)
}

// put stores entries in batches.
func put(tb testing.TB, ix *index.Index, entries []index.Entry, size int) {
	tb.Helper()
	for batch := range slices.Chunk(entries, size) {
		if _, err := ix.Apply(tb.Context(), testFingerprint, index.Batch{Put: batch}); err != nil {
			tb.Fatal(err)
		}
	}
}

// Anserini's BM25 over title and text reaches 0.6789 on this collection.
func TestRankingOfScifactIsTextbookBM25(t *testing.T) {
	t.Parallel()
	c := loadCollection(t, "scifact")
	ix := open(t, t.TempDir(), index.Options{})
	put(t, ix, c.entries(), 1000)
	s := ix.Snapshot()
	defer s.Close()
	got := c.ndcg(t, s)
	t.Logf("nDCG@10 %.4f", got)
	if got < 0.67 {
		t.Errorf("nDCG@10 is %.4f, below 0.67", got)
	}
}

// BenchmarkRanking reports the quality of the lexical channel on each public collection, with one
// chunk a document.
func BenchmarkRanking(b *testing.B) {
	for _, name := range []string{"scifact", "cranfield", "cisi", "debian_faq", "anthropic_docs", "mtrag_un/ibmcloud", "mtrag_un/fiqa", "hotpotqa_small"} {
		b.Run(strings.ReplaceAll(name, "/", "_"), func(b *testing.B) {
			c := loadCollection(b, name)
			ix := open(b, b.TempDir(), index.Options{})
			put(b, ix, c.entries(), 1000)
			s := ix.Snapshot()
			defer s.Close()
			quality := 0.0
			for b.Loop() {
				quality = c.ndcg(b, s)
			}
			b.ReportMetric(quality, "nDCG@10")
		})
	}
}
