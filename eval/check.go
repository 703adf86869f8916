package eval

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ProblemKind is what is wrong with a label or a query.
type ProblemKind string

// The kinds of problems.
const (
	ProblemUnjudged          ProblemKind = "unjudged"           // the query has no labels
	ProblemDuplicateText     ProblemKind = "duplicate_text"     // another query asks the same
	ProblemDuplicateEvidence ProblemKind = "duplicate_evidence" // the query has the same label twice
	ProblemDocumentNotFound  ProblemKind = "document_not_found"
	ProblemQuoteNotFound     ProblemKind = "quote_not_found"
	ProblemSpanOutside       ProblemKind = "span_outside" // past the end of the document
	ProblemChunkNotFound     ProblemKind = "chunk_not_found"
	ProblemInNoChunk         ProblemKind = "in_no_chunk" // it is there, and no chunk holds it
)

// Problem is something wrong with a dataset, alone or against a corpus.
type Problem struct {
	Kind     ProblemKind `json:"kind"`
	QueryID  string      `json:"query_id"`
	Evidence string      `json:"evidence,omitempty"`
	Detail   string      `json:"detail"`
}

// String writes the problem for people.
func (p Problem) String() string {
	if p.Evidence == "" {
		return fmt.Sprintf("query %s: %s: %s", p.QueryID, p.Kind, p.Detail)
	}
	return fmt.Sprintf("query %s: %s: %s: %s", p.QueryID, p.Kind, p.Evidence, p.Detail)
}

// Check lists what is wrong with a dataset: queries without labels, duplicates, and, where a corpus is
// given, labels that resolve to nothing in it.
func Check(ctx context.Context, ds *Dataset, corpus Corpus, opts LabelOptions) ([]Problem, error) {
	var problems []Problem
	texts := map[string]string{}
	for _, q := range ds.Queries {
		if len(q.Evidence) == 0 && !q.Unanswerable {
			problems = append(problems, Problem{Kind: ProblemUnjudged, QueryID: q.ID, Detail: "no evidence; left out of every mean"})
		}
		text := strings.ToLower(string(normalise(q.Text).text))
		if other, ok := texts[text]; ok {
			problems = append(problems, Problem{Kind: ProblemDuplicateText, QueryID: q.ID, Detail: "asks the same as query " + other})
		} else {
			texts[text] = q.ID
		}
		seen := map[string]bool{}
		for _, e := range q.Evidence {
			key := e.key()
			if seen[key] {
				problems = append(problems, Problem{Kind: ProblemDuplicateEvidence, QueryID: q.ID, Evidence: e.String(), Detail: "the query has it twice; it counts once"})
			}
			seen[key] = true
		}
	}
	if corpus == nil {
		return problems, nil
	}
	r, err := resolve(ctx, ds, corpus, opts)
	if err != nil && !errors.Is(err, ErrOtherChunking) {
		return nil, err
	}
	return append(problems, r.Problems...), nil
}
