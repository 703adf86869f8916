package rerank

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"assay"
)

// Options configure a Client. The zero value is a disabled reranker.
type Options struct {
	// URL of the service; "" disables the stage. One with a path is used as it is, to one without the
	// dialect's path is added.
	URL     string
	Dialect Dialect // default TEI
	Model   string  // for manifests, spans and the service; a TEI server has one model and is never told
	APIKey  string  // sent as a bearer token; "" sends none

	// Timeout bounds the whole stage, all batches and retries together. Default 1s: a cross-encoder
	// on an accelerator scores 100 passages in a fraction of it, and a reader waits no longer for it.
	Timeout time.Duration
	// BatchSize is the number of texts in one request. Default 32, what TEI accepts unless told otherwise.
	BatchSize int
	// BatchBytes bounds the text in one request. Default 1,000,000: TEI accepts bodies of 2 MB, and
	// JSON can double a text's size.
	BatchBytes int
	// MaxTokens cuts each text, with Truncate, before it is sent. Default 0: the server cuts, which all
	// but llama.cpp do.
	MaxTokens int
	// Truncate returns the longest prefix of a text with at most so many tokens. Needed with MaxTokens.
	Truncate func(text string, tokens int) string
	// Concurrency is the number of batches of one question under way at once. Default 2, so that one
	// question does not take all of MaxConcurrent.
	Concurrency int
	// MaxConcurrent is the number of requests under way at once, over all questions; others queue, and
	// the time in the queue counts against their deadline. Default 4: a reranker on a CPU that is asked
	// more at once answers none of it in time.
	MaxConcurrent int
	// MaxAttempts is the number of times that one batch is sent. Default 2; a retry is made only
	// where its delay fits into the time that is left.
	MaxAttempts int
	// BreakerFailures is the number of questions in a row on which the service fails until it is left
	// alone for BreakerCooldown. Default 5: a restart of the service is not worth it, an outage is.
	// Negative: it is always asked.
	BreakerFailures int
	// BreakerCooldown is the time after which one question is let through to see whether the service
	// is back. Default 10s.
	BreakerCooldown time.Duration
	// MaxResponseBytes bounds the body of one response. Default 1 MiB, far over what 32 scores take.
	MaxResponseBytes int64
	// MinTexts is the number of candidates from which on the reranker is asked. Default 2, since
	// one text is in order already.
	MinTexts int

	// Policy is what to do when the reranker does not rank. Default assay.FallbackFused.
	Policy assay.FallbackPolicy
	// FallbackKeep is the number of chunks that assay.FallbackWiden keeps. Default 0: twice what would
	// have been kept, as an unranked five loses what a ranked five has.
	FallbackKeep int

	// Transport carries the requests. Default: a clone of http.DefaultTransport.
	Transport http.RoundTripper
}

// WithDefaults fills in what is not set.
func (o Options) WithDefaults() Options {
	if o.Dialect == "" {
		o.Dialect = TEI
	}
	if o.Timeout == 0 {
		o.Timeout = time.Second
	}
	if o.BatchSize == 0 {
		o.BatchSize = 32
	}
	if o.BatchBytes == 0 {
		o.BatchBytes = 1_000_000
	}
	if o.Concurrency == 0 {
		o.Concurrency = 2
	}
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = 4
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 2
	}
	if o.BreakerFailures == 0 {
		o.BreakerFailures = 5
	}
	if o.BreakerCooldown == 0 {
		o.BreakerCooldown = 10 * time.Second
	}
	if o.MaxResponseBytes == 0 {
		o.MaxResponseBytes = 1 << 20
	}
	if o.MinTexts == 0 {
		o.MinTexts = 2
	}
	if o.Policy == "" {
		o.Policy = assay.FallbackFused
	}
	if o.Transport == nil {
		o.Transport = defaultTransport(o.MaxConcurrent)
	}
	return o
}

// Validate reports everything that is wrong with the options.
func (o Options) Validate() error {
	var errs []error
	if o.URL != "" {
		if _, err := endpointURL(o.URL, ""); err != nil {
			errs = append(errs, err)
		}
	}
	switch w, known := cmp.Or(o.Dialect, TEI).wire(); {
	case !known:
		errs = append(errs, fmt.Errorf("rerank.dialect %q: must be one of %s", o.Dialect, dialectNames()))
	case w.needsModel && o.URL != "" && o.Model == "":
		errs = append(errs, fmt.Errorf("rerank.model: not set; the dialect %s needs the name of the model", o.Dialect))
	}
	if o.MaxTokens > 0 && o.Truncate == nil {
		errs = append(errs, errors.New("rerank.max_tokens: there is no tokenizer to cut texts with"))
	}
	if o.BreakerFailures > maxBreakerFailures {
		errs = append(errs, fmt.Errorf("rerank.breaker_failures: must be at most %d", maxBreakerFailures))
	}
	switch o.Policy {
	case "", assay.FallbackFused, assay.FallbackWiden, assay.FallbackFail:
	default:
		errs = append(errs, fmt.Errorf("rerank.policy %q: must be fused, widen or fail", o.Policy))
	}
	if strings.ContainsFunc(o.APIKey, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		errs = append(errs, errors.New("rerank.api_key: holds a control character, such as a line end from a file"))
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"timeout", int64(o.Timeout)}, {"batch_size", int64(o.BatchSize)}, {"batch_bytes", int64(o.BatchBytes)},
		{"max_tokens", int64(o.MaxTokens)},
		{"concurrency", int64(o.Concurrency)}, {"max_concurrent", int64(o.MaxConcurrent)},
		{"max_attempts", int64(o.MaxAttempts)}, {"breaker_cooldown", int64(o.BreakerCooldown)},
		{"max_response_bytes", o.MaxResponseBytes}, {"min_texts", int64(o.MinTexts)}, {"fallback_keep", int64(o.FallbackKeep)},
	} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("rerank.%s: must not be negative", n.name))
		}
	}
	return errors.Join(errs...)
}

// maxBreakerFailures bounds what the breaker remembers.
const maxBreakerFailures = 10_000

// endpointURL completes a base URL, one without a path, to that of the rerank call.
func endpointURL(raw, path string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's message repeats the URL, which may hold a password.
		return nil, errors.New("rerank.url: is no URL; use one such as http://127.0.0.1:8081")
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New("rerank.url: must start with http:// or https:// and name a host, as in http://127.0.0.1:8081")
	}
	u.Fragment = ""
	if u.Path == "" || u.Path == "/" {
		u.Path, u.RawPath = path, ""
	}
	return u, nil
}

// displayURL is a URL as errors name it: credentials and query, which may hold a key, are left out.
func displayURL(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return shown.String()
}
