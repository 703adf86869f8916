package traces

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"assay"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// readLines decodes a file of OTLP JSON with the official messages, which want IDs in base64.
func readLines(t *testing.T, path string) (spans []*tracepb.Span, lines []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) == 0 || data[len(data)-1] != '\n' {
		t.Fatalf("%s does not end in a line break", path)
	}
	for line := range strings.Lines(string(data)) {
		var raw any
		if err := json.Unmarshal([]byte(line), &raw); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		toBase64(t, raw)
		encoded, err := json.Marshal(raw)
		if err != nil {
			t.Fatal(err)
		}
		var request collectorpb.ExportTraceServiceRequest
		if err := protojson.Unmarshal(encoded, &request); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		for _, rs := range request.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				spans = append(spans, ss.Spans...)
			}
		}
		lines = append(lines, line)
	}
	return spans, lines
}

// toBase64 turns every ID, wherever it is, from the form of OTLP JSON to that of protocol buffers.
func toBase64(t *testing.T, value any) {
	t.Helper()
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			toBase64(t, item)
		}
	case map[string]any:
		for key, item := range v {
			if text, ok := item.(string); ok && (key == "traceId" || key == "spanId" || key == "parentSpanId") {
				id, err := hex.DecodeString(text)
				if want := map[bool]int{true: 16, false: 8}[key == "traceId"]; err != nil || len(id) != want {
					t.Errorf("%s is %q, which is not %d bytes in hexadecimal", key, text, want)
				}
				v[key] = base64.StdEncoding.EncodeToString(id)
				continue
			}
			toBase64(t, item)
		}
	}
}

func TestTheFileHoldsOTLPJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "traces.jsonl")
	p, log := setup(t, Options{File: path})
	ctx, root := p.StartWorkflow(t.Context(), "docs <&> ä")
	_, s := p.Tracer().Start(ctx, "with a link", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithLinks(trace.Link{SpanContext: trace.SpanContextFromContext(ctx)}),
		trace.WithAttributes(attribute.Int64("big", 1<<62), attribute.Float64("half", 0.5), attribute.String("traceId", "not an ID")))
	s.End()
	id := root.TraceID()
	root.RecordManifest(&assay.Manifest{ID: "m_1", Collection: "docs <&> ä"})
	root.Finish(nil)
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans, lines := readLines(t, path)
	if len(lines) != 1 || len(spans) != 2 {
		t.Fatalf("%d lines, %d spans; the log says %s", len(lines), len(spans), log)
	}
	for _, want := range []string{
		`"traceId":"` + id + `"`, `"kind":3`, `"intValue":"4611686018427387904"`, `"doubleValue":0.5`, `"stringValue":"not an ID"`,
		`"docs <&> ä"`, `"stringValue":"m_1"`, `"links":[{`,
	} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("%s is not in %s", want, lines[0])
		}
	}
	if got := hex.EncodeToString(spans[0].Links[0].TraceId); got != id {
		t.Errorf("the link is to %s, want %s", got, id)
	}
	if !bytes.Equal(spans[0].ParentSpanId, spans[1].SpanId) {
		t.Error("the parent is not the root")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, error %v", info.Mode(), err)
	}
}

func TestTheFileIsAppendedToAndTurnedOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "traces.jsonl")
	const runs = 9
	for i := range runs {
		p, log := setup(t, Options{File: path, FileMaxBytes: 3000})
		_, root := p.StartWorkflow(t.Context(), fmt.Sprintf("run %d", i))
		root.Finish(nil)
		if err := p.Shutdown(t.Context()); err != nil || log.String() != "" {
			t.Fatalf("%v; the log says %s", err, log)
		}
	}
	now, _ := readLines(t, path)
	before, _ := readLines(t, path+".1")
	if len(now) == 0 || len(before) < 2 {
		t.Fatalf("%d spans now, %d before", len(now), len(before))
	}
	for name, size := range map[string]int64{path: 3000, path + ".1": 3000} {
		if info, err := os.Stat(name); err != nil || info.Size() > size {
			t.Errorf("%s: %v, %v", name, info.Size(), err)
		}
	}
	last := now[len(now)-1].Attributes
	if got := last[len(last)-1].Value.GetStringValue(); got != fmt.Sprintf("run %d", runs-1) {
		t.Errorf("the last span is of %q", got)
	}
}

func TestAFileThatCannotBeWrittenIsReportedAndAnswersGoOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "traces.jsonl")
	c := &fileClient{path: path, max: 1}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := []*tracepb.ResourceSpans{{SchemaUrl: "x"}}
	if err := c.UploadTraces(t.Context(), spans); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the file is turned over into a folder that is not there, and then cannot be opened
		if err := c.UploadTraces(t.Context(), spans); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error is %v", err)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.UploadTraces(t.Context(), spans); err != nil {
		t.Errorf("the folder is there again: %v", err)
	}
	if _, lines := readLines(t, path); len(lines) != 1 {
		t.Errorf("%d lines", len(lines))
	}
	for range 2 {
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
