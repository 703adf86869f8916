package index_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"

	"assay"
	"assay/index"
)

const benchDimensions = 256

var benchFingerprint = index.Fingerprint{Embedder: assay.Model{Name: "bench", Dimensions: benchDimensions}, Chunker: "bench"}

// benchEntries makes documents of ten chunks of about 100 words each, with a vocabulary that is
// distributed like that of a language.
func benchEntries(from, documents int) []index.Entry {
	r := rand.New(rand.NewPCG(uint64(from), 2))
	zipf := rand.NewZipf(r, 1.1, 4, 50_000)
	var out []index.Entry
	for n := range documents {
		var text strings.Builder
		var ends []int
		for range 10 {
			for range 100 {
				fmt.Fprintf(&text, "w%dx ", zipf.Uint64())
			}
			ends = append(ends, text.Len())
		}
		d := assay.Document{ID: fmt.Sprint("d", from+n), URI: fmt.Sprint("docs/", from+n), Title: fmt.Sprintf("w%dx guide", zipf.Uint64()), Text: text.String()}
		e := index.Entry{Document: d}
		start := 0
		for i, end := range ends {
			e.Chunks = append(e.Chunks, chunkOf(d, start, end, i, "Setup"))
			e.Vectors = append(e.Vectors, vectorOf(from*10+n*10+i, benchDimensions))
			start = end
		}
		out = append(out, e)
	}
	return out
}

// BenchmarkApply stores batches of 1,000 chunks; bleve alone indexes the same texts for comparison.
func BenchmarkApply(b *testing.B) {
	b.Run("apply", func(b *testing.B) {
		ix := open(b, b.TempDir(), index.Options{})
		chunks := 0
		for b.Loop() {
			b.StopTimer()
			batch := benchEntries(chunks/10, 100)
			b.StartTimer()
			if _, err := ix.Apply(b.Context(), benchFingerprint, index.Batch{Put: batch}); err != nil {
				b.Fatal(err)
			}
			chunks += 1000
		}
		b.ReportMetric(float64(chunks)/b.Elapsed().Seconds(), "chunks/s")
	})
	b.Run("cache_and_apply", func(b *testing.B) {
		ix := open(b, b.TempDir(), index.Options{})
		chunks := 0
		for b.Loop() {
			b.StopTimer()
			batch := benchEntries(chunks/10, 100)
			var hashes []string
			var vectors [][]float32
			for _, e := range batch {
				for i, c := range e.Chunks {
					hashes, vectors = append(hashes, assay.HashText(c.Text)), append(vectors, e.Vectors[i])
				}
			}
			b.StartTimer()
			if err := ix.PutVectors(benchFingerprint.Embedder, hashes, vectors); err != nil {
				b.Fatal(err)
			}
			if _, err := ix.Apply(b.Context(), benchFingerprint, index.Batch{Put: batch}); err != nil {
				b.Fatal(err)
			}
			chunks += 1000
		}
		b.ReportMetric(float64(chunks)/b.Elapsed().Seconds(), "chunks/s")
	})
	b.Run("bleve", func(b *testing.B) {
		ix := leanBleve(b)
		chunks := 0
		for b.Loop() {
			b.StopTimer()
			entries := benchEntries(chunks/10, 100)
			b.StartTimer()
			batch := ix.NewBatch()
			for _, e := range entries {
				for _, c := range e.Chunks {
					fields := map[string]string{"title": e.Document.Title, "heading": c.Headings[0], "body": c.Text}
					if err := batch.Index(c.ID, fields); err != nil {
						b.Fatal(err)
					}
				}
			}
			if err := ix.Batch(batch); err != nil {
				b.Fatal(err)
			}
			chunks += 1000
		}
		b.ReportMetric(float64(chunks)/b.Elapsed().Seconds(), "chunks/s")
	})
}

// leanBleve is a bleve index with the fields of ours, indexed and nothing else.
func leanBleve(tb testing.TB) bleve.Index {
	field := bleve.NewTextFieldMapping()
	field.Analyzer, field.Store, field.DocValues, field.IncludeTermVectors, field.IncludeInAll = "en", false, false, false, false
	document := bleve.NewDocumentStaticMapping()
	for _, name := range []string{"title", "heading", "body"} {
		document.AddFieldMappingsAt(name, field)
	}
	mapping := bleve.NewIndexMapping()
	mapping.DefaultMapping = document
	ix, err := bleve.NewUsing(filepath.Join(tb.TempDir(), "bleve"), mapping, scorch.Name, scorch.Name, map[string]any{"bolt_timeout": "2s"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := ix.Close(); err != nil {
			tb.Error(err)
		}
	})
	return ix
}

// BenchmarkSearch searches a corpus of 50,000 chunks in each channel.
func BenchmarkSearch(b *testing.B) {
	ix := open(b, b.TempDir(), index.Options{})
	for from := 0; from < 5000; from += 250 {
		if _, err := ix.Apply(b.Context(), benchFingerprint, index.Batch{Put: benchEntries(from, 250)}); err != nil {
			b.Fatal(err)
		}
	}
	s := ix.Snapshot()
	defer s.Close()
	r := rand.New(rand.NewPCG(3, 3))
	zipf := rand.NewZipf(r, 1.1, 4, 50_000)
	queries := make([]string, 100)
	for i := range queries {
		for range 7 {
			queries[i] += fmt.Sprintf("w%dx ", zipf.Uint64())
		}
	}
	some := assay.Filter{Conditions: []assay.Condition{{Field: "uri", Op: assay.Prefix, Values: []string{"docs/1"}}}}
	for _, bench := range []struct {
		name   string
		filter assay.Filter
	}{{"all", assay.Filter{}}, {"filtered", some}} {
		b.Run("lexical/"+bench.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, err := s.Lexical(b.Context(), queries[i%len(queries)], 50, bench.filter); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("dense/"+bench.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, err := s.Dense(b.Context(), vectorOf(i%100, benchDimensions), 50, bench.filter); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
