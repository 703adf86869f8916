package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"assay"
)

// sse reads server-sent events into "name data" lines.
func sse(t *testing.T, r io.Reader) []string {
	t.Helper()
	var out []string
	name := ""
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = v
		}
		if v, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			out = append(out, name+" "+v)
		}
	}
	return out
}

func streamEvents() []assay.Event {
	return []assay.Event{
		{Manifest: "m_1", Stage: &assay.Stage{Name: assay.StageEmbed, Status: assay.StatusOK}},
		{Manifest: "m_1", Stage: &assay.Stage{Name: assay.StageRerank, Status: assay.StatusTimeout}, Reranker: &assay.ManifestReranker{Status: assay.RerankTimeout}},
		{Manifest: "m_1", Delta: "Thirty "},
		{Manifest: "m_1", Delta: "days [1]."},
	}
}

func TestStreamSendsStagesTokensCitationsAndManifest(t *testing.T) {
	for name, send := range map[string]func(http.Handler) *httptest.ResponseRecorder{
		"by field": func(s http.Handler) *httptest.ResponseRecorder {
			return post(s, "/v1/answer", `{"question":"a","stream":true}`)
		},
		"by header": func(s http.Handler) *httptest.ResponseRecorder {
			return post(s, "/v1/answer", `{"question":"a"}`, "Accept", "text/event-stream")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := send(newServer(t, &fakeEngine{manifest: okManifest(), events: streamEvents()}, Options{}))
			if w.Header().Get("Assay-Rerank-Status") != "timeout" || w.Header().Get("Assay-Manifest") != "m_1" || w.Header().Get("Content-Type") != "text/event-stream" {
				t.Errorf("headers %v", w.Header())
			}
			events := sse(t, w.Body)
			var names []string
			text := ""
			for _, e := range events {
				name, data, _ := strings.Cut(e, " ")
				names = append(names, name)
				if name == "token" {
					var v struct{ Delta string }
					if err := json.Unmarshal([]byte(data), &v); err != nil {
						t.Fatal(err)
					}
					text += v.Delta
				}
			}
			if got := strings.Join(names, " "); got != "stage stage token token citations manifest done" {
				t.Errorf("events %s", got)
			}
			if text != "Thirty days [1]." {
				t.Errorf("text %q", text)
			}
		})
	}
}

func TestStreamReportsErrors(t *testing.T) {
	failure := fmt.Errorf("generate: %w", assay.ErrUnavailable)
	t.Run("before anything was sent", func(t *testing.T) {
		w := post(newServer(t, &fakeEngine{manifest: okManifest(), err: failure}, Options{}), "/v1/answer", `{"question":"a","stream":true}`)
		checkProblem(t, w, 503, "generate")
	})
	t.Run("in the middle", func(t *testing.T) {
		w := post(newServer(t, &fakeEngine{manifest: okManifest(), events: streamEvents(), err: failure}, Options{}), "/v1/answer", `{"question":"a","stream":true}`)
		events := sse(t, w.Body)
		if last := events[len(events)-1]; !strings.HasPrefix(last, "error ") || !strings.Contains(last, `"status":503`) {
			t.Errorf("the last event is %s", last)
		}
	})
}

func TestTooManyRequestsAreRefused(t *testing.T) {
	e := &fakeEngine{manifest: okManifest(), entered: make(chan struct{}), release: make(chan struct{})}
	s := newServer(t, e, Options{MaxConcurrent: 1})
	done := make(chan *httptest.ResponseRecorder)
	go func() { done <- post(s, "/v1/answer", `{"question":"a"}`) }()
	<-e.entered
	w := post(s, "/v1/answer", `{"question":"b"}`)
	checkProblem(t, w, 429, "server.max_concurrent")
	if w.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	close(e.release)
	if w := <-done; w.Code != 200 {
		t.Errorf("the first request: %d", w.Code)
	}
}

// start serves on a loopback port until the returned function is called, which returns Serve's error.
func start(t *testing.T, s *Server) (url string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	return "http://" + l.Addr().String(), func() error { cancel(); return <-done }
}

func TestShutdownLetsAnswersFinish(t *testing.T) {
	e := &fakeEngine{manifest: okManifest(), entered: make(chan struct{}), release: make(chan struct{})}
	url, stop := start(t, newServer(t, e, Options{}))
	type result struct {
		status int
		err    error
	}
	answered := make(chan result, 1)
	go func() {
		resp, err := http.Post(url+"/v1/answer", "application/json", strings.NewReader(`{"question":"a"}`))
		if err != nil {
			answered <- result{err: err}
			return
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		answered <- result{resp.StatusCode, err}
	}()
	<-e.entered
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	close(e.release)
	if r := <-answered; r.err != nil || r.status != 200 {
		t.Errorf("the answer that was under way: %+v", r)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestShutdownCutsOffWhatDoesNotFinish(t *testing.T) {
	e := &fakeEngine{manifest: okManifest(), entered: make(chan struct{}), release: make(chan struct{}), ended: make(chan error, 1)}
	url, stop := start(t, newServer(t, e, Options{ShutdownTimeout: time.Millisecond}))
	go func() {
		resp, err := http.Post(url+"/v1/answer", "application/json", strings.NewReader(`{"question":"a"}`))
		if err == nil {
			resp.Body.Close()
		}
	}()
	<-e.entered
	if err := stop(); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("Serve returned %v", err)
	}
	if err := <-e.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the engine saw %v", err)
	}
}

func TestClientThatLeavesCancelsTheAnswer(t *testing.T) {
	e := &fakeEngine{entered: make(chan struct{}), release: make(chan struct{}), ended: make(chan error, 1)}
	url, stop := start(t, newServer(t, e, Options{}))
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/answer", strings.NewReader(`{"question":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			resp.Body.Close()
		}
	}()
	<-e.entered
	leave()
	if err := <-e.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the engine saw %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
