package generate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/sashabaranov/go-openai"

	"assay"
)

// ErrIncomplete is returned when a stream broke off. The result beside it holds what had come.
var ErrIncomplete = errors.New("the answer is incomplete")

// Endpoint generates with an OpenAI-compatible chat endpoint. It is safe for concurrent use.
type Endpoint struct {
	lg      *slog.Logger
	opts    EndpointOptions
	prompt  *prompt
	client  *openai.Client
	doer    *doer
	service string
}

// NewEndpoint returns a generator. Its template is read and tried here; nothing is connected until the
// first question.
func NewEndpoint(lg *slog.Logger, o EndpointOptions) (*Endpoint, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("generate options: %w", err)
	}
	if lg == nil {
		lg = slog.New(slog.DiscardHandler)
	}
	o = o.withDefaults()
	p, err := newPrompt(o.Template, o.Count)
	if err != nil {
		return nil, err
	}
	u, err := baseURL(o.URL)
	if err != nil {
		return nil, err // unreachable: Validate has parsed it
	}
	var secrets []string
	if o.APIKey != "" {
		secrets = append(secrets, o.APIKey, "[redacted]")
	}
	if password, ok := u.User.Password(); ok && password != "" {
		secrets = append(secrets, password, "[redacted]")
	}
	d := &doer{
		client: &http.Client{
			Transport: o.Transport,
			// A redirect would carry passages to a place that nobody configured.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		redact: strings.NewReplacer(secrets...),
		greedy: o.Temperature == 0 && !fixedSampling(o.Model),
	}
	config := openai.DefaultConfig(o.APIKey)
	config.BaseURL, config.HTTPClient = u.String(), d
	config.EmptyMessagesLimit = 10_000 // some services send a comment every few milliseconds while they think
	shown := *u
	shown.User = nil
	return &Endpoint{
		lg: lg, opts: o, prompt: p, doer: d,
		client:  openai.NewClientWithConfig(config),
		service: "chat endpoint " + shown.String(),
	}, nil
}

// Model is the configured model.
func (e *Endpoint) Model() string { return e.opts.Model }

// TemplateHash identifies the prompt template.
func (e *Endpoint) TemplateHash() string { return e.prompt.hash }

// Overhead is the number of prompt tokens without any passage.
func (e *Endpoint) Overhead(question string, history []assay.Message) int {
	messages, err := e.prompt.messages(Request{Question: question}, e.recent(history), sampleBoundary)
	if err != nil {
		return 0 // Generate reports it
	}
	return e.prompt.tokens(messages)
}

// PassageTokens is what a passage takes in the prompt, with its delimiters.
func (e *Endpoint) PassageTokens(p Passage) int {
	text, err := e.prompt.source(p, sampleBoundary)
	if err != nil {
		return 0 // Generate reports it
	}
	return e.opts.Count(text)
}

func (e *Endpoint) recent(history []assay.Message) []turn {
	return e.prompt.recent(history, e.opts.MaxHistory, e.opts.MaxHistoryTokens)
}

// The causes of cancelled contexts.
var (
	errFirstToken = errors.New("no first token in time")
	errTooLong    = errors.New("the answer is too long")
	errFinished   = errors.New("finished")
)

// Generate asks the model and passes its text on as it comes, with citations checked. onText may be
// nil; an error that it returns ends the request upstream and is returned. When ctx is cancelled the
// connection upstream is closed at once. On an error the result holds what had come.
func (e *Endpoint) Generate(ctx context.Context, r Request, onText func(delta string) error) (Result, error) {
	result := Result{Model: e.opts.Model, TemplateHash: e.prompt.hash, Citations: []assay.Citation{}, FinishReason: FinishNoContext}
	if len(r.Passages) == 0 {
		return refuse(ctx, result, e.opts.Count, onText)
	}
	messages, err := e.prompt.messages(r, e.recent(r.History), newBoundary())
	if err != nil {
		return result, fmt.Errorf("prompt template: %w", err)
	}
	result.PromptTokens = e.prompt.tokens(messages)

	deadline, cancelDeadline := context.WithTimeout(ctx, e.opts.Timeout)
	defer cancelDeadline()
	upstream, cancel := context.WithCancelCause(deadline)
	defer cancel(nil)
	s := &stream{
		ctx: upstream, cancel: cancel, citer: newCiter(r.Passages), onText: onText,
		quote: e.doer.quote, limit: e.opts.MaxAnswerBytes, maxTokens: e.opts.MaxTokens,
		first: time.AfterFunc(e.opts.FirstTokenTimeout, func() { cancel(errFirstToken) }),
	}
	defer s.stop()
	err = e.open(s, messages)
	if err == nil {
		err = s.read()
	}
	if err == nil && strings.TrimSpace(s.text.String()) == "" {
		err = fmt.Errorf("%w: no text came, finish reason %q", ErrIncomplete, s.finish)
	}
	e.conclude(ctx, &result, s, err)
	if err := e.explain(ctx, s, err); err != nil {
		return result, fmt.Errorf("%s, model %s: %w", e.service, e.opts.Model, err)
	}
	return result, nil
}

