package embed

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"assay"
)

// Endpoint embeds through an OpenAI-compatible endpoint. It is safe for concurrent use.
type Endpoint struct {
	lg      *slog.Logger
	o       EndpointOptions
	base    *url.URL
	shown   string // the address in errors
	client  *http.Client
	secrets *regexp.Regexp

	dimensions                                  atomic.Int64 // 0 until known
	texts, tokens, truncated, requests, retries atomic.Int64
}

var _ Embedder = (*Endpoint)(nil)

// Stats counts what an Endpoint has done since it was made.
type Stats struct {
	Texts     int64 `json:"texts"`     // that were embedded
	Tokens    int64 `json:"tokens"`    // in them, as the endpoint reported it or else as Count did
	Truncated int64 `json:"truncated"` // texts that were over MaxInputTokens
	Requests  int64 `json:"requests"`  // HTTP requests, retries included
	Retries   int64 `json:"retries"`
}

// NewEndpoint checks the options. It does not call the endpoint; Probe does.
func NewEndpoint(lg *slog.Logger, o EndpointOptions) (*Endpoint, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	base, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	if base.User != nil && o.APIKey == "" { // where there is a key, that is what is sent
		password, _ := base.User.Password()
		basic := &http.Request{Header: http.Header{}}
		basic.SetBasicAuth(base.User.Username(), password)
		o.Headers = maps.Clone(o.Headers)
		if o.Headers == nil {
			o.Headers = map[string]string{}
		}
		o.Headers["Authorization"] = basic.Header.Get("Authorization")
	}
	shown := url.URL{Scheme: base.Scheme, Host: base.Host, Path: base.Path + "/embeddings"}
	e := &Endpoint{
		lg:      lg,
		o:       o,
		base:    base,
		shown:   shown.String(),
		secrets: secretsOf(o, base),
		client: &http.Client{
			Transport:     o.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	e.dimensions.Store(int64(o.Dimensions))
	return e, nil
}

// Model is the configured name, and the dimensions once they are known.
func (e *Endpoint) Model() assay.Model {
	return assay.Model{Name: e.o.Model, Dimensions: int(e.dimensions.Load())}
}

// Fingerprint names the settings besides the model that change the vectors of documents; it is empty
// where none is set. Vectors of different fingerprints must not be mixed.
func (e *Endpoint) Fingerprint() string {
	var parts []string
	if e.o.DocumentPrefix != "" {
		parts = append(parts, fmt.Sprintf("document_prefix=%q", e.o.DocumentPrefix))
	}
	if e.o.MaxInputTokens != (EndpointOptions{}).withDefaults().MaxInputTokens {
		parts = append(parts, fmt.Sprintf("max_input_tokens=%d", e.o.MaxInputTokens))
	}
	return strings.Join(parts, " ")
}

// Stats returns the counters.
func (e *Endpoint) Stats() Stats {
	return Stats{e.texts.Load(), e.tokens.Load(), e.truncated.Load(), e.requests.Load(), e.retries.Load()}
}

// EmbedQuery embeds one query.
func (e *Endpoint) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := e.embed(ctx, []string{text}, e.o.QueryPrefix)
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// EmbedDocuments embeds texts in batches, some of them at once. When a batch fails no further one is
// begun, those under way are awaited, and the vectors before the first failure are returned with it.
func (e *Endpoint) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	return e.embed(ctx, texts, e.o.DocumentPrefix)
}

func (e *Endpoint) embed(ctx context.Context, texts []string, prefix string) ([][]float32, error) {
	if err := checkTexts(texts); err != nil {
		return nil, err
	}
	inputs, tokens := e.prepare(texts, prefix)
	batches := e.batches(tokens)
	out := make([][][]float32, len(batches))
	errs := make([]error, len(batches))
	var mu sync.Mutex      // guards failed
	failed := len(batches) // the first batch that has failed
	afterFailed := func(i int) bool {
		mu.Lock()
		defer mu.Unlock()
		return i > failed
	}
	var group errgroup.Group
	group.SetLimit(e.o.Concurrency)
	for i, b := range batches {
		if afterFailed(i) || ctx.Err() != nil {
			errs[i] = e.notBegun(ctx, i)
			break
		}
		group.Go(func() error {
			if afterFailed(i) { // while this one waited for its turn
				errs[i] = e.notBegun(ctx, i)
				return nil
			}
			if out[i], errs[i] = e.call(ctx, inputs[b.start:b.end], tokens[b.start:b.end]); errs[i] != nil {
				mu.Lock()
				failed = min(failed, i)
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait() // the batches' own errors are in errs
	vectors := make([][]float32, 0, len(texts))
	for i := range batches {
		if errs[i] != nil {
			return vectors, errs[i]
		}
		vectors = append(vectors, out[i]...)
	}
	return vectors, nil
}

// notBegun is the error of a batch that was left out. Where an earlier batch has failed, that one's
// error is returned instead.
func (e *Endpoint) notBegun(ctx context.Context, batch int) error {
	err := ctx.Err()
	if err == nil {
		err = context.Canceled
	}
	return &Error{URL: e.shown, Model: e.o.Model, cause: err, Reason: fmt.Sprintf("batch %d was not sent: %v", batch+1, err)}
}
