package generate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay"
)

const secret = "sk-very-secret-0123456789"

// chunk is one event of a chat stream.
func chunk(content, finish string) string {
	reason := "null"
	if finish != "" {
		reason = fmt.Sprintf("%q", finish)
	}
	text, _ := json.Marshal(content)
	return fmt.Sprintf("data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":%s}]}\n\n", text, reason)
}

const usageChunk = "data: {\"id\":\"x\",\"choices\":[],\"usage\":{\"prompt_tokens\":321,\"completion_tokens\":7}}\n\n"
const done = "data: [DONE]\n\n"

// say writes events of a stream, each flushed.
func say(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		_, _ = io.WriteString(w, e)
		w.(http.Flusher).Flush()
	}
}

func script(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { say(w, events...) }
}

func newEndpoint(t *testing.T, o EndpointOptions, handler http.HandlerFunc) (*Endpoint, *strings.Builder) {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	o.URL, o.Model = srv.URL, "test-model"
	var log strings.Builder
	e, err := NewEndpoint(slog.New(slog.NewTextHandler(&log, nil)), o)
	if err != nil {
		t.Fatal(err)
	}
	return e, &log
}

func request(n int) Request { return Request{Question: "How long?", Passages: testPassages(n)} }

func TestAnswerIsStreamedWithItsCitations(t *testing.T) {
	var body map[string]any
	e, _ := newEndpoint(t, EndpointOptions{APIKey: secret, MaxTokens: 99}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+secret {
			t.Errorf("request to %s with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		say(w, ": comment\n\n", chunk("", ""), chunk("\n It takes 14", ""), chunk(" days [2", ""), chunk("] and more [7", ""), chunk("].", ""), chunk("", "stop"), usageChunk, done)
	})
	var streamed strings.Builder
	result, err := e.Generate(t.Context(), request(3), func(delta string) error { streamed.WriteString(delta); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if want := "It takes 14 days [2] and more."; result.Text != want || streamed.String() != want {
		t.Errorf("text %q, streamed %q", result.Text, streamed.String())
	}
	if len(result.Citations) != 1 || result.Citations[0].ChunkID != "c2" || fmt.Sprint(result.Invalid) != "[[7]]" {
		t.Errorf("citations %+v, invalid %v", result.Citations, result.Invalid)
	}
	if result.Usage != (assay.Usage{InputTokens: 321, OutputTokens: 7}) || result.FinishReason != "stop" || result.Refused || result.Model != "test-model" {
		t.Errorf("result %+v", result)
	}
	if body["temperature"] != 0.0 || body["max_tokens"] != 99.0 || body["stream"] != true || body["stream_options"].(map[string]any)["include_usage"] != true {
		t.Errorf("request body %v", body)
	}
}

func TestTokensAreCountedWhenTheServiceDoesNot(t *testing.T) {
	e, _ := newEndpoint(t, EndpointOptions{Count: func(s string) int { return len(strings.Fields(s)) }}, script(chunk("one two three [1]", "stop"), done))
	r := request(2)
	result, err := e.Generate(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	overhead := e.Overhead(r.Question, nil) + e.PassageTokens(r.Passages[0]) + e.PassageTokens(r.Passages[1])
	if result.Usage.OutputTokens != 4 || result.Usage.InputTokens != result.PromptTokens || result.PromptTokens != overhead {
		t.Errorf("usage %+v, prompt %d, overhead and passages %d", result.Usage, result.PromptTokens, overhead)
	}
}

func TestRefusals(t *testing.T) {
	e, _ := newEndpoint(t, EndpointOptions{}, func(http.ResponseWriter, *http.Request) { t.Error("the model was asked") })
	var streamed string
	result, err := e.Generate(t.Context(), request(0), func(d string) error { streamed += d; return nil })
	if err != nil || result.Text != Refusal || streamed != Refusal || !result.Refused || result.FinishReason != FinishNoContext {
		t.Errorf("without passages: %+v, %v", result, err)
	}
	for text, want := range map[string]bool{
		Refusal:                                true,
		"\"" + strings.ToUpper(Refusal) + "\"": true,
		Refusal + " Please ask support.":       true,
		Refusal + " But see [1].":              false,
		"It takes 14 days [1].":                false,
	} {
		e, _ := newEndpoint(t, EndpointOptions{}, script(chunk(text, "stop"), done))
		if result, err := e.Generate(t.Context(), request(1), nil); err != nil || result.Refused != want {
			t.Errorf("%q: refused %v, %v", text, result.Refused, err)
		}
	}
}

func TestFailuresSayWhatToDo(t *testing.T) {
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = io.WriteString(w, body) }
	}
	for _, tc := range []struct {
		name    string
		handler http.HandlerFunc
		is      error
		says    string
		text    string
		finish  string
	}{
		{"unauthorised", status(401, `{"error":{"message":"bad key","type":"x"}}`), nil, "check the generator's API key", "", ""},
		{"model unknown", status(404, `{"error":"model 'x' not found"}`), nil, "generate.model", "", ""},
		{"prompt too long", status(400, `{"object":"error","message":"maximum context length is 2048"}`), nil, "assemble.budget", "", ""},
		{"no quota", status(429, `{"error":{"message":"quota"}}`), nil, "quota", "", ""},
		{"server error", status(500, `oops`), nil, `"oops"`, "", ""},
		{"html failure", status(502, `<html>Bad gateway</html>`), nil, "an HTML page", "", ""},
		{"html success", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<html>Sign in</html>")
		}, nil, "instead of a stream", "", ""},
		{"html without a type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "<html>\n<body>\n")
		}, ErrIncomplete, "generate.url", "", ""},
		{"no stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"error":{"message":"overloaded"}}`)
		}, nil, "overloaded", "", ""},
		{"half a JSON", script("data: {\"choices\":[{\"delta\":{\"content\":\"It"), ErrIncomplete, "without a finish reason", "", ""},
		{"damaged JSON", script(chunk("It takes [1] 14", ""), "data: {\"choices\":[{]\n\n"), ErrIncomplete, "broken stream", "It takes [1] 14", FinishIncomplete},
		{"half a stream", script(chunk("It takes [1", "")), ErrIncomplete, "without a finish reason", "It takes [1", FinishIncomplete},
		{"done without a reason", script(chunk("It takes", ""), done), ErrIncomplete, "without a finish reason", "It takes", FinishIncomplete},
		{"error in the stream", script(chunk("It takes", ""), "data: {\"error\":{\"message\":\"out of memory\"}}\n\n", "\n"), ErrIncomplete, "out of memory", "It takes", FinishIncomplete},
		{"reset in the stream", func(w http.ResponseWriter, _ *http.Request) {
			say(w, chunk("It takes", ""))
			panic(http.ErrAbortHandler)
		}, ErrIncomplete, "broken stream", "It takes", FinishIncomplete},
		{"nothing said", script(chunk("", "content_filter"), done), ErrIncomplete, "content_filter", "", "content_filter"},
		{"dropped connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, assay.ErrUnavailable, "check that it runs", "", ""},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusTemporaryRedirect)
		}, nil, "redirects are not followed", "", ""},
		{"key echoed", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(403)
			_, _ = io.WriteString(w, strings.Repeat("x", 270)+r.Header.Get("Authorization"))
		}, nil, "403", "", ""},
		{"key echoed in the stream", func(w http.ResponseWriter, r *http.Request) {
			say(w, "data: {\"error\":{\"message\":\"no such key "+r.Header.Get("Authorization")+"\"}}\n\n\n")
		}, ErrIncomplete, "no such key", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, log := newEndpoint(t, EndpointOptions{APIKey: secret, MaxAttempts: 1}, tc.handler)
			result, err := e.Generate(t.Context(), request(1), nil)
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), e.service) {
				t.Fatalf("error %v does not name the service and say %q", err, tc.says)
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("error %v is not %v", err, tc.is)
			}
			if result.Text != tc.text || result.FinishReason != tc.finish || result.Refused {
				t.Errorf("result %+v", result)
			}
			if all := err.Error() + log.String(); strings.Contains(all, secret[:10]) {
				t.Errorf("the API key is shown: %s", all)
			}
		})
	}
}

