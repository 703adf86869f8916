package generate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"
)

// errBroken marks a stream that ended or was damaged.
var errBroken = errors.New("broken stream")

// usageGrace is how long the usage is waited for once the answer is finished.
const usageGrace = 5 * time.Second

// stream is one answer on its way from the service to the receiver.
type stream struct {
	ctx      context.Context // of the request upstream; a field since cancelling it is what the stream does
	cancel   context.CancelCauseFunc
	upstream *openai.ChatCompletionStream
	first    *time.Timer // cancels when it is not stopped by the first token
	citer    *citer
	onText   func(string) error
	quote    func(string) string // makes a service's own words fit for an error
	limit    int                 // bytes of answer

	maxTokens int // of answer

	raw      strings.Builder // as the model wrote it
	text     strings.Builder // as it was passed on
	pending  string          // what came with the first token
	finish   string
	usage    *openai.Usage
	receiver error // from onText
}

// awaitFirst reads until the model has said something. Reasoning counts: the model is at work.
func (s *stream) awaitFirst() error {
	for {
		chunk, err := s.receive()
		if err != nil {
			return err
		}
		if len(chunk.Choices) == 0 {
			continue
		}
		choice := chunk.Choices[0]
		if choice.Delta.Content != "" || choice.Delta.ReasoningContent != "" || s.finish != "" {
			s.first.Stop()
			s.pending = choice.Delta.Content
			return nil
		}
	}
}

// read passes on what has been read and the rest, until the service has finished.
func (s *stream) read() error {
	err := s.pass(s.pending)
	for err == nil && s.finish == "" {
		var chunk openai.ChatCompletionStreamResponse
		if chunk, err = s.receive(); err == nil && len(chunk.Choices) > 0 {
			err = s.pass(chunk.Choices[0].Delta.Content)
		}
	}
	switch {
	case errors.Is(err, errTooLong):
		s.finish, err = FinishLength, nil
		s.cancel(errTooLong)
	case err == nil:
		s.end()
	}
	if s.receiver != nil {
		return err
	}
	return cmp.Or(s.deliver(s.citer.close()), err)
}

// receive reads one chunk and notes what it says beside text.
func (s *stream) receive() (openai.ChatCompletionStreamResponse, error) {
	chunk, err := s.upstream.Recv()
	switch {
	case err == nil:
	case s.ctx.Err() != nil:
		return chunk, s.ctx.Err()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		hint := ""
		if s.raw.Len() == 0 {
			hint = "; check that generate.url is the base of an OpenAI-compatible API, such as .../v1"
		}
		return chunk, fmt.Errorf("%w: %w: it ended without a finish reason%s", ErrIncomplete, errBroken, hint)
	default:
		var api *openai.APIError
		if errors.As(err, &api) {
			return chunk, fmt.Errorf("%w: the service reported an error in its stream: %q", ErrIncomplete, s.quote(api.Message))
		}
		return chunk, fmt.Errorf("%w: %w: %s", ErrIncomplete, errBroken, s.quote(err.Error()))
	}
	if chunk.Usage != nil && chunk.Usage.PromptTokens+chunk.Usage.CompletionTokens > 0 {
		s.usage = chunk.Usage
	}
	if len(chunk.Choices) > 0 && chunk.Choices[0].FinishReason != "" && chunk.Choices[0].FinishReason != openai.FinishReasonNull {
		s.finish = string(chunk.Choices[0].FinishReason)
	}
	return chunk, nil
}

// end reads what follows the finish reason, which can only be the usage. The answer is whole, so that
// errors do not matter any more and nobody waits long.
func (s *stream) end() {
	timer := time.AfterFunc(usageGrace, func() { s.cancel(errFinished) })
	defer timer.Stop()
	for {
		if _, err := s.receive(); err != nil {
			return
		}
	}
}

// pass checks a delta's citations and hands it on.
func (s *stream) pass(delta string) error {
	if s.raw.Len() == 0 {
		delta = strings.TrimLeft(delta, " \t\r\n")
	}
	room := s.limit - s.raw.Len()
	short := clip(delta, room)
	s.raw.WriteString(short)
	if err := s.deliver(s.citer.write(short)); err != nil {
		return err
	}
	if len(short) < len(delta) {
		return errTooLong
	}
	return nil
}

func (s *stream) deliver(text string) error {
	s.text.WriteString(text)
	s.receiver = deliver(s.onText, text)
	return s.receiver
}

func (s *stream) close() {
	if s.upstream != nil {
		_ = s.upstream.Close() // a body that is closed early has nothing to tell
		s.upstream = nil
	}
}

func (s *stream) stop() {
	s.first.Stop()
	s.close()
}
