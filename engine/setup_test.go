package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"assay"
	"assay/chunker"
	"assay/generate"
	"assay/index"
	"assay/ingest"
	"assay/rerank"
	"assay/retriever"
	"assay/traces"
)

// words is a deterministic embedder that fails when told to.
type words struct {
	err   error
	texts int // that were embedded as documents
}

func (*words) Model() assay.Model { return assay.Model{Name: "words", Dimensions: 16} }

func (w *words) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	return wordVector(text), w.err
}

func (w *words) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	if w.err != nil {
		return nil, w.err
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = wordVector(text)
	}
	w.texts += len(texts)
	return out, nil
}

func wordVector(text string) []float32 {
	v := make([]float32, 16)
	v[0] = 0.01 // no vector is zero
	for _, word := range strings.Fields(strings.ToLower(text)) {
		h := fnv.New32a()
		h.Write([]byte(word))
		v[h.Sum32()%16]++
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x * x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// world is an engine with everything that a test wants to look at.
type world struct {
	*Engine
	words  *words
	index  *index.Index
	log    bytes.Buffer
	spans  *tracetest.InMemoryExporter
	traces *traces.Provider
}

// setup is what a test can choose.
type setup struct {
	dir       string
	rerank    rerank.Options
	options   Options
	retriever retriever.Options
	chunker   chunker.Options
	generator Generator
	verifier  *generate.Verifier
	relevance func(string, generate.Passage) float64
}

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{words: &words{}, spans: tracetest.NewInMemoryExporter()}
	lg := slog.New(slog.NewTextHandler(&w.log, nil))
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	w.index, err = index.Open(lg, s.dir, index.Options{})
	must(err)
	w.traces, err = traces.Setup(t.Context(), lg, traces.Options{Exporters: []sdktrace.SpanExporter{w.spans}})
	must(err)
	chunks, err := chunker.New(s.chunker)
	must(err)
	retrieve, err := retriever.New(lg, w.words, s.retriever)
	must(err)
	reranker, err := rerank.New(lg, s.rerank)
	must(err)
	if s.generator == nil {
		s.generator = generate.NewExtractive(lg, generate.ExtractiveOptions{Count: chunks.Tokenizer().Count})
	}
	w.Engine, err = New(lg, Deps{
		Index: w.index, Chunker: chunks, Embedder: w.words, Retriever: retrieve,
		Reranker: reranker, Generator: s.generator, Verifier: s.verifier, Traces: w.traces, Relevance: s.relevance,
	}, s.options)
	must(err)
	t.Cleanup(func() {
		ctx := context.Background()
		reranker.Close()
		if err := w.index.Check(ctx); err != nil {
			t.Error(err)
		}
		if err := errors.Join(w.index.Close(), w.traces.Shutdown(ctx)); err != nil {
			t.Error(err)
		}
	})
	return w
}

// pages are a small corpus with a policy that has an older version.
func pages() fstest.MapFS {
	return fstest.MapFS{
		"keys.md":        {Data: []byte("# Rotate a signing key\n\nCreate the new key. Promote the new key with an overlap of 24 hours. Retire the old key.\n")},
		"refunds.md":     {Data: []byte("---\nsupersedes: old/refunds.md\n---\n# Refund policy\n\nA refund is returned within 5 business days of approval.\n")},
		"old/refunds.md": {Data: []byte("# Refund policy (2022)\n\nA refund is returned within 10 business days of approval.\n")},
		"weather.html":   {Data: []byte("<html><head><title>Weather</title></head><body><main><p>The weather is not covered by the warranty.</p></main></body></html>")},
	}
}

func (w *world) ingest(t *testing.T, fsys fs.FS, o IngestOptions) Summary {
	t.Helper()
	s, err := w.Ingest(t.Context(), []ingest.Root{ingest.FSRoot("docs", fsys)}, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// counts writes what a run did.
func counts(s Summary) string {
	return fmt.Sprintf("%d added, %d changed, %d unchanged, %d removed, %d skipped", s.Added, s.Changed, s.Unchanged, s.Removed, len(s.Skipped))
}

// finds reports whether a text is found in either channel.
func (w *world) finds(t *testing.T, text string) bool {
	t.Helper()
	r, err := w.Search(t.Context(), assay.Query{Text: text, Keep: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Candidates {
		if strings.Contains(c.Text, text) {
			return true
		}
	}
	return false
}

// slowReranker answers only when the request ends.
func slowReranker(t *testing.T) string {
	t.Helper()
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-stop:
		}
	}))
	t.Cleanup(func() { close(stop); s.Close() })
	return s.URL
}

// attributes finds a span by its name and returns its attributes.
func (w *world) attributes(t *testing.T, name string) map[attribute.Key]attribute.Value {
	t.Helper()
	out := make(map[attribute.Key]attribute.Value)
	for _, s := range w.spans.GetSpans() {
		if s.Name == name {
			for _, kv := range s.Attributes {
				out[kv.Key] = kv.Value
			}
			return out
		}
	}
	t.Fatalf("there is no span %q", name)
	return nil
}

func (w *world) flush(t *testing.T) {
	t.Helper()
	if err := w.traces.TracerProvider().(*sdktrace.TracerProvider).ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
}
