package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"assay"
	"assay/assemble"
	"assay/chunker"
	"assay/generate"
	"assay/index"
	"assay/rerank"
)

func TestAnswerWritesAManifestThatIsTrue(t *testing.T) {
	w := newWorld(t, setup{options: Options{Keep: 2}})
	w.ingest(t, pages(), IngestOptions{})
	var events []assay.Event
	a, passages, err := w.AnswerWithContext(t.Context(), assay.Query{Text: "how long is the overlap of the signing key?"},
		func(e assay.Event) error { events = append(events, e); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(a.Text, "24 hours") || len(a.Citations) == 0 {
		t.Errorf("the answer is %q with %d citations", a.Text, len(a.Citations))
	}
	m := a.Manifest
	stored, err := w.Manifest(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	byTrace, err := w.Manifest(t.Context(), m.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := json.Marshal(m)
	for _, other := range []*assay.Manifest{stored, byTrace} {
		if got, _ := json.Marshal(other); !bytes.Equal(got, want) {
			t.Errorf("stored   %s\nreturned %s", got, want)
		}
	}
	if len(passages) != len(m.Context.Passages) || len(passages) > 2 {
		t.Fatalf("%d passages were sent, the manifest says %d", len(passages), len(m.Context.Passages))
	}
	tokens := 0
	for i, p := range passages {
		sent := m.Context.Passages[i]
		chunk, doc, err := w.Chunk(t.Context(), sent.ChunkID)
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Text != p.Text || chunk.Span != sent.Span || doc.ID != sent.DocID || chunk.Tokens != sent.Tokens {
			t.Errorf("passage %d: the manifest says %+v, sent was %+v", i, sent, p)
		}
		tokens += sent.Tokens
	}
	if tokens != m.Context.Tokens || m.Corpus.Documents != 4 || m.Config.Keep != 2 || m.Answer.TextHash != assay.HashText(a.Text) {
		t.Errorf("manifest %+v", m)
	}
	text, stages := "", ""
	for _, e := range events {
		text += e.Delta
		if e.Stage != nil {
			stages += string(e.Stage.Name) + " "
		}
	}
	if text != a.Text || stages != "embed dense lexical fuse rerank assemble generate " {
		t.Errorf("events: stages %s, text %q", stages, text)
	}
}

func TestSupersededVersionsAreLeftOutUnlessAskedFor(t *testing.T) {
	w := newWorld(t, setup{})
	w.ingest(t, pages(), IngestOptions{})
	fate := func(q assay.Query) (old assay.Candidate) {
		q.Text = "refund returned within business days"
		a, err := w.Answer(t.Context(), q, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range a.Manifest.Candidates {
			if c.DocID == "old/refunds.md" {
				return c
			}
		}
		t.Fatal("the old version was not retrieved")
		return
	}
	if c := fate(assay.Query{}); c.Disposition != assay.Dropped || c.Reason != assay.DropSuperseded || c.Of != "refunds.md" {
		t.Errorf("by default: %+v", c)
	}
	if c := fate(assay.Query{Superseded: true}); c.Disposition != assay.Kept {
		t.Errorf("asked for: %+v", c)
	}
	old := assay.Filter{Conditions: []assay.Condition{{Field: "id", Op: assay.Prefix, Values: []string{"old/"}}}}
	if c := fate(assay.Query{Filter: old}); c.Disposition != assay.Kept {
		t.Errorf("where a filter hides the newer version: %+v", c)
	}
}

func TestQuestionsThatCannotBeServed(t *testing.T) {
	w := newWorld(t, setup{})
	for name, q := range map[string]assay.Query{
		"empty":        {Text: " \n"},
		"too long":     {Text: strings.Repeat("a", 1<<20)},
		"not UTF-8":    {Text: "\xff\xfe"},
		"keep":         {Text: "a", Keep: 100000},
		"depth":        {Text: "a", Depth: -1},
		"role":         {Text: "a", History: []assay.Message{{Role: "system", Content: "x"}}},
		"long history": {Text: "a", History: make([]assay.Message, 1000)},
	} {
		if _, err := w.Answer(t.Context(), q, nil); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := w.Search(t.Context(), q); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: search: %v", name, err)
		}
	}
}

func TestAnEmptyCorpusRefusesAndIsNotReady(t *testing.T) {
	w := newWorld(t, setup{})
	a, err := w.Answer(t.Context(), assay.Query{Text: "anything"}, nil)
	if err != nil || !a.Manifest.Answer.Refused || a.Text == "" {
		t.Errorf("%+v, %v", a, err)
	}
	if reasons := w.Ready(t.Context()); len(reasons) != 1 {
		t.Errorf("not ready: %v", reasons)
	}
	w.ingest(t, pages(), IngestOptions{})
	if reasons := w.Ready(t.Context()); len(reasons) != 0 {
		t.Errorf("not ready: %v", reasons)
	}
}

func TestARerankTimeoutIsSeenTheSameEverywhere(t *testing.T) {
	for _, policy := range []assay.FallbackPolicy{assay.FallbackFused, assay.FallbackWiden, assay.FallbackFail} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t, setup{
				options: Options{Keep: 1},
				rerank:  rerank.Options{URL: slowReranker(t), Model: "ce", Timeout: 20 * time.Millisecond, Policy: policy, FallbackKeep: 3},
			})
			w.ingest(t, pages(), IngestOptions{})
			a, err := w.Answer(t.Context(), assay.Query{Text: "refund returned within business days"}, nil)
			w.flush(t)
			if (policy == assay.FallbackFail) != errors.Is(err, assay.ErrDegraded) {
				t.Fatalf("error %v", err)
			}
			m := a.Manifest
			if m.Reranker.Status != assay.RerankTimeout || m.Reranker.Fallback != policy || fmt.Sprint(m.Degraded) != "[rerank]" {
				t.Errorf("manifest: %+v, degraded %v", m.Reranker, m.Degraded)
			}
			if s := m.Stage(assay.StageRerank); s.Status != assay.StatusTimeout || s.Fallback != string(policy) || s.Reason == "" {
				t.Errorf("stage: %+v", s)
			}
			kept := map[assay.FallbackPolicy]int{assay.FallbackFused: 1, assay.FallbackWiden: 3}[policy]
			if len(m.Context.Passages) != kept {
				t.Errorf("%d passages were sent, want %d", len(m.Context.Passages), kept)
			}
			for _, name := range []string{"rerank ce", "invoke_workflow assay"} {
				attrs := w.attributes(t, name)
				if attrs["assay.rerank.status"].AsString() != "timeout" || attrs["assay.rerank.fallback"].AsString() != string(policy) {
					t.Errorf("span %q: %v", name, attrs)
				}
			}
			if id := w.attributes(t, "invoke_workflow assay")["assay.manifest.id"].AsString(); id != m.ID {
				t.Errorf("the root names the manifest %q, it is %q", id, m.ID)
			}
			if log := w.log.String(); !strings.Contains(log, "rerank_status=timeout") || !strings.Contains(log, m.ID) {
				t.Errorf("the log does not say it: %s", log)
			}
		})
	}
}

