// Package eval measures how well questions are served: datasets of judged queries, metrics over
// rankings and over the contexts that were sent, comparisons between arms with their uncertainty, and
// cohorts of queries that went wrong beside what was possible for them.
//
// Three rules hold everywhere in it. A query without judgments is unjudged: it is counted and left out
// of every mean, never a zero. A metric that is undefined for a query is absent from its Scores and
// counted; NaN does not occur. And there is one order of ranked results, Compare.
package eval

import (
	"cmp"
	"math"
)

// Ranked is one result of a search: a document, or a chunk of it.
type Ranked struct {
	DocID   string  `json:"doc_id"`
	ChunkID string  `json:"chunk_id,omitempty"` // empty where whole documents are ranked
	Score   float64 `json:"score"`
}

// Compare is the order of ranked results everywhere in this package, best first: by score, and among
// equal scores by name, later names first. That is how trec_eval breaks ties, so that its figures
// and ours agree.
func Compare(a, b Ranked) int {
	return cmp.Or(
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(b.DocID, a.DocID),
		cmp.Compare(b.ChunkID, a.ChunkID),
	)
}

// Scores holds the metrics of one query by name. A metric that is undefined for the query is absent.
type Scores map[string]float64

// Value returns a metric and whether it is defined.
func (s Scores) Value(name string) (float64, bool) {
	v, ok := s[name]
	return v, ok
}

// set records a metric that is defined. Numbers that are none do not enter.
func (s Scores) set(name string, v float64, ok bool) {
	if ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
		s[name] = v
	}
}
