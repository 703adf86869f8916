package embed

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
)

// roundTrip is a transport made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answerWithoutUsage(_ int, w http.ResponseWriter, _ *http.Request, in wireRequest) bool {
	a := answerFor(in, 4)
	a.Usage = nil
	writeJSON(w, a)
	return true
}

// Whatever a server answers: no panic, and vectors or an error that is short and can be printed.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		`{"data":[{"index":1,"embedding":[1,2]},{"index":0,"embedding":[3,4]}],"usage":{"prompt_tokens":2}}`,
		`{"data":[{"index":0,"embedding":[1,null]},{"index":1,"embedding":[0,0]}]}`,
		`{"data":[{"index":0,"embedding":[1e38,3e38]},{"index":1,"embedding":[1e-45,0]}]}`,
		`{"error":{"message":["a","b"],"code":7,"param":null,"innererror":{}}}`,
		`{"error":"text"}`, "<html>", "", "null", "[]", "\xff\xfe{\x00",
	} {
		f.Add(200, body)
		f.Add(400, body)
	}
	f.Fuzz(func(t *testing.T, code int, body string) {
		if code < 200 || code > 999 {
			return
		}
		e, err := NewEndpoint(quiet(), EndpointOptions{
			BaseURL: "http://embed.test", Model: "m", APIKey: "sk-secret", Backoff: time.Nanosecond, MaxAttempts: 2,
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		vectors, err := e.EmbedDocuments(t.Context(), []string{"a", "b"})
		if err != nil {
			if text := err.Error(); len(text) > 2000 || strings.Contains(text, "sk-secret") || len(vectors) != 0 {
				t.Errorf("%d vectors and the error %q", len(vectors), text)
			}
			return
		}
		if code >= 300 || len(vectors) != 2 || len(vectors[0]) != e.Model().Dimensions || len(vectors[1]) != len(vectors[0]) {
			t.Fatalf("status %d gave %v", code, vectors)
		}
		for _, v := range vectors {
			if length, err := norm(v); err != nil || math.Abs(length-1) > 1e-3 {
				t.Errorf("%v has length %v (%v)", v, length, err)
			}
		}
	})
}
