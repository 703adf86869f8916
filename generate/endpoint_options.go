package generate

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// EndpointOptions configure an Endpoint.
type EndpointOptions struct {
	URL    string // base URL such as https://api.openai.com/v1, or the full path of chat/completions
	Model  string // as the service knows it
	APIKey string // sent as a bearer token; "" sends none

	// Template is the path of a prompt template; "" means the built-in one, whose text shows what a
	// template holds.
	Template string
	// MaxTokens bounds the answer. Default 1,024: longer answers to support questions are not read.
	MaxTokens int
	// Temperature. Default 0, the most faithful to the sources. Models that fix it are not sent one.
	Temperature float64
	// Timeout bounds the whole answer, retries included. Default 60s.
	Timeout time.Duration
	// FirstTokenTimeout bounds the wait for the first token, retries included. Default 20s: what has
	// not begun by then is overloaded, and the reader is looking at nothing.
	FirstTokenTimeout time.Duration
	// MaxAttempts is the number of requests made before the first token. Default 3.
	MaxAttempts int
	// MaxHistory is the number of earlier messages sent. Default 10.
	MaxHistory int
	// MaxHistoryTokens bounds the earlier messages. Default 1,000, a quarter of the default budget.
	MaxHistoryTokens int
	// MaxAnswerBytes ends an answer that does not end, whatever MaxTokens a service honours. Default 64 KiB.
	MaxAnswerBytes int

	// Count counts tokens as the budget does. Default: an estimate from words.
	Count func(string) int
	// Transport carries the requests. Default: a clone of http.DefaultTransport.
	Transport http.RoundTripper
}

func (o EndpointOptions) withDefaults() EndpointOptions {
	if o.MaxTokens == 0 {
		o.MaxTokens = 1024
	}
	if o.Timeout == 0 {
		o.Timeout = 60 * time.Second
	}
	if o.FirstTokenTimeout == 0 {
		o.FirstTokenTimeout = 20 * time.Second
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 3
	}
	if o.MaxHistory == 0 {
		o.MaxHistory = 10
	}
	if o.MaxHistoryTokens == 0 {
		o.MaxHistoryTokens = 1000
	}
	if o.MaxAnswerBytes == 0 {
		o.MaxAnswerBytes = 64 << 10
	}
	if o.Count == nil {
		o.Count = words
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			o.Transport = t.Clone()
		}
	}
	return o
}

// Validate reports everything that is wrong with the options.
func (o EndpointOptions) Validate() error {
	var errs []error
	if _, err := baseURL(o.URL); err != nil {
		errs = append(errs, err)
	}
	if o.Model == "" {
		errs = append(errs, errors.New("generate.model: is empty; name the model as the service knows it"))
	}
	if strings.ContainsFunc(o.APIKey, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		errs = append(errs, errors.New("generate.api_key: holds a control character, such as a line end from a file"))
	}
	if math.IsNaN(o.Temperature) || o.Temperature < 0 || o.Temperature > 2 {
		errs = append(errs, fmt.Errorf("generate.temperature %v: must be between 0 and 2", o.Temperature))
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"max_tokens", int64(o.MaxTokens)}, {"timeout", int64(o.Timeout)}, {"first_token_timeout", int64(o.FirstTokenTimeout)},
		{"max_attempts", int64(o.MaxAttempts)}, {"max_history", int64(o.MaxHistory)},
		{"max_history_tokens", int64(o.MaxHistoryTokens)}, {"max_answer_bytes", int64(o.MaxAnswerBytes)},
	} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("generate.%s: must not be negative", n.name))
		}
	}
	return errors.Join(errs...)
}

// baseURL brings a base URL or the full path of a chat endpoint to the base that go-openai takes.
func baseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's message repeats the URL, which may hold a password.
		return nil, errors.New("generate.url: is no URL; use one such as https://api.openai.com/v1")
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New("generate.url: must start with http:// or https:// and name a host, as in http://127.0.0.1:8000/v1")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("generate.url: must have no query and no fragment; a key goes into generate.api_key")
	}
	path := strings.TrimRight(u.Path, "/")
	path = strings.TrimRight(strings.TrimSuffix(path, "/chat/completions"), "/")
	if path == "" {
		path = "/v1"
	}
	u.Path, u.RawPath = path, ""
	return u, nil
}

// fixedSampling reports whether the model's sampling cannot be set and its limit counts reasoning
// too. go-openai refuses requests to these models that set it otherwise.
func fixedSampling(model string) bool {
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, prefix) {
			return true
		}
	}
	return false
}
