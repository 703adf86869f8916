package embed

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"assay"
)

// script is a transport that plays one step for each request and notes when it was asked.
type script struct {
	start time.Time
	steps []func(*http.Request) (*http.Response, error)
	at    []time.Duration
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	n := min(len(s.at), len(s.steps)-1) // the last step is repeated
	s.at = append(s.at, time.Since(s.start))
	return s.steps[n](r)
}

func respond(code int, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader("busy")), Request: r}, nil
	}
}

func well(r *http.Request) (*http.Response, error) {
	var in wireRequest
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	body, err := json.Marshal(answerFor(in, 4))
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
}

func refused(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
}

func never(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// play runs one query against the steps, in a time that passes only while everybody waits.
func play(t *testing.T, deadline time.Duration, steps ...func(*http.Request) (*http.Response, error)) (*script, *Endpoint, error) {
	t.Helper()
	s := &script{start: time.Now(), steps: steps}
	e, err := NewEndpoint(quiet(), EndpointOptions{BaseURL: "http://embed.test/v1", Model: "m", Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, deadline)
		defer cancel()
	}
	_, err = e.EmbedQuery(ctx, "a")
	return s, e, err
}

func TestWaitsGrowAndVary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, e, err := play(t, 0, respond(500), refused, respond(503), well)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Stats(); got.Requests != 4 || got.Retries != 3 || got.Texts != 1 {
			t.Errorf("stats are %+v", got)
		}
		for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
			wait := s.at[i+1] - s.at[i]
			if wait < want*8/10 || wait > want*12/10 {
				t.Errorf("wait %d was %v, want %v, give or take 20 %%", i+1, wait, want)
			}
		}
	})
}

func TestARetryAfterThatMeansAtOnceIsNotTakenAtItsWord(t *testing.T) {
	for _, header := range []string{"0", "Sun, 06 Nov 1994 08:49:37 GMT", "-5", "soon", "99999999999999999999"} {
		synctest.Test(t, func(t *testing.T) {
			s, _, err := play(t, 0, respond(429, "Retry-After", header), well)
			if err != nil {
				t.Fatal(err)
			}
			if wait := s.at[1]; wait < 400*time.Millisecond || wait > 600*time.Millisecond {
				t.Errorf("after %q the second attempt came after %v", header, wait)
			}
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	for name, header := range map[string]func() string{
		"seconds": func() string { return "7" },
		"date":    func() string { return time.Now().Add(7 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _, err := play(t, 0, respond(429, "Retry-After", header()), well)
				if err != nil {
					t.Fatal(err)
				}
				if wait := s.at[1]; wait < 7*time.Second || wait > 11*time.Second {
					t.Errorf("the second attempt came after %v", wait)
				}
			})
		})
	}
}

func TestNobodyWaitsWithoutTimeForAnotherAttempt(t *testing.T) {
	for _, c := range []struct {
		name     string
		deadline time.Duration
		step     func(*http.Request) (*http.Response, error)
		status   assay.Status
		want     string
	}{
		{"Retry-After past the deadline", 5 * time.Second, respond(429, "Retry-After", "7"), assay.StatusError, "429 Too Many Requests: busy (no time left to try again)"},
		{"backoff past the deadline", 200 * time.Millisecond, refused, assay.StatusUnavailable, "connection refused (no time left to try again)"},
		{"Retry-After past the longest wait", 0, respond(503, "Retry-After", "3600"), assay.StatusError, "503 Service Unavailable: busy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, e, err := play(t, c.deadline, c.step)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error is %v, want %s", err, c.want)
				}
				if got := assay.StatusOf(err); got != c.status {
					t.Errorf("the stage's status is %s, want %s", got, c.status)
				}
				if elapsed := time.Since(s.start); elapsed != 0 {
					t.Errorf("it took %v", elapsed)
				}
				if got := e.Stats(); got.Requests != 1 || got.Retries != 0 {
					t.Errorf("stats are %+v", got)
				}
			})
		})
	}
}

func TestADeadlineDuringALaterAttemptIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, err := play(t, 3*time.Second, respond(500), never)
		if assay.StatusOf(err) != assay.StatusTimeout || time.Since(s.start) != 3*time.Second {
			t.Errorf("error is %v after %v", err, time.Since(s.start))
		}
	})
}

func TestACallerWhoLeavesEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{start: time.Now(), steps: []func(*http.Request) (*http.Response, error){respond(429, "Retry-After", "30")}}
		e, err := NewEndpoint(quiet(), EndpointOptions{BaseURL: "http://embed.test/v1", Model: "m", Transport: s})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = e.EmbedQuery(ctx, "a")
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "429") || time.Since(s.start) != time.Second {
			t.Errorf("error is %v after %v", err, time.Since(s.start))
		}
	})
}

func TestHopelessConnectionsAreNotTriedAgain(t *testing.T) {
	for name, cause := range map[string]error{
		"unknown name":          &net.DNSError{Err: "no such host", Name: "embed.test", IsNotFound: true},
		"untrusted certificate": &tls.CertificateVerificationError{Err: errors.New("signed by unknown authority")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, e, err := play(t, 0, func(*http.Request) (*http.Response, error) { return nil, cause })
				if !errors.Is(err, assay.ErrUnavailable) || e.Stats().Requests != 1 {
					t.Errorf("error is %v after %d requests", err, e.Stats().Requests)
				}
			})
		})
	}
}
