package assay_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"assay"
)

func parseFilter(t *testing.T, text string) assay.Filter {
	t.Helper()
	var f assay.Filter
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

func TestFilterMatch(t *testing.T) {
	doc := &assay.Document{
		ID: "policies/refunds.md", URI: "/docs/policies/refunds.md", Version: "3", Modified: time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC),
		Metadata: assay.Metadata{"lang": {"en"}, "tags": {"billing", "refunds"}, "effective": {"2025-03-01"}, "priority": {"10"}},
	}
	tests := []struct {
		filter string
		want   bool
	}{
		{`{}`, true},
		{`{"lang": "en"}`, true},
		{`{"lang": "de"}`, false},
		{`{"lang": ["de", "en"]}`, true},
		{`{"tags": "refunds"}`, true},
		{`{"tags": {"not": "refunds"}}`, false},
		{`{"absent": {"not": "x"}}`, true},
		{`{"absent": "x"}`, false},
		{`{"priority": 10}`, true},
		{`{"priority": {"gt": 9}}`, true}, // as numbers: "10" is before "9" as text
		{`{"priority": {"gt": 10}}`, false},
		{`{"priority": {"gte": 10, "lt": 11}}`, true},
		{`{"effective": {"gte": "2025-03-01"}}`, true},
		{`{"effective": {"gt": "2025-03-01"}}`, false},
		{`{"effective": {"lte": "2025-02-28T23:59:59Z"}}`, false},
		{`{"lang": {"gt": 3}}`, false}, // not comparable
		{`{"version": "3", "lang": "en"}`, true},
		{`{"version": "2", "lang": "en"}`, false},
		{`{"id": {"prefix": "policies/"}}`, true},
		{`{"uri": {"prefix": "policies/"}}`, false},
		{`{"modified": {"lt": "2025-06-02"}}`, true},
	}
	for _, tt := range tests {
		if got := parseFilter(t, tt.filter).Match(doc); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.filter, got, tt.want)
		}
	}
}

func TestFilterSurvivesJSON(t *testing.T) {
	for _, text := range []string{`{}`, `{"a":["x","y"],"b":{"gte":1,"lt":5},"c":{"not":["z"]},"d":{"prefix":"p"}}`} {
		f := parseFilter(t, text)
		data, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if back := parseFilter(t, string(data)); !reflect.DeepEqual(back, f) {
			t.Errorf("%s became %s", text, data)
		}
	}
}

func TestConjunctionKeepsEveryCondition(t *testing.T) {
	both := parseFilter(t, `{"tags":"a","n":{"gt":1}}`).And(parseFilter(t, `{"tags":["b","c"],"n":{"gt":2}}`))
	data, err := json.Marshal(both)
	if err != nil {
		t.Fatal(err)
	}
	back := parseFilter(t, string(data))
	for tags, want := range map[string]bool{"a": false, "b": false, "ab": true} {
		doc := &assay.Document{Metadata: assay.Metadata{"n": {"3"}}}
		for _, tag := range tags {
			doc.Metadata["tags"] = append(doc.Metadata["tags"], string(tag))
		}
		if both.Match(doc) != want || back.Match(doc) != want {
			t.Errorf("tags %s: %v, and %v after %s", tags, both.Match(doc), back.Match(doc), data)
		}
	}
}

func TestBadFiltersAreErrors(t *testing.T) {
	for _, text := range []string{`"x"`, `[1]`, `{"a":null}`, `{"a":{}}`, `{"a":[]}`, `{"a":{"like":"x"}}`, `{"a":{"gt":"soon"}}`, `{"a":{"gt":[1,2]}}`, `{"a":{"any":{"b":1}}}`, `{"a":[["b"]]}`} {
		var f assay.Filter
		if err := json.Unmarshal([]byte(text), &f); !errors.Is(err, assay.ErrFilter) {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(`{"a":["x"],"b":{"gte":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var filter assay.Filter
		if json.Unmarshal([]byte(text), &filter) != nil {
			return
		}
		filter.Match(&assay.Document{Metadata: assay.Metadata{"a": {"x"}}})
		data, err := json.Marshal(filter)
		if err != nil {
			t.Fatal(err)
		}
		var back assay.Filter
		if err := json.Unmarshal(data, &back); err != nil {
			t.Errorf("%s was written as %s: %v", text, data, err)
		}
	})
}

func TestMetadataIsFlattened(t *testing.T) {
	var m assay.Metadata
	if err := json.Unmarshal([]byte(`{"a":"x","n":1.5,"big":12345678,"t":true,"none":null,"l":["p",2],"o":{"q":{"r":"s"}}}`), &m); err != nil {
		t.Fatal(err)
	}
	want := assay.Metadata{"a": {"x"}, "n": {"1.5"}, "big": {"12345678"}, "t": {"true"}, "l": {"p", "2"}, "o.q.r": {"s"}}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got %v, want %v", m, want)
	}
	if m.Get("l") != "p" || m.Get("none") != "" {
		t.Errorf("Get: %q, %q", m.Get("l"), m.Get("none"))
	}
}
