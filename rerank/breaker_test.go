package rerank

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"assay"
)

// hang answers nothing until the request ends.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func ranks(r *http.Request) (*http.Response, error) { return answer(r, 200, nil, text(ranked)), nil }

func says(code int, body string) roundTripper {
	return func(r *http.Request) (*http.Response, error) { return answer(r, code, nil, text(body)), nil }
}

// script is a transport that does what it was told last, and counts. Requests may outlive the stage
// that made them.
type script struct {
	mu    sync.Mutex // guards what follows
	do    roundTripper
	calls int
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.calls++
	do := s.do
	s.mu.Unlock()
	return do(r)
}

func (s *script) set(do roundTripper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do = do
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func breakerClient(t *testing.T, s *script, log io.Writer) *Client {
	t.Helper()
	c, err := New(slog.New(slog.NewTextHandler(log, nil)), Options{
		URL: "http://reranker.test", Transport: s, Timeout: time.Second, MaxAttempts: 1, BreakerFailures: 3, BreakerCooldown: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOnlyFailuresOfTheServiceOpenTheCircuit(t *testing.T) {
	for _, tc := range []struct {
		name  string
		do    roundTripper
		opens bool
	}{
		{"timeout", hang, true},
		{"unavailable", func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }, true},
		{"server error", says(500, ""), true},
		{"overloaded", says(429, ""), true},
		{"inference failed", says(424, ""), true},
		{"bad response", says(200, "<html>"), true},
		{"partial", says(200, `[{"index":0,"score":1}]`), true},
		{"bad request", says(400, ""), false},
		{"no key", says(401, ""), false},
		{"too large", says(413, ""), false},
		{"not understood", says(422, ""), false},
		{"ranking", ranks, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{do: tc.do}
				c := breakerClient(t, s, io.Discard)
				for range 3 {
					c.Rerank(t.Context(), "q", texts(3), 2)
				}
				calls := s.count()
				o := c.Rerank(t.Context(), "q", texts(3), 2)
				if (o.Status == assay.RerankCircuitOpen) != tc.opens || (s.count() == calls) != tc.opens {
					t.Fatalf("after three: %q, %d more calls", o.Status, s.count()-calls)
				}
				if !tc.opens {
					return
				}
				if o.Latency != 0 || o.Attempts != 0 || o.Fallback != assay.FallbackFused || o.Stage().Status != assay.StatusUnavailable ||
					!errors.Is(o.Err, assay.ErrUnavailable) || !strings.Contains(o.Reason, "3 failures in a row") || !strings.Contains(o.Reason, "10s") {
					t.Errorf("outcome %+v", o)
				}
			})
		})
	}
}

func TestWhatSaysNothingOfTheServiceDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: hang}
		c := breakerClient(t, s, io.Discard)
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			if o := c.Rerank(ctx, "q", texts(3), 2); o.Status != assay.RerankCancelled {
				t.Errorf("a caller that goes away: %q", o.Status)
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
			if o := c.Rerank(ctx, "q", texts(3), 2); o.Status != assay.RerankTimeout {
				t.Errorf("a request that has no time left: %q", o.Status)
			}
			cancel()
		}
		s.set(ranks)
		if o := c.Rerank(t.Context(), "q", texts(3), 2); o.Status != assay.RerankOK {
			t.Errorf("then: %+v", o)
		}
	})
}

func TestASuccessBetweenFailuresKeepsTheCircuitClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		c := breakerClient(t, s, io.Discard)
		for i := range 12 {
			s.set(says(500, ""))
			if i%3 == 2 {
				s.set(ranks)
			}
			if o := c.Rerank(t.Context(), "q", texts(3), 2); o.Status == assay.RerankCircuitOpen {
				t.Fatalf("open after %d", i)
			}
		}
	})
}

func TestTheCircuitClosesWhenAProbeSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := &script{do: says(503, "loading")}
		c := breakerClient(t, s, &log)
		ask := func(ctx context.Context) assay.RerankStatus { return c.Rerank(ctx, "q", texts(3), 2).Status }
		expect := func(what string, want assay.RerankStatus) {
			t.Helper()
			if got := ask(t.Context()); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		for range 3 {
			expect("while it fails", assay.RerankHTTPError)
		}
		<-time.After(9 * time.Second)
		expect("during the cooldown", assay.RerankCircuitOpen)
		<-time.After(time.Second)
		expect("a probe that fails", assay.RerankHTTPError)
		expect("after it", assay.RerankCircuitOpen)

		<-time.After(10 * time.Second)
		s.set(hang)
		gone, cancel := context.WithCancel(t.Context())
		probe := make(chan assay.RerankStatus)
		go func() { probe <- ask(gone) }()
		synctest.Wait()
		expect("beside a probe", assay.RerankCircuitOpen)
		cancel()
		if got := <-probe; got != assay.RerankCancelled {
			t.Errorf("a probe whose caller goes away: %q", got)
		}
		s.set(ranks)
		expect("the probe after it", assay.RerankOK)
		s.set(says(503, ""))
		for range 3 {
			expect("closed again, and three failures are allowed", assay.RerankHTTPError)
		}
		expect("and then it is open", assay.RerankCircuitOpen)
		for _, want := range []string{"circuit opened", "circuit closed", "failures_in_a_row=3"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %q", want)
			}
		}
	})
}

func TestWithoutABreakerTheServiceIsAlwaysAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: says(500, "")}
		c := bubbleClient(t, Options{BreakerFailures: -1, MaxAttempts: 1}, s.RoundTrip)
		for range 20 {
			c.Rerank(t.Context(), "q", texts(3), 2)
		}
		if s.count() != 20 {
			t.Errorf("%d calls", s.count())
		}
	})
}
