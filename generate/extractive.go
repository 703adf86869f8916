package generate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"

	"assay"
)

// ExtractiveModel is the name under which the built-in generator appears.
const ExtractiveModel = "assay-extractive-v1"

// ExtractiveOptions configure an Extractive. The zero value of a field means its default.
type ExtractiveOptions struct {
	// MaxSentences is the number of sentences, items or rows picked. Default 4.
	MaxSentences int
	// MaxTokens bounds what is picked after the first. Default 120: an answer that is longer is a passage.
	MaxTokens int
	// MaxListTokens bounds a numbered list, or a list with the sentence that introduces it, which are
	// of use only as a whole. Default 300.
	MaxListTokens int
	// MinCoverage is the share of the question's content, by weight of its terms, that the best unit
	// must cover together with its headings and neighbours. Default 0.48, see the figures in the tests of
	// this package for what it refuses; a value over 1 refuses everything.
	MinCoverage float64
	// Similarity, if given, says how alike two texts are in meaning, between 0 and 1, as an embedder
	// does. It takes part in the ranking of units, not in the decision to refuse: texts on the same
	// subject are alike whether they answer or not.
	Similarity func(a, b string) float64
	// Count counts tokens as the budget does. Default: an estimate from words.
	Count func(string) int
}

// Validate reports everything that is wrong with the options.
func (o ExtractiveOptions) Validate() error {
	var errs []error
	for _, n := range []struct {
		name  string
		value int
	}{{"max_sentences", o.MaxSentences}, {"max_tokens", o.MaxTokens}, {"max_list_tokens", o.MaxListTokens}} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("extractive %s: must not be negative", n.name))
		}
	}
	if math.IsNaN(o.MinCoverage) || o.MinCoverage < 0 {
		errs = append(errs, fmt.Errorf("extractive min_coverage %v: must be 0 or more; 1 demands every term of the question", o.MinCoverage))
	}
	return errors.Join(errs...)
}

func (o ExtractiveOptions) withDefaults() ExtractiveOptions {
	if o.MaxSentences <= 0 {
		o.MaxSentences = 4
	}
	if o.MaxTokens <= 0 {
		o.MaxTokens = 120
	}
	if o.MaxListTokens <= 0 {
		o.MaxListTokens = 300
	}
	if o.MinCoverage <= 0 || math.IsNaN(o.MinCoverage) {
		o.MinCoverage = 0.48
	}
	if o.Count == nil {
		o.Count = words
	}
	return o
}

// Extractive answers with the sentences, list items, table rows and code of the passages that cover
// the question best, each followed by its citation. It writes nothing of its own except the fixed
// refusal and the headings that make a fragment understandable, and its answer depends on its input
// alone. It is safe for concurrent use if its functions are.
type Extractive struct {
	lg   *slog.Logger
	opts ExtractiveOptions
}

// NewExtractive returns the built-in generator. Options that Validate finds fault with fall back to
// their defaults.
func NewExtractive(lg *slog.Logger, o ExtractiveOptions) *Extractive {
	if lg == nil {
		lg = slog.New(slog.DiscardHandler)
	}
	return &Extractive{lg: lg, opts: o.withDefaults()}
}

// Model is ExtractiveModel.
func (x *Extractive) Model() string { return ExtractiveModel }

// TemplateHash is empty: there is no prompt template.
func (x *Extractive) TemplateHash() string { return "" }

// Overhead is what the question takes: earlier turns are not read beyond the last question.
func (x *Extractive) Overhead(question string, _ []assay.Message) int { return x.opts.Count(question) }

// PassageTokens is what a passage takes, which is its text.
func (x *Extractive) PassageTokens(p Passage) int {
	if p.Tokens > 0 {
		return p.Tokens
	}
	return x.opts.Count(p.Text)
}

// Generate picks the answer and passes it on piece by piece. onText may be nil; an error that it
// returns ends the answer and is returned.
func (x *Extractive) Generate(ctx context.Context, r Request, onText func(delta string) error) (Result, error) {
	result := Result{Model: ExtractiveModel, Citations: []assay.Citation{}, FinishReason: FinishNoContext}
	if len(r.Passages) == 0 {
		return refuse(ctx, result, x.opts.Count, onText)
	}
	result.PromptTokens = x.Overhead(r.Question, r.History)
	for _, p := range r.Passages {
		result.PromptTokens += x.PassageTokens(p)
	}
	result.Usage.InputTokens = result.PromptTokens
	result.FinishReason = FinishStop
	pieces, coverage, err := x.pick(ctx, r)
	if err != nil {
		return result, err
	}
	x.lg.DebugContext(ctx, "extractive", "coverage", coverage, "minimum", x.opts.MinCoverage, "pieces", len(pieces))
	if len(pieces) == 0 {
		return refuse(ctx, result, x.opts.Count, onText)
	}
	c := newCiter(r.Passages)
	var text strings.Builder
	pieces = append(pieces, "")
	for i, piece := range pieces {
		out := c.write(piece)
		if i == len(pieces)-1 {
			out += c.close()
		}
		text.WriteString(out)
		if err = ctx.Err(); err == nil {
			err = deliver(onText, out)
		}
		if err != nil {
			result.FinishReason = FinishIncomplete
			err = fmt.Errorf("pass the answer on: %w", err)
			break
		}
	}
	result.Text, result.Citations, result.Invalid = text.String(), c.citations(), c.invalid
	result.Usage.OutputTokens = x.opts.Count(result.Text)
	return result, err
}
