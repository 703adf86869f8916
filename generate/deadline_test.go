package generate

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

// The tests of this file run over an in-memory transport in a synctest bubble, whose clock moves only
// when all goroutines wait: times are exact, and a goroutine that stays behind fails the test.

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// hanging gives some text and then waits for the request's end.
type hanging struct {
	io.Reader
	ctx context.Context
}

func (h hanging) Read(p []byte) (int, error) {
	if n, _ := h.Reader.Read(p); n > 0 {
		return n, nil
	}
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}
func (hanging) Close() error { return nil }

func TestDeadlinesOfTheAnswer(t *testing.T) {
	hangAfter := func(text string) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: hanging{strings.NewReader(text), r.Context()}, Request: r}, nil
		}
	}
	for _, tc := range []struct {
		name  string
		hang  roundTripper
		after time.Duration
		says  string
		text  string
	}{
		{"at connect", func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }, 20 * time.Second, "generate.first_token_timeout", ""},
		{"before the first token", hangAfter(chunk("", "")), 20 * time.Second, "generate.first_token_timeout", ""},
		{"in the stream", hangAfter(chunk("It takes ", "")), 60 * time.Second, "generate.timeout", "It takes "},
		{"while it reasons", hangAfter("data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n"), 60 * time.Second, "generate.timeout", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, err := NewEndpoint(nil, EndpointOptions{URL: "http://chat.test", Model: "m", Transport: tc.hang})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				result, err := e.Generate(t.Context(), request(1), nil)
				if took := time.Since(start); took != tc.after {
					t.Errorf("returned after %v, want %v", took, tc.after)
				}
				if assay.StatusOf(err) != assay.StatusTimeout || !strings.Contains(err.Error(), tc.says) || result.Text != tc.text {
					t.Errorf("%q, %v", result.Text, err)
				}
			})
		})
	}
	t.Run("after the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, err := NewEndpoint(nil, EndpointOptions{URL: "http://chat.test", Model: "m", Transport: hangAfter(chunk("14 days [1].", "stop"))})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			result, err := e.Generate(t.Context(), request(1), nil)
			if err != nil || result.Text != "14 days [1]." || time.Since(start) != usageGrace {
				t.Errorf("%q after %v, %v", result.Text, time.Since(start), err)
			}
		})
	})
	t.Run("of the caller", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, err := NewEndpoint(nil, EndpointOptions{URL: "http://chat.test", Model: "m", Transport: hangAfter(chunk("It takes ", ""))})
			if err != nil {
				t.Fatal(err)
			}
			cause := errors.New("the request took too long")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, cause)
			defer cancel()
			start := time.Now()
			if _, err := e.Generate(ctx, request(1), nil); !errors.Is(err, cause) || time.Since(start) != 3*time.Second {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
		})
	})
}
