package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"assay"
	"assay/assemble"
	"assay/generate"
	"assay/index"
	"assay/rerank"
)

// Answer answers a question. on, which may be nil, is told of stages and text as they come; an error
// that it returns ends the request. Whenever the question could be read at all, a manifest is
// written, and it is returned beside the error when there is one.
func (e *Engine) Answer(ctx context.Context, q assay.Query, on func(assay.Event) error) (*assay.Answer, error) {
	answer, _, err := e.answer(ctx, q, on)
	return answer, err
}

// AnswerWithContext is Answer, and returns also the passages that were sent, in prompt order.
func (e *Engine) AnswerWithContext(ctx context.Context, q assay.Query, on func(assay.Event) error) (*assay.Answer, []assay.Candidate, error) {
	return e.answer(ctx, q, on)
}

func (e *Engine) answer(ctx context.Context, q assay.Query, on func(assay.Event) error) (*assay.Answer, []assay.Candidate, error) {
	if err := e.check(&q); err != nil {
		return nil, nil, err
	}
	r := e.begin(ctx, q, on)
	defer r.cancel()
	text, err := r.answer()
	manifest := r.finish(err)
	if err != nil {
		return &assay.Answer{Manifest: manifest, Citations: manifest.Answer.Citations}, nil, err
	}
	return &assay.Answer{Text: text, Citations: manifest.Answer.Citations, Manifest: manifest}, r.selection.Context, nil
}

// Search retrieves and reranks without answering: passages of documents that a newer one replaces are
// left out, as they are from an answer. No manifest is written.
func (e *Engine) Search(ctx context.Context, q assay.Query) (*assay.Retrieval, error) {
	if err := e.check(&q); err != nil {
		return nil, err
	}
	r := e.begin(ctx, q, nil)
	defer r.cancel()
	err := r.retrieve()
	manifest := r.record.Finish(time.Now(), err)
	r.span.end(manifest, err)
	out := &assay.Retrieval{
		Candidates: slices.DeleteFunc(r.candidates, func(c assay.Candidate) bool { return r.replacement(c.DocID) != "" }),
		Stages:     manifest.Stages,
		Reranker:   manifest.Reranker,
		Corpus:     manifest.Corpus,
		Embedder:   manifest.Models.Embedder,
		TraceID:    manifest.TraceID,
	}
	return out, err
}

// check refuses questions that cannot be served, and fills in what the question leaves to the settings.
func (e *Engine) check(q *assay.Query) error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", assay.ErrInvalid, fmt.Sprintf(format, args...))
	}
	switch {
	case len(q.Text) > e.o.MaxQuestion:
		return invalid("the question has %d bytes; at most %d are allowed", len(q.Text), e.o.MaxQuestion)
	case !utf8.ValidString(q.Text):
		return invalid("the question is not valid UTF-8")
	case strings.TrimSpace(q.Text) == "":
		return invalid("the question is empty")
	case q.Keep < 0 || q.Keep > MaxKeep:
		return invalid("keep is %d; it must be between 1 and %d", q.Keep, MaxKeep)
	case q.Depth < 0 || q.Depth > MaxDepth:
		return invalid("depth is %d; it must be between 1 and %d", q.Depth, MaxDepth)
	case len(q.History) > e.o.MaxHistory:
		return invalid("the conversation has %d earlier turns; at most %d are allowed", len(q.History), e.o.MaxHistory)
	}
	for i, m := range q.History {
		if m.Role != "user" && m.Role != "assistant" {
			return invalid("message %d has the role %q; it must be user or assistant", i+1, m.Role)
		}
		if !utf8.ValidString(m.Content) || len(m.Content) > 8*e.o.MaxQuestion {
			return invalid("message %d is not valid UTF-8, or longer than %d bytes", i+1, 8*e.o.MaxQuestion)
		}
	}
	q.Text = strings.TrimSpace(q.Text)
	if q.Keep == 0 {
		q.Keep = e.o.Keep
	}
	if q.Depth == 0 {
		q.Depth = e.d.Retriever.Options().Depth
	}
	q.Depth = max(q.Depth, q.Keep)
	if q.Access == nil {
		q.Access = e.o.Access
	}
	return e.d.Index.CheckFingerprint(e.d.stored())
}

// request is one question on its way through the stages.
type request struct {
	e      *Engine
	start  time.Time
	ctx    context.Context // of this request alone, ended by cancel
	cancel context.CancelFunc
	q      assay.Query
	on     func(assay.Event) error
	span   *workflow
	record *assemble.Record

	searched   string       // the question, or what a conversation's last turn was rewritten to
	filter     assay.Filter // the question's, and what the caller may see
	superseded *supersession
	candidates []assay.Candidate
	selection  assemble.Selection
}

