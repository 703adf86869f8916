package embed

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	openai "github.com/sashabaranov/go-openai"
)

// jitter is the part by which waits vary, either way.
const jitter = 0.2

// call embeds one batch, trying again where that may help. Attempts are whole calls and not round
// trips, so that an answer that breaks off in its body counts as a failure of the connection.
func (e *Endpoint) call(ctx context.Context, texts []string, tokens []int) ([][]float32, error) {
	var vectors [][]float32
	var last *Error // of the latest attempt
	retries, giveUp := context.WithCancel(ctx)
	defer giveUp()

	policy := retrypolicy.NewBuilder[*exchange]().
		WithMaxAttempts(e.o.MaxAttempts).
		WithBackoff(e.o.Backoff, max(e.o.Backoff, e.o.MaxRetryDelay)).
		WithJitterFactor(jitter).
		WithDelayFunc(func(a failsafe.ExecutionAttempt[*exchange]) time.Duration {
			if wait := retryAfter(a.LastResult().header); wait > 0 {
				return time.Duration(float64(wait) / (1 - jitter)) // never earlier than asked for
			}
			return -1 // the backoff
		}).
		HandleIf(func(x *exchange, err error) bool {
			return last != nil && last.again && retryAfter(x.header) <= e.o.MaxRetryDelay
		}).
		OnRetryScheduled(func(s failsafe.ExecutionScheduledEvent[*exchange]) {
			// Waiting past the deadline would only turn a known reason into "no answer in time".
			if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= s.Delay {
				last.Reason += " (no time left to try again)"
				giveUp()
				return
			}
			e.lg.InfoContext(ctx, "embed: trying again", "after", s.Delay, "attempt", s.Attempts(), "error", last)
		}).
		OnRetry(func(failsafe.ExecutionEvent[*exchange]) { e.retries.Add(1) }).
		ReturnLastFailure().
		Build()

	_, err := failsafe.With(policy).WithContext(retries).Get(func() (*exchange, error) {
		x := e.newExchange()
		vectors, last = nil, nil
		v, failed := e.attempt(ctx, x, texts, tokens)
		if failed != nil {
			last = failed
			return x, failed
		}
		vectors = v
		return x, nil
	})
	switch {
	case vectors != nil:
		return vectors, nil
	case last == nil: // the caller was gone before the first attempt
		return nil, e.failure(ctx, e.newExchange(), err)
	case ctx.Err() != nil && !errors.Is(last, ctx.Err()): // gone while waiting
		last.cause = errors.Join(ctx.Err(), last.cause)
	}
	return nil, last
}

func (e *Endpoint) newExchange() *exchange {
	return &exchange{client: e.client, headers: e.o.Headers, query: e.base.RawQuery, maxBytes: e.o.MaxResponseBytes}
}

// attempt sends one request and checks what comes back.
func (e *Endpoint) attempt(ctx context.Context, x *exchange, texts []string, tokens []int) ([][]float32, *Error) {
	ctx, cancel := context.WithTimeout(ctx, e.o.Timeout)
	defer cancel()

	config := openai.DefaultConfig(e.o.APIKey)
	config.BaseURL = e.base.Scheme + "://" + e.base.Host + e.base.EscapedPath()
	config.HTTPClient = x
	request := openai.EmbeddingRequestStrings{
		Input:          texts,
		Model:          openai.EmbeddingModel(e.o.Model),
		EncodingFormat: openai.EmbeddingEncodingFormatFloat, // base64 is not known to every server
	}
	if e.o.SendDimensions {
		request.Dimensions = e.o.Dimensions
	}
	e.requests.Add(1)
	response, err := openai.NewClientWithConfig(config).CreateEmbeddings(ctx, request)
	if err != nil || !x.ok() {
		return nil, e.failure(ctx, x, err)
	}
	vectors, failed := e.check(x, response, len(texts))
	if failed != nil {
		return nil, failed
	}
	used := max(response.Usage.PromptTokens, response.Usage.TotalTokens)
	if used <= 0 { // not every server reports it
		for _, n := range tokens {
			used += n
		}
	}
	e.texts.Add(int64(len(texts)))
	e.tokens.Add(int64(used))
	return vectors, nil
}

// retryAfter reads the header Retry-After, which holds seconds or a date. 0 means that the endpoint
// asks for no wait; ours applies then.
func retryAfter(h http.Header) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
