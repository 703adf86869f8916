package generate

import (
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"math/big"
	"os"
	"regexp"
	"strings"
	"text/template"
	"unicode/utf8"

	"assay"
)

//go:embed prompt.tmpl
var defaultTemplate string

// prompt renders the messages that are sent to a chat model.
//
// Passages come from documents that anybody may have written, so they are kept from passing for
// anything else. Each stands between lines that carry a code drawn at random for the request, and the
// system message says that only these lines delimit. Inside a passage, what looks like a delimiter
// loses its angle bracket ("<source" becomes "&lt;source"), and what looks like a citation becomes
// round ("[3]" becomes "(3)"), outside of code, so that it is not copied into the answer as one.
// Titles, headings and locations are put on one line without quotes or angle brackets. Questions and
// earlier turns get the same treatment of delimiters, and earlier answers lose their citations, which
// belong to other sources.
type prompt struct {
	templates *template.Template
	hash      string
	count     func(string) int
}

// sourceData is what the template "source" sees.
type sourceData struct {
	Position                                     int
	Title, Heading, URI, Version, Text, Boundary string
}

// messageData is what the templates "system" and "user" see.
type messageData struct {
	Question, Sources, Boundary, Refusal string
}

// turn is one message to a chat model.
type turn struct{ role, text string }

// newPrompt parses the template at path, or the built-in one, and tries it.
func newPrompt(path string, count func(string) int) (*prompt, error) {
	text, name := defaultTemplate, "built-in prompt template"
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("generate.template: %w", err)
		}
		text, name = string(data), "generate.template "+path
	}
	t, err := template.New("prompt").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &prompt{templates: t, hash: assay.HashText(text), count: count}
	const question, passage, code = "QUESTION", "PASSAGE", "CODE"
	_, err1 := p.render("system", messageData{Boundary: code, Refusal: Refusal})
	source, err2 := p.render("source", sourceData{Position: 1, Text: passage, Boundary: code})
	user, err3 := p.render("user", messageData{Question: question, Sources: source, Boundary: code, Refusal: Refusal})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !strings.Contains(user, question) || !strings.Contains(user, passage) {
		return nil, fmt.Errorf("%s: it must write .Text in \"source\", and .Sources and .Question in \"user\"", name)
	}
	if strings.Count(source, code) < 2 {
		return nil, fmt.Errorf("%s: it must write .Boundary before and after .Text in \"source\", or a passage could pass for a source", name)
	}
	return p, nil
}

func (p *prompt) render(name string, data any) (string, error) {
	var out strings.Builder
	if err := p.templates.ExecuteTemplate(&out, name, data); err != nil {
		return "", err
	}
	return out.String(), nil
}

// messages writes the whole conversation.
func (p *prompt) messages(r Request, history []turn, boundary string) ([]turn, error) {
	system, err := p.render("system", messageData{Boundary: boundary, Refusal: Refusal})
	if err != nil {
		return nil, err
	}
	var sources strings.Builder
	for _, passage := range r.Passages {
		text, err := p.source(passage, boundary)
		if err != nil {
			return nil, err
		}
		sources.WriteString(text)
	}
	user, err := p.render("user", messageData{Question: inert(r.Question), Sources: sources.String(), Boundary: boundary, Refusal: Refusal})
	if err != nil {
		return nil, err
	}
	out := append([]turn{{"system", system}}, history...)
	return append(out, turn{"user", user}), nil
}

// source writes one passage between its delimiters.
func (p *prompt) source(passage Passage, boundary string) (string, error) {
	return p.render("source", sourceData{
		Position: passage.Position,
		Title:    oneLine(passage.Title),
		Heading:  oneLine(passage.Heading),
		URI:      oneLine(passage.URI),
		Version:  oneLine(passage.Version),
		Text:     inert(neutralise(strings.TrimRight(passage.Text, "\n"))),
		Boundary: boundary,
	})
}

// messageTokens is what a chat format adds to each message's text.
const messageTokens = 4

func (p *prompt) tokens(messages []turn) int {
	n := 0
	for _, m := range messages {
		n += p.count(m.text) + messageTokens
	}
	return n
}

// newBoundary draws the code of one request. It is of digits in threes, each of which is one token
// in the encodings of tiktoken, so that any code takes as many tokens as any other: the budget is
// reckoned with sampleBoundary. 15 digits are 50 bits.
func newBoundary() string {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000_000_000_000))
	if err != nil { // unreachable: the system's random source does not fail
		panic(err)
	}
	return fmt.Sprintf("%015d", n)
}

// sampleBoundary stands for any boundary where only the length counts.
const sampleBoundary = "012345678901234"

var delimiterLike = regexp.MustCompile(`(?i)<(\s*/?\s*source)`)

// inert takes from a text what could pass for a delimiter.
func inert(text string) string { return delimiterLike.ReplaceAllString(text, "&lt;$1") }

// maxAttribute bounds a title, heading or location in the prompt, in bytes.
const maxAttribute = 300

var attributeEscapes = strings.NewReplacer(`"`, "'", "<", "‹", ">", "›")

// oneLine prepares a text for an attribute.
func oneLine(text string) string {
	text = neutralise(strings.Join(strings.Fields(text), " "))
	return attributeEscapes.Replace(clip(text, maxAttribute))
}

// clip shortens a text to at most n bytes at a rune's edge.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// recent prepares the earlier turns: the newest that fit, in an order that every chat format accepts,
// which is user and assistant alternating, the user first and the assistant last.
func (p *prompt) recent(history []assay.Message, maxTurns, maxTokens int) []turn {
	var out []turn
	tokens := 0
	for i := len(history) - 1; i >= 0 && len(history)-i <= maxTurns; i-- {
		m := turn{history[i].Role, inert(history[i].Content)}
		if m.role != "user" {
			m = turn{"assistant", dropMarkers(m.text)}
		}
		if tokens += p.count(m.text) + messageTokens; tokens > maxTokens {
			break
		}
		switch n := len(out); {
		case n > 0 && out[n-1].role == m.role:
			out[n-1].text = m.text + "\n\n" + out[n-1].text
		case n > 0 || m.role == "assistant": // an unanswered question at the end is left out
			out = append(out, m)
		}
	}
	if n := len(out); n > 0 && out[n-1].role == "assistant" {
		out = out[:n-1]
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}
