package rerank

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"assay"
)

// callError says why a batch has no scores.
type callError struct {
	status     assay.RerankStatus
	code       int           // HTTP status, 0 without an answer
	retryAfter time.Duration // as the server asks; 0 when it does not
	msg        string
	cause      error
}

func (e *callError) Error() string { return e.msg }
func (e *callError) Unwrap() error { return e.cause }

// retryable reports whether the same request may succeed a moment later.
func (e *callError) retryable() bool {
	switch e.status {
	case assay.RerankUnavailable:
		return true
	case assay.RerankHTTPError:
		switch e.code {
		case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
	}
	return false
}

const (
	firstDelay = 50 * time.Millisecond // before the first retry, without Retry-After
	maxDelay   = time.Second
)

// effort counts what a stage does, over all its batches.
type effort struct {
	attempts atomic.Int64 // requests made
	waiting  atomic.Int64 // requests that want to be made and have not got their turn
}

// turn waits until a request may be made: the service takes a bounded number at once from the whole
// process. What did not get its turn stays counted as waiting.
func (c *Client) turn(ctx context.Context, e *effort) error {
	e.waiting.Add(1)
	if err := c.turns.Acquire(ctx, 1); err != nil {
		return err
	}
	e.waiting.Add(-1)
	e.attempts.Add(1)
	return nil
}

// score asks for the scores of one batch, with retries. A batch that the server finds too large is
// halved, since its limit cannot be asked for.
func (c *Client) score(ctx context.Context, e *effort, query string, texts []string) ([]float64, []bool, error) {
	policy := retrypolicy.NewBuilder[ranking]().
		WithMaxAttempts(c.opts.MaxAttempts).
		ReturnLastFailure().
		HandleIf(func(_ ranking, err error) bool {
			var failed *callError
			if !errors.As(err, &failed) || !failed.retryable() {
				return false
			}
			deadline, ok := ctx.Deadline()
			return !ok || time.Until(deadline) > max(failed.retryAfter, firstDelay)
		}).
		WithBackoff(firstDelay, maxDelay).
		WithDelayFunc(func(exec failsafe.ExecutionAttempt[ranking]) time.Duration {
			var failed *callError
			if errors.As(exec.LastError(), &failed) && failed.retryAfter > 0 {
				return failed.retryAfter
			}
			return -1 // the backoff's
		}).
		Build()
	r, err := failsafe.With(policy).WithContext(ctx).Get(func() (ranking, error) {
		if err := c.turn(ctx, e); err != nil {
			return ranking{}, err
		}
		defer c.turns.Release(1)
		return c.call(ctx, query, texts)
	})
	var failed *callError
	if errors.As(err, &failed) && failed.code == http.StatusRequestEntityTooLarge && len(texts) > 1 {
		c.lg.Warn("rerank batch too large for the server, halving it; lower rerank.batch_size", "service", c.service, "batch", len(texts))
		half := len(texts) / 2
		scores, scored, err := c.score(ctx, e, query, texts[:half])
		if err != nil {
			return scores, scored, err
		}
		more, moreScored, err := c.score(ctx, e, query, texts[half:])
		return append(scores, more...), append(scored, moreScored...), err
	}
	return r.scores, r.scored, err
}

// call makes one request.
func (c *Client) call(ctx context.Context, query string, texts []string) (ranking, error) {
	body, err := json.Marshal(c.wire.body(&c.opts, query, texts))
	if err != nil {
		return ranking{}, fmt.Errorf("encode request: %w", err) // unreachable: strings, numbers and booleans always encode
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return ranking{}, fmt.Errorf("make request: %w", err) // unreachable: the URL was parsed by New
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if c.opts.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.APIKey)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return ranking{}, c.unreachable(ctx, "cannot be reached", err)
	}
	defer drain(resp.Body)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return ranking{}, c.refused(resp)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, c.opts.MaxResponseBytes+1))
	if err != nil {
		return ranking{}, c.unreachable(ctx, "broke off its answer", err)
	}
	bad := func(format string, args ...any) error {
		return &callError{status: assay.RerankBadResponse, code: resp.StatusCode, msg: c.redact.Replace(fmt.Sprintf(format, args...))}
	}
	if int64(len(data)) > c.opts.MaxResponseBytes {
		return ranking{}, bad("answered more than %d bytes, which no ranking takes", c.opts.MaxResponseBytes)
	}
	r, err := parseRanking(data, len(texts), c.quote)
	if err != nil {
		return ranking{}, bad("%v; check that a reranker of the dialect %s is at rerank.url: `assay rerank check` tries them all", err, c.opts.Dialect)
	}
	if missing := r.missing(); missing > 0 {
		return r, &callError{status: assay.RerankPartial, code: resp.StatusCode,
			msg: fmt.Sprintf("scored only %d of %d texts", len(texts)-missing, len(texts))}
	}
	return r, nil
}

