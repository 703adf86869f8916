package traces

import "go.opentelemetry.io/otel/attribute"

// ScopeName is the instrumentation scope of all spans of the engine.
const ScopeName = "assay"

// The names of spans. Those that end in a space are followed by the model or the collection.
const (
	SpanWorkflow   = "invoke_workflow assay"
	SpanEmbeddings = "embeddings "
	SpanRetrieval  = "retrieval "
	SpanDense      = "dense"
	SpanLexical    = "lexical"
	SpanFuse       = "fuse"
	SpanRerank     = "rerank "
	SpanAssemble   = "assemble"
	SpanChat       = "chat "
)

// EventFallback is the event that marks, on the timeline of the failed span and of the root, that
// something else was done instead of a stage.
const EventFallback = "assay.fallback"

// The attributes of our own. They are what people search for, so their values are short scalars;
// KeyDocuments alone is a JSON array.
const (
	KeyCollection  = attribute.Key("assay.collection")
	KeyManifestID  = attribute.Key("assay.manifest.id")
	KeyFingerprint = attribute.Key("assay.config.fingerprint")
	KeyTuned       = attribute.Key("assay.config.tuned")
	KeyKeep        = attribute.Key("assay.config.keep")
	KeyDepth       = attribute.Key("assay.config.depth")
	KeyGeneration  = attribute.Key("assay.corpus.generation")

	KeyDegraded       = attribute.Key("assay.degraded")        // bool
	KeyDegradedStages = attribute.Key("assay.degraded.stages") // "dense,rerank"

	KeyStageName   = attribute.Key("assay.stage.name")
	KeyStageStatus = attribute.Key("assay.stage.status")
	KeyStageReason = attribute.Key("assay.stage.reason")
	KeyStatus      = attribute.Key("status")     // of an event
	KeyElapsed     = attribute.Key("elapsed_ms") // of an event
	KeyFallback    = attribute.Key("fallback")   // of an event
	KeyCandidates  = attribute.Key("candidates") // of an event

	KeyRerankStatus     = attribute.Key("assay.rerank.status")
	KeyRerankFallback   = attribute.Key("assay.rerank.fallback")
	KeyRerankCandidates = attribute.Key("assay.rerank.candidates")
	KeyRerankScored     = attribute.Key("assay.rerank.scored")
	KeyRerankAttempts   = attribute.Key("assay.rerank.attempts")
	KeyRerankLatency    = attribute.Key("assay.rerank.latency_ms")
	KeyRerankTimeout    = attribute.Key("assay.rerank.timeout_ms")

	KeyFound         = attribute.Key("assay.candidates.count")
	KeyKept          = attribute.Key("assay.context.kept")
	KeyDropped       = attribute.Key("assay.context.dropped")
	KeyContextTokens = attribute.Key("assay.context.tokens")
	KeyContextBudget = attribute.Key("assay.context.budget")
	KeyPromptTokens  = attribute.Key("assay.prompt.tokens")

	// The root's tokens have names of their own: backends add gen_ai.usage.* over the spans of a trace.
	KeyInputTokens  = attribute.Key("assay.usage.input_tokens")
	KeyOutputTokens = attribute.Key("assay.usage.output_tokens")
	KeyCost         = attribute.Key("assay.usage.cost")

	KeyRefused          = attribute.Key("assay.answer.refused")
	KeyCitations        = attribute.Key("assay.answer.citations")
	KeyInvalidCitations = attribute.Key("assay.answer.invalid_citations")

	KeyDocuments        = attribute.Key("assay.documents")         // JSON, cut between elements
	KeyDocumentsOmitted = attribute.Key("assay.documents.omitted") // candidates that are not in it
	KeyContentTruncated = attribute.Key("assay.content.truncated") // bool
)

// The attributes of the OpenTelemetry conventions, those for generative AI in the state of
// semconv/v1.41.0, the last version of the Go constants that has them.
const (
	KeyErrorType      = attribute.Key("error.type")
	KeyServiceName    = attribute.Key("service.name")
	KeyServiceVersion = attribute.Key("service.version")

	KeyOperation       = attribute.Key("gen_ai.operation.name")
	KeyProvider        = attribute.Key("gen_ai.provider.name")
	KeyWorkflowName    = attribute.Key("gen_ai.workflow.name")
	KeyRequestModel    = attribute.Key("gen_ai.request.model")
	KeyResponseModel   = attribute.Key("gen_ai.response.model")
	KeyUsageInput      = attribute.Key("gen_ai.usage.input_tokens")
	KeyUsageOutput     = attribute.Key("gen_ai.usage.output_tokens")
	KeyFinishReasons   = attribute.Key("gen_ai.response.finish_reasons")
	KeyEmbeddingsDims  = attribute.Key("gen_ai.embeddings.dimension.count")
	KeyRetrievalTopK   = attribute.Key("gen_ai.retrieval.top_k") // never gen_ai.request.top_k, which is sampling
	KeyRetrievalQuery  = attribute.Key("gen_ai.retrieval.query.text")
	KeyDataSource      = attribute.Key("gen_ai.data_source.id")
	KeyInputMessages   = attribute.Key("gen_ai.input.messages")
	KeyOutputMessages  = attribute.Key("gen_ai.output.messages")
	OperationWorkflow  = "invoke_workflow"
	OperationEmbedding = "embeddings"
	OperationRetrieval = "retrieval"
	OperationChat      = "chat"
	OperationRerank    = "rerank" // not in the conventions, which have no such operation
)

// The attributes of OpenInference, which make Phoenix and Langfuse show a span as what it is.
const (
	KeyKind        = attribute.Key("openinference.span.kind")
	KeyInputValue  = attribute.Key("input.value")
	KeyOutputValue = attribute.Key("output.value")

	KindChain     = "CHAIN"
	KindEmbedding = "EMBEDDING"
	KindRetriever = "RETRIEVER"
	KindReranker  = "RERANKER"
	KindLLM       = "LLM"
)

// ProviderBuiltin is the provider of models that are part of the binary. Their spans are INTERNAL,
// since no other service is called.
const ProviderBuiltin = "assay"

// The values of error.type that are not HTTP status codes.
const (
	ErrorTimeout     = "timeout"
	ErrorCancelled   = "cancelled"
	ErrorUnavailable = "unavailable"
	ErrorOther       = "_OTHER" // the conventions' word for what has no class
)

// The standard environment variables that this package looks at itself; the SDK and its exporters
// read the others.
const (
	envDisabled       = "OTEL_SDK_DISABLED"
	envExporter       = "OTEL_TRACES_EXPORTER"
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envHeaders        = "OTEL_EXPORTER_OTLP_HEADERS"
	envTracesHeaders  = "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
	envBatchSize      = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
)