func TestRetriesEndWithTheFirstToken(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first http.HandlerFunc
		ok    bool
		calls int
	}{
		{"overloaded", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, true, 2},
		{"unavailable", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, true, 2},
		{"dropped", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true, 2},
		{"ended before a token", script(chunk("", "")), true, 2},
		{"ended after a token", script(chunk("It", "")), false, 1},
		{"refused", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, false, 1},
		{"told to wait too long", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(429)
		}, false, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			calls := 0
			e, _ := newEndpoint(t, EndpointOptions{}, func(w http.ResponseWriter, r *http.Request) {
				if calls++; calls == 1 {
					tc.first(w, r)
					return
				}
				say(w, chunk("It takes 14 days [1].", "stop"), done)
			})
			result, err := e.Generate(t.Context(), request(1), nil)
			if (err == nil) != tc.ok || calls != tc.calls {
				t.Errorf("%d calls, %v", calls, err)
			}
			if tc.ok && result.Text != "It takes 14 days [1]." {
				t.Errorf("text %q", result.Text)
			}
		})
	}
}

func TestEndlessAnswersAreCut(t *testing.T) {
	e, _ := newEndpoint(t, EndpointOptions{MaxAnswerBytes: 100}, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			say(w, chunk("é and so on ", ""))
		}
	})
	result, err := e.Generate(t.Context(), request(1), nil)
	if err != nil || result.FinishReason != FinishLength || len(result.Text) > 100 || len(result.Text) < 98 {
		t.Errorf("%d bytes, %q, %v", len(result.Text), result.FinishReason, err)
	}
}

