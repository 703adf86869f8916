package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"

	"assay"
)

// fakeEngine answers with what it is told to and remembers what it was asked.
type fakeEngine struct {
	asked    assay.Query
	manifest *assay.Manifest
	events   []assay.Event
	err      error
	notReady []assay.NotReady
	entered  chan struct{} // receives when an answer begins, if set
	release  chan struct{} // an answer waits for it, if set
	ended    chan error    // receives why an answer ended, if set
}

func (f *fakeEngine) Answer(ctx context.Context, q assay.Query, on func(assay.Event) error) (*assay.Answer, error) {
	f.asked = q
	if f.entered != nil {
		f.entered <- struct{}{}
	}
	if f.release != nil {
		select {
		case <-f.release:
		case <-ctx.Done():
			if f.ended != nil {
				f.ended <- ctx.Err()
			}
			return nil, ctx.Err()
		}
	}
	for _, e := range f.events {
		if on == nil {
			break
		}
		if err := on(e); err != nil {
			return nil, err
		}
	}
	a := &assay.Answer{Text: "Thirty days [1].", Manifest: f.manifest, Citations: []assay.Citation{{Marker: "[1]", ChunkID: "c_1"}}}
	return a, f.err
}

func (f *fakeEngine) Search(_ context.Context, q assay.Query) (*assay.Retrieval, error) {
	f.asked = q
	return &assay.Retrieval{
		Candidates: []assay.Candidate{{ChunkID: "c_1", Text: "one"}, {ChunkID: "c_2", Text: "two"}},
		Reranker:   assay.ManifestReranker{Status: assay.RerankDisabled},
	}, f.err
}

func (f *fakeEngine) Manifest(_ context.Context, id string) (*assay.Manifest, error) {
	if f.manifest == nil || id != f.manifest.ID {
		return nil, fmt.Errorf("manifest %q: %w", id, assay.ErrNotFound)
	}
	return f.manifest, nil
}

func (f *fakeEngine) Chunk(_ context.Context, id string) (assay.Chunk, *assay.Document, error) {
	if id != "c_1" {
		return assay.Chunk{}, nil, fmt.Errorf("chunk %q: %w", id, assay.ErrNotFound)
	}
	return assay.Chunk{ID: "c_1", Text: "one"}, &assay.Document{URI: "/docs/a.md"}, nil
}

func (f *fakeEngine) Ready(context.Context) []assay.NotReady { return f.notReady }

func okManifest() *assay.Manifest {
	return &assay.Manifest{ID: "m_1", Reranker: assay.ManifestReranker{Status: assay.RerankTimeout}, Degraded: []assay.StageName{assay.StageRerank}}
}