// broken is a generator that fails in the middle.
type broken struct{ Generator }

func (broken) Generate(_ context.Context, _ generate.Request, onText func(string) error) (generate.Result, error) {
	return generate.Result{Text: "Half an"}, errors.Join(onText("Half an"), errors.New("the stream broke off"))
}

func TestAFailedAnswerHasAManifestToo(t *testing.T) {
	extractive := generate.NewExtractive(slog.New(slog.DiscardHandler), generate.ExtractiveOptions{})
	w := newWorld(t, setup{generator: broken{extractive}})
	w.ingest(t, pages(), IngestOptions{})
	a, err := w.Answer(t.Context(), assay.Query{Text: "refund"}, nil)
	if err == nil || a == nil || a.Text != "" {
		t.Fatalf("%+v, %v", a, err)
	}
	m, err := w.Manifest(t.Context(), a.Manifest.ID)
	if err != nil || !strings.Contains(m.Error, "broke off") || fmt.Sprint(m.Degraded) != "[generate]" {
		t.Errorf("manifest %+v, %v", m, err)
	}
}

func TestACallerThatStopsReadingEndsTheAnswer(t *testing.T) {
	w := newWorld(t, setup{})
	w.ingest(t, pages(), IngestOptions{})
	gone := errors.New("gone")
	if _, err := w.Answer(t.Context(), assay.Query{Text: "refund"}, func(e assay.Event) error {
		if e.Delta != "" {
			return gone
		}
		return nil
	}); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
}

func TestOtherSettingsThanTheStoredOnesAreRefused(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, setup{dir: dir})
	w.ingest(t, pages(), IngestOptions{})
	chunks, err := chunker.New(chunker.Options{Size: 64})
	if err != nil {
		t.Fatal(err)
	}
	deps := w.d
	deps.Chunker = chunks
	_, err = New(w.lg, deps, Options{})
	var mismatch *index.MismatchError
	if !errors.As(err, &mismatch) || !strings.Contains(err.Error(), "chunker") {
		t.Errorf("error %v", err)
	}
}

func TestFingerprintFollowsTheSettings(t *testing.T) {
	a, _ := fingerprintOf(map[string]any{"x": 1, "y": "z"})
	b, _ := fingerprintOf(map[string]any{"y": "z", "x": 1})
	c, _ := fingerprintOf(map[string]any{"y": "z", "x": 2})
	if a != b || a == c {
		t.Errorf("%s, %s, %s", a, b, c)
	}
}

func TestOptionsReportEveryProblem(t *testing.T) {
	err := Options{Keep: -1, MaxQuestion: -1, Assemble: assemble.Options{Order: "x"}}.Validate()
	for _, key := range []string{"rerank.keep", "server.max_question", "assemble.order"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v does not name %s", err, key)
		}
	}
}
