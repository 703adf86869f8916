package traces

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// encodeLine writes spans as OTLP JSON, ending in a line break. That is the JSON of protocol buffers
// but for enumerations, which are numbers, and the IDs of traces and spans, which are hexadecimal.
func encodeLine(spans []*tracepb.ResourceSpans) ([]byte, error) {
	data, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(&collectorpb.ExportTraceServiceRequest{ResourceSpans: spans})
	if err != nil {
		return nil, fmt.Errorf("encode spans: %w", err)
	}
	var request map[string]any
	if err := json.Unmarshal(data, &request); err != nil { // 64-bit integers are strings in it
		return nil, fmt.Errorf("encode spans: %w", err)
	}
	for _, resource := range list(request, "resourceSpans") {
		for _, scope := range list(resource, "scopeSpans") {
			for _, span := range list(scope, "spans") {
				toHex(span)
				for _, link := range list(span, "links") {
					toHex(link)
				}
			}
		}
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(request); err != nil { // adds the line break
		return nil, fmt.Errorf("encode spans: %w", err)
	}
	return line.Bytes(), nil
}

// list returns the objects in a field that holds an array.
func list(parent map[string]any, field string) []map[string]any {
	items, _ := parent[field].([]any)
	out := make([]map[string]any, 0, len(items))
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}

func toHex(object map[string]any) {
	for _, field := range []string{"traceId", "spanId", "parentSpanId"} {
		if text, ok := object[field].(string); ok {
			if id, err := base64.StdEncoding.DecodeString(text); err == nil {
				object[field] = hex.EncodeToString(id)
			}
		}
	}
}
