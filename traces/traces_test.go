package traces

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"assay"
)

// syncBuffer is a log that may be written to by several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *syncBuffer) lines() int { return strings.Count(s.String(), "\n") }

// environ sets the process's environment, which the SDK reads, and returns what Setup reads.
func environ(t *testing.T, set map[string]string) func(string) string {
	for name, value := range set {
		t.Setenv(name, value)
	}
	return func(name string) string { return set[name] }
}

func setup(t *testing.T, o Options) (*Provider, *syncBuffer) {
	t.Helper()
	log := &syncBuffer{}
	p, err := Setup(t.Context(), slog.New(slog.NewTextHandler(log, nil)), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.Shutdown(ctx) // a test that looks at the error shuts down itself
	})
	return p, log
}

// inMemory is a Provider whose spans can be read once it is shut down.
func inMemory(t *testing.T, o Options) (*Provider, func() tracetest.SpanStubs) {
	t.Helper()
	kept := &keeper{}
	o.Exporters = append(o.Exporters, kept)
	p, _ := setup(t, o)
	return p, func() tracetest.SpanStubs {
		t.Helper()
		if err := p.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		return kept.spans
	}
}

// keeper keeps spans also after a shutdown, which the SDK's own in-memory exporter does not.
type keeper struct{ spans tracetest.SpanStubs }

func (k *keeper) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	k.spans = append(k.spans, tracetest.SpanStubsFromReadOnlySpans(spans)...)
	return nil
}

func (*keeper) Shutdown(context.Context) error { return nil }

func TestWithoutAnySettingThereAreTraceIDsAndNoExporter(t *testing.T) {
	p, log := setup(t, Options{})
	_, a := p.StartWorkflow(t.Context(), "default")
	_, b := p.StartWorkflow(t.Context(), "default")
	if len(a.TraceID()) != 32 || a.TraceID() == b.TraceID() {
		t.Errorf("trace IDs are %q and %q", a.TraceID(), b.TraceID())
	}
	a.Finish(nil)
	b.Finish(nil)
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if log.String() != "" {
		t.Errorf("the log says %s", log)
	}
}

func TestADisabledSDKMakesNoSpans(t *testing.T) {
	p, _ := setup(t, Options{Getenv: environ(t, map[string]string{"OTEL_SDK_DISABLED": "True", "OTEL_TRACES_EXPORTER": "otlp"})})
	ctx, s := p.StartWorkflow(t.Context(), "default")
	if s.TraceID() != "" || trace.SpanContextFromContext(ctx).IsValid() {
		t.Errorf("there is a span: %q", s.TraceID())
	}
	s.RecordManifest(&assay.Manifest{})
	s.Finish(nil)
}

func TestAnIncomingTraceIsCarriedOn(t *testing.T) {
	p, spans := inMemory(t, Options{})
	const id = "0af7651916cd43dd8448eb211c80319c"
	ctx := p.Propagator().Extract(t.Context(), propagation.MapCarrier{"traceparent": "00-" + id + "-b7ad6b7169203331-01"})
	_, s := p.StartWorkflow(ctx, "default")
	if s.TraceID() != id {
		t.Errorf("trace ID is %s, want %s", s.TraceID(), id)
	}
	s.Finish(nil)
	if got := spans(); len(got) != 1 || got[0].Parent.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("spans are %v", got)
	}
}

func TestTheSamplerOfTheEnvironmentIsUsed(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	p, spans := inMemory(t, Options{})
	_, s := p.StartWorkflow(t.Context(), "default")
	if s.TraceID() == "" {
		t.Error("there is no trace ID")
	}
	s.RecordManifest(&assay.Manifest{})
	s.Finish(nil)
	if got := spans(); len(got) != 0 {
		t.Errorf("%d spans were exported", len(got))
	}
}

