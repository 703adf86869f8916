package traces

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"assay"
)

// Span is a span of the engine. All its methods may be called on nil, so that callers need not know
// whether there is one.
type Span struct {
	span       trace.Span
	started    time.Time
	chat       bool
	capture    bool
	candidates int
	errorType  string
}

// Details say what a stage works with. What does not apply stays zero.
type Details struct {
	Model      assay.Model // of embed, rerank and generate
	Provider   string      // whose API is called: "openai", "cohere"; ProviderBuiltin for models in the binary
	Candidates int         // that the stage is given
	Depth      int         // how many a retrieval is asked for
}

type spanKey struct{}

// FromContext returns the innermost Span that was started here, or nil.
func FromContext(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

func (p *Provider) start(ctx context.Context, name string, kind trace.SpanKind, s Span, attrs []attribute.KeyValue) (context.Context, *Span) {
	s.started = time.Now()
	ctx, s.span = p.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...), trace.WithTimestamp(s.started))
	s.capture = p.capture
	return context.WithValue(ctx, spanKey{}, &s), &s
}

// StartWorkflow begins the root of one answer. End it with RecordManifest and Finish.
func (p *Provider) StartWorkflow(ctx context.Context, collection string) (context.Context, *Span) {
	return p.start(ctx, SpanWorkflow, trace.SpanKindInternal, Span{}, []attribute.KeyValue{
		KeyOperation.String(OperationWorkflow),
		KeyWorkflowName.String("assay"),
		KeyKind.String(KindChain),
		KeyCollection.String(short(collection)),
	})
}

// StartRetrieval begins the parent of dense, lexical and fuse. End it with Finish.
func (p *Provider) StartRetrieval(ctx context.Context, collection string, depth int) (context.Context, *Span) {
	return p.start(ctx, SpanRetrieval+short(collection), trace.SpanKindInternal, Span{}, []attribute.KeyValue{
		KeyOperation.String(OperationRetrieval),
		KeyProvider.String(ProviderBuiltin),
		KeyKind.String(KindRetriever),
		KeyDataSource.String(short(collection)),
		KeyCollection.String(short(collection)),
		KeyRetrievalTopK.Int(depth),
	})
}

// StartStage begins the span of a stage. End it with End.
func (p *Provider) StartStage(ctx context.Context, stage assay.StageName, d Details) (context.Context, *Span) {
	s := Span{candidates: d.Candidates, chat: stage == assay.StageGenerate}
	attrs := []attribute.KeyValue{KeyStageName.String(string(stage))}
	var name, operation, kind string
	switch stage {
	case assay.StageEmbed:
		name, operation, kind = SpanEmbeddings, OperationEmbedding, KindEmbedding
	case assay.StageRerank:
		name, operation, kind = SpanRerank, OperationRerank, KindReranker
	case assay.StageGenerate:
		name, operation, kind = SpanChat, OperationChat, KindLLM
	default: // our own work: the names of these stages are those of their spans
		kind = KindChain
		if stage == assay.StageDense || stage == assay.StageLexical {
			kind = KindRetriever
		}
		attrs = append(attrs, KeyKind.String(kind))
		if d.Depth > 0 {
			attrs = append(attrs, KeyRetrievalTopK.Int(d.Depth))
		}
		return p.start(ctx, string(stage), trace.SpanKindInternal, s, attrs)
	}
	attrs = append(attrs, KeyKind.String(kind), KeyOperation.String(operation))
	if d.Model.Name != "" {
		attrs = append(attrs, KeyRequestModel.String(short(d.Model.Name)))
	}
	if d.Provider != "" {
		attrs = append(attrs, KeyProvider.String(short(d.Provider)))
	}
	if d.Model.Dimensions > 0 {
		attrs = append(attrs, KeyEmbeddingsDims.Int(d.Model.Dimensions))
	}
	if stage == assay.StageRerank {
		attrs = append(attrs, KeyRerankCandidates.Int(d.Candidates))
	}
	spanKind := trace.SpanKindClient
	if d.Provider == ProviderBuiltin {
		spanKind = trace.SpanKindInternal
	}
	return p.start(ctx, strings.TrimSpace(name+short(d.Model.Name)), spanKind, s, attrs)
}

// TraceID is the ID of the trace, or "" where there is none.
func (s *Span) TraceID() string {
	if s == nil || !s.span.SpanContext().HasTraceID() {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// Fail notes the error of a stage before End, for its class: an HTTP status says more than the
// stage's status does.
func (s *Span) Fail(err error) {
	if s != nil && err != nil {
		s.errorType = errorType(err)
	}
}

// FailStatus is Fail for a caller that knows the HTTP status of the answer; 0 means that there was none.
func (s *Span) FailStatus(code int) {
	if s != nil && code >= 300 {
		s.errorType = strconv.Itoa(code)
	}
}

// End ends the span of a stage with what became of it. It may be called later than the stage ended,
// when it is known what was done instead: the span is as long as the stage was.
func (s *Span) End(stage assay.Stage) {
	if s == nil {
		return
	}
	ended := s.started.Add(stage.Duration)
	s.span.SetAttributes(KeyStageStatus.String(string(stage.Status)))
	if stage.Reason != "" {
		s.span.SetAttributes(KeyStageReason.String(short(stage.Reason)))
	}
	if stage.Status.Degraded() {
		class := s.errorType
		switch {
		case stage.Status == assay.StatusTimeout:
			class = ErrorTimeout
		case class == "" && stage.Status == assay.StatusUnavailable:
			class = ErrorUnavailable
		case class == "":
			class = ErrorOther
		}
		s.span.SetAttributes(KeyErrorType.String(class))
		s.span.SetStatus(codes.Error, short(stage.Reason))
		s.fallback(stage, s.candidates, ended)
	}
	s.span.End(trace.WithTimestamp(ended))
}

// fallback marks on the timeline what was done instead of a stage.
func (s *Span) fallback(stage assay.Stage, candidates int, at time.Time) {
	s.span.AddEvent(EventFallback, trace.WithTimestamp(at), trace.WithAttributes(
		KeyStageName.String(string(stage.Name)),
		KeyStatus.String(string(stage.Status)),
		KeyElapsed.Float64(assay.Milliseconds(stage.Duration)),
		KeyFallback.String(short(stage.Fallback)),
		KeyCandidates.Int(candidates),
	))
}

// Finish ends a span that is no stage: the root, and the retrieval. Without an error its status is
// OK, however degraded the answer is.
func (s *Span) Finish(err error) {
	if s == nil {
		return
	}
	if err != nil {
		s.span.SetAttributes(KeyErrorType.String(errorType(err)))
		s.span.SetStatus(codes.Error, short(err.Error()))
	} else {
		s.span.SetStatus(codes.Ok, "")
	}
	s.span.End()
}

// errorType is the class of an error: "timeout", an HTTP status, or one of the words in names.go.
func errorType(err error) string {
	var answered interface{ StatusCode() int }
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return ErrorTimeout
	case errors.Is(err, context.Canceled):
		return ErrorCancelled
	case errors.As(err, &answered) && answered.StatusCode() >= 300:
		return strconv.Itoa(answered.StatusCode())
	case errors.Is(err, assay.ErrUnavailable):
		return ErrorUnavailable
	}
	return ErrorOther
}
