package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay"
	"assay/generate"
)

// The settings of the context are in force: each changes what it is for.
func TestContextSettingsAreInForce(t *testing.T) {
	s := newShell(t)
	const policy = "A refund is returned within 5 business days of approval. Fees of the bank are not refunded. Ask the desk when it takes longer."
	for name, text := range map[string]string{
		"policy.md": "# Refund policy\n\n" + policy + "\n",
		"quote.md":  "# For the desk\n\n> " + strings.ReplaceAll(policy, ". ", ".\n> ") + "\n",
		"limits.md": "---\nallow: [ops]\n---\n# Refund limits\n\nA refund of more than 900 euros needs a second person.\n",
	} {
		if err := os.MkdirAll("docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("docs", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.ok("ingest", "docs")
	ask := func(args ...string) assay.Answer {
		t.Helper()
		var a assay.Answer
		if err := json.Unmarshal([]byte(s.ok(append([]string{"ask", "--json", "how long does a refund take after approval?"}, args...)...)), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	fate := func(a assay.Answer, doc string) string {
		for _, c := range a.Manifest.Candidates {
			if c.DocID == doc {
				return strings.TrimSpace(string(c.Disposition) + " " + string(c.Reason))
			}
		}
		return "not found"
	}
	collapsed := func(a assay.Answer) bool {
		return fate(a, "quote.md") == "dropped duplicate" || fate(a, "policy.md") == "dropped duplicate"
	}
	a := ask()
	if !collapsed(a) || fate(a, "limits.md") != "not found" {
		t.Errorf("by default: %+v", a.Manifest.Candidates)
	}
	if len(a.Citations) == 0 || a.Citations[0].Verified == nil || !*a.Citations[0].Verified {
		t.Errorf("citations %+v", a.Citations)
	}
	if collapsed(ask("--duplicates")) || collapsed(ask("--set", "assemble.near_duplicates=0")) {
		t.Error("near duplicates collapse although they are asked for")
	}
	if a := ask("--set", "server.access=[ops]"); fate(a, "limits.md") != "kept" {
		t.Errorf("with the tag, limits.md is %s", fate(a, "limits.md"))
	}
	if a := ask("--set", "assemble.min_relevance=1"); a.Text != generate.Refusal || fate(a, "policy.md")+fate(a, "quote.md") != "dropped below_min_scoredropped duplicate" &&
		fate(a, "policy.md")+fate(a, "quote.md") != "dropped duplicatedropped below_min_score" {
		t.Errorf("under the minimum: %q, %+v", a.Text, a.Manifest.Candidates)
	}
	if a := ask("--set", "generate.min_support=0"); len(a.Citations) == 0 || a.Citations[0].Verified != nil {
		t.Errorf("unchecked citations %+v", a.Citations)
	}
	for _, bad := range []string{"assemble.near_duplicates=2", "assemble.min_relevance=-1", "generate.min_support=7", "retriever.rewrite=maybe"} {
		key, _, _ := strings.Cut(bad, "=")
		if r := s.run("ask", "refund", "--set", bad); r.code == exitOK || !strings.Contains(r.errOut, key) {
			t.Errorf("%s: %d %s", bad, r.code, r.errOut)
		}
	}
}

func TestUnsupportedCitationsAreMarked(t *testing.T) {
	yes, no := true, false
	var out strings.Builder
	printAnswer(&out, &assay.Answer{Text: "It takes 5 days [1], or 9 [2].", Citations: []assay.Citation{
		{Marker: "[1]", Title: "Refunds", URI: "a.md", Verified: &yes}, {Marker: "[2]", Title: "Fees", URI: "b.md", Verified: &no},
	}})
	if first, second, _ := strings.Cut(out.String(), "[2]  Fees"); strings.Contains(first, "NOT SUPPORTED") || !strings.Contains(second, "NOT SUPPORTED") {
		t.Errorf("printed\n%s", out.String())
	}
}
