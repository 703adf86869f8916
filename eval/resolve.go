package eval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay"
)

// Corpus is what labels are found in: the documents and chunks that were searched. The store
// implements it through an adapter.
type Corpus interface {
	// Document returns a document with its text, by ID or else by URI; ok is false when there is none.
	Document(ctx context.Context, ref string) (doc assay.Document, ok bool, err error)
	// Chunks returns a document's chunks by the document's ID; their texts are not read.
	Chunks(ctx context.Context, docID string) ([]assay.Chunk, error)
	// Chunk returns a chunk by ID; ok is false when there is none.
	Chunk(ctx context.Context, id string) (chunk assay.Chunk, ok bool, err error)
}

// ErrOtherChunking is returned when labels name chunks that the corpus does not have: they were made
// over another chunking, and scoring them would call everything missed.
var ErrOtherChunking = errors.New("labels name chunks of another chunking; label by quote or span, or use the chunking they were made with")

// LabelOptions say how labels are read.
type LabelOptions struct {
	Level   int     // grades from here on are relevant; 0 means 1, as in trec_eval
	Overlap float64 // of a span's characters that a chunk must hold; 0 means 0.5, so that a span cut in two belongs to its larger part
}

func (o LabelOptions) validate() error {
	var errs []error
	if o.Level < 0 || o.Level > maxGrade {
		errs = append(errs, fmt.Errorf("relevance level %d is not within 1 to %d", o.Level, maxGrade))
	}
	if !(o.Overlap >= 0 && o.Overlap <= 1) {
		errs = append(errs, fmt.Errorf("overlap %g is not within 0 to 1", o.Overlap))
	}
	return errors.Join(errs...)
}

// Labels are the labels of a dataset, found in a corpus.
type Labels struct {
	Queries  []*QueryLabels // in the dataset's order
	Problems []Problem
	byID     map[string]*QueryLabels
	known    map[string]map[string]bool // by document ID: the chunks of the documents that labels name
}

// Query returns the labels of one query, or nil.
func (l *Labels) Query(id string) *QueryLabels { return l.byID[id] }

// Resolve finds a dataset's labels in a corpus. A query with a label that resolves to nothing is not
// judged: it is in Problems by name, and its state says so. Labels that name chunks of another
// chunking are refused as a whole with ErrOtherChunking. Without a corpus only whole documents can
// be judged, and what the labels name are taken to be document IDs.
func Resolve(ctx context.Context, ds *Dataset, corpus Corpus, opts LabelOptions) (*Labels, error) {
	labels, err := resolve(ctx, ds, corpus, opts)
	if err != nil {
		return nil, err
	}
	return labels, nil
}

// resolve returns what it found also beside ErrOtherChunking, for Check to list.
func resolve(ctx context.Context, ds *Dataset, corpus Corpus, opts LabelOptions) (*Labels, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("resolve labels of %s: %w", ds.Name, err)
	}
	if opts.Level == 0 {
		opts.Level = 1
	}
	if opts.Overlap == 0 {
		opts.Overlap = 0.5
	}
	r := &resolver{corpus: corpus, opts: opts, byDocument: onlyDocuments(ds), out: &Labels{byID: map[string]*QueryLabels{}, known: map[string]map[string]bool{}}}
	if err := r.run(ctx, ds); err != nil {
		return r.out, fmt.Errorf("resolve labels of %s: %w", ds.Name, err)
	}
	return r.out, nil
}

// onlyDocuments reports whether all judgments name documents. If so a chunk stands for its document.
func onlyDocuments(ds *Dataset) bool {
	for _, q := range ds.Queries {
		for _, e := range q.Evidence {
			if !e.whole() {
				return false
			}
		}
	}
	return true
}