// open sends the request until the first token has come, with retries: until then nobody has seen
// anything, afterwards a second answer could not be joined to the first.
func (e *Endpoint) open(s *stream, messages []turn) error {
	request := openai.ChatCompletionRequest{
		Model:         e.opts.Model,
		Stream:        true,
		StreamOptions: &openai.StreamOptions{IncludeUsage: true},
	}
	if fixedSampling(e.opts.Model) {
		request.MaxCompletionTokens = s.maxTokens
	} else {
		//lint:ignore SA1019 most compatible services know max_tokens only
		request.MaxTokens = s.maxTokens
		request.Temperature = float32(e.opts.Temperature)
	}
	for _, m := range messages {
		request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: m.role, Content: m.text})
	}
	end := time.Now().Add(e.opts.FirstTokenTimeout)
	policy := retrypolicy.NewBuilder[any]().
		WithMaxAttempts(e.opts.MaxAttempts).
		ReturnLastFailure().
		HandleIf(func(_ any, err error) bool {
			delay, again := retryDelay(err)
			return again && s.ctx.Err() == nil && time.Until(end) > delay
		}).
		WithBackoff(firstDelay, 5*time.Second).
		WithDelayFunc(func(exec failsafe.ExecutionAttempt[any]) time.Duration {
			if delay, _ := retryDelay(exec.LastError()); delay > firstDelay {
				return delay
			}
			return -1 // the backoff's
		}).
		OnRetry(func(exec failsafe.ExecutionEvent[any]) {
			e.lg.Warn("generate retried", "service", e.service, "attempt", exec.Attempts(), "error", exec.LastError())
		}).
		Build()
	return failsafe.With(policy).WithContext(s.ctx).Run(func() error {
		upstream, err := e.client.CreateChatCompletionStream(s.ctx, request)
		if err != nil {
			return err
		}
		s.close()
		s.upstream, s.usage = upstream, nil
		return s.awaitFirst()
	})
}

const firstDelay = 250 * time.Millisecond // before the first retry, without Retry-After

// retryDelay says whether the same request may succeed a moment later, and when at the earliest.
func retryDelay(err error) (time.Duration, bool) {
	var status *statusError
	var connection *connectionError
	switch {
	case errors.As(err, &status):
		switch status.code {
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return max(firstDelay, status.retryAfter), true
		}
		return 0, false
	case errors.As(err, &connection), errors.Is(err, errBroken):
		return firstDelay, true
	}
	return 0, false
}

// conclude fills in the result from what has been read.
func (e *Endpoint) conclude(ctx context.Context, result *Result, s *stream, err error) {
	result.Text = s.text.String()
	result.Citations, result.Invalid = s.citer.citations(), s.citer.invalid
	result.FinishReason = s.finish
	if s.finish == "" && s.raw.Len() > 0 {
		result.FinishReason = FinishIncomplete
	}
	result.Refused = err == nil && isRefusal(result.Text, len(result.Citations))
	switch {
	case s.usage != nil:
		result.Usage = assay.Usage{InputTokens: s.usage.PromptTokens, OutputTokens: s.usage.CompletionTokens}
	case s.raw.Len() > 0:
		result.Usage = assay.Usage{InputTokens: result.PromptTokens, OutputTokens: e.opts.Count(s.raw.String())}
	}
	if len(result.Invalid) > 0 {
		e.lg.WarnContext(ctx, "the model cited what was not sent", "model", e.opts.Model, "markers", result.Invalid)
	}
}

// explain gives an error the words and the class that callers need.
func (e *Endpoint) explain(ctx context.Context, s *stream, err error) error {
	if err == nil {
		return nil
	}
	cause := context.Cause(s.ctx)
	switch {
	case s.receiver != nil:
		return fmt.Errorf("pass the answer on: %w", s.receiver)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(cause, errFirstToken):
		return fmt.Errorf("no first token within %v; raise generate.first_token_timeout or give the model more capacity: %w", e.opts.FirstTokenTimeout, context.DeadlineExceeded)
	case errors.Is(cause, context.DeadlineExceeded):
		return fmt.Errorf("not finished within %v; raise generate.timeout or lower generate.max_tokens: %w", e.opts.Timeout, context.DeadlineExceeded)
	}
	return err
}
