// Package rerank puts retrieved passages in a better order with a cross-encoder behind HTTP.
//
// The stage has one deadline for everything it does, and it always ends in an Outcome with a status
// of a closed vocabulary: a reranker that is slow, broken or talking nonsense never fails a request
// by itself. What happens then, keeping the fused order, keeping more of it, or refusing, is a
// policy of the configuration. Scores of a reranker are compared with each other and with nothing else.
package rerank

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"assay"
)

// Client asks a reranker. It is safe for concurrent use.
type Client struct {
	lg      *slog.Logger
	opts    Options
	http    *http.Client
	url     string // with credentials
	service string // without
	redact  *strings.Replacer
}

// New returns a client. Nothing is connected until the first call.
func New(lg *slog.Logger, o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("rerank options: %w", err)
	}
	if lg == nil {
		lg = slog.New(slog.DiscardHandler)
	}
	c := &Client{lg: lg, opts: o.withDefaults(), redact: strings.NewReplacer()}
	if o.URL == "" {
		return c, nil
	}
	u, err := endpointURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("rerank options: %w", err) // unreachable: Validate has parsed it
	}
	c.url, c.service = u.String(), "reranker "+displayURL(u)
	var secrets []string
	if o.APIKey != "" {
		secrets = append(secrets, o.APIKey, "[redacted]")
	}
	if password, ok := u.User.Password(); ok && password != "" {
		secrets = append(secrets, password, "[redacted]")
	}
	c.redact = strings.NewReplacer(secrets...)
	c.http = &http.Client{
		Transport: c.opts.Transport,
		// A redirect would carry passages to a place that nobody configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Enabled reports whether a reranker is configured.
func (c *Client) Enabled() bool { return c.opts.URL != "" }

// Model is the configured name of the model, "" when no reranker is configured.
func (c *Client) Model() string {
	if !c.Enabled() {
		return ""
	}
	return c.opts.Model
}

// Rerank scores texts, best fused first, against a query of which keep will be kept. It returns at
// the latest when the stage's deadline or ctx's has passed, even if a request is stuck.
//
// The stage is skipped for fewer texts than keep: all of them are kept in any order. As many texts as
// keep are ranked, since the order decides what a token budget cuts.
func (c *Client) Rerank(ctx context.Context, query string, texts []string, keep int) Outcome {
	if !c.Enabled() {
		return Outcome{Status: assay.RerankDisabled, Reason: "no reranker is configured"}
	}
	o := Outcome{Model: c.opts.Model}
	switch {
	case len(texts) == 0:
		o.Status, o.Reason = assay.RerankSkipped, "no candidates"
		return o
	case len(texts) < keep:
		o.Status, o.Reason = assay.RerankSkipped, fmt.Sprintf("%d candidates, and %d would be kept", len(texts), keep)
		return o
	case len(texts) < c.opts.MinTexts:
		o.Status, o.Reason = assay.RerankSkipped, fmt.Sprintf("%d candidates, ranked from %d on", len(texts), c.opts.MinTexts)
		return o
	}

	start := time.Now()
	o.Candidates, o.Timeout = len(texts), c.opts.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		o.Timeout = max(0, min(o.Timeout, deadline.Sub(start)))
	}
	stage, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	var attempts atomic.Int64
	err := c.collect(stage, &o, &attempts, query, texts)
	o.Latency = time.Since(start)
	o.Attempts = int(attempts.Load())
	c.conclude(ctx, &o, err)
	return o
}

// batchResult is what became of one batch.
type batchResult struct {
	first  int // index of the batch's first text
	scores []float64
	scored []bool
	err    error
}