// checkRun refuses a run over another chunking than the labels were found in: its chunks would all
// count as missed. Only documents that labels name can tell.
func (l *Labels) checkRun(run *Run) error {
	for _, q := range l.Queries {
		if q.Documents() {
			continue
		}
		for _, r := range run.Lists[q.ID] {
			if known, named := l.known[r.DocID]; named && !known[r.ChunkID] {
				return fmt.Errorf("query %s: %w: the run has chunk %s of document %s, which the corpus lacks", q.ID, ErrOtherChunking, r.ChunkID, r.DocID)
			}
		}
	}
	return nil
}

type resolver struct {
	corpus     Corpus
	opts       LabelOptions
	byDocument bool
	out        *Labels
	foreign    []string // chunk IDs that the corpus lacks
}

// document is what labels need of a document: each is read once, for all labels that name it.
type document struct {
	doc    assay.Document
	found  bool
	text   normalised
	chunks []assay.Chunk
}

func (r *resolver) run(ctx context.Context, ds *Dataset) error {
	// Labels are gathered by document, so that one text is in memory at a time.
	type place struct{ query, evidence int }
	byRef := map[string][]place{}
	for qi, q := range ds.Queries {
		labels := &QueryLabels{ID: q.ID, State: StateJudged, level: r.opts.Level, overlap: r.opts.Overlap, chunks: map[string][]int{}}
		switch {
		case q.Unanswerable:
			labels.State = StateUnanswerable
		case len(q.Evidence) == 0:
			labels.State = StateUnjudged
		}
		r.out.Queries = append(r.out.Queries, labels)
		r.out.byID[q.ID] = labels
		seen := map[string]bool{}
		for ei, e := range q.Evidence {
			if seen[e.key()] {
				continue // the same label again is the same unit
			}
			seen[e.key()] = true
			if e.Chunk == "" {
				byRef[e.Doc] = append(byRef[e.Doc], place{qi, ei})
			} else if err := r.chunk(ctx, &ds.Queries[qi], labels, e); err != nil {
				return err
			}
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(byRef)) {
		d, err := r.load(ctx, ref)
		if err != nil {
			return err
		}
		for _, p := range byRef[ref] {
			r.add(&ds.Queries[p.query], r.out.Queries[p.query], ds.Queries[p.query].Evidence[p.evidence], d)
		}
	}
	r.finish()
	if len(r.foreign) > 0 {
		slices.Sort(r.foreign)
		return fmt.Errorf("%w: %d of them, such as %s", ErrOtherChunking, len(r.foreign), strings.Join(r.foreign[:min(5, len(r.foreign))], ", "))
	}
	return nil
}

func (r *resolver) load(ctx context.Context, ref string) (*document, error) {
	if r.corpus == nil {
		if !r.byDocument {
			return nil, errors.New("evidence that names quotes, spans or chunks needs the corpus it is in")
		}
		return &document{doc: assay.Document{ID: ref}, found: true}, nil
	}
	doc, ok, err := r.corpus.Document(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("document %s: %w", ref, err)
	}
	d := &document{doc: doc, found: ok}
	if ok && !r.byDocument {
		if d.chunks, err = r.chunks(ctx, doc.ID); err != nil {
			return nil, err
		}
		d.text = normalise(doc.Text)
	}
	return d, nil
}

// chunks returns a document's chunks and remembers which they are.
func (r *resolver) chunks(ctx context.Context, docID string) ([]assay.Chunk, error) {
	chunks, err := r.corpus.Chunks(ctx, docID)
	if err != nil {
		return nil, fmt.Errorf("chunks of document %s: %w", docID, err)
	}
	known := make(map[string]bool, len(chunks))
	for _, c := range chunks {
		known[c.ID] = true
	}
	r.out.known[docID] = known
	return chunks, nil
}

// chunk adds a unit that is a chunk.
func (r *resolver) chunk(ctx context.Context, q *Query, labels *QueryLabels, e Evidence) error {
	if r.corpus == nil {
		return errors.New("evidence that names chunks needs the corpus it is in")
	}
	chunk, ok, err := r.corpus.Chunk(ctx, e.Chunk)
	if err != nil {
		return fmt.Errorf("chunk %s: %w", e.Chunk, err)
	}
	if ok && r.out.known[chunk.DocID] == nil {
		if _, err := r.chunks(ctx, chunk.DocID); err != nil {
			return err
		}
	}
	if !ok {
		r.problem(ProblemChunkNotFound, q.ID, e, "the corpus has no such chunk")
		labels.State = StateUnresolved
		r.foreign = append(r.foreign, e.Chunk)
		return nil
	}
	labels.known = r.out.known
	if q.grade(e) >= r.opts.Level {
		labels.chunks[e.Chunk] = append(labels.chunks[e.Chunk], len(labels.Units))
		labels.Units = append(labels.Units, Unit{ChunkID: e.Chunk, Grade: q.grade(e)})
	}
	return nil
}

// add adds what evidence in a document says to a query's labels.
func (r *resolver) add(q *Query, labels *QueryLabels, e Evidence, d *document) {
	unit := Unit{DocID: d.doc.ID, Grade: q.grade(e), Quote: e.Quote != ""}
	kind, detail := ProblemKind(""), ""
	switch {
	case !d.found:
		kind, detail = ProblemDocumentNotFound, "the corpus has no such document"
	case unit.Quote:
		if unit.Spans = d.text.find(e.Quote); len(unit.Spans) == 0 {
			kind, detail = ProblemQuoteNotFound, "the document does not have these words in this order"
		}
	case e.Start != nil && *e.End > len(d.doc.Text):
		kind, detail = ProblemSpanOutside, fmt.Sprintf("the document has %d bytes", len(d.doc.Text))
	case e.Start != nil:
		unit.Spans = []assay.Span{{Start: *e.Start, End: *e.End}}
	}
	if kind != "" {
		labels.State = StateUnresolved
		r.problem(kind, q.ID, e, detail)
		return
	}
	if r.byDocument {
		if labels.grades == nil {
			labels.grades = map[string]int{}
		}
		if old, ok := labels.grades[unit.DocID]; ok {
			unit.Grade = max(unit.Grade, old) // the same document under two names
		}
		labels.grades[unit.DocID] = unit.Grade
		return
	}
	if unit.Grade < r.opts.Level {
		return
	}
	if slices.ContainsFunc(labels.Units, func(u Unit) bool { return u.same(&unit) }) {
		return // the same place under the document's other name
	}
	for _, s := range unit.Spans {
		if unit.Quote {
			break
		}
		unit.texts = append(unit.texts, strings.Clone(d.doc.Text[s.Start:s.End])) // not to hold the whole text
	}
	index, held := len(labels.Units), false
	for _, c := range d.chunks {
		if unit.coveredBy(c.DocID, c.ID, c.Span, r.opts.Overlap) {
			labels.chunks[c.ID] = append(labels.chunks[c.ID], index)
			held = true
		}
	}
	if !held {
		r.problem(ProblemInNoChunk, q.ID, e, "no chunk holds enough of it: no retriever reaches it with this chunking")
	}
	labels.Units = append(labels.Units, unit)
}

// finish makes the units of document judgments and the sets from which ceilings are computed.
func (r *resolver) finish() {
	for _, q := range r.out.Queries {
		if q.Documents() {
			for _, doc := range slices.Sorted(maps.Keys(q.grades)) {
				if q.grades[doc] >= q.level {
					q.Units = append(q.Units, Unit{DocID: doc, Grade: q.grades[doc]})
				}
			}
			continue
		}
		q.sets = make([][]int, 0, len(q.chunks))
		for _, id := range slices.Sorted(maps.Keys(q.chunks)) {
			q.sets = append(q.sets, q.chunks[id])
		}
	}
	slices.SortStableFunc(r.out.Problems, func(a, b Problem) int { return strings.Compare(a.QueryID, b.QueryID) })
}

func (r *resolver) problem(kind ProblemKind, query string, e Evidence, detail string) {
	r.out.Problems = append(r.out.Problems, Problem{Kind: kind, QueryID: query, Evidence: e.String(), Detail: detail})
}