// replacement returns the ID of the document that supersedes another for this question, or "".
func (r *request) replacement(docID string) string {
	if r.e.o.Assemble.KeepSuperseded || r.q.Superseded {
		return ""
	}
	return r.superseded.replacement(docID, r.filter, r.start)
}

func (e *Engine) begin(ctx context.Context, q assay.Query, on func(assay.Event) error) *request {
	start := time.Now()
	if on == nil {
		on = func(assay.Event) error { return nil }
	}
	ctx, span := e.startWorkflow(ctx, q)
	ctx, cancel := context.WithTimeoutCause(ctx, e.o.RequestTimeout,
		fmt.Errorf("the request took longer than server.request_timeout (%s): %w", e.o.RequestTimeout, context.DeadlineExceeded))
	config := assay.ManifestConfig{
		Fingerprint: e.fingerprint,
		ChunkSize:   e.d.Chunker.Options().Size,
		Depth:       q.Depth,
		Keep:        q.Keep,
		Budget:      e.o.Assemble.Budget,
		Tuned:       assay.Tuned{State: assay.Untuned},
	}
	models := assay.ManifestModels{
		Embedder:  e.d.Embedder.Model(),
		Reranker:  e.d.Reranker.Model(),
		Generator: e.d.Generator.Model(),
		Tokenizer: e.d.Chunker.Options().Encoding,
	}
	return &request{
		e: e, start: start, ctx: ctx, cancel: cancel, q: q, on: on, span: span,
		record: assemble.NewRecord(start, e.o.Collection, span.traceID(), q, config, models),
	}
}

// finish closes the manifest, stores it and ends the trace. It works also when the caller has gone.
func (r *request) finish(err error) *assay.Manifest {
	manifest := r.record.Finish(time.Now(), err)
	if storeErr := r.e.d.Index.PutManifest(context.WithoutCancel(r.ctx), manifest); storeErr != nil {
		r.e.lg.Error("a manifest could not be stored; the answer is not affected", "manifest", manifest.ID, "error", storeErr)
	}
	if len(manifest.Degraded) > 0 {
		r.e.lg.Warn("an answer is degraded", "manifest", manifest.ID, "trace", manifest.TraceID,
			"stages", manifest.Degraded, "rerank_status", manifest.Reranker.Status, "fallback", manifest.Reranker.Fallback)
	}
	r.span.end(manifest, err)
	return manifest
}

// stage notes that a stage has ended and tells the caller.
func (r *request) stage(s assay.Stage) error {
	r.record.Stages(s)
	return r.on(assay.Event{Manifest: r.record.ID(), Stage: &s})
}

// reranked is stage for the reranker.
func (r *request) reranked(o rerank.Outcome) error {
	s, m := o.Stage(), o.Manifest()
	r.record.Stages(s)
	r.record.Reranker(m)
	return r.on(assay.Event{Manifest: r.record.ID(), Stage: &s, Reranker: &m})
}

// answer runs all stages and returns the answer's text.
func (r *request) answer() (string, error) {
	if err := r.retrieve(); err != nil {
		return "", err
	}
	if err := r.assemble(); err != nil {
		return "", err
	}
	return r.generate()
}

// retrieve runs the stages up to the reranker and leaves the candidates in their final order.
func (r *request) retrieve() error {
	if err := r.rewrite(); err != nil {
		return err
	}
	snap := r.e.d.Index.Snapshot()
	defer snap.Close()
	// The corpus may have been made anew with another embedder, after this engine was made.
	if err := snap.CheckFingerprint(r.e.d.stored()); err != nil {
		return err
	}
	r.superseded = r.e.superseded.of(snap)
	r.filter = r.q.Filter
	if r.superseded.restricted { // or every search would pay for a filter that all documents pass
		r.filter = r.filter.And(assay.AccessFilter(r.q.Access))
	}
	r.record.Corpus(assay.ManifestCorpus{Generation: snap.Generation(), Documents: snap.Documents(), Chunks: snap.Chunks()})
	found, err := r.search(snap)
	if err != nil {
		return err
	}
	r.candidates = found
	r.record.Candidates(r.candidates)
	return r.rerank()
}

func (r *request) search(snap *index.Snapshot) ([]assay.Candidate, error) {
	r.e.searches.begin()
	defer r.e.searches.end()
	q := r.q
	q.Text, q.Filter = r.searched, r.filter
	ctx, end := r.span.retrieval(r.ctx, q.Text)
	found, err := r.e.d.Retriever.Retrieve(ctx, snap, q, r.span.observe)
	end(len(found.Candidates), err)
	for _, s := range found.Stages {
		if err := r.stage(s); err != nil {
			return nil, err
		}
	}
	return found.Candidates, err
}

