package generate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"assay"
)

// maxStream bounds what is read of one answer: a token of a stream takes some 300 bytes.
const maxStream = 32 << 20

// statusError is an answer with a status that is not a success.
type statusError struct {
	code       int
	retryAfter time.Duration
	msg        string
}

func (e *statusError) Error() string { return e.msg }

// connectionError is a request that got no answer.
type connectionError struct{ msg string }

func (e *connectionError) Error() string { return e.msg }
func (e *connectionError) Unwrap() error { return assay.ErrUnavailable }

// doer stands between go-openai and the network. It turns everything that is no event stream into an
// error that can be shown, bounds what is read, and sends the temperature that go-openai leaves out
// when it is 0, which services read as 1.
type doer struct {
	client *http.Client
	redact *strings.Replacer
	greedy bool
}

func (d *doer) Do(req *http.Request) (*http.Response, error) {
	if d.greedy {
		if err := addTemperature(req); err != nil {
			return nil, err
		}
	}
	resp, err := d.client.Do(req)
	if err != nil {
		if ctxErr := req.Context().Err(); ctxErr != nil {
			return nil, ctxErr
		}
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without the URL, which may hold a password
		}
		return nil, &connectionError{d.redact.Replace(fmt.Sprintf("cannot be reached: %v; check that it runs and that generate.url is right", err))}
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // an unreadable one says nothing
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 && kind != "text/html" && kind != "application/json" {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxStream), resp.Body}
		return resp, nil
	}
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 16<<10)) // what came is enough for a message
	_ = resp.Body.Close()
	if ctxErr := req.Context().Err(); ctxErr != nil {
		return nil, ctxErr
	}
	return nil, d.refused(resp, kind, data)
}

func (d *doer) refused(resp *http.Response, kind string, data []byte) error {
	e := &statusError{code: resp.StatusCode, msg: "answered " + strconv.Itoa(resp.StatusCode)}
	if text := http.StatusText(resp.StatusCode); text != "" {
		e.msg += " " + text
	}
	if resp.StatusCode < 300 {
		e.msg += " with " + kind + " instead of a stream"
	}
	if detail := errorDetail(kind, data); detail != "" {
		e.msg += ": " + strconv.Quote(d.quote(detail))
	}
	if hint := statusHint(resp.StatusCode); hint != "" {
		e.msg += "; " + hint
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.retryAfter = time.Duration(min(seconds, 3600)) * time.Second
	} else if at, err := http.ParseTime(resp.Header.Get("Retry-After")); err == nil {
		e.retryAfter = max(0, time.Until(at))
	}
	return e
}

// quote prepares a service's own words for an error: without secrets, which it may echo, and short.
// Secrets go first, as cutting could leave half of one.
func (d *doer) quote(s string) string {
	s = strings.Join(strings.Fields(d.redact.Replace(s)), " ")
	if short := clip(s, 300); short != s {
		s = short + "..."
	}
	return s
}

func statusHint(code int) string {
	switch {
	case code < 300:
		return "check that generate.url is the base of an OpenAI-compatible API, such as .../v1"
	case code < 400:
		return "redirects are not followed; set generate.url to where it points"
	case code == http.StatusBadRequest || code == http.StatusRequestEntityTooLarge:
		return "if the prompt is too long for the model, lower assemble.budget or generate.max_tokens"
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return "check the generator's API key"
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		return "check generate.model and the path of generate.url"
	case code == http.StatusTooManyRequests:
		return "its quota or capacity is used up; wait, or raise it"
	case code >= 500:
		return "see the service's own log or status page"
	}
	return ""
}

// errorDetail finds the message in an error body: the forms of OpenAI, vLLM and others, or the text itself.
func errorDetail(kind string, data []byte) string {
	var body map[string]json.RawMessage
	if json.Unmarshal(data, &body) == nil {
		for _, field := range []string{"error", "message", "detail"} {
			var text string
			if json.Unmarshal(body[field], &text) == nil && text != "" {
				return text
			}
			var nested struct {
				Message string `json:"message"`
			}
			if json.Unmarshal(body[field], &nested) == nil && nested.Message != "" {
				return nested.Message
			}
		}
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD"))
	if kind == "text/html" || strings.HasPrefix(text, "<") {
		return "an HTML page"
	}
	return text
}

// addTemperature writes "temperature": 0 into a request's body.
func addTemperature(req *http.Request) error {
	var body map[string]json.RawMessage
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		return fmt.Errorf("read request: %w", err) // unreachable: go-openai has just written it
	}
	body["temperature"] = json.RawMessage("0")
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write request: %w", err) // unreachable: it was valid JSON a line above
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return nil
}
