package engine

import (
	"context"
	"strings"
	"testing"

	"assay"
	"assay/assemble"
	"assay/generate"
)

// says is a generator that says one thing, whatever it is sent, and remembers what that was.
type says struct {
	Generator
	text  string
	asked []generate.Request
}

func (s *says) Generate(_ context.Context, r generate.Request, onText func(string) error) (generate.Result, error) {
	s.asked = append(s.asked, r)
	result := generate.Result{Text: s.text, FinishReason: generate.FinishStop}
	for _, p := range r.Passages {
		if strings.Contains(s.text, p.Marker) {
			result.Citations = append(result.Citations, assay.Citation{Marker: p.Marker, ChunkID: p.ChunkID, DocID: p.DocID, Position: p.Position})
		}
	}
	return result, onText(s.text)
}

func TestCitationsAreVerified(t *testing.T) {
	v, err := generate.NewVerifier(generate.SupportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"Promote the new key with an overlap of 24 hours. [1]": true,
		"Promote the new key with an overlap of 72 hours. [1]": false,
		"The moon is made of cheese from Gouda. [1]":           false,
	} {
		g := &says{Generator: generate.NewExtractive(nil, generate.ExtractiveOptions{}), text: text}
		w := newWorld(t, setup{generator: g, verifier: v})
		w.ingest(t, pages(), IngestOptions{})
		answer, err := w.Answer(t.Context(), assay.Query{Text: "how do I rotate a signing key", Keep: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := w.Manifest(t.Context(), answer.Manifest.ID)
		if err != nil {
			t.Fatal(err)
		}
		for where, citations := range map[string][]assay.Citation{"answer": answer.Citations, "manifest": stored.Answer.Citations} {
			if len(citations) != 1 || citations[0].Verified == nil || *citations[0].Verified != want {
				t.Errorf("%q: in the %s %+v, want %v", text, where, citations, want)
			}
		}
	}
}

func TestIrrelevantPassagesAreNotSent(t *testing.T) {
	v, err := generate.NewVerifier(generate.SupportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	relevance := func(question string, p generate.Passage) float64 { return v.Support(question, p) }
	w := newWorld(t, setup{relevance: relevance, options: Options{Assemble: assemble.Options{MinRelevance: 0.45}}})
	w.ingest(t, pages(), IngestOptions{})
	answer, err := w.Answer(t.Context(), assay.Query{Text: "how do I rotate a signing key"}, nil)
	if err != nil || answer.Manifest.Answer.Refused || len(answer.Manifest.Context.Passages) == 0 {
		t.Fatalf("%+v, %v", answer, err)
	}
	answer, err = w.Answer(t.Context(), assay.Query{Text: "the best sauce for spaghetti"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := answer.Manifest
	if answer.Text != generate.Refusal || !m.Answer.Refused || len(m.Context.Passages) != 0 || len(m.Candidates) == 0 {
		t.Errorf("%q, %+v", answer.Text, m.Context)
	}
	below := 0
	for _, c := range m.Candidates {
		if c.Reason == assay.DropBelowMinScore {
			below++
		}
	}
	if s := m.Stage(assay.StageAssemble); below == 0 || s.Status != assay.StatusOK || !strings.Contains(s.Reason, "assemble.min_relevance") {
		t.Errorf("%d below the minimum, stage %+v", below, m.Stage(assay.StageAssemble))
	}
	if len(m.Degraded) != 0 {
		t.Errorf("degraded %v", m.Degraded)
	}
}

func TestAMinimumNeedsSomethingThatTellsRelevance(t *testing.T) {
	w := newWorld(t, setup{})
	if _, err := New(w.lg, w.d, Options{Assemble: assemble.Options{MinRelevance: 0.4}}); err == nil || !strings.Contains(err.Error(), "assemble.min_relevance") {
		t.Errorf("got %v", err)
	}
}
