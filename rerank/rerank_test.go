package rerank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"assay"
)

const secret = "sk-very-secret-0123456789"

// newClient returns a client of a scripted server and the text of its log.
func newClient(t *testing.T, o Options, handler http.HandlerFunc) (*Client, *strings.Builder) {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	o.URL = srv.URL
	var log strings.Builder
	c, err := New(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, &log
}

func texts(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("passage %d", i)
	}
	return out
}

// rank answers as TEI does, best first: the last text of a batch scores highest.
func rank(w http.ResponseWriter, r *http.Request) {
	var in teiRequest
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	type item struct {
		Index int     `json:"index"`
		Score float64 `json:"score"`
	}
	var out []item
	for i := len(in.Texts) - 1; i >= 0; i-- {
		var n int
		_, _ = fmt.Sscanf(in.Texts[i], "passage %d", &n)
		out = append(out, item{i, float64(n) / 1000})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func TestEveryAnswerEndsInAStatus(t *testing.T) {
	body := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
	}
	status := func(code int, s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = io.WriteString(w, s) }
	}
	for _, tc := range []struct {
		name     string
		handler  http.HandlerFunc
		status   assay.RerankStatus
		scored   int
		attempts int
		says     string
	}{
		{"ranking", body(`[{"index":2,"score":0.9},{"index":0,"score":0.5},{"index":1,"score":1e-9}]`), assay.RerankOK, 3, 1, ""},
		{"further fields", body(`[{"index":2,"score":1,"text":"x"},{"index":0,"score":0},{"index":1,"score":-3}]`), assay.RerankOK, 3, 1, ""},
		{"short", body(`[{"index":2,"score":0.9},{"index":0,"score":0.5}]`), assay.RerankPartial, 2, 1, "only 2 of 3"},
		{"empty ranking", body(`[]`), assay.RerankBadResponse, 0, 1, "empty ranking"},
		{"empty body", body(``), assay.RerankBadResponse, 0, 1, "empty body"},
		{"null", body(`null`), assay.RerankBadResponse, 0, 1, "empty ranking"},
		{"long", body(`[{"index":0,"score":1},{"index":1,"score":1},{"index":2,"score":1},{"index":3,"score":1}]`), assay.RerankBadResponse, 0, 1, "index 3"},
		{"duplicated index", body(`[{"index":0,"score":1},{"index":0,"score":1},{"index":2,"score":1}]`), assay.RerankBadResponse, 0, 1, "twice"},
		{"negative index", body(`[{"index":-1,"score":1},{"index":1,"score":1},{"index":2,"score":1}]`), assay.RerankBadResponse, 0, 1, "index -1"},
		{"index is no whole number", body(`[{"index":0.5,"score":1}]`), assay.RerankBadResponse, 0, 1, "no ranking"},
		{"score is a string", body(`[{"index":0,"score":"0.9"}]`), assay.RerankBadResponse, 0, 1, "no ranking"},
		{"score is NaN", body(`[{"index":0,"score":NaN}]`), assay.RerankBadResponse, 0, 1, "no ranking"},
		{"score beyond range", body(`[{"index":0,"score":1e999}]`), assay.RerankBadResponse, 0, 1, "no ranking"},
		{"score is null", body(`[{"index":0,"score":null}]`), assay.RerankBadResponse, 0, 1, "without index or score"},
		{"no index", body(`[{"score":1}]`), assay.RerankBadResponse, 0, 1, "without index or score"},
		{"half an answer", body(`[{"index":0,"sco`), assay.RerankBadResponse, 0, 1, "no ranking"},
		{"two answers", body(`[{"index":0,"score":1}][]`), assay.RerankBadResponse, 0, 1, "no ranking"},
		{"html", body(`<!doctype html><title>Sign in</title>`), assay.RerankBadResponse, 0, 1, "HTML"},
		{"error in a success", body(`{"error":"Model is overloaded","error_type":"Overloaded"}`), assay.RerankBadResponse, 0, 1, "Model is overloaded"},
		{"too much", body("[" + strings.Repeat(" ", 4096)), assay.RerankBadResponse, 0, 1, "more than 2048 bytes"},
		{"unauthorised", status(401, `{"error":"bad key"}`), assay.RerankHTTPError, 0, 1, "API key"},
		{"not found", status(404, `404 page not found`), assay.RerankHTTPError, 0, 1, "rerank.url"},
		{"not understood", status(422, `{"error":"batch size 3 > maximum allowed batch size 2","error_type":"Validation"}`), assay.RerankHTTPError, 0, 1, "maximum allowed"},
		{"inference failed", status(424, `{"error":"cuda"}`), assay.RerankHTTPError, 0, 1, "inference failed"},
		{"overloaded for good", status(429, `{"error":"overloaded"}`), assay.RerankHTTPError, 0, 2, "429"},
		{"server error for good", status(500, `<html>500</html>`), assay.RerankHTTPError, 0, 2, "an HTML page"},
		{"success without content", status(204, ``), assay.RerankBadResponse, 0, 1, "empty body"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusTemporaryRedirect)
		}, assay.RerankHTTPError, 0, 1, "redirects are not followed"},
		{"status before body", status(503, `[{"index":0,"score":1},{"index":1,"score":1},{"index":2,"score":1}]`), assay.RerankHTTPError, 0, 2, "503"},
		{"key echoed", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(403)
			_, _ = io.WriteString(w, "no such key: "+strings.Repeat("x", 170)+r.Header.Get("Authorization"))
		}, assay.RerankHTTPError, 0, 1, "403"},
		{"key echoed in a success", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"error":"no such key: `+strings.Repeat("x", 170)+r.Header.Get("Authorization")+`"}`)
		}, assay.RerankBadResponse, 0, 1, "no such key"},
		{"connection dropped", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, assay.RerankUnavailable, 0, 2, "check that it runs"},
		{"dropped in the body", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `[{"index":0,`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, assay.RerankUnavailable, 0, 2, "broke off"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, log := newClient(t, Options{APIKey: secret, Timeout: 10 * time.Second, MaxResponseBytes: 2048, Model: "ce"}, tc.handler)
			o := c.Rerank(t.Context(), "q", texts(3), 2)
			if o.Status != tc.status || o.ScoredCount != tc.scored || o.Attempts != tc.attempts {
				t.Errorf("status %q scored %d attempts %d, want %q %d %d (%v)", o.Status, o.ScoredCount, o.Attempts, tc.status, tc.scored, tc.attempts, o.Err)
			}
			if !strings.Contains(o.Reason, tc.says) {
				t.Errorf("reason %q does not say %q", o.Reason, tc.says)
			}
			if (o.Err != nil) != (tc.status != assay.RerankOK) || (o.Fallback == "") != (tc.status == assay.RerankOK) {
				t.Errorf("error %v and fallback %q do not go with status %q", o.Err, o.Fallback, o.Status)
			}
			if o.Err != nil && !strings.HasPrefix(o.Reason, c.service) {
				t.Errorf("reason %q does not name the service", o.Reason)
			}
			if errors.Is(o.Err, assay.ErrUnavailable) != (tc.status == assay.RerankUnavailable) {
				t.Errorf("error %v and ErrUnavailable do not go together", o.Err)
			}
			if all := o.Reason + log.String() + fmt.Sprint(o.Err); strings.Contains(all, secret) || strings.Contains(all, secret[:8]) {
				t.Errorf("the API key is shown: %s", all)
			}
		})
	}
}

func TestScoresAreMappedByIndexOverBatches(t *testing.T) {
	var mu sync.Mutex
	var sizes []int
	c, _ := newClient(t, Options{BatchSize: 4, Timeout: 10 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		var in map[string]any
		_ = json.Unmarshal(data, &in)
		mu.Lock()
		sizes = append(sizes, len(in["texts"].([]any)))
		mu.Unlock()
		if in["truncate"] != true || in["raw_scores"] != false || in["return_text"] != false || in["query"] != "q" {
			t.Errorf("request %s", data)
		}
		r.Body = io.NopCloser(strings.NewReader(string(data)))
		rank(w, r)
	})
	o := c.Rerank(t.Context(), "q", texts(11), 5)
	if o.Status != assay.RerankOK || len(sizes) != 3 || o.Attempts != 3 {
		t.Fatalf("status %q, batches %v, attempts %d", o.Status, sizes, o.Attempts)
	}
	for i, score := range o.Scores {
		if score != float64(i)/1000 || !o.Scored[i] {
			t.Errorf("text %d has score %v", i, score)
		}
	}
}

func TestBatchesAreBoundedByBytes(t *testing.T) {
	c := &Client{opts: Options{BatchSize: 3, BatchBytes: 10}}
	got := fmt.Sprint(c.batches([]string{"12345678901234", "1", "2", "3", "4", "123456", "1234", "1"}))
	if want := "[{0 1} {1 4} {4 6} {6 8}]"; got != want {
		t.Errorf("batches %s, want %s", got, want)
	}
}

func TestOneFailedBatchEndsTheStage(t *testing.T) {
	c, _ := newClient(t, Options{BatchSize: 2, Concurrency: 1, Timeout: 10 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
		var in teiRequest
		_ = json.NewDecoder(r.Body).Decode(&in)
		if in.Texts[0] == "passage 2" {
			w.WriteHeader(http.StatusFailedDependency)
			return
		}
		_, _ = io.WriteString(w, `[{"index":0,"score":1},{"index":1,"score":2}]`)
	})
	o := c.Rerank(t.Context(), "q", texts(6), 2)
	if o.Status != assay.RerankHTTPError || o.HTTPStatus != 424 || o.ScoredCount != 2 {
		t.Errorf("status %q (%d), scored %d", o.Status, o.HTTPStatus, o.ScoredCount)
	}
}

func TestABatchTooLargeForTheServerIsHalved(t *testing.T) {
	c, log := newClient(t, Options{Timeout: 10 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		var in teiRequest
		_ = json.Unmarshal(data, &in)
		if len(in.Texts) > 3 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(data)))
		rank(w, r)
	})
	o := c.Rerank(t.Context(), "q", texts(10), 2)
	if o.Status != assay.RerankOK || o.Scores[9] != 0.009 || o.Scores[0] != 0 {
		t.Errorf("status %q, scores %v (%v)", o.Status, o.Scores, o.Err)
	}
	if !strings.Contains(log.String(), "rerank.batch_size") {
		t.Errorf("the log does not say what to do: %s", log)
	}

	c, _ = newClient(t, Options{Timeout: 10 * time.Second}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(413) })
	if o := c.Rerank(t.Context(), "q", texts(5), 2); o.Status != assay.RerankHTTPError || o.HTTPStatus != 413 {
		t.Errorf("a server that finds everything too large: %q, %d", o.Status, o.HTTPStatus)
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	n := 0
	c, _ := newClient(t, Options{Concurrency: 1, Timeout: 10 * time.Second, MaxAttempts: 1}, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.RemoteAddr] = true
		if n++; n%2 == 0 {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, strings.Repeat("x", 20_000))
			return
		}
		rank(w, r)
	})
	for range 6 {
		c.Rerank(t.Context(), "q", texts(3), 2)
	}
	if len(seen) != 1 {
		t.Errorf("%d connections for 6 calls", len(seen))
	}
}

func TestNothingIsAskedWhereThereIsNothingToRank(t *testing.T) {
	c, _ := newClient(t, Options{Model: "ce"}, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
	for n, keep := range map[int]int{0: 5, 4: 5, 1: 1} {
		if o := c.Rerank(t.Context(), "q", texts(n), keep); o.Status != assay.RerankSkipped || o.Reason == "" || o.Fallback != "" {
			t.Errorf("%d texts, keep %d: %+v", n, keep, o)
		}
	}
	off, err := New(nil, Options{Policy: assay.FallbackFail, Model: "ce"})
	if err != nil {
		t.Fatal(err)
	}
	o := off.Rerank(t.Context(), "q", texts(9), 5)
	if o.Status != assay.RerankDisabled || o.Model != "" || off.Enabled() {
		t.Errorf("without a URL: %+v", o)
	}
	if n, err := o.Keep(5); n != 5 || err != nil {
		t.Errorf("without a URL, keep = %d, %v", n, err)
	}
}

func TestOptionsReportEveryProblem(t *testing.T) {
	_, err := New(nil, Options{URL: "localhost:8080", Dialect: "xyz", Policy: "ignore", APIKey: "a\n", Timeout: -1, BatchSize: -1, MaxTokens: 9,
		MaxConcurrent: -1, BreakerFailures: 1 << 20, BreakerCooldown: -1})
	for _, want := range []string{"rerank.url", "rerank.dialect", "rerank.policy", "rerank.api_key", "rerank.timeout", "rerank.batch_size",
		"rerank.max_tokens", "rerank.max_concurrent", "rerank.breaker_failures", "rerank.breaker_cooldown"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error does not mention %s: %v", want, err)
		}
	}
	if _, err := New(nil, Options{URL: "http://h", Dialect: Cohere}); err == nil || !strings.Contains(err.Error(), "rerank.model") {
		t.Errorf("a dialect that needs a model, without one: %v", err)
	}
	if _, err := New(nil, Options{URL: "http://user:pa%zzss@host"}); err == nil || strings.Contains(err.Error(), "zz") {
		t.Errorf("error shows the password: %v", err)
	}
}

func TestURLsAreCompleted(t *testing.T) {
	for in, want := range map[string]string{
		"http://h:1":                      "http://h:1/v1/rerank",
		"http://h:1/":                     "http://h:1/v1/rerank",
		"http://u:p@h:1?key=1#x":          "http://u:p@h:1/v1/rerank?key=1",
		"http://h:1/rerank":               "http://h:1/rerank",
		"https://u:p@h/rank/?key=1#x":     "https://u:p@h/rank/?key=1",
		"http://h/models/a%2Fb/v1/rerank": "http://h/models/a%2Fb/v1/rerank",
	} {
		u, err := endpointURL(in, "/v1/rerank")
		if err != nil || u.String() != want {
			t.Errorf("%s: %v, %v", in, u, err)
		}
		if shown := displayURL(u); strings.Contains(shown, "p@") || strings.Contains(shown, "key") {
			t.Errorf("%s is shown as %s", in, shown)
		}
	}
}

func FuzzParseRanking(f *testing.F) {
	for _, s := range []string{`[{"index":0,"score":0.5}]`, `[]`, `{"error":"x"}`, `<html>`, `[{"index":1,"score":null}]`, `[[`,
		`{"results":[{"index":0,"relevance_score":-3}]}`, `{"data":[{"index":1,"relevance_score":1}],"error":null}`, `{"results":[],"error":{"message":"x"}}`} {
		f.Add([]byte(s), 2)
	}
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		n = max(0, n) % 64
		r, err := parseRanking(data, n, func(s string) string { return s })
		if err != nil {
			return
		}
		if len(r.scores) != n || len(r.scored) != n || r.missing() >= n {
			t.Fatalf("accepted %q for %d texts as %+v", data, n, r)
		}
		for _, s := range r.scores {
			if s-s != 0 {
				t.Fatalf("accepted a score that is not finite: %q", data)
			}
		}
	})
}

func BenchmarkRerank(b *testing.B) {
	for _, n := range []int{20, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			srv := httptest.NewServer(http.HandlerFunc(rank))
			defer srv.Close()
			c, err := New(nil, Options{URL: srv.URL})
			if err != nil {
				b.Fatal(err)
			}
			in := texts(n)
			for b.Loop() {
				if o := c.Rerank(context.Background(), "q", in, 5); o.Status != assay.RerankOK {
					b.Fatal(o.Err)
				}
			}
		})
	}
}