func TestAReceiverThatFailsEndsTheRequest(t *testing.T) {
	gone := make(chan struct{})
	e, _ := newEndpoint(t, EndpointOptions{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		say(w, chunk("It takes", ""))
		<-r.Context().Done()
		close(gone)
	})
	broken := errors.New("pipe is broken")
	if _, err := e.Generate(t.Context(), request(1), func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	<-gone
}

func TestAClientThatGoesAwayClosesTheConnection(t *testing.T) {
	gone := make(chan struct{})
	e, _ := newEndpoint(t, EndpointOptions{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		say(w, chunk("It takes [1] some", ""))
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	result, err := e.Generate(ctx, request(1), func(string) error { cancel(); return nil })
	<-gone
	if !errors.Is(err, context.Canceled) || result.FinishReason != FinishIncomplete || !strings.HasPrefix(result.Text, "It takes") {
		t.Errorf("result %+v, %v", result, err)
	}
}

func TestOptionsAndTemplatesAreChecked(t *testing.T) {
	_, err := NewEndpoint(nil, EndpointOptions{URL: "ftp://x", APIKey: "a\r", Temperature: 3, Timeout: -1, MaxTokens: -1})
	for _, want := range []string{"generate.url", "generate.model", "generate.api_key", "generate.temperature", "generate.timeout", "generate.max_tokens"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error does not mention %s: %v", want, err)
		}
	}
	user := `{{define "user"}}{{.Sources}}{{.Question}}{{end}}`
	for text, want := range map[string]string{
		`{{define "system"}}{{.Nothing}}{{end}}{{define "source"}}{{.Boundary}}{{.Text}}{{.Boundary}}{{end}}` + user: "Nothing",
		`{{define "system"}}`: "unexpected EOF",
		`{{define "system"}}x{{end}}{{define "source"}}{{.Text}}{{end}}` + user:                                                              ".Boundary",
		`{{define "system"}}x{{end}}{{define "source"}}{{.Boundary}}{{.Text}}{{.Boundary}}{{end}}`:                                           `"user"`,
		`{{define "system"}}x{{end}}{{define "source"}}{{.Boundary}}{{.Text}}{{.Boundary}}{{end}}{{define "user"}}{{.Sources}}{{end}}`:       ".Question",
		`{{define "system"}}Be brief.{{end}}{{define "source"}}{{.Boundary}} {{.Position}} {{.Title}} {{.Text}} {{.Boundary}}{{end}}` + user: "",
	} {
		path := filepath.Join(t.TempDir(), "my.tmpl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := NewEndpoint(nil, EndpointOptions{URL: "http://h", Model: "m", Template: path})
		if want == "" {
			if err != nil || e.TemplateHash() != assay.HashText(text) {
				t.Errorf("template %s: %v", text, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("template %s: error %v does not say %q", text, err, want)
		}
	}
	if _, err := NewEndpoint(nil, EndpointOptions{URL: "http://h", Model: "m", Template: "/nowhere.tmpl"}); err == nil || !strings.Contains(err.Error(), "/nowhere.tmpl") {
		t.Errorf("missing template: %v", err)
	}
}

func TestURLsAreCompleted(t *testing.T) {
	for in, want := range map[string]string{
		"http://h:1":                        "http://h:1/v1",
		"http://h:1/":                       "http://h:1/v1",
		"https://u:p@h/v1/chat/completions": "https://u:p@h/v1",
		"https://h/openai/v2/":              "https://h/openai/v2",
	} {
		if u, err := baseURL(in); err != nil || u.String() != want {
			t.Errorf("%s: %v, %v", in, u, err)
		}
	}
	e, err := NewEndpoint(nil, EndpointOptions{URL: "http://u:hidden@127.0.0.1:1", Model: "m", MaxAttempts: 1, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Generate(t.Context(), request(1), nil)
	if !errors.Is(err, assay.ErrUnavailable) || strings.Contains(err.Error(), "hidden") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("error %v", err)
	}
}
