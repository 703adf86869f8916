// Package assemble decides which candidates enter the prompt, in which order and within which budget,
// and writes the manifest of what became of the request.
package assemble

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"assay"
)

// Order is the order of passages in the prompt.
type Order string

// The orders.
const (
	BestFirst Order = "best_first"
	// Edges puts the best passages at both ends of the prompt and the weakest in the middle, where
	// models read least (Liu et al., "Lost in the Middle", 2023).
	Edges Order = "edges"
)

// Options configure the context. The zero value of a field means its default.
type Options struct {
	Budget int   // tokens for the whole prompt with template, question and passages; default 4,000
	Order  Order // default BestFirst
	// KeepSuperseded sends also passages of documents that a newer one replaces.
	KeepSuperseded bool
}

// WithDefaults fills in what is not set.
func (o Options) WithDefaults() Options {
	if o.Budget == 0 {
		o.Budget = 4000
	}
	if o.Order == "" {
		o.Order = BestFirst
	}
	return o
}

// Validate reports every setting that cannot be used.
func (o Options) Validate() error {
	o = o.WithDefaults()
	var errs []error
	if o.Budget < 100 {
		errs = append(errs, fmt.Errorf("assemble.budget is %d tokens; it must be at least 100", o.Budget))
	}
	if o.Order != BestFirst && o.Order != Edges {
		errs = append(errs, fmt.Errorf("assemble.order is %q; it must be %q or %q", o.Order, BestFirst, Edges))
	}
	return errors.Join(errs...)
}

// Selection is the outcome: every candidate with its disposition, and the kept ones in prompt order.
type Selection struct {
	Candidates []assay.Candidate // in the given order
	Context    []assay.Candidate // in prompt order
	Tokens     int               // of the context's passages
}

// Rules say how a context is selected.
type Rules struct {
	Keep  int // passages at most
	Room  int // tokens that passages may take in all
	Order Order
	// Cost is what a passage takes in the prompt at a position, with its delimiters.
	Cost func(c assay.Candidate, position int) int
	// Replacement returns the ID of the document that supersedes another, or "".
	Replacement func(docID string) string
}

// Select walks the candidates best first and keeps what the rules allow. A candidate of a superseded
// document is dropped, and so is one whose text equals that of a better one; neither takes a place.
// One that does not fit what is left of the budget is passed over, and the next ones are tried.
func Select(candidates []assay.Candidate, r Rules) Selection {
	s := Selection{Candidates: slices.Clone(candidates)}
	room := r.Room
	seen := make(map[string]string) // normalised text -> chunk ID of the best candidate with it
	for i := range s.Candidates {
		c := &s.Candidates[i]
		c.Disposition, c.Reason, c.Of = assay.Dropped, "", ""
		if newer := r.Replacement(c.DocID); newer != "" {
			c.Reason, c.Of = assay.DropSuperseded, newer
			continue
		}
		text := strings.Join(strings.Fields(c.Text), " ")
		if first, ok := seen[text]; ok {
			c.Reason, c.Of = assay.DropDuplicate, first
			continue
		}
		seen[text] = c.ChunkID
		if len(s.Context) == r.Keep {
			c.Reason = assay.DropBelowKeep
			continue
		}
		tokens := r.Cost(*c, len(s.Context)+1)
		if tokens > room {
			c.Reason = assay.DropOverBudget
			continue
		}
		room -= tokens
		c.Disposition = assay.Kept
		s.Context = append(s.Context, *c)
		s.Tokens += c.Tokens
	}
	if r.Order == Edges {
		s.Context = edges(s.Context)
	}
	return s
}

// edges deals the passages alternately to the front and the back: 1 3 5 4 2.
func edges(best []assay.Candidate) []assay.Candidate {
	var front, back []assay.Candidate
	for i, c := range best {
		if i%2 == 0 {
			front = append(front, c)
		} else {
			back = append(back, c)
		}
	}
	slices.Reverse(back)
	return append(front, back...)
}

// Marker is how the passage at a position is cited.
func Marker(position int) string { return fmt.Sprintf("[%d]", position) }
