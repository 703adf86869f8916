package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay"
)

func TestVectorsComeBackInTheOrderOfTheTextsWhateverTheServerDoes(t *testing.T) {
	f := newFakeServer(t)
	f.broken = func(_ int, w http.ResponseWriter, _ *http.Request, in wireRequest) bool {
		a := answerFor(in, f.dims)
		rand.Shuffle(len(a.Data), func(i, j int) { a.Data[i], a.Data[j] = a.Data[j], a.Data[i] })
		writeJSON(w, a)
		return true
	}
	e := newTestEndpoint(t, f, func(o *EndpointOptions) { o.BatchSize, o.Concurrency = 7, 5 })
	texts := numbered(200)
	got, err := e.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	checkVectors(t, got, texts, 4)
	if want := (assay.Model{Name: "fake", Dimensions: 4}); e.Model() != want {
		t.Errorf("model is %v, want %v", e.Model(), want)
	}
	s := e.Stats()
	if s.Texts != 200 || s.Tokens != 600 || s.Requests != 29 || s.Retries != 0 || s.Truncated != 0 {
		t.Errorf("stats are %+v", s)
	}
	if f.most > 5 {
		t.Errorf("%d requests at once, 5 allowed", f.most)
	}
}

func TestWhatIsSent(t *testing.T) {
	f := newFakeServer(t)
	e := newTestEndpoint(t, f, func(o *EndpointOptions) {
		o.BaseURL = f.URL + "/v1/embeddings/?api-version=2026-01-01"
		o.APIKey = "key-from-a-file\n"
		o.QueryPrefix, o.DocumentPrefix = "query: ", "passage: "
		o.Dimensions, o.SendDimensions = 4, true
		o.Headers = map[string]string{"X-Tenant": "blue"}
	})
	if _, err := e.EmbedQuery(t.Context(), "lost key"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.EmbedDocuments(t.Context(), []string{"rotate it"}); err != nil {
		t.Fatal(err)
	}
	sent := f.sent()
	if !slices.Equal(sent[0].Input, []string{"query: lost key"}) || !slices.Equal(sent[1].Input, []string{"passage: rotate it"}) {
		t.Errorf("sent %q and %q", sent[0].Input, sent[1].Input)
	}
	if sent[0].Model != "fake" || sent[0].Dimensions == nil || *sent[0].Dimensions != 4 {
		t.Errorf("sent %+v", sent[0])
	}
	if got := f.headers[0].Get("Authorization"); got != "Bearer key-from-a-file" {
		t.Errorf("Authorization is %q", got)
	}
	if got := f.headers[0].Get("X-Tenant"); got != "blue" {
		t.Errorf("X-Tenant is %q", got)
	}
	if f.queries[0] != "api-version=2026-01-01" {
		t.Errorf("the query is %q", f.queries[0])
	}
}

func TestCredentialsInTheURLAreSentAndNotShown(t *testing.T) {
	f := newFakeServer(t)
	f.broken = func(_ int, w http.ResponseWriter, r *http.Request, _ wireRequest) bool {
		user, password, _ := r.BasicAuth()
		if user != "reader" || password != "pw" {
			t.Errorf("basic authentication is %q, %q", user, password)
		}
		http.Error(w, "not today", http.StatusForbidden)
		return true
	}
	e := newTestEndpoint(t, f, func(o *EndpointOptions) {
		o.BaseURL = strings.Replace(f.URL, "http://", "http://reader:pw@", 1) + "/v1"
	})
	_, err := e.EmbedQuery(t.Context(), "x")
	want := "embed: " + f.URL + "/v1/embeddings (model fake): 403 Forbidden: not today; check the key in ASSAY_EMBED_API_KEY"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v\nwant     %s", err, want)
	}
}

func TestBlankTextsAreRefusedAndNoTextsAreNoRequest(t *testing.T) {
	f := newFakeServer(t)
	e := newTestEndpoint(t, f)
	if _, err := e.EmbedDocuments(t.Context(), []string{"a", " \n"}); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "text 2 of 2 is blank") {
		t.Errorf("error is %v", err)
	}
	if _, err := e.EmbedQuery(t.Context(), ""); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("error is %v", err)
	}
	if got, err := e.EmbedDocuments(t.Context(), nil); len(got) != 0 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if f.count() != 0 {
		t.Errorf("%d requests were sent", f.count())
	}
}

