// Package assemble decides which candidates enter the prompt, in which order and within which budget,
// and writes the manifest of what became of the request.
package assemble

import (
	"errors"
	"fmt"
	"slices"

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
	// NearDuplicates is the share of a passage's shingles that a better one must hold for it to be
	// dropped. Default 0.8, by measurement (docs/context.md); negative: equal texts alone.
	NearDuplicates float64
	// MinRelevance is the relevance that at least one passage must have, or none is sent and the answer
	// is a refusal. Default 0: off, since questions in another language than the documents would be
	// refused too (docs/context.md has the trade-off).
	MinRelevance float64
}

// WithDefaults fills in what is not set.
func (o Options) WithDefaults() Options {
	if o.Budget == 0 {
		o.Budget = 4000
	}
	if o.Order == "" {
		o.Order = BestFirst
	}
	if o.NearDuplicates == 0 {
		o.NearDuplicates = 0.8
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
	if !(o.NearDuplicates < 0 || o.NearDuplicates >= minShare && o.NearDuplicates <= 1) {
		errs = append(errs, fmt.Errorf("assemble.near_duplicates is %g; it must be between %g and 1, or 0 for equal texts alone", o.NearDuplicates, minShare))
	}
	if !(o.MinRelevance >= 0 && o.MinRelevance <= 1) {
		errs = append(errs, fmt.Errorf("assemble.min_relevance is %g; it must be between 0 and 1", o.MinRelevance))
	}
	return errors.Join(errs...)
}

// minShare is the least share of shingles that makes a duplicate: below it passages on the same subject
// would be dropped for each other.
const minShare = 0.5

// Selection is the outcome: every candidate with its disposition, and the kept ones in prompt order.
type Selection struct {
	Candidates []assay.Candidate // in the given order
	Context    []assay.Candidate // in prompt order
	Tokens     int               // of the context's passages
	// Relevance is that of the best passage, where Rules ask for one.
	Relevance float64
}

// Rules say how a context is selected.
type Rules struct {
	Keep  int // passages at most
	Room  int // tokens that passages may take in all
	Order Order
	// Cost is what a passage takes in the prompt at a position, with its delimiters.
	Cost func(c assay.Candidate, position int) int
	// Count counts the tokens of a text.
	Count func(text string) int
	// Replacement returns the ID of the document that supersedes another, or "".
	Replacement func(docID string) string
	// NearDuplicates is Options.NearDuplicates, where 0 and less mean equal texts alone.
	NearDuplicates float64
	// KeepDuplicates sends also what a better passage already says.
	KeepDuplicates bool
	// MinRelevance is Options.MinRelevance; Relevance says, on one scale for all questions between 0
	// and 1, how much of the question a passage speaks of.
	MinRelevance float64
	Relevance    func(c assay.Candidate) float64
}

// Select walks the candidates best first and keeps what the rules allow. A candidate of a superseded
// document is dropped, and so is one that says what a better one says; neither takes a place.
// One that does not fit what is left of the budget is passed over, and the next ones are tried; when none
// fits, the best is cut at the end of a sentence, if one is short enough.
func Select(candidates []assay.Candidate, r Rules) Selection {
	s := Selection{Candidates: slices.Clone(candidates)}
	room := r.Room
	seen := newDuplicates(max(0, r.NearDuplicates))
	for i := range s.Candidates {
		c := &s.Candidates[i]
		c.Disposition, c.Reason, c.Of = assay.Dropped, "", ""
		if newer := r.Replacement(c.DocID); newer != "" {
			c.Reason, c.Of = assay.DropSuperseded, newer
			continue
		}
		text := seen.read(c.Text)
		if !r.KeepDuplicates {
			if first := seen.of(text); first != "" {
				c.Reason, c.Of = assay.DropDuplicate, first
				continue
			}
		}
		if len(s.Context) == r.Keep {
			c.Reason = assay.DropBelowKeep
			seen.add(c.ChunkID, text)
			continue
		}
		tokens := r.Cost(*c, len(s.Context)+1)
		if tokens > room {
			c.Reason = assay.DropOverBudget // and not noted: a shorter passage that it holds may fit
			continue
		}
		seen.add(c.ChunkID, text)
		room -= tokens
		c.Disposition = assay.Kept
		s.Context = append(s.Context, *c)
		s.Tokens += c.Tokens
	}
	if len(s.Context) == 0 {
		s.cut(r)
	}
	s.demand(r)
	if r.Order == Edges {
		s.Context = edges(s.Context)
	}
	return s
}

// demand empties a context of which no passage is relevant enough. It is all or nothing: what goes
// with a relevant passage may well say its part in other words.
func (s *Selection) demand(r Rules) {
	if r.MinRelevance <= 0 || len(s.Context) == 0 {
		return
	}
	for _, c := range s.Context {
		s.Relevance = max(s.Relevance, r.Relevance(c))
	}
	if s.Relevance >= r.MinRelevance {
		return
	}
	for i := range s.Candidates {
		if c := &s.Candidates[i]; c.Disposition == assay.Kept {
			c.Disposition, c.Reason = assay.Dropped, assay.DropBelowMinScore
		}
	}
	s.Context, s.Tokens = nil, 0
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
