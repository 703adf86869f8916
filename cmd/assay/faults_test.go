package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"assay"
	"assay/chunker"
	"assay/engine"
	"assay/generate"
	"assay/index"
	"assay/ingest"
	"assay/rerank"
	"assay/rerank/reranktest"
	"assay/retriever"
	"assay/server"
	"assay/traces"
)

// flat is an embedder to which all texts are alike, so that every page is a candidate.
type flat struct{}

func (flat) Model() assay.Model { return assay.Model{Name: "flat", Dimensions: 2} }

func (flat) EmbedQuery(context.Context, string) ([]float32, error) { return []float32{1, 0}, nil }

func (flat) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1, 0}
	}
	return out, nil
}

// stack is everything below the server, except the reranker.
func stack(t *testing.T) (engine.Deps, *traces.Provider) {
	t.Helper()
	lg := slog.New(slog.DiscardHandler)
	ix, err1 := index.Open(lg, t.TempDir(), index.Options{})
	chunks, err2 := chunker.New(chunker.Options{})
	retrieve, err3 := retriever.New(lg, flat{}, retriever.Options{})
	tracing, err4 := traces.Setup(t.Context(), lg, traces.Options{})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(ix.Close(), tracing.Shutdown(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return engine.Deps{
		Index: ix, Chunker: chunks, Embedder: flat{}, Retriever: retrieve, Traces: tracing,
		Generator: generate.NewExtractive(lg, generate.ExtractiveOptions{}),
	}, tracing
}

func TestHeadersSayWhatBecameOfTheReranker(t *testing.T) {
	deps, tracing := stack(t)
	lg := slog.New(slog.DiscardHandler)
	serve := func(t *testing.T, n http.RoundTripper, policy assay.FallbackPolicy) http.Handler {
		client, err := rerank.New(lg, rerank.Options{URL: reranktest.URL, Transport: n, Timeout: 500 * time.Millisecond, Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		d := deps
		d.Reranker = client
		e, err := engine.New(lg, d, engine.Options{Keep: 1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := server.New(lg, e, tracing.TracerProvider(), server.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, err := engine.New(lg, func() engine.Deps {
		d := deps
		d.Reranker, _ = rerank.New(lg, rerank.Options{})
		return d
	}(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Ingest(t.Context(), []ingest.Root{ingest.FSRoot("docs", fstest.MapFS{
		"refunds.md": {Data: []byte("# Refunds\n\nA refund takes five business days.\n")},
		"keys.md":    {Data: []byte("# Keys\n\nA key is rotated every year.\n")},
		"limits.md":  {Data: []byte("# Limits\n\nThe limit is ten requests.\n")},
	})}, engine.IngestOptions{}); err != nil {
		t.Fatal(err)
	}

	for _, fault := range reranktest.Faults() {
		for _, policy := range []assay.FallbackPolicy{assay.FallbackFused, assay.FallbackWiden, assay.FallbackFail} {
			for _, stream := range []bool{false, true} {
				name := fault.Name + "/" + string(policy)
				body := `{"question":"how long does a refund take?"}`
				if stream {
					name, body = name+"/stream", `{"question":"how long does a refund take?","stream":true}`
				}
				t.Run(name, func(t *testing.T) {
					w := httptest.NewRecorder()
					synctest.Test(t, func(t *testing.T) {
						n := reranktest.NewNetwork(fault.Serve)
						defer n.Close()
						r := httptest.NewRequest(http.MethodPost, "/v1/answer", strings.NewReader(body))
						r.Header.Set("Content-Type", "application/json")
						serve(t, n, policy).ServeHTTP(w, r)
					})
					checkHeaders(t, w, deps.Index, fault.Status, policy, stream)
				})
			}
		}
	}
}

func checkHeaders(t *testing.T, w *httptest.ResponseRecorder, ix *index.Index, status assay.RerankStatus, policy assay.FallbackPolicy, stream bool) {
	t.Helper()
	m, err := ix.Manifest(w.Header().Get("Assay-Manifest"))
	if err != nil {
		t.Fatalf("the manifest in the header: %v; %s", err, w.Body)
	}
	if got := w.Header().Get("Assay-Rerank-Status"); got != string(status) || m.Reranker.Status != status {
		t.Errorf("the header says %q, the manifest %q, want %q", got, m.Reranker.Status, status)
	}
	failed := status != assay.RerankOK
	if degraded := w.Header().Get("Assay-Degraded"); (degraded == "rerank") != failed || failed != (len(m.Degraded) == 1) {
		t.Errorf("the header says %q, the manifest %v", degraded, m.Degraded)
	}
	if failed && policy == assay.FallbackFail {
		checkRefusal(t, w, m)
		return
	}
	if w.Code != http.StatusOK || m.Answer.TextHash == "" || m.Error != "" {
		t.Errorf("code %d, answer %+v, error %q", w.Code, m.Answer, m.Error)
	}
	if stream {
		if !strings.Contains(w.Body.String(), "event: done") {
			t.Errorf("the stream does not end well: %s", w.Body)
		}
		return
	}
	var answer struct {
		Answer   string          `json:"answer"`
		Manifest *assay.Manifest `json:"manifest"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Answer == "" || answer.Manifest.Reranker != m.Reranker {
		t.Errorf("%v: %s", err, w.Body)
	}
}

// checkRefusal looks at the answer under the policy to refuse, which is the same for a stream: it does
// not begin before it is known whether the reranker ranked.
func checkRefusal(t *testing.T, w *httptest.ResponseRecorder, m *assay.Manifest) {
	t.Helper()
	var p struct {
		Status   int    `json:"status"`
		Type     string `json:"type"`
		Detail   string `json:"detail"`
		Stage    string `json:"stage"`
		Manifest string `json:"manifest"`
	}
	err := json.Unmarshal(w.Body.Bytes(), &p)
	if w.Code != http.StatusServiceUnavailable || err != nil || p.Status != http.StatusServiceUnavailable || p.Stage != "rerank" || p.Manifest != m.ID || !strings.Contains(p.Detail, m.Reranker.Error) {
		t.Errorf("code %d, %v, problem %+v: %s", w.Code, err, p, w.Body)
	}
}
