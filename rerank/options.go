package rerank

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"assay"
)

// Dialect is the wire format a reranker speaks.
type Dialect string

// TEI is the format of Hugging Face's text-embeddings-inference.
const TEI Dialect = "tei"

// Options configure a Client. The zero value is a disabled reranker.
type Options struct {
	URL     string  // base URL or full path of the service; "" disables the stage
	Dialect Dialect // default TEI
	Model   string  // name for manifests and spans; a TEI server has one model and is never told
	APIKey  string  // sent as a bearer token; "" sends none

	// Timeout bounds the whole stage, all batches and retries together. Default 1s: a cross-encoder
	// on an accelerator scores 100 passages in a fraction of it, and a reader waits no longer for it.
	Timeout time.Duration
	// BatchSize is the number of texts in one request. Default 32, what TEI accepts unless told otherwise.
	BatchSize int
	// BatchBytes bounds the text in one request. Default 1,000,000: TEI accepts bodies of 2 MB, and
	// JSON can double a text's size.
	BatchBytes int
	// Concurrency is the number of batches under way at once. Default 2: a reranker slows down
	// under many more.
	Concurrency int
	// MaxAttempts is the number of times that one batch is sent. Default 2; a retry is made only
	// where its delay fits into the time that is left.
	MaxAttempts int
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

func (o Options) withDefaults() Options {
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
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 2
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
		o.Transport = defaultTransport()
	}
	return o
}

// Validate reports everything that is wrong with the options.
func (o Options) Validate() error {
	var errs []error
	if o.URL != "" {
		if _, err := endpointURL(o.URL); err != nil {
			errs = append(errs, err)
		}
	}
	if o.Dialect != "" && o.Dialect != TEI {
		errs = append(errs, fmt.Errorf("rerank.dialect %q: the only dialect is %q", o.Dialect, TEI))
	}
	switch o.Policy {
	case "", assay.FallbackFused, assay.FallbackWiden, assay.FallbackFail:
	default:
		errs = append(errs, fmt.Errorf("rerank.fallback %q: must be fused, widen or fail", o.Policy))
	}
	if strings.ContainsFunc(o.APIKey, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		errs = append(errs, errors.New("rerank.api_key: holds a control character, such as a line end from a file"))
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"timeout", int64(o.Timeout)}, {"batch_size", int64(o.BatchSize)}, {"batch_bytes", int64(o.BatchBytes)},
		{"concurrency", int64(o.Concurrency)}, {"max_attempts", int64(o.MaxAttempts)},
		{"max_response_bytes", o.MaxResponseBytes}, {"min_texts", int64(o.MinTexts)}, {"fallback_keep", int64(o.FallbackKeep)},
	} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("rerank.%s: must not be negative", n.name))
		}
	}
	return errors.Join(errs...)
}

// endpointURL completes a base URL to that of the rerank call.
func endpointURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's message repeats the URL, which may hold a password.
		return nil, errors.New("rerank.url: is no URL; use one such as http://127.0.0.1:8081")
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New("rerank.url: must start with http:// or https:// and name a host, as in http://127.0.0.1:8081")
	}
	u.Fragment = ""
	if path := strings.TrimRight(u.Path, "/"); !strings.HasSuffix(path, "/rerank") {
		u.Path, u.RawPath = path+"/rerank", ""
	}
	return u, nil
}

// displayURL is a URL as errors name it: credentials and query, which may hold a key, are left out.
func displayURL(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return shown.String()
}