// collect fills in the outcome's scores until all batches are back, one has failed, or the stage's
// time is over. It leaves requests that are under way to their cancelled context instead of
// waiting for them; they report into a buffered channel, so that none of them stays.
func (c *Client) collect(stage context.Context, o *Outcome, attempts *atomic.Int64, query string, texts []string) error {
	o.Scores, o.Scored = make([]float64, len(texts)), make([]bool, len(texts))
	batches := c.batches(texts)
	results := make(chan batchResult, len(batches))
	queue := make(chan span, len(batches))
	for _, b := range batches {
		queue <- b
	}
	close(queue)
	for range min(c.opts.Concurrency, len(batches)) {
		go func() {
			for b := range queue {
				r := batchResult{first: b.start}
				if r.err = stage.Err(); r.err == nil {
					r.scores, r.scored, r.err = c.score(stage, attempts, query, texts[b.start:b.end])
				}
				results <- r
			}
		}()
	}
	for range batches {
		var r batchResult
		select {
		case r = <-results:
		case <-stage.Done():
			return stage.Err()
		}
		for i, ok := range r.scored {
			if ok {
				o.Scores[r.first+i], o.Scored[r.first+i] = r.scores[i], true
				o.ScoredCount++
			}
		}
		if r.err != nil {
			// A request that its context ended fails in many ways; the context knows why.
			return cmp.Or(stage.Err(), r.err)
		}
	}
	return nil
}

// conclude turns the error of the stage into its status.
func (c *Client) conclude(caller context.Context, o *Outcome, err error) {
	if err == nil {
		o.Status = assay.RerankOK
		return
	}
	var failed *callError
	switch {
	case errors.Is(caller.Err(), context.Canceled):
		o.Status = assay.RerankCancelled
		o.Err = fmt.Errorf("%s: the caller went away: %w", c.service, context.Canceled)
	case errors.Is(err, context.DeadlineExceeded):
		o.Status = assay.RerankTimeout
		hint := "raise rerank.timeout, lower the depth, or give the reranker more capacity"
		if o.Timeout < c.opts.Timeout {
			hint = "the deadline is that of the request"
		}
		o.Err = fmt.Errorf("%s: no ranking within %v; %s: %w", c.service, o.Timeout.Round(time.Millisecond), hint, context.DeadlineExceeded)
	case errors.As(err, &failed):
		o.Status, o.HTTPStatus = failed.status, failed.code
		o.Err = fmt.Errorf("%s: %w", c.service, err)
	default:
		o.Status = assay.RerankUnavailable // unreachable: score returns callErrors and context errors only
		o.Err = fmt.Errorf("%s: %w: %w", c.service, assay.ErrUnavailable, err)
	}
	o.Reason = o.Err.Error()
	if o.Status == assay.RerankCancelled {
		c.lg.Debug("rerank cancelled", "service", c.service, "latency", o.Latency)
		return
	}
	o.Fallback, o.fallbackKeep = c.opts.Policy, c.opts.FallbackKeep
	c.lg.Warn("rerank failed", "status", o.Status, "fallback", o.Fallback, "candidates", o.Candidates,
		"scored", o.ScoredCount, "attempts", o.Attempts, "latency", o.Latency, "error", o.Err)
}

// span is a range of the texts.
type span struct{ start, end int }

// batches cuts the texts by count and bytes. A text over the bytes stands alone.
func (c *Client) batches(texts []string) []span {
	var out []span
	start, bytes := 0, 0
	for i, text := range texts {
		if i > start && (i-start == c.opts.BatchSize || bytes+len(text) > c.opts.BatchBytes) {
			out = append(out, span{start, i})
			start, bytes = i, 0
		}
		bytes += len(text)
	}
	return append(out, span{start, len(texts)})
}

// Close drops idle connections.
func (c *Client) Close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

func defaultTransport() http.RoundTripper {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		return t.Clone()
	}
	return http.DefaultTransport // unreachable unless a program has replaced it; then that is what it wants
}

// drain reads what is left of a body, within a bound, so that the connection can be used again.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10) // a body that fails or is longer costs its connection, nothing else
	_ = body.Close()
}
