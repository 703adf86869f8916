package assemble

import (
	"time"

	"github.com/google/uuid"

	"assay"
)

// Record gathers the manifest of one request while it passes the stages. It is not safe for
// concurrent use: the engine calls it between stages.
type Record struct {
	start    time.Time
	manifest assay.Manifest
}

// NewRecord begins the manifest of a request that arrived at start.
func NewRecord(start time.Time, collection, traceID string, q assay.Query, config assay.ManifestConfig, models assay.ManifestModels) *Record {
	return &Record{start: start, manifest: assay.Manifest{
		Schema:     assay.ManifestSchema,
		ID:         newID(),
		CreatedAt:  start.UTC(),
		TraceID:    traceID,
		Collection: collection,
		Query:      assay.ManifestQuery{Text: q.Text, Filter: q.Filter, History: len(q.History)},
		Config:     config,
		Models:     models,
		Stages:     []assay.Stage{},
		Candidates: []assay.Candidate{},
		Context:    assay.ManifestContext{Passages: []assay.ContextPassage{}, Budget: config.Budget},
		Answer:     assay.ManifestAnswer{Citations: []assay.Citation{}},
		Degraded:   []assay.StageName{},
	}}
}

// newID returns an ID that sorts by time of creation.
func newID() string {
	id, err := uuid.NewV7()
	if err != nil { // unreachable: the system's random source does not fail
		panic(err)
	}
	return "m_" + id.String()
}

// ID is the manifest's ID, known from the start so that spans can carry it.
func (r *Record) ID() string { return r.manifest.ID }

// Rewritten notes the text that was searched for, where it differs from the question.
func (r *Record) Rewritten(text string) { r.manifest.Query.Rewritten = text }

// Corpus notes which state of the corpus was read.
func (r *Record) Corpus(c assay.ManifestCorpus) { r.manifest.Corpus = c }

// Stages notes what became of stages, in the order in which they are given.
func (r *Record) Stages(stages ...assay.Stage) {
	for _, s := range stages {
		r.manifest.Stages = append(r.manifest.Stages, s)
		if s.Status.Degraded() {
			r.manifest.Degraded = append(r.manifest.Degraded, s.Name)
		}
	}
}

// Reranker notes what became of the reranker.
func (r *Record) Reranker(m assay.ManifestReranker) { r.manifest.Reranker = m }

// Keep notes the number of passages that was aimed at, which a fallback may have raised.
func (r *Record) Keep(keep int) { r.manifest.Config.Keep = keep }

// Candidates notes candidates that were found; those without a disposition were never assembled.
func (r *Record) Candidates(candidates []assay.Candidate) {
	r.manifest.Candidates = append([]assay.Candidate{}, candidates...)
}

// Selection notes every candidate with its disposition and the context in prompt order.
func (r *Record) Selection(s Selection, order Order) {
	r.Candidates(s.Candidates)
	r.manifest.Context.Order = string(order)
	r.manifest.Context.Tokens = s.Tokens
	for i, c := range s.Context {
		r.manifest.Context.Passages = append(r.manifest.Context.Passages, assay.ContextPassage{
			Position: i + 1,
			Marker:   Marker(i + 1),
			ChunkID:  c.ChunkID,
			DocID:    c.DocID,
			Span:     c.Span,
			Tokens:   c.Tokens,
		})
	}
}

// Answer notes the prompt, the answer and what it used. The texts themselves are not kept.
func (r *Record) Answer(prompt assay.ManifestPrompt, text string, answer assay.ManifestAnswer, usage assay.Usage) {
	if answer.Citations == nil {
		answer.Citations = []assay.Citation{}
	}
	if text != "" {
		answer.TextHash = assay.HashText(text)
	}
	r.manifest.Prompt, r.manifest.Answer, r.manifest.Usage = prompt, answer, usage
}

// Finish closes the record. err is why there is no answer, or nil.
func (r *Record) Finish(now time.Time, err error) *assay.Manifest {
	r.manifest.DurationMS = assay.Milliseconds(now.Sub(r.start))
	if err != nil {
		r.manifest.Error = err.Error()
	}
	return &r.manifest
}