// collector is an OTLP collector over HTTP that can be read back.
type collector struct {
	*httptest.Server
	mu       sync.Mutex // guards what follows
	requests []*collectorpb.ExportTraceServiceRequest
	headers  []http.Header
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := &collectorpb.ExportTraceServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(body, request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("request to %s: %v", r.URL.Path, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.requests = append(c.requests, request)
		c.headers = append(c.headers, r.Header)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) spans() (spans []*tracepb.Span, resource map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	resource = map[string]string{}
	for _, request := range c.requests {
		for _, rs := range request.ResourceSpans {
			for _, kv := range rs.Resource.Attributes {
				resource[kv.Key] = kv.Value.GetStringValue()
			}
			for _, ss := range rs.ScopeSpans {
				spans = append(spans, ss.Spans...)
			}
		}
	}
	return spans, resource
}

func TestACollectorReceivesTheSpans(t *testing.T) {
	for name, set := range map[string]map[string]string{
		"with the defaults":            {},
		"with a name and an attribute": {"OTEL_SERVICE_NAME": "helpdesk", "OTEL_RESOURCE_ATTRIBUTES": "team=blue", "OTEL_TRACES_EXPORTER": "otlp"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollector(t)
			set["OTEL_EXPORTER_OTLP_ENDPOINT"] = c.URL
			set["OTEL_EXPORTER_OTLP_HEADERS"] = "x-api-key=topsecret"
			p, log := setup(t, Options{Getenv: environ(t, set), ServiceVersion: "1.2.3"})
			ctx, root := p.StartWorkflow(t.Context(), "default")
			_, stage := p.StartStage(ctx, assay.StageAssemble, Details{})
			stage.End(assay.Stage{Name: assay.StageAssemble, Status: assay.StatusOK})
			root.RecordManifest(&assay.Manifest{ID: "m_1", Collection: "bad \xff bytes"})
			root.Finish(nil)
			if err := p.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			spans, resource := c.spans()
			names := []string{}
			for _, s := range spans {
				names = append(names, s.Name)
			}
			if !slices.Equal(names, []string{"assemble", "invoke_workflow assay"}) {
				t.Errorf("spans are %q", names)
			}
			want := "assay"
			if set["OTEL_SERVICE_NAME"] != "" {
				want = "helpdesk"
				if resource["team"] != "blue" {
					t.Errorf("resource is %v", resource)
				}
			}
			if resource["service.name"] != want || resource["service.version"] != "1.2.3" {
				t.Errorf("resource is %v", resource)
			}
			if c.headers[0].Get("x-api-key") != "topsecret" {
				t.Errorf("headers are %v", c.headers[0])
			}
			if log.String() != "" {
				t.Errorf("the log says %s", log)
			}
		})
	}
}

func TestMessagesOfTheLargestSpansAreAccepted(t *testing.T) {
	const accepted = 4 << 20 // by default, of gRPC receivers
	c := newCollector(t)
	p, log := setup(t, Options{CaptureContent: true, Getenv: environ(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL})})
	long := strings.Repeat("long ", contentBytes)
	m := &assay.Manifest{ID: long, Collection: long, Config: assay.ManifestConfig{Fingerprint: long}}
	for i := range 1000 {
		m.Candidates = append(m.Candidates, assay.Candidate{ChunkID: fmt.Sprint("c_", i), DocID: "docs/some/path"})
	}
	_, foreign := p.TracerProvider().Tracer("library").Start(t.Context(), "foreign", trace.WithAttributes(attribute.String("long", long)))
	foreign.End()
	for range 3*batchSize - 1 {
		_, span := p.StartWorkflow(t.Context(), long)
		span.RecordQuestion(long)
		span.RecordAnswer(long)
		span.RecordManifest(m)
		span.Finish(errors.New(long))
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans, _ := c.spans()
	if len(spans) != 3*batchSize || log.String() != "" {
		t.Errorf("%d spans have come; the log says %s", len(spans), log)
	}
	if size := proto.Size(spans[0]); size > contentBytes+1000 {
		t.Errorf("the span of a library has %d bytes", size)
	}
	sum := 0 // a message may hold fewer spans where the machine is slow
	for _, request := range c.requests {
		sum += proto.Size(request)
	}
	if size := sum / 3; size > accepted || size < accepted/4 {
		t.Errorf("a full message has %d bytes", size)
	}
}

func TestSettingsThatCannotBeUsedAreErrorsThatSayWhat(t *testing.T) {
	for want, o := range map[string]Options{
		`exporter "zipkin" of OTEL_TRACES_EXPORTER`: {Getenv: environ(t, map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"})},
		"traces file: open":                         {File: t.TempDir()},
		"size is negative (-1)":                     {FileMaxBytes: -1, ReportEvery: -1},
		"reports is negative":                       {FileMaxBytes: -1, ReportEvery: -1},
	} {
		_, err := Setup(t.Context(), slog.New(slog.DiscardHandler), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}

func attributes(attrs []attribute.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range attrs {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}
