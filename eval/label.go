package eval

import (
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"assay"
)

// Unit is an evidence unit: a place that a good retriever finds.
type Unit struct {
	DocID   string       // empty for a chunk
	ChunkID string       // for a chunk
	Spans   []assay.Span // for a quote or a span: where it stands; several where the quote does
	Quote   bool
	Grade   int
	texts   []string // of spans that are no quotes, to count characters
}

// State is what a query's labels amount to.
type State string

// The states of a query's labels.
const (
	StateJudged       State = "judged"
	StateUnjudged     State = "unjudged"     // no labels
	StateUnanswerable State = "unanswerable" // labelled as having no evidence
	StateUnresolved   State = "unresolved"   // a label that nothing in the corpus answers to
)

// QueryLabels are the labels of one query, found in a corpus.
type QueryLabels struct {
	ID    string
	State State
	Units []Unit // relevant documents, or places in documents

	level   int
	overlap float64
	grades  map[string]int             // where judgments name documents: all of them
	chunks  map[string][]int           // otherwise: by chunk ID the units that the chunk covers
	sets    [][]int                    // the same without the IDs, in a fixed order
	known   map[string]map[string]bool // where labels name chunks: by document ID the chunks there are

	mu      sync.Mutex  // guards covered
	covered map[int]int // how many units the best k chunks cover, by k
}

// Documents reports whether the judgments name documents, so that a chunk stands for its document.
func (q *QueryLabels) Documents() bool { return q.grades != nil }

// judge sees a ranking against the labels.
func (q *QueryLabels) judge(ranking []Ranked, depth int) *Judged {
	if q.Documents() {
		return Judge(ranking, q.grades, q.level, depth)
	}
	return judgeUnits(ranking, q, depth)
}

// ceiling is the number of units that the best k results cover.
func (q *QueryLabels) ceiling(k int) int {
	if q.sets == nil { // documents, or units that were resolved without a corpus
		return min(k, len(q.Units))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n, ok := q.covered[k]
	if !ok {
		n = maxCover(q.sets, len(q.Units), k)
		if q.covered == nil {
			q.covered = map[int]int{}
		}
		q.covered[k] = n
	}
	return n
}

// checkPassages refuses passages of another chunking than the one that chunk labels were made for.
func (q *QueryLabels) checkPassages(passages []assay.ContextPassage) error {
	for i := range passages {
		if known, named := q.known[passages[i].DocID]; named && !known[passages[i].ChunkID] {
			return fmt.Errorf("query %s: %w: chunk %s of document %s was sent, which the corpus lacks", q.ID, ErrOtherChunking, passages[i].ChunkID, passages[i].DocID)
		}
	}
	return nil
}

// relevant reports whether a passage is relevant, and marks the units that it covers.
func (q *QueryLabels) relevant(p *assay.ContextPassage, covered []bool) bool {
	any := false
	for i := range q.Units {
		if q.Units[i].coveredBy(p.DocID, p.ChunkID, p.Span, q.overlap) {
			covered[i] = true
			any = true
		}
	}
	return any
}

// same reports whether two units are one place.
func (u *Unit) same(v *Unit) bool {
	return u.DocID == v.DocID && u.ChunkID == v.ChunkID && u.Quote == v.Quote && slices.Equal(u.Spans, v.Spans)
}

// coveredBy reports whether a chunk covers the unit: all of a quote, at least the share overlap of a
// span's characters, the document as such, or the chunk by its ID.
func (u *Unit) coveredBy(docID, chunkID string, span assay.Span, overlap float64) bool {
	if u.ChunkID != "" {
		return u.ChunkID == chunkID
	}
	if u.DocID != docID {
		return false
	}
	if len(u.Spans) == 0 {
		return true
	}
	for i, s := range u.Spans {
		low, high := max(s.Start, span.Start), min(s.End, span.End)
		if low >= high {
			continue
		}
		if low == s.Start && high == s.End {
			return true
		}
		if u.Quote {
			continue
		}
		text := u.texts[i]
		part := utf8.RuneCountInString(text[low-s.Start : high-s.Start])
		if float64(part) >= overlap*float64(utf8.RuneCountInString(text)) {
			return true
		}
	}
	return false
}