// unreachable describes a request that got no whole answer. Its context's error comes first: a
// cancelled request fails in many ways.
func (c *Client) unreachable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, which may hold a password
	}
	return &callError{
		status: assay.RerankUnavailable,
		msg:    c.redact.Replace(fmt.Sprintf("%s: %v; check that it runs and that rerank.url is right", what, err)),
		cause:  assay.ErrUnavailable,
	}
}

// refused describes an answer with a status that is not a success.
func (c *Client) refused(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // what came is enough for a message
	msg := "answered " + strconv.Itoa(resp.StatusCode)
	if text := http.StatusText(resp.StatusCode); text != "" {
		msg += " " + text
	}
	if detail := errorDetail(data); detail != "" {
		msg += ": " + c.quote(detail)
	}
	if hint := c.statusHint(resp.StatusCode); hint != "" {
		msg += "; " + hint
	}
	e := &callError{status: assay.RerankHTTPError, code: resp.StatusCode, msg: msg}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.retryAfter = time.Duration(min(seconds, 3600)) * time.Second
	} else if at, err := http.ParseTime(resp.Header.Get("Retry-After")); err == nil {
		e.retryAfter = max(0, time.Until(at))
	}
	return e
}

func (c *Client) statusHint(code int) string {
	switch {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return "check the reranker's API key"
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		return "check rerank.url, rerank.dialect (" + string(c.opts.Dialect) + ") and that the server has a reranker model; `assay rerank check` tries all dialects"
	case code == http.StatusRequestEntityTooLarge:
		return "lower rerank.batch_size or the chunk size"
	case code == http.StatusBadRequest || code == http.StatusUnprocessableEntity:
		return "the server could not take the texts; lower rerank.batch_size if it complains about the batch, set rerank.max_tokens if about their length, and try `assay rerank check` if about the fields"
	case code == http.StatusFailedDependency:
		return "inference failed; see the reranker's own log"
	case code == http.StatusTooManyRequests:
		return "it is overloaded; give it more capacity or lower rerank.max_concurrent"
	case code >= 300 && code < 400:
		return "redirects are not followed; set rerank.url to where it points"
	case code >= 500 && c.opts.Dialect == LlamaCPP:
		return "see the reranker's own log; a text over its physical batch (--ubatch-size) ends so, which rerank.max_tokens prevents"
	case code >= 500:
		return "see the reranker's own log"
	}
	return ""
}

// maxQuote is how much of a server's own words an error repeats, in bytes.
const maxQuote = 200

// quote prepares a server's own words for an error: without secrets, which it may echo, short and on
// one line. Secrets go first, as cutting could leave half of one.
func (c *Client) quote(s string) string {
	s = c.redact.Replace(s)
	if len(s) > maxQuote {
		n := maxQuote
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = strings.TrimSpace(s[:n]) + "..."
	}
	return strconv.Quote(s)
}