func TestAnswersThatAreNotOneVectorForEachTextAreErrors(t *testing.T) {
	body := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { fmt.Fprint(w, text) }
	}
	status := func(code int, text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(code); fmt.Fprint(w, text) }
	}
	const one = `{"index":0,"embedding":[1,2,3,4]}`
	for _, c := range []struct {
		name     string
		answer   func(http.ResponseWriter)
		want     string // in the error, after "embed: URL (model fake): "
		requests int
	}{
		{"401", status(401, `{"error":{"message":"who are you"}}`), "401 Unauthorized: who are you; check the key in ASSAY_EMBED_API_KEY", 1},
		{"404", status(404, "404 page not found"), "404 Not Found: 404 page not found; check embed.url and embed.model", 1},
		{"413", status(413, `{"error":"batch size 64 > maximum allowed batch size 32","error_type":"Validation"}`), `413 Request Entity Too Large: {"error":"batch size 64 > maximum allowed batch size 32","error_type":"Validation"}; lower embed.batch_size or embed.batch_tokens`, 1},
		{"422", status(422, `{"detail":"no"}`), `422 Unprocessable Entity: {"detail":"no"}; check embed.model, embed.max_input_tokens and embed.batch_size`, 1},
		{"400 without a body", status(400, ""), "400 Bad Request: (no text); check embed.model, embed.max_input_tokens and embed.batch_size", 1},
		{"500 for ever", status(500, "out of\x00 memory"), "500 Internal Server Error: out of memory", 4},
		{"501", status(501, "no"), "501 Not Implemented: no", 1},
		{"429 for ever", status(429, "slow down"), "429 Too Many Requests: slow down; lower embed.concurrency, or wait", 4},
		{"redirect", status(307, ""), "307 Temporary Redirect: (no text); redirects are not followed; set embed.url to the final address", 1},
		{"unknown status", status(599, "?"), "599: ?", 4},
		{"HTML", body("<!DOCTYPE html>\n<html><body>Welcome" + strings.Repeat("!", 200)), "the answer is not the expected JSON (invalid character '<' looking for beginning of value): <!DOCTYPE html> <html><body>Welcome" + strings.Repeat("!", 65) + "...; is embed.url the address of an OpenAI-compatible API?", 1},
		{"half a JSON", body(`{"data":[` + one + `,{"ind`), `the answer is not the expected JSON (unexpected EOF): {"data":[` + one + `,{"ind; is embed.url`, 1},
		{"nothing", body(""), "the answer is empty", 1},
		{"another JSON", body(`{"ok":true}`), `the answer holds 0 vectors for 2 texts: {"ok":true}`, 1},
		{"an error with status 200", body(`{"error":{"message":"model is loading"}}`), "the answer holds 0 vectors for 2 texts: {\"error\":{\"message\":\"model is loading\"}}", 1},
		{"too few", body(`{"data":[` + one + `]}`), "the answer holds 1 vectors for 2 texts", 1},
		{"too many", body(`{"data":[` + one + "," + one + "," + one + `]}`), "the answer holds 3 vectors for 2 texts", 1},
		{"the same index twice", body(`{"data":[` + one + "," + one + `]}`), "the answer holds two vectors with index 0", 1},
		{"an index past the end", body(`{"data":[` + one + `,{"index":2,"embedding":[1,2,3,4]}]}`), "the answer holds a vector with index 2 for 2 texts", 1},
		{"a negative index", body(`{"data":[` + one + `,{"index":-1,"embedding":[1,2,3,4]}]}`), "the answer holds a vector with index -1 for 2 texts", 1},
		{"NaN written as null", body(`{"data":[` + one + `,{"index":1,"embedding":[1,null,3,4]}]}`), "vector 1 of the answer cannot be used: it holds a value that is not a finite number (null)", 1},
		{"NaN written as NaN", body(`{"data":[` + one + `,{"index":1,"embedding":[1,NaN,3,4]}]}`), "the answer is not the expected JSON (invalid character 'N' looking for beginning of value)", 1},
		{"a number beyond all", body(`{"data":[` + one + `,{"index":1,"embedding":[1,1e999,3,4]}]}`), "the answer is not the expected JSON (json: cannot unmarshal number 1e999", 1},
		{"a number beyond float32", body(`{"data":[` + one + `,{"index":1,"embedding":[1,1e39,3,4]}]}`), "the answer is not the expected JSON (json: cannot unmarshal number 1e39", 1},
		{"text for numbers", body(`{"data":[` + one + `,{"index":1,"embedding":"AACAPw=="}]}`), "the answer is not the expected JSON (json: cannot unmarshal string", 1},
		{"two dimensions in one answer", body(`{"data":[` + one + `,{"index":1,"embedding":[1,2,3]}]}`), "vector 1 of the answer has 3 dimensions instead of 4; the server runs another model", 1},
		{"no values", body(`{"data":[` + one + `,{"index":1,"embedding":[]}]}`), "vector 1 of the answer is empty", 1},
		{"null for a vector", body(`{"data":[` + one + `,{"index":1,"embedding":null}]}`), "vector 1 of the answer is empty", 1},
		{"all zero", body(`{"data":[` + one + `,{"index":1,"embedding":[0,0,0,0]}]}`), "vector 1 of the answer cannot be used: all its values are 0", 1},
		{"larger than allowed", body(strings.Repeat(" ", 5000)), "the answer is larger than 4096 bytes; lower embed.batch_size", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeServer(t)
			f.broken = func(_ int, w http.ResponseWriter, _ *http.Request, _ wireRequest) bool { c.answer(w); return true }
			e := newTestEndpoint(t, f, func(o *EndpointOptions) { o.MaxResponseBytes = 4096 })
			got, err := e.EmbedDocuments(t.Context(), []string{"a", "b"})
			want := "embed: " + f.URL + "/v1/embeddings (model fake): " + c.want
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error is %v\nwant     %s", err, want)
			}
			if len(got) != 0 {
				t.Errorf("there are %d vectors", len(got))
			}
			if f.count() != c.requests {
				t.Errorf("%d requests, want %d", f.count(), c.requests)
			}
			if got := assay.StatusOf(err); got != assay.StatusError {
				t.Errorf("the stage's status is %s", got)
			}
			var failed *Error
			if code, _ := strconv.Atoi(c.name); code != 0 && (!errors.As(err, &failed) || failed.StatusCode() != code) {
				t.Errorf("%v does not carry the status code %d", err, code)
			}
			if m := e.Model(); m.Dimensions != 0 {
				t.Errorf("an unusable answer has decided the dimensions: %d", m.Dimensions)
			}
		})
	}
}

