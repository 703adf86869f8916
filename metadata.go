package assay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Metadata holds a document's fields. Every field is a list of strings: numbers and dates keep their
// written form and are compared as such by Filter. In JSON a single value is a bare string.
type Metadata map[string][]string

// Get returns a field's first value, or "".
func (m Metadata) Get(field string) string {
	if v := m[field]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// MarshalJSON writes single values as strings and several as arrays.
func (m Metadata) MarshalJSON() ([]byte, error) {
	out := make(map[string]any, len(m))
	for field, values := range m {
		if len(values) == 1 {
			out[field] = values[0]
		} else {
			out[field] = values
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON accepts strings, numbers, booleans, null and arrays of them; nested objects are
// flattened with dots ("author.name").
func (m *Metadata) UnmarshalJSON(data []byte) error {
	var raw map[string]any
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	*m = MetadataFrom(raw)
	return nil
}

// MetadataFrom flattens decoded JSON or YAML into Metadata. Nested maps are joined with dots.
func MetadataFrom(raw map[string]any) Metadata {
	m := Metadata{}
	for _, field := range slices.Sorted(maps.Keys(raw)) {
		m.add(field, raw[field], 0)
	}
	return m
}

// maxMetadataDepth bounds the flattening of nested metadata: deeper values are written as JSON.
const maxMetadataDepth = 8

func (m Metadata) add(field string, value any, depth int) {
	switch v := value.(type) {
	case nil:
	case string:
		m[field] = append(m[field], v)
	case bool:
		m[field] = append(m[field], strconv.FormatBool(v))
	case float64:
		m[field] = append(m[field], strconv.FormatFloat(v, 'f', -1, 64))
	case []any:
		for _, item := range v {
			m.add(field, item, depth+1)
		}
	case map[string]any:
		if depth >= maxMetadataDepth {
			data, _ := json.Marshal(v) // decoded from JSON or YAML, so it can be written as JSON
			m[field] = append(m[field], string(data))
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			m.add(field+"."+key, v[key], depth+1)
		}
	default: // ints and times of a YAML decoder
		m[field] = append(m[field], fmt.Sprint(v))
	}
}
