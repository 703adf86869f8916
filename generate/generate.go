// Package generate writes the answer to a question from passages, and ties what it says to them.
//
// There are two generators. Endpoint asks any OpenAI-compatible chat model with numbered sources and
// streams what it says. Extractive is built in and needs no model: it picks the sentences, list items, table
// rows and code that answer, and cites each. Both refuse with Refusal when nothing answers.
//
// A citation is a marker such as [2]. Every marker that leaves this package, in the stream and in the
// result, points at a passage that was sent; others are taken out and listed as invalid.
package generate

import (
	"context"
	"strings"

	"assay"
)

// Refusal is what both generators say when the passages do not answer the question.
const Refusal = "I could not find an answer to this in the documentation."

// The finish reasons that this package adds to those of chat endpoints (stop, length, content_filter).
const (
	FinishNoContext  = "no_context" // there were no passages, so that nothing was asked
	FinishStop       = "stop"
	FinishLength     = "length"     // cut at a limit
	FinishIncomplete = "incomplete" // the stream broke off; the error says how
)

// Passage is a chunk as it is sent.
type Passage struct {
	Position int    // 1-based place in the prompt; markers cite it
	Marker   string // "[1]"
	ChunkID  string
	DocID    string
	URI      string
	Title    string
	Heading  string // path of section headings, "Keys > Rotation"
	Version  string
	Span     assay.Span
	Tokens   int
	Text     string // Markdown
}

// Request is one question with what it is to be answered from.
type Request struct {
	Question string
	History  []assay.Message // earlier turns, oldest first
	Passages []Passage       // in prompt order
}

// Result is the answer. It is returned beside an error too, with what had come until then.
type Result struct {
	Text         string           // exactly what was streamed
	Citations    []assay.Citation // one per cited passage, in order of first use
	Invalid      []string         // markers that pointed at nothing that was sent, and were taken out
	Refused      bool
	FinishReason string
	Usage        assay.Usage
	PromptTokens int // by our own count
	TemplateHash string
	Model        string
}

// refuse is the answer to a question without passages. No model is asked: it could only invent.
func refuse(ctx context.Context, result Result, count func(string) int, onText func(string) error) (Result, error) {
	if err := ctx.Err(); err != nil {
		return result, err
	}
	result.Text, result.Refused = Refusal, true
	result.Usage.OutputTokens = count(Refusal)
	return result, deliver(onText, Refusal)
}

// isRefusal recognises the fixed sentence in a model's answer, whatever it wrapped it in. An answer
// that goes on and cites something is an answer.
func isRefusal(text string, citations int) bool {
	text = strings.TrimLeft(strings.Join(strings.Fields(text), " "), `"'*_> `)
	refusal := strings.TrimRight(Refusal, ".")
	return citations == 0 && len(text) >= len(refusal) && strings.EqualFold(text[:len(refusal)], refusal)
}

// deliver hands text to a receiver that may be absent.
func deliver(onText func(string) error, text string) error {
	if onText == nil || text == "" {
		return nil
	}
	return onText(text)
}

// words is the token count of generators that were given none: roughly 4 tokens for 3 words.
func words(s string) int { return (4*len(strings.Fields(s)) + 2) / 3 }
