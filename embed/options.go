package embed

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// EndpointOptions configures an Endpoint. The zero value of a field means the default that is
// stated with it.
type EndpointOptions struct {
	// BaseURL is the address up to, without, "/embeddings": "http://127.0.0.1:8080/v1". A query
	// ("?api-version=...") is kept. Required.
	BaseURL string
	// APIKey is sent as a bearer token. Empty: no Authorization header.
	APIKey string
	// Model is the name that is sent and that identifies the vectors. Required.
	Model string
	// Dimensions is what every vector must have. 0: what the endpoint's first answer has.
	Dimensions int
	// SendDimensions sends Dimensions in the request. Off, since servers refuse the field for models
	// that cannot be shortened.
	SendDimensions bool

	// BatchSize is the number of texts in one request. 0: 64, which keeps a GPU busy; raise it for
	// hosted endpoints (OpenAI takes 2,048), lower it for TEI, which takes 32 unless told otherwise.
	BatchSize int
	// BatchTokens bounds the tokens in one request, where more than one text is in it. 0: 32,768.
	// That is 64 chunks of 512 tokens, far below OpenAI's 300,000 for a request and TEI's 2 MB
	// for a body, and so little that a server on a CPU with 2,000 tokens/s answers within Timeout.
	BatchTokens int
	// MaxInputTokens is the model's limit; longer inputs are truncated and counted. 0: 8,191, the
	// limit of OpenAI's models. Models of the BERT family often have 512.
	MaxInputTokens int
	// Count counts the tokens of a text. nil: one for each 2 bytes, which over-estimates all but the
	// rarest scripts, so that the endpoint's own limits hold.
	Count func(text string) int
	// Truncate cuts a text to at most max tokens. nil: to 2 bytes a token, between two characters.
	Truncate func(text string, max int) string

	// QueryPrefix and DocumentPrefix are put before texts, for models that were trained with
	// instructions ("query: " and "passage: " for e5).
	QueryPrefix    string
	DocumentPrefix string

	// Timeout bounds one request. 0: 30 s, which a full batch needs on a slow CPU. A request that
	// timed out is not repeated: the server is too slow already.
	Timeout time.Duration
	// Concurrency is the number of requests under way at once for one call. 0: 4, which hides the
	// latency of a hosted endpoint without tripping its rate limit at once.
	Concurrency int
	// MaxAttempts is how often a request is tried when the endpoint is unreachable, overloaded (429)
	// or broken (5xx). 0: 4, which with Backoff rides out a restart of about 4 s.
	MaxAttempts int
	// Backoff is the wait before the second attempt; it doubles for each further one and varies by
	// 20 %, so that several clients do not come back together. 0: 500 ms.
	Backoff time.Duration
	// MaxRetryDelay is the longest wait before an attempt. An endpoint that asks for a longer one
	// with Retry-After is not tried again. 0: 60 s, the window of most rate limits.
	MaxRetryDelay time.Duration
	// MaxResponseBytes bounds the body of an answer. 0: 64 MB, which is 2,048 vectors of 3,072
	// dimensions written as decimals with ten digits.
	MaxResponseBytes int64

	// Headers are sent with every request. Their values are treated as secrets.
	Headers map[string]string
	// Transport carries the requests. nil: a copy of net/http's default one that keeps Concurrency
	// connections open.
	Transport http.RoundTripper
}

func (o EndpointOptions) withDefaults() EndpointOptions {
	o.APIKey = strings.TrimSpace(o.APIKey) // keys that come from files end in a line break
	setDefault(&o.BatchSize, 64)
	setDefault(&o.BatchTokens, 32768)
	setDefault(&o.MaxInputTokens, 8191)
	setDefault(&o.Timeout, 30*time.Second)
	setDefault(&o.Concurrency, 4)
	setDefault(&o.MaxAttempts, 4)
	setDefault(&o.Backoff, 500*time.Millisecond)
	setDefault(&o.MaxRetryDelay, time.Minute)
	setDefault(&o.MaxResponseBytes, 64_000_000)
	if o.Count == nil {
		o.Count = countBytes
	}
	if o.Truncate == nil {
		o.Truncate = truncateBytes
	}
	if o.Transport == nil {
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			t = t.Clone()
			t.MaxIdleConnsPerHost = o.Concurrency
			o.Transport = t
		}
	}
	return o
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Validate reports everything that is wrong with the options at once.
func (o EndpointOptions) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("embed options: "+format, args...)) }
	if _, err := parseBase(o.BaseURL); err != nil {
		errs = append(errs, err)
	}
	if o.Model == "" {
		fail("the model is not named; every OpenAI-compatible endpoint needs one")
	}
	if !httpguts.ValidHeaderFieldValue(strings.TrimSpace(o.APIKey)) {
		fail("the API key holds a line break or another control character")
	}
	for name, value := range o.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			fail("header %q cannot be sent: its name or value is not valid in HTTP", name)
		}
	}
	if o.SendDimensions && o.Dimensions == 0 {
		fail("dimensions are to be sent, but their number is not set")
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"dimensions", int64(o.Dimensions)}, {"batch size", int64(o.BatchSize)}, {"batch tokens", int64(o.BatchTokens)},
		{"max input tokens", int64(o.MaxInputTokens)}, {"timeout", int64(o.Timeout)}, {"concurrency", int64(o.Concurrency)},
		{"max attempts", int64(o.MaxAttempts)}, {"backoff", int64(o.Backoff)}, {"max retry delay", int64(o.MaxRetryDelay)},
		{"max response bytes", o.MaxResponseBytes},
	} {
		if f.value < 0 {
			fail("%s is negative (%d)", f.name, f.value)
		}
	}
	return errors.Join(errs...)
}

// parseBase reads the base address. Its errors do not repeat it, since it may hold credentials.
func parseBase(base string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(base))
	switch {
	case base == "":
		return nil, errors.New("embed options: the endpoint's URL is not set")
	case err != nil:
		return nil, errors.New("embed options: the endpoint's URL cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("embed options: the endpoint's URL must begin with http:// or https://")
	case u.Host == "":
		return nil, errors.New("embed options: the endpoint's URL names no host")
	}
	// People paste the whole address; the client adds the last part itself.
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/embeddings")
	u.RawPath, u.Fragment = "", ""
	return u, nil
}

// bytesPerToken is the estimate that is used where no tokenizer is given: English has 4 to 5 bytes a
// token, code and CJK text 2 to 3.
const bytesPerToken = 2

func countBytes(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

func truncateBytes(text string, max int) string {
	if len(text)/bytesPerToken < max { // divided, not multiplied: max may be near the largest int
		return text
	}
	end := max * bytesPerToken
	if end >= len(text) {
		return text
	}
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