func newServer(t *testing.T, e Engine, o Options) *Server {
	t.Helper()
	s, err := New(slog.New(slog.DiscardHandler), e, noop.NewTracerProvider(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// post sends a body to a handler and returns the response.
func post(s http.Handler, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestAnswerCarriesManifestAndHeaders(t *testing.T) {
	e := &fakeEngine{manifest: okManifest()}
	w := post(newServer(t, e, Options{}), "/v1/answer",
		`{"question":"how long?","k":7,"depth":30,"filter":{"lang":["en","de"]},"messages":[{"role":"user","content":"hello"}]}`)
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	for name, want := range map[string]string{"Assay-Manifest": "m_1", "Assay-Rerank-Status": "timeout", "Assay-Degraded": "rerank", "Content-Type": "application/json"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"answer", "citations", "manifest"} {
		if got[field] == nil {
			t.Errorf("the response has no %q: %s", field, w.Body)
		}
	}
	q := e.asked
	if q.Text != "how long?" || q.Keep != 7 || q.Depth != 30 || len(q.History) != 1 || len(q.Filter.Conditions) != 1 {
		t.Errorf("the engine was asked %+v", q)
	}
}

func TestLastMessageIsTheQuestionWhenThereIsNone(t *testing.T) {
	e := &fakeEngine{manifest: okManifest()}
	post(newServer(t, e, Options{}), "/v1/answer",
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`)
	if e.asked.Text != "c" || len(e.asked.History) != 2 {
		t.Errorf("the engine was asked %+v", e.asked)
	}
}

func TestBadRequestsAreProblems(t *testing.T) {
	tests := []struct {
		name, path, body string
		headers          []string
		status           int
		says             string
	}{
		{"no JSON", "/v1/answer", "hello", nil, 400, "JSON object"},
		{"half a JSON", "/v1/answer", `{"question":"a`, nil, 400, "unexpected EOF"},
		{"two objects", "/v1/answer", `{"question":"a"}{}`, nil, 400, "after the JSON object"},
		{"unknown field", "/v1/answer", `{"query":"a"}`, nil, 400, "unknown field"},
		{"wrong type", "/v1/search", `{"question":1}`, nil, 400, `field "question" cannot be a number`},
		{"unknown field with a quote", "/v1/answer", `{"qu\"ery":1}`, nil, 400, "unknown field"},
		{"bad filter", "/v1/answer", `{"question":"a","filter":{"x":{"like":"y"}}}`, nil, 400, "unknown operator"},
		{"filter is no object", "/v1/answer", `{"question":"a","filter":"x"}`, nil, 400, "object of fields"},
		{"last message is not the user's", "/v1/answer", `{"messages":[{"role":"assistant","content":"a"}]}`, nil, 400, "the last is the user's"},
		{"form", "/v1/answer", "question=a", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "Content-Type: application/json"},
		{"too large", "/v1/answer", `{"question":"` + strings.Repeat("a", 2000) + `"}`, nil, 413, "server.max_body"},
		{"unknown path", "/v1/answers", `{}`, nil, 404, "/v1/answer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := post(newServer(t, &fakeEngine{manifest: okManifest()}, Options{MaxBody: 1000}), tt.path, tt.body, tt.headers...)
			checkProblem(t, w, tt.status, tt.says)
		})
	}
}

func checkProblem(t *testing.T, w *httptest.ResponseRecorder, status int, says string) {
	t.Helper()
	if w.Code != status || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("status %d, type %q; want %d and problem+json", w.Code, w.Header().Get("Content-Type"), status)
	}
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if p.Status != status || p.Title == "" || p.Type == "" || !strings.Contains(p.Detail, says) {
		t.Errorf("problem %+v; its detail should contain %q", p, says)
	}
}

func TestErrorsOfTheEngineGetTheirStatus(t *testing.T) {
	tests := []struct {
		err    error
		status int
	}{
		{fmt.Errorf("x: %w", assay.ErrInvalid), 400},
		{fmt.Errorf("x: %w", assay.ErrFilter), 400},
		{fmt.Errorf("x: %w", assay.ErrDegraded), 503},
		{fmt.Errorf("x: %w", assay.ErrUnavailable), 503},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), 504},
		{errors.New("the model answered 500"), 502},
	}
	for _, tt := range tests {
		w := post(newServer(t, &fakeEngine{manifest: okManifest(), err: tt.err}, Options{}), "/v1/answer", `{"question":"a"}`)
		checkProblem(t, w, tt.status, tt.err.Error())
		if w.Header().Get("Assay-Rerank-Status") != "timeout" || !strings.Contains(w.Body.String(), `"manifest":"m_1"`) {
			t.Errorf("%v: the response does not lead to the manifest: %v %s", tt.err, w.Header(), w.Body)
		}
	}
}

func TestSearchReturnsTextAndAtMostK(t *testing.T) {
	w := post(newServer(t, &fakeEngine{}, Options{}), "/v1/search", `{"question":"a","k":1}`)
	var got found
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Results) != 1 || got.Results[0].Text != "one" || got.Results[0].Rank != 1 {
		t.Errorf("results %+v", got.Results)
	}
	if w.Header().Get("Assay-Rerank-Status") != "disabled" {
		t.Errorf("Assay-Rerank-Status is %q", w.Header().Get("Assay-Rerank-Status"))
	}
}

func TestManifestAndChunkByID(t *testing.T) {
	s := newServer(t, &fakeEngine{manifest: okManifest()}, Options{})
	for path, status := range map[string]int{
		"/v1/manifests/m_1": 200, "/v1/manifests/m_2": 404, "/v1/chunks/c_1": 200, "/v1/chunks/c_2": 404, "/v1/manifests/..%2f..%2fetc": 404,
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != status {
			t.Errorf("GET %s: %d, want %d: %s", path, w.Code, status, w.Body)
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/answer", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
		t.Errorf("GET /v1/answer: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

func TestHealthAndReadiness(t *testing.T) {
	e := &fakeEngine{notReady: []assay.NotReady{{What: "embedder", Reason: "connection refused"}}}
	s := newServer(t, e, Options{Version: "1.2.3"})
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	if w := get("/healthz"); w.Code != 200 || !strings.Contains(w.Body.String(), "1.2.3") {
		t.Errorf("/healthz: %d %s", w.Code, w.Body)
	}
	if w := get("/readyz"); w.Code != 503 || !strings.Contains(w.Body.String(), "connection refused") {
		t.Errorf("/readyz: %d %s", w.Code, w.Body)
	}
	e.notReady = nil
	if w := get("/readyz"); w.Code != 200 || !strings.Contains(w.Body.String(), `"ready":true`) {
		t.Errorf("/readyz: %d %s", w.Code, w.Body)
	}
}

type panicking struct{ fakeEngine }

func (panicking) Search(context.Context, assay.Query) (*assay.Retrieval, error) { panic("boom") }

func TestPanicIsA500AndTheServerLives(t *testing.T) {
	var log bytes.Buffer
	s, err := New(slog.New(slog.NewTextHandler(&log, nil)), &panicking{}, noop.NewTracerProvider(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkProblem(t, post(s, "/v1/search", `{"question":"a"}`), 500, "internal error")
	if !strings.Contains(log.String(), "boom") {
		t.Errorf("the log does not name the panic: %s", &log)
	}
}

func TestPageLoadsNothingFromElsewhere(t *testing.T) {
	w := httptest.NewRecorder()
	newServer(t, &fakeEngine{}, Options{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != 200 || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("status %d, policy %q", w.Code, w.Header().Get("Content-Security-Policy"))
	}
	for _, bad := range []string{"http://", "https://", "innerHTML", "document.write"} {
		if strings.Contains(w.Body.String(), bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}
