package assay_test

import (
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"assay"
)

func TestAccessFilter(t *testing.T) {
	tests := []struct {
		name    string
		meta    assay.Metadata
		tags    []string
		visible bool
	}{
		{"no list", assay.Metadata{"lang": {"en"}}, nil, true},
		{"no list, with tags", nil, []string{"ops"}, true},
		{"a list, no tags", assay.Metadata{"allow": {"ops"}}, nil, false},
		{"one of several", assay.Metadata{"allow": {"billing", "ops"}}, []string{"sales", "ops"}, true},
		{"others", assay.Metadata{"allow": {"billing"}}, []string{"ops"}, false},
		{"with commas", assay.Metadata{"allow": {"billing, ops"}}, []string{"ops"}, true},
		{"a part of a tag", assay.Metadata{"allow": {"ops-lead"}}, []string{"ops"}, false},
		{"an empty list", assay.Metadata{"allow": {}}, []string{"ops"}, false},
		{"an empty tag", assay.Metadata{"allow": {""}}, []string{"", "ops"}, false},
		{"an object instead of a list", assay.Metadata{"allow.group": {"ops"}}, []string{"ops"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := assay.AccessFilter(tt.tags).Match(&assay.Document{ID: "d", Metadata: tt.meta}); got != tt.visible {
				t.Errorf("visible is %v", got)
			}
		})
	}
}

func TestNoRequestWritesAnAccessFilter(t *testing.T) {
	for _, data := range []string{`{"allow": {"access": ["ops"]}}`, `{"allow": {"access": ""}}`, `[{"x": {"access": "a"}}]`} {
		var f assay.Filter
		if err := json.Unmarshal([]byte(data), &f); !errors.Is(err, assay.ErrFilter) {
			t.Errorf("%s: %v, %+v", data, err, f)
		}
	}
}

// Whatever filter a request brings, it sees nothing that its caller may not see.
func TestARequestCannotWidenAccess(t *testing.T) {
	tag := rapid.SampledFrom([]string{"", "ops", "billing", "a,b"})
	rapid.Check(t, func(t *rapid.T) {
		d := &assay.Document{ID: "d", Metadata: assay.Metadata{"allow": rapid.SliceOf(tag).Draw(t, "allow")}}
		may := assay.AccessFilter(rapid.SliceOf(tag).Draw(t, "tags"))
		request := assay.Filter{Conditions: []assay.Condition{{
			Field: rapid.SampledFrom([]string{"allow", "id"}).Draw(t, "field"), Op: rapid.SampledFrom([]assay.Op{assay.AnyOf, assay.Not, assay.Prefix}).Draw(t, "op"),
			Values: []string{tag.Draw(t, "value")},
		}}}
		if request.And(may).Match(d) && !may.Match(d) || may.And(request).Match(d) && !may.Match(d) {
			t.Fatalf("%+v is seen through %+v", d.Metadata, request)
		}
	})
}
