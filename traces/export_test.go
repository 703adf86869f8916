package traces

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// stuck is an exporter that blocks until it is released.
type stuck struct {
	release chan struct{}
	started chan struct{}
	once    sync.Once
}

func (s *stuck) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	s.once.Do(func() { close(s.started) })
	select {
	case <-s.release:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (*stuck) Shutdown(context.Context) error { return nil }

func TestSpansEndAtOnceWhileTheExporterIsStuck(t *testing.T) {
	s := &stuck{release: make(chan struct{}), started: make(chan struct{})}
	p, _ := setup(t, Options{Exporters: []sdktrace.SpanExporter{s}})
	end := func(n int) {
		for range n {
			_, span := p.StartWorkflow(t.Context(), "default")
			span.Finish(nil)
		}
	}
	end(2 * batchSize)
	<-s.started
	end(3 * sdktrace.DefaultMaxQueueSize) // more than fit; this would hang if an end waited for the exporter
	close(s.release)
}

// grpcCollector is an OTLP collector over gRPC.
type grpcCollector struct {
	collectorpb.UnimplementedTraceServiceServer
	got chan *collectorpb.ExportTraceServiceRequest
}

func (c *grpcCollector) Export(_ context.Context, in *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	c.got <- in
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

func TestACollectorOverGRPCReceivesTheSpans(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &grpcCollector{got: make(chan *collectorpb.ExportTraceServiceRequest, 1)}
	server := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(server, c)
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	p, log := setup(t, Options{Getenv: environ(t, map[string]string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://" + listener.Addr().String(),
		"OTEL_EXPORTER_OTLP_PROTOCOL":        "grpc",
	})})
	_, span := p.StartWorkflow(t.Context(), "default")
	span.Finish(nil)
	if err := p.Shutdown(t.Context()); err != nil || log.String() != "" {
		t.Fatalf("%v; the log says %s", err, log)
	}
	if got := (<-c.got).ResourceSpans[0].ScopeSpans[0].Spans[0].Name; got != SpanWorkflow {
		t.Errorf("the span is %q", got)
	}
	server.Stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestACollectorThatIsDownIsOneLineInTheLog(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			p, log := setup(t, Options{Getenv: environ(t, map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": closed.URL,
				"OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
				"OTEL_EXPORTER_OTLP_TIMEOUT":  "50", // for gRPC, which goes on trying
			})})
			for range 5 * batchSize {
				_, span := p.StartWorkflow(t.Context(), "default")
				span.Finish(nil)
			}
			if err := p.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if log.lines() != 1 || !strings.Contains(log.String(), "spans are not exported; answers are not affected") {
				t.Errorf("the log says %s", log)
			}
		})
	}
}

func TestReportsAreRareAndCounted(t *testing.T) {
	log := &syncBuffer{}
	r := newReporter(slog.New(slog.NewTextHandler(log, nil)), Options{ReportEvery: time.Hour}.withDefaults())
	down := errors.New("down")
	failing := &failingExporter{err: down}
	w := &watched{SpanExporter: failing, reports: r}
	for range 10 {
		if err := w.ExportSpans(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if log.lines() != 1 {
		t.Errorf("the log says %s", log)
	}
	failing.err = nil
	_ = w.ExportSpans(t.Context(), nil)
	_ = w.ExportSpans(t.Context(), nil)
	if log.lines() != 2 || !strings.Contains(log.String(), `"traces: spans are exported again" left_out=9`) {
		t.Errorf("the log says %s", log)
	}
	failing.err = down
	_ = w.ExportSpans(t.Context(), nil)
	if log.lines() != 3 {
		t.Errorf("a second failure is not reported: %s", log)
	}
}

type failingExporter struct{ err error }

func (f *failingExporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return f.err }
func (*failingExporter) Shutdown(context.Context) error                               { return nil }

func TestSecretsForTheCollectorAreInNoLog(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		http.Error(w, "you sent "+auth+", "+strings.TrimPrefix(auth, "Bearer ")+" and "+r.Header.Get("X-Key"), http.StatusBadRequest)
	}))
	defer echo.Close()
	for name, headers := range map[string]string{
		"echoed":       "authorization=Bearer%20tok%2Fen-1234",
		"as it is":     "x-key=tok/en-1234",
		"no equals":    "authorization Bearer tok/en-1234",
		"bad escape":   "x-key=tok/en-1234%zz",
		"with a comma": "x-key=a, tok/en-1234",
	} {
		t.Run(name, func(t *testing.T) {
			_, log := setup(t, Options{Getenv: environ(t, map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": strings.Replace(echo.URL, "http://", "http://user:tok/en-1234@", 1),
				"OTEL_EXPORTER_OTLP_HEADERS":  headers,
			})})
			p, log2 := setup(t, Options{Getenv: environ(t, map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": echo.URL,
				"OTEL_EXPORTER_OTLP_HEADERS":  headers,
			})})
			_, span := p.StartWorkflow(t.Context(), "default")
			span.Finish(nil)
			if err := p.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			text := log.String() + log2.String()
			if text == "" || strings.Contains(text, "en-1234") {
				t.Errorf("the log says %s", text)
			}
		})
	}
}

func TestAShutdownWaitsNoLongerThanItMay(t *testing.T) {
	s := &stuck{release: make(chan struct{}), started: make(chan struct{})}
	defer close(s.release)
	p, _ := setup(t, Options{Exporters: []sdktrace.SpanExporter{s}})
	_, span := p.StartWorkflow(t.Context(), "default")
	span.Finish(nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := p.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the last spans could not be exported") {
		t.Errorf("error is %v", err)
	}
}

func TestWhatTheSDKSaysOfItsSettingsIsInTheLog(t *testing.T) {
	_, log := setup(t, Options{Getenv: environ(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_TIMEOUT":  "soon",
		"OTEL_RESOURCE_ATTRIBUTES":    "team",
	})})
	for _, want := range []string{"parse duration", "OTEL_RESOURCE_ATTRIBUTES"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log: %s", want, log)
		}
	}
}

func TestSecretsAreInNoErrorOfSetup(t *testing.T) {
	_, err := Setup(t.Context(), slog.New(slog.DiscardHandler), Options{Getenv: environ(t, map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS": "k=hush-hush", "OTEL_TRACES_EXPORTER": "hush-hush",
	})})
	if err == nil || strings.Contains(err.Error(), "hush-hush") {
		t.Errorf("error is %v", err)
	}
}

func TestEveryWayIntoTheLogIsRedacted(t *testing.T) {
	log := &syncBuffer{}
	o := Options{Getenv: func(name string) string { return map[string]string{envTracesHeaders: "k=hush-hush"}[name] }}
	lg := slog.New(newReporter(slog.New(slog.NewTextHandler(log, nil)), o.withDefaults()).handler())
	lg.With("a", "hush-hush").WithGroup("g").Error("hush-hush", "b", errors.New("hush-hush"))
	lg.Debug("not of interest")
	if text := log.String(); strings.Contains(text, "hush-hush") || strings.Count(text, "[redacted]") != 3 || log.lines() != 1 {
		t.Errorf("the log says %s", text)
	}
}
