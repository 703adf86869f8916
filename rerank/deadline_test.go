package rerank

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"assay"
)

// The tests of this file run in a synctest bubble over an in-memory transport: its clock moves only
// when all goroutines wait, so "within the deadline" is asserted to the nanosecond, and a
// goroutine that stays behind fails the test.

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// slowBody gives some text and then waits for the request's context.
type slowBody struct {
	io.Reader
	ctx context.Context
}

func (b slowBody) Read(p []byte) (int, error) {
	if n, _ := b.Reader.Read(p); n > 0 {
		return n, nil
	}
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}
func (slowBody) Close() error { return nil }

func answer(r *http.Request, code int, header http.Header, body io.ReadCloser) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: code, ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: body, Request: r}
}

func text(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }

const ranked = `[{"index":0,"score":0.1},{"index":1,"score":0.9},{"index":2,"score":0.5}]`

func bubbleClient(t *testing.T, o Options, transport roundTripper) *Client {
	t.Helper()
	o.URL, o.Transport = "http://reranker.test", transport
	c, err := New(nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFallbackIsReachedAtTheDeadline(t *testing.T) {
	for _, tc := range []struct {
		name string
		hang func(stuck chan struct{}) roundTripper
	}{
		{"at connect", func(chan struct{}) roundTripper {
			return func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }
		}},
		{"in the body", func(chan struct{}) roundTripper {
			return func(r *http.Request) (*http.Response, error) {
				return answer(r, 200, nil, slowBody{strings.NewReader(`[{"index":0,`), r.Context()}), nil
			}
		}},
		{"in the body of a failure", func(chan struct{}) roundTripper {
			return func(r *http.Request) (*http.Response, error) {
				return answer(r, 500, nil, slowBody{strings.NewReader(`{"error":`), r.Context()}), nil
			}
		}},
		{"in a transport that no context stops", func(stuck chan struct{}) roundTripper {
			return func(*http.Request) (*http.Response, error) { <-stuck; return nil, errors.New("late") }
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck := make(chan struct{})
				defer close(stuck)
				c := bubbleClient(t, Options{Timeout: 200 * time.Millisecond, BatchSize: 1}, tc.hang(stuck))
				start := time.Now()
				o := c.Rerank(t.Context(), "q", texts(5), 2)
				if took := time.Since(start); took != 200*time.Millisecond {
					t.Errorf("returned after %v of 200ms", took)
				}
				if o.Status != assay.RerankTimeout || !errors.Is(o.Err, context.DeadlineExceeded) || o.Fallback != assay.FallbackFused {
					t.Errorf("outcome %+v", o)
				}
				if o.Stage().Status != assay.StatusTimeout || o.Latency != 200*time.Millisecond || o.Timeout != o.Latency {
					t.Errorf("stage %+v, timeout %v", o.Stage(), o.Timeout)
				}
			})
		})
	}
}

func TestTheCallersDeadlineCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleClient(t, Options{Timeout: time.Minute}, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 70*time.Millisecond)
		defer cancel()
		o := c.Rerank(ctx, "q", texts(3), 2)
		if o.Status != assay.RerankTimeout || o.Latency != 70*time.Millisecond || o.Timeout != 70*time.Millisecond || !strings.Contains(o.Reason, "of the request") {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestACallerThatGoesAwayIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleClient(t, Options{Timeout: time.Minute, Policy: assay.FallbackFail}, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Millisecond, cancel)
		o := c.Rerank(ctx, "q", texts(3), 2)
		if o.Status != assay.RerankCancelled || o.Latency != 30*time.Millisecond || o.Fallback != "" {
			t.Errorf("outcome %+v", o)
		}
		if o := c.Rerank(ctx, "q", texts(3), 2); o.Status != assay.RerankCancelled {
			t.Errorf("called with a cancelled context: %+v", o)
		}
	})
}

func TestRetriesFitIntoTheTimeThatIsLeft(t *testing.T) {
	refuse := func(r *http.Request, code int, after string) *http.Response {
		return answer(r, code, http.Header{"Retry-After": {after}}, text("busy"))
	}
	for _, tc := range []struct {
		name     string
		first    func(r *http.Request) (*http.Response, error)
		status   assay.RerankStatus
		attempts int
		atLeast  time.Duration
		atMost   time.Duration
	}{
		{"asked to come back soon", func(r *http.Request) (*http.Response, error) { return refuse(r, 429, "2"), nil }, assay.RerankOK, 2, 2 * time.Second, 3 * time.Second},
		{"asked to come back too late", func(r *http.Request) (*http.Response, error) { return refuse(r, 503, "30"), nil }, assay.RerankHTTPError, 1, 0, 0},
		{"not told when", func(r *http.Request) (*http.Response, error) { return refuse(r, 503, ""), nil }, assay.RerankOK, 2, 40 * time.Millisecond, 60 * time.Millisecond},
		{"refused connection", func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }, assay.RerankOK, 2, 40 * time.Millisecond, 60 * time.Millisecond},
		{"not worth a retry", func(r *http.Request) (*http.Response, error) { return refuse(r, 401, ""), nil }, assay.RerankHTTPError, 1, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				c := bubbleClient(t, Options{Timeout: 5 * time.Second}, func(r *http.Request) (*http.Response, error) {
					if calls++; calls == 1 {
						return tc.first(r)
					}
					return answer(r, 200, nil, text(ranked)), nil
				})
				o := c.Rerank(t.Context(), "q", texts(3), 2)
				if o.Status != tc.status || o.Attempts != tc.attempts || o.Latency < tc.atLeast || o.Latency > tc.atMost {
					t.Errorf("status %q after %d attempts and %v (%v)", o.Status, o.Attempts, o.Latency, o.Err)
				}
			})
		})
	}
}

func TestASlowAnswerInTimeIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleClient(t, Options{}, func(r *http.Request) (*http.Response, error) {
			<-time.After(999 * time.Millisecond)
			return answer(r, 200, nil, text(ranked)), nil
		})
		if o := c.Rerank(t.Context(), "q", texts(3), 2); o.Status != assay.RerankOK || o.Latency != 999*time.Millisecond {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestAHangingServerSeesTheRequestEnd(t *testing.T) {
	gone := make(chan struct{})
	c, _ := newClient(t, Options{Timeout: 50 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server watches the connection once the body is read
		<-r.Context().Done()
		close(gone)
	})
	if o := c.Rerank(t.Context(), "q", texts(3), 2); o.Status != assay.RerankTimeout {
		t.Errorf("outcome %+v", o)
	}
	<-gone
}