func (r *request) rerank() error {
	texts := make([]string, len(r.candidates))
	for i, c := range r.candidates {
		texts[i] = passageText(c.Title, c.Heading, c.Text)
	}
	ctx, end := r.span.observe(r.ctx, assay.StageRerank)
	outcome := r.e.d.Reranker.Rerank(ctx, r.searched, texts, r.q.Keep)
	r.span.reranked(ctx, outcome)
	end(outcome.Stage())
	if err := r.reranked(outcome); err != nil {
		return err
	}
	if outcome.Status == assay.RerankCancelled {
		return fmt.Errorf("rerank: %w", context.Cause(r.ctx))
	}
	keep, err := outcome.Keep(r.q.Keep)
	if err != nil {
		return fmt.Errorf("%w: %w", assay.ErrDegraded, err)
	}
	r.q.Keep = keep
	r.record.Keep(keep)
	r.candidates = rerank.Apply(r.candidates, outcome)
	r.record.Candidates(r.candidates)
	return nil
}

// assemble selects the context.
func (r *request) assemble() error {
	_, end := r.span.observe(r.ctx, assay.StageAssemble)
	start := time.Now()
	overhead := r.e.d.Generator.Overhead(r.q.Text, r.q.History)
	order := r.e.o.Assemble.Order
	r.selection = assemble.Select(r.candidates, assemble.Rules{
		Keep:        r.q.Keep,
		Room:        r.e.o.Assemble.Budget - overhead,
		Order:       order,
		Cost:        func(c assay.Candidate, position int) int { return r.e.d.Generator.PassageTokens(passage(c, position)) },
		Count:       r.e.d.Chunker.Tokenizer().Count,
		Replacement: r.replacement,

		NearDuplicates: r.e.o.Assemble.NearDuplicates,
		KeepDuplicates: r.q.Duplicates,
		MinRelevance:   r.e.o.Assemble.MinRelevance,
		Relevance:      func(c assay.Candidate) float64 { return r.e.d.Relevance(r.searched, passage(c, 1)) },
	})
	r.record.Selection(r.selection, order)
	s := assay.Stage{Name: assay.StageAssemble, Status: assay.StatusOK, Duration: time.Since(start)}
	if len(r.candidates) == 0 {
		s.Status, s.Reason = assay.StatusSkipped, "no candidates"
	} else if least := r.e.o.Assemble.MinRelevance; len(r.selection.Context) == 0 && r.selection.Relevance < least {
		s.Reason = fmt.Sprintf("the best passage has a relevance of %.2f, under assemble.min_relevance (%g): nothing is sent", r.selection.Relevance, least)
	}
	end(s)
	return r.stage(s)
}

func passage(c assay.Candidate, position int) generate.Passage {
	return generate.Passage{
		Position: position,
		Marker:   assemble.Marker(position),
		ChunkID:  c.ChunkID,
		DocID:    c.DocID,
		URI:      c.URI,
		Title:    c.Title,
		Heading:  c.Heading,
		Version:  c.Version,
		Span:     c.Span,
		Tokens:   c.Tokens,
		Text:     c.Text,
	}
}

// generate writes the answer. Without a context the generator refuses by itself.
func (r *request) generate() (string, error) {
	passages := make([]generate.Passage, len(r.selection.Context))
	for i, c := range r.selection.Context {
		passages[i] = passage(c, i+1)
	}
	ctx, end := r.span.observe(r.ctx, assay.StageGenerate)
	start := time.Now()
	result, err := r.e.d.Generator.Generate(ctx, generate.Request{
		Question: r.q.Text,
		History:  r.q.History,
		Passages: passages,
	}, func(delta string) error { return r.on(assay.Event{Manifest: r.record.ID(), Delta: delta}) })
	s := assay.Stage{Name: assay.StageGenerate, Status: assay.StatusOf(err), Duration: time.Since(start)}
	switch {
	case err != nil:
		s.Reason = err.Error()
	case len(passages) == 0:
		s.Status, s.Reason = assay.StatusSkipped, "no passages to answer from"
	}
	if v := r.e.d.Verifier; v != nil && len(result.Citations) > 0 {
		result.Citations = v.Verify(result.Text, passages, result.Citations)
	}
	usage := result.Usage
	usage.Cost = (float64(usage.InputTokens)*r.e.o.InputPrice + float64(usage.OutputTokens)*r.e.o.OutputPrice) / 1e6
	r.span.generated(ctx, result, usage, err)
	end(s)
	r.record.Answer(
		assay.ManifestPrompt{Tokens: result.PromptTokens, TemplateHash: result.TemplateHash},
		result.Text,
		assay.ManifestAnswer{Citations: result.Citations, Invalid: result.Invalid, Refused: result.Refused, FinishReason: result.FinishReason},
		usage,
	)
	if stageErr := r.stage(s); err == nil {
		err = stageErr
	}
	if err != nil {
		return "", fmt.Errorf("generate: %w", err)
	}
	return result.Text, nil
}