func TestDimensionsMayNotChange(t *testing.T) {
	f := newFakeServer(t)
	e := newTestEndpoint(t, f)
	if m, err := Probe(t.Context(), e); err != nil || m.Dimensions != 4 {
		t.Fatalf("probe says %v, %v", m, err)
	}
	if _, err := Probe(t.Context(), e); err != nil || f.count() != 1 {
		t.Errorf("a second probe made a request (%d), error %v", f.count(), err)
	}
	f.dims = 5
	_, err := e.EmbedQuery(t.Context(), "a")
	if err == nil || !strings.Contains(err.Error(), "vector 0 of the answer has 5 dimensions instead of 4") {
		t.Errorf("error is %v", err)
	}
	configured := newTestEndpoint(t, f, func(o *EndpointOptions) { o.Dimensions = 6 })
	if _, err = configured.EmbedQuery(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "5 dimensions instead of 6") {
		t.Errorf("error is %v", err)
	}
}

func TestAServerThatNeverAnswersEndsAtTheDeadline(t *testing.T) {
	f := newFakeServer(t)
	release := make(chan struct{})
	f.broken = func(_ int, _ http.ResponseWriter, r *http.Request, _ wireRequest) bool {
		select {
		case <-r.Context().Done():
		case <-release:
		}
		return true
	}
	defer close(release)
	e := newTestEndpoint(t, f, func(o *EndpointOptions) { o.Timeout = 20 * time.Millisecond })
	patient := newTestEndpoint(t, f)
	for name, e := range map[string]*Endpoint{"the request's": e, "the caller's": patient} {
		ctx := t.Context()
		if e == patient {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
		}
		_, err := e.EmbedQuery(ctx, "a")
		if !errors.Is(err, context.DeadlineExceeded) || assay.StatusOf(err) != assay.StatusTimeout || !strings.Contains(err.Error(), "no answer in time") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if f.count() > 2 {
		t.Errorf("a request that timed out was repeated: %d requests", f.count())
	}
	cancelled, stop := context.WithCancel(t.Context())
	stop()
	if _, err := e.EmbedQuery(cancelled, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestAnEndpointThatCannotBeReachedIsUnavailable(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	e, err := NewEndpoint(quiet(), EndpointOptions{BaseURL: closed.URL, Model: "m", Backoff: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.EmbedQuery(t.Context(), "a")
	if !errors.Is(err, assay.ErrUnavailable) || assay.StatusOf(err) != assay.StatusUnavailable || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("error is %v", err)
	}
	if s := e.Stats(); s.Requests != 4 || s.Retries != 3 {
		t.Errorf("stats are %+v", s)
	}
}

func TestAConnectionThatBreaksInTheBodyIsTriedAgain(t *testing.T) {
	f := newFakeServer(t)
	f.broken = func(n int, w http.ResponseWriter, _ *http.Request, in wireRequest) bool {
		if n > 2 {
			return false
		}
		whole, _ := json.Marshal(answerFor(in, 4))
		w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
		_, _ = w.Write(whole[:len(whole)/2])
		w.(http.Flusher).Flush()
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return true
		}
		if n == 1 { // a reset and not an end
			_ = conn.(*net.TCPConn).SetLinger(0)
		}
		conn.Close()
		return true
	}
	e := newTestEndpoint(t, f)
	got, err := e.EmbedDocuments(t.Context(), []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	checkVectors(t, got, []string{"a", "b"}, 4)
	if s := e.Stats(); s.Requests != 3 || s.Retries != 2 || s.Texts != 2 {
		t.Errorf("stats are %+v", s)
	}
}

func TestSecretsAreInNoErrorAndInNoLog(t *testing.T) {
	const key, tenant, token = `sk-"secret"/key+1`, "tenant-secret-7", "query-secret"
	echo := func(r *http.Request) string {
		auth := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		quoted, _ := json.Marshal(auth)
		return strings.Repeat(" . ", 30) + auth + " \x01" + string(quoted) + " " + r.Header.Get("X-Tenant") + r.URL.RawQuery
	}
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"plain": func(w http.ResponseWriter, r *http.Request) { http.Error(w, echo(r), http.StatusUnauthorized) },
		"message": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			writeJSON(w, map[string]any{"error": map[string]any{"message": echo(r)}})
		},
		"detail": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(429)
			writeJSON(w, map[string]any{"detail": echo(r)})
		},
		"ok": func(w http.ResponseWriter, r *http.Request) { writeJSON(w, map[string]any{"hello": echo(r)}) },
		"split": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, key[:7]+"\x00"+key[7:], http.StatusForbidden)
		},
		"at the end of the excerpt": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, strings.Repeat("x", excerptLength-5)+key, http.StatusForbidden)
		},
		"at the cut": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, strings.Repeat(" ", searchLength-9)+key, http.StatusForbidden)
		},
		"no JSON": func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, echo(r)) },
		"header":  func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Location", echo(r)); w.WriteHeader(302) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer(t)
			f.broken = func(_ int, w http.ResponseWriter, r *http.Request, _ wireRequest) bool { answer(w, r); return true }
			var log bytes.Buffer
			e, err := NewEndpoint(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), EndpointOptions{
				BaseURL: f.URL + "/v1?code=" + token, Model: "m", APIKey: key, Backoff: time.Microsecond,
				Headers: map[string]string{"X-Tenant": tenant},
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.EmbedQuery(t.Context(), "a")
			if err == nil {
				t.Fatal("no error")
			}
			shown := fmt.Sprintf("%v %+v %#v", err, err, err)
			for ; err != nil; err = errors.Unwrap(err) {
				shown += err.Error()
			}
			for _, secret := range []string{key, "sk-", tenant, "tenant-secret", token, "secret"} {
				if strings.Contains(shown, secret) {
					t.Errorf("%q is in the error: %s", secret, shown)
				}
				if strings.Contains(log.String(), secret) {
					t.Errorf("%q is in the log: %s", secret, log.String())
				}
			}
		})
	}
}
