// Package traces sets OpenTelemetry up and gives every span and attribute its name. The spans of one
// answer are
//
//	invoke_workflow assay
//	    embeddings {model}
//	    retrieval {collection}
//	        dense, lexical, fuse
//	    rerank {model}
//	    assemble
//	    chat {model}
//
// What people search for (the manifest's ID, the reranker's status, whether the answer is degraded)
// stands on the root as attributes with short values. A stage that failed has the status Error; the
// root of an answer that was given all the same has the status OK and assay.degraded=true.
//
// Exporting never slows or fails an answer: spans go into a bounded queue, what does not fit is
// dropped, and a collector that is down is one line in the log.
package traces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Options configure tracing. The zero value of a field means the default that is stated with it.
type Options struct {
	// Getenv reads the standard OTEL_* variables that decide whether there is an exporter; give it
	// os.Getenv, since the SDK reads the rest from the process's environment itself. nil: none is set.
	Getenv func(string) string
	// ServiceVersion is the version of the binary.
	ServiceVersion string
	// File is appended to: each batch of spans is one line of OTLP JSON, the format that the
	// OpenTelemetry Collector reads and writes. It is written beside a collector, if there is one.
	// Empty: no file.
	File string
	// FileMaxBytes is the size at which File is renamed to File with ".1" at its end, replacing an
	// older one, and begun anew. 0: 64 MB, some 10,000 answers.
	FileMaxBytes int64
	// CaptureContent puts questions, prompts and answers into spans. Off, since they may hold
	// personal data; see OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT.
	CaptureContent bool
	// ReportEvery is the shortest time between two lines in the log about spans that cannot be
	// exported. 0: 10 minutes.
	ReportEvery time.Duration
	// Exporters are added to those of the environment.
	Exporters []sdktrace.SpanExporter
}

func (o Options) withDefaults() Options {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.FileMaxBytes == 0 {
		o.FileMaxBytes = 64_000_000
	}
	if o.ReportEvery == 0 {
		o.ReportEvery = 10 * time.Minute
	}
	return o
}

// Validate reports everything that is wrong with the options at once.
func (o Options) Validate() error {
	var errs []error
	if o.FileMaxBytes < 0 {
		errs = append(errs, fmt.Errorf("traces options: the file's largest size is negative (%d)", o.FileMaxBytes))
	}
	if o.ReportEvery < 0 {
		errs = append(errs, fmt.Errorf("traces options: the time between reports is negative (%v)", o.ReportEvery))
	}
	return errors.Join(errs...)
}

// batchSize is the number of spans in one message, unless the environment says otherwise. A span
// holds at most three long values (question, answer and documents) of contentBytes and some dozens of
// short ones, 32 KiB together, so that a message stays below the 4 MiB over which receivers drop it.
const batchSize = 96

// Provider makes spans. It is safe for concurrent use.
type Provider struct {
	tracers  trace.TracerProvider
	tracer   trace.Tracer
	shutdown func(context.Context) error
	capture  bool
}

// Setup builds the exporters that the environment and the options ask for. Where neither asks for any,
// spans are made all the same, so that there is a trace ID for each manifest and an incoming trace is
// carried on. With OTEL_SDK_DISABLED there are no spans and no trace IDs.
//
// The SDK reports its troubles through process-wide hooks; Setup points them to lg.
func Setup(ctx context.Context, lg *slog.Logger, o Options) (*Provider, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	reports := newReporter(lg, o)
	otel.SetErrorHandler(reports)
	otel.SetLogger(logr.FromSlogHandler(reports.handler()))
	if strings.EqualFold(strings.TrimSpace(o.Getenv(envDisabled)), "true") {
		none := noop.NewTracerProvider()
		return &Provider{tracers: none, tracer: none.Tracer(ScopeName), shutdown: func(context.Context) error { return nil }}, nil
	}
	exporters, err := exportersOf(ctx, o)
	if err != nil {
		return nil, reports.redactError(err)
	}
	limits := sdktrace.NewSpanLimits() // with what the environment says
	if limits.AttributeValueLengthLimit < 0 {
		limits.AttributeValueLengthLimit = contentBytes // for spans of libraries; ours are within it
	}
	options := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(resourceOf(ctx, o, reports)),
		sdktrace.WithRawSpanLimits(limits),
	}
	for _, e := range exporters {
		var batching []sdktrace.BatchSpanProcessorOption
		if o.Getenv(envBatchSize) == "" {
			batching = append(batching, sdktrace.WithMaxExportBatchSize(batchSize))
		}
		options = append(options, sdktrace.WithBatcher(&watched{SpanExporter: e, reports: reports}, batching...))
	}
	tracers := sdktrace.NewTracerProvider(options...)
	return &Provider{
		tracers:  tracers,
		tracer:   tracers.Tracer(ScopeName, trace.WithInstrumentationVersion(o.ServiceVersion)),
		shutdown: tracers.Shutdown,
		capture:  o.CaptureContent,
	}, nil
}

// exportersOf returns the exporters that are asked for. The library's own default, when nothing is
// set, is a collector on this machine; ours is none, since most people have none.
func exportersOf(ctx context.Context, o Options) ([]sdktrace.SpanExporter, error) {
	var out []sdktrace.SpanExporter
	name := o.Getenv(envExporter)
	if name != "" || o.Getenv(envEndpoint) != "" || o.Getenv(envTracesEndpoint) != "" {
		e, err := autoexport.NewSpanExporter(ctx)
		if err != nil {
			return nil, fmt.Errorf("traces: exporter %q of %s: %w; it must be otlp, console or none", name, envExporter, err)
		}
		if !autoexport.IsNoneSpanExporter(e) {
			out = append(out, e)
		}
	}
	if o.File != "" {
		e, err := otlptrace.New(ctx, &fileClient{path: o.File, max: o.FileMaxBytes})
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return append(out, o.Exporters...), nil
}

// resourceOf describes this process; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
func resourceOf(ctx context.Context, o Options, reports *reporter) *resource.Resource {
	own := []attribute.KeyValue{KeyServiceName.String("assay")}
	if o.ServiceVersion != "" {
		own = append(own, KeyServiceVersion.String(o.ServiceVersion))
	}
	r, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(own...), resource.WithFromEnv())
	if err != nil { // what could be read is in r
		reports.Handle(fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err))
	}
	return r
}

// Tracer makes spans for what has no function here.
func (p *Provider) Tracer() trace.Tracer { return p.tracer }

// TracerProvider is for instrumentation libraries, such as the one of the HTTP server.
func (p *Provider) TracerProvider() trace.TracerProvider { return p.tracers }

// Propagator reads and writes the W3C header traceparent. Baggage is not carried on: what callers put
// there is none of the model providers' business.
func (p *Provider) Propagator() propagation.TextMapPropagator { return propagation.TraceContext{} }

// Shutdown exports what is in the queue, for as long as ctx allows, and closes the exporters.
func (p *Provider) Shutdown(ctx context.Context) error {
	if err := p.shutdown(ctx); err != nil {
		return fmt.Errorf("traces: the last spans could not be exported: %w", err)
	}
	return nil
}
