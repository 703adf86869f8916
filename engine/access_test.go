package engine

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"assay"
)

func restrictedPages() fstest.MapFS {
	return fstest.MapFS{
		"public.md":  {Data: []byte("# Refund policy\n\nA refund is returned within ten days.\n")},
		"ops.md":     {Data: []byte("---\nallow: ops\nsupersedes: public.md\n---\n# Refund policy for operators\n\nA refund is returned within two days.\n")},
		"billing.md": {Data: []byte("---\nallow: [billing, audit]\n---\n# Refund limits\n\nA refund of more than 900 euros needs a second person.\n")},
	}
}

// documents lists whose passages are in a manifest, whatever became of them.
func documents(candidates []assay.Candidate) string {
	seen := make(map[string]bool)
	for _, c := range candidates {
		seen[strings.TrimSuffix(c.DocID, ".md")] = true
	}
	var out []string
	for _, name := range []string{"billing", "ops", "public"} {
		if seen[name] {
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

func TestCallersSeeWhatTheirTagsAllow(t *testing.T) {
	tests := []struct {
		name       string
		configured []string
		query      assay.Query
		want       string
		superseded bool // whether public.md counts as replaced
	}{
		{"no tags", nil, assay.Query{}, "public", false},
		{"configured tags", []string{"ops"}, assay.Query{}, "ops public", true},
		{"tags of the caller", []string{"ops"}, assay.Query{Access: []string{"audit"}}, "billing public", false},
		{"a caller without tags", []string{"ops"}, assay.Query{Access: []string{}}, "public", false},
		{"a filter narrows", []string{"ops", "billing"}, assay.Query{Filter: filter("allow", assay.AnyOf, "ops")}, "ops", false},
		{"a filter does not widen", nil, assay.Query{Filter: filter("allow", assay.AnyOf, "ops")}, "", false},
		{"nor does one by ID", nil, assay.Query{Filter: filter("id", assay.AnyOf, "billing.md")}, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, setup{options: Options{Access: tt.configured}})
			w.ingest(t, restrictedPages(), IngestOptions{})
			tt.query.Text = "when is a refund returned"
			answer, err := w.Answer(t.Context(), tt.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := documents(answer.Manifest.Candidates); got != tt.want {
				t.Errorf("the answer saw %q, want %q", got, tt.want)
			}
			for _, c := range answer.Manifest.Candidates {
				if c.DocID == "public.md" && (c.Reason == assay.DropSuperseded) != tt.superseded {
					t.Errorf("public.md is %s %s", c.Disposition, c.Reason)
				}
			}
			found, err := w.Search(t.Context(), tt.query)
			want := tt.want
			if tt.superseded {
				want = strings.TrimSuffix(want, " public")
			}
			if err != nil || documents(found.Candidates) != want {
				t.Errorf("the search saw %q, %v", documents(found.Candidates), err)
			}
			for _, c := range found.Candidates {
				if tt.query.Access == nil {
					if _, _, err := w.Chunk(t.Context(), c.ChunkID); err != nil {
						t.Errorf("a passage that was found cannot be read: %v", err)
					}
				}
			}
		})
	}
}

func filter(field string, op assay.Op, value string) assay.Filter {
	return assay.Filter{Conditions: []assay.Condition{{Field: field, Op: op, Values: []string{value}}}}
}

func TestAHiddenPassageIsNotFoundByItsID(t *testing.T) {
	w := newWorld(t, setup{})
	w.ingest(t, restrictedPages(), IngestOptions{})
	found, err := w.Search(t.Context(), assay.Query{Text: "refund", Access: []string{"ops", "billing"}})
	if err != nil {
		t.Fatal(err)
	}
	hidden := 0
	for _, c := range found.Candidates {
		_, _, err := w.Chunk(t.Context(), c.ChunkID)
		if secret := c.DocID != "public.md"; secret != errors.Is(err, assay.ErrNotFound) {
			t.Errorf("%s: %v", c.DocID, err)
		} else if secret {
			hidden++
		}
	}
	if hidden == 0 {
		t.Error("nothing was hidden")
	}
}
