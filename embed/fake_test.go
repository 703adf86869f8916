package embed

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay"
)

// wireRequest is what an endpoint receives.
type wireRequest struct {
	Input      []string `json:"input"`
	Model      string   `json:"model"`
	Dimensions *int     `json:"dimensions"`
}

// fakeServer is an endpoint that answers well unless broken says otherwise, and that can be read back.
type fakeServer struct {
	*httptest.Server
	dims int
	// broken, if set, answers the request with this number (from 1) instead and returns true.
	broken func(n int, w http.ResponseWriter, r *http.Request, in wireRequest) bool

	mu       sync.Mutex // guards what follows
	requests []wireRequest
	headers  []http.Header
	queries  []string
	running  int
	most     int
}

func newFakeServer(t *testing.T) *fakeServer {
	f := &fakeServer{dims: 4}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in wireRequest
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.requests = append(f.requests, in)
	f.headers = append(f.headers, r.Header)
	f.queries = append(f.queries, r.URL.RawQuery)
	n := len(f.requests)
	f.running++
	f.most = max(f.most, f.running)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.running--
		f.mu.Unlock()
	}()
	if r.URL.Path != "/v1/embeddings" {
		http.NotFound(w, r)
		return
	}
	if f.broken != nil && f.broken(n, w, r, in) {
		return
	}
	writeJSON(w, answerFor(in, f.dims))
}

// sent returns the texts of all requests, request by request.
func (f *fakeServer) sent() []wireRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

func (f *fakeServer) count() int { return len(f.sent()) }

type wireVector struct {
	Object    string    `json:"object"`
	Embedding []float32 `json:"embedding"`
	Index     int       `json:"index"`
}

type wireAnswer struct {
	Object string         `json:"object"`
	Data   []wireVector   `json:"data"`
	Model  string         `json:"model"`
	Usage  map[string]int `json:"usage,omitempty"`
}

func answerFor(in wireRequest, dims int) wireAnswer {
	out := wireAnswer{Object: "list", Model: in.Model, Usage: map[string]int{}}
	for i, text := range in.Input {
		out.Data = append(out.Data, wireVector{"embedding", rawVector(text, dims), i})
		out.Usage["prompt_tokens"] += len(strings.Fields(text))
	}
	return out
}

// rawVector is a text's own vector, not of unit length.
func rawVector(text string, dims int) []float32 {
	v := make([]float32, dims)
	for i := range v {
		h := fnv.New32a()
		fmt.Fprint(h, i, text)
		v[i] = 1 + float32(h.Sum32()%1000)
	}
	return v
}

// unitVector is what an embedder must return for a text.
func unitVector(text string, dims int) []float32 {
	v := rawVector(text, dims)
	if err := normalize(v); err != nil {
		panic(err)
	}
	return v
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err)
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// newTestEndpoint connects to f; waits between attempts are as good as none.
func newTestEndpoint(t *testing.T, f *fakeServer, change ...func(*EndpointOptions)) *Endpoint {
	t.Helper()
	o := EndpointOptions{BaseURL: f.URL + "/v1", Model: "fake", Backoff: time.Microsecond}
	for _, c := range change {
		c(&o)
	}
	e, err := NewEndpoint(quiet(), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func numbered(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("text number %d", i)
	}
	return texts
}

// checkVectors demands exactly the vectors of texts, in their order.
func checkVectors(t *testing.T, got [][]float32, texts []string, dims int) {
	t.Helper()
	if len(got) != len(texts) {
		t.Fatalf("%d vectors for %d texts", len(got), len(texts))
	}
	for i, text := range texts {
		want := unitVector(text, dims)
		if !slices.EqualFunc(got[i], want, func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }) {
			t.Fatalf("vector %d is %v, want %v", i, got[i], want)
		}
	}
}

// fakeEmbedder embeds in memory, fails where it is told to, and can be read back.
type fakeEmbedder struct {
	model  assay.Model
	salt   string
	failAt string // the text at which it fails
	sent   [][]string
}

var _ Embedder = (*fakeEmbedder)(nil)

func (f *fakeEmbedder) Model() assay.Model { return f.model }

func (f *fakeEmbedder) Fingerprint() string { return f.salt }

func (f *fakeEmbedder) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	f.model.Dimensions = 4
	return unitVector(text, 4), nil
}

func (f *fakeEmbedder) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	f.sent = append(f.sent, slices.Clone(texts))
	var out [][]float32
	for _, text := range texts {
		if text == f.failAt {
			return out, fmt.Errorf("cannot embed %q", text)
		}
		out = append(out, unitVector(f.salt+text, f.model.Dimensions))
	}
	return out, nil
}
