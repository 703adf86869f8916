package engine

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"assay"
	"assay/generate"
	"assay/rerank"
	"assay/traces"
)

// workflow is the trace of one request: its root, under which each stage has a span.
type workflow struct {
	e    *Engine
	q    assay.Query
	root *traces.Span
	span trace.Span // the same, as a parent
}

func (e *Engine) startWorkflow(ctx context.Context, q assay.Query) (context.Context, *workflow) {
	ctx, root := e.d.Traces.StartWorkflow(ctx, e.o.Collection)
	root.RecordQuestion(q.Text)
	return ctx, &workflow{e: e, q: q, root: root, span: trace.SpanFromContext(ctx)}
}

func (w *workflow) traceID() string { return w.root.TraceID() }

// observe begins the span of a stage; the returned function ends it with what became of the stage.
// It is a retriever.Observer.
func (w *workflow) observe(ctx context.Context, name assay.StageName) (context.Context, func(assay.Stage)) {
	d := traces.Details{Depth: w.q.Depth}
	switch name {
	case assay.StageEmbed:
		// Embedding is a call of its own, beside the retrieval and not a part of it.
		ctx = trace.ContextWithSpan(ctx, w.span)
		d.Model, d.Provider = w.e.d.Embedder.Model(), w.e.o.Providers.Embedder
	case assay.StageRerank:
		d.Model.Name, d.Provider = w.e.d.Reranker.Model(), w.e.o.Providers.Reranker
	case assay.StageGenerate:
		d.Model.Name, d.Provider = w.e.d.Generator.Model(), w.e.o.Providers.Generator
	}
	ctx, span := w.e.d.Traces.StartStage(ctx, name, d)
	return ctx, span.End
}

// retrieval begins the span around the channels and their fusion.
func (w *workflow) retrieval(ctx context.Context, query string) (context.Context, func(found int, err error)) {
	ctx, span := w.e.d.Traces.StartRetrieval(ctx, w.e.o.Collection, w.q.Depth)
	span.RecordQuery(query)
	return ctx, func(found int, err error) {
		span.RecordFound(found)
		span.Finish(err)
	}
}

// reranked puts the reranker's outcome on its span.
func (w *workflow) reranked(ctx context.Context, o rerank.Outcome) {
	span := traces.FromContext(ctx)
	span.RecordReranker(o.Manifest())
	span.Fail(o.Err)
	span.FailStatus(o.HTTPStatus)
}

// generated puts what the generator used on its span.
func (w *workflow) generated(ctx context.Context, r generate.Result, usage assay.Usage, err error) {
	span := traces.FromContext(ctx)
	span.RecordUsage(usage, r.Model, r.FinishReason)
	span.RecordMessages(append(slices.Clone(w.q.History), assay.Message{Role: "user", Content: w.q.Text}), r.Text, r.FinishReason)
	span.Fail(err)
	w.root.RecordAnswer(r.Text)
}

// end ends the trace with the facts of the manifest.
func (w *workflow) end(m *assay.Manifest, err error) {
	w.root.RecordManifest(m)
	w.root.Finish(err)
}
