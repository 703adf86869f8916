package index_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"

	"assay"
	"assay/index"
)

const testDimensions = 8

var testFingerprint = index.Fingerprint{Embedder: assay.Model{Name: "test", Dimensions: testDimensions}, Chunker: "test"}

// open opens an index that is checked and closed at the end of the test.
func open(tb testing.TB, dir string, o index.Options) *index.Index {
	tb.Helper()
	ix, err := index.Open(slog.New(slog.DiscardHandler), dir, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { checkAndClose(tb, ix) })
	return ix
}

// checkAndClose runs the checker over an index, unless the test has closed it, and closes it.
func checkAndClose(tb testing.TB, ix *index.Index) {
	tb.Helper()
	// The test's own context has ended by the time its cleanup runs.
	if err := ix.Check(context.Background()); err != nil && !errors.Is(err, index.ErrClosed) {
		tb.Error(err)
	}
	if err := ix.Close(); err != nil {
		tb.Error(err)
	}
}

func chunkOf(d assay.Document, start, end, ordinal int, headings ...string) assay.Chunk {
	span := assay.Span{Start: start, End: end}
	text := d.Text[start:end]
	return assay.Chunk{
		ID: assay.ChunkID(d.ID, span, text), DocID: d.ID, Ordinal: ordinal, Span: span,
		Headings: headings, Tokens: end - start, Text: text,
	}
}

// vectorOf is a vector that depends on nothing but its number.
func vectorOf(seed, dimensions int) []float32 {
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	v := make([]float32, dimensions)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}
