// Package rerank puts retrieved passages in a better order with a cross-encoder behind HTTP.
//
// The stage has one deadline for everything it does, and it always ends in an Outcome with a status
// of a closed vocabulary: a reranker that is slow, broken or talking nonsense never fails a request
// by itself. What happens then, keeping the fused order, keeping more of it, or refusing, is a
// policy of the configuration. Scores of a reranker are compared with each other and with nothing else.
package rerank

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"assay"
)

// Client asks a reranker. It is safe for concurrent use.
type Client struct {
	lg      *slog.Logger
	opts    Options
	http    *http.Client
	url     string // with credentials
	shown   string // without
	service string // as errors name it
	redact  *strings.Replacer
	wire    wire
	turns   *semaphore.Weighted // one for each request that may be under way, over all questions
	breaker *breaker            // nil when there is none
}

// New returns a client. Nothing is connected until the first call.
func New(lg *slog.Logger, o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("rerank options: %w", err)
	}
	if lg == nil {
		lg = slog.New(slog.DiscardHandler)
	}
	c := &Client{lg: lg, opts: o.WithDefaults(), redact: strings.NewReplacer()}
	if o.URL == "" {
		return c, nil
	}
	c.wire, _ = c.opts.Dialect.wire() // Validate knows it
	u, err := endpointURL(o.URL, c.wire.path)
	if err != nil {
		return nil, fmt.Errorf("rerank options: %w", err) // unreachable: Validate has parsed it
	}
	c.url, c.shown = u.String(), displayURL(u)
	c.service = "reranker " + c.shown
	c.turns = semaphore.NewWeighted(int64(c.opts.MaxConcurrent))
	c.breaker = newBreaker(lg, c.service, c.opts)
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
	allowed, probe, wait, last := c.breaker.allow()
	if !allowed {
		next := "a try is under way"
		if wait > 0 {
			next = fmt.Sprintf("the next try is in %v", wait.Round(time.Millisecond))
		}
		c.conclude(ctx, &o, &effort{}, &callError{
			status: assay.RerankCircuitOpen,
			msg:    fmt.Sprintf("not called, after %d failures in a row; %s; the last failure: %s", c.opts.BreakerFailures, next, last),
			cause:  assay.ErrUnavailable,
		})
		return o
	}
	says := unknown
	defer func() { c.breaker.record(probe, says, o.Reason) }() // even if something panics, or a probe would never end
	stage, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	var e effort
	err := c.collect(stage, &o, &e, query, texts)
	o.Latency = time.Since(start)
	o.Attempts = int(e.attempts.Load())
	c.conclude(ctx, &o, &e, err)
	says = c.verdict(&o, &e)
	return o
}

// conclude turns the error of the stage into its status.
func (c *Client) conclude(caller context.Context, o *Outcome, e *effort, err error) {
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
		if n := e.waiting.Load(); n > 0 {
			hint = fmt.Sprintf("%d of its requests were still queued behind those of other questions (rerank.max_concurrent is %d); %s", n, c.opts.MaxConcurrent, hint)
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

// verdict says what an outcome tells of the service.
func (c *Client) verdict(o *Outcome, e *effort) verdict {
	switch o.Status {
	case assay.RerankOK:
		return answers
	case assay.RerankTimeout:
		if o.Timeout < c.opts.Timeout || e.waiting.Load() > 0 {
			return unknown // it did not have its time
		}
		return failures
	case assay.RerankHTTPError:
		switch o.HTTPStatus {
		case http.StatusRequestTimeout, http.StatusFailedDependency, http.StatusTooManyRequests:
			return failures // overload and failed inference, whatever their number says
		}
		if o.HTTPStatus >= 500 {
			return failures
		}
		return answers
	case assay.RerankUnavailable, assay.RerankBadResponse, assay.RerankPartial:
		return failures
	}
	return unknown
}

// Close drops idle connections.
func (c *Client) Close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// defaultTransport keeps as many connections as requests may be under way, so that none is made anew
// for each question.
func defaultTransport(connections int) http.RoundTripper {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t = t.Clone()
		t.MaxIdleConnsPerHost = connections
		return t
	}
	return http.DefaultTransport // unreachable unless a program has replaced it; then that is what it wants
}

// drain reads what is left of a body, within a bound, so that the connection can be used again.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10) // a body that fails or is longer costs its connection, nothing else
	_ = body.Close()
}
