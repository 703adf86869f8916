package traces

import (
	"encoding/json"

	"assay"
)

// contentBytes bounds each text of a span's content. Longer ones are cut, and the span says so.
const contentBytes = 8 << 10

// RecordQuestion puts the question on the root or on a retrieval, if content is captured.
func (s *Span) RecordQuestion(text string) {
	if s == nil || !s.capture || !s.span.IsRecording() {
		return
	}
	s.span.SetAttributes(KeyInputValue.String(s.cut(text)))
}

// RecordQuery puts the text that is searched for on a retrieval, if content is captured.
func (s *Span) RecordQuery(text string) {
	if s == nil || !s.capture || !s.span.IsRecording() {
		return
	}
	s.span.SetAttributes(KeyRetrievalQuery.String(s.cut(text)))
}

// RecordAnswer puts the answer on the root, if content is captured.
func (s *Span) RecordAnswer(text string) {
	if s == nil || !s.capture || !s.span.IsRecording() {
		return
	}
	s.span.SetAttributes(KeyOutputValue.String(s.cut(text)))
}

// RecordMessages puts what was sent to a chat model, and what it answered, on its span, if content is
// captured.
func (s *Span) RecordMessages(input []assay.Message, output, finishReason string) {
	if s == nil || !s.capture || !s.span.IsRecording() {
		return
	}
	var sent []message
	for _, m := range input {
		sent = append(sent, message{Role: short(m.Role), Parts: []part{{"text", m.Content}}})
	}
	got := message{Role: "assistant", Parts: []part{{"text", output}}, FinishReason: short(finishReason)}
	s.span.SetAttributes(
		KeyInputMessages.String(s.encode(sent)),
		KeyOutputMessages.String(s.encode([]message{got})),
	)
}

// message has the form of the conventions' schemas for gen_ai.input.messages and gen_ai.output.messages.
type message struct {
	Role         string `json:"role"`
	Parts        []part `json:"parts"`
	FinishReason string `json:"finish_reason,omitempty"`
}

type part struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

// encode writes messages as JSON of at most contentBytes. Where that is not enough, the oldest
// messages go first, which are the earlier turns, and then the end of the text that is left.
func (s *Span) encode(messages []message) string {
	data, _ := json.Marshal(messages) // of strings: cannot fail
	for limit := contentBytes; len(data) > contentBytes && limit > 0; {
		s.span.SetAttributes(KeyContentTruncated.Bool(true))
		if len(messages) > 1 {
			messages = messages[1:]
		} else {
			limit /= 2 // the JSON of a text may be six times as long as the text
			only := messages[0]
			only.Parts = []part{{only.Parts[0].Type, shorten(only.Parts[0].Content, limit)}}
			messages = []message{only}
		}
		data, _ = json.Marshal(messages)
	}
	return string(data)
}

func (s *Span) cut(text string) string {
	if len(text) > contentBytes {
		s.span.SetAttributes(KeyContentTruncated.Bool(true))
	}
	return shorten(text, contentBytes)
}
