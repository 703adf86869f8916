package traces

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"

	"assay"
)

func byName(t *testing.T, spans tracetest.SpanStubs) map[string]tracetest.SpanStub {
	t.Helper()
	out := map[string]tracetest.SpanStub{}
	for _, s := range spans {
		if _, twice := out[s.Name]; twice {
			t.Errorf("there are two spans %q", s.Name)
		}
		out[s.Name] = s
	}
	return out
}

// wantAttributes demands attributes; "" stands for one that must not be there.
func wantAttributes(t *testing.T, s tracetest.SpanStub, want map[string]string) {
	t.Helper()
	got := attributes(s.Attributes)
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: %s is %q, want %q", s.Name, key, got[key], value)
		}
	}
}

// answerWithATimeout plays the stages of an answer whose reranker timed out.
func answerWithATimeout(t *testing.T, p *Provider) {
	t.Helper()
	ok := func(name assay.StageName) assay.Stage { return assay.Stage{Name: name, Status: assay.StatusOK} }
	ctx, root := p.StartWorkflow(t.Context(), "docs")
	_, s := p.StartStage(ctx, assay.StageEmbed, Details{Model: assay.Model{Name: "bge-small", Dimensions: 384}, Provider: "openai"})
	s.RecordUsage(assay.Usage{InputTokens: 7}, "", "")
	s.End(ok(assay.StageEmbed))
	inner, retrieval := p.StartRetrieval(ctx, "docs", 50)
	for _, name := range []assay.StageName{assay.StageDense, assay.StageLexical, assay.StageFuse} {
		_, s := p.StartStage(inner, name, Details{Depth: 50})
		s.RecordFound(41)
		s.End(ok(name))
	}
	retrieval.RecordFound(42)
	retrieval.Finish(nil)

	late := assay.Stage{Name: assay.StageRerank, Status: assay.StatusTimeout, Duration: 1500 * time.Millisecond,
		Reason: "no answer within 1.5s", Fallback: "fused"}
	outcome := assay.ManifestReranker{Status: assay.RerankTimeout, Model: "ce", Candidates: 42, LatencyMS: 1500, TimeoutMS: 1500, Attempts: 1, Fallback: assay.FallbackFused}
	rerankCtx, s := p.StartStage(ctx, assay.StageRerank, Details{Model: assay.Model{Name: "ce"}, Provider: "tei", Candidates: 42})
	FromContext(rerankCtx).RecordReranker(outcome)
	s.End(late)
	_, s = p.StartStage(ctx, assay.StageAssemble, Details{})
	s.End(ok(assay.StageAssemble))
	_, s = p.StartStage(ctx, assay.StageGenerate, Details{Model: assay.Model{Name: "extractive"}, Provider: ProviderBuiltin})
	s.RecordUsage(assay.Usage{InputTokens: 900, OutputTokens: 80}, "extractive-1", "stop")
	s.RecordMessages([]assay.Message{{Role: "user", Content: "secret prompt"}}, "secret answer", "stop")
	s.End(ok(assay.StageGenerate))

	root.RecordQuestion("secret question")
	root.RecordQuery("secret query")
	root.RecordAnswer("secret answer")
	root.RecordManifest(&assay.Manifest{
		ID: "m_1", Collection: "docs",
		Config:   assay.ManifestConfig{Fingerprint: "f_1", Keep: 5, Depth: 50, Tuned: assay.Tuned{State: assay.Untuned}},
		Corpus:   assay.ManifestCorpus{Generation: 9},
		Stages:   []assay.Stage{ok(assay.StageEmbed), late},
		Reranker: outcome,
		Candidates: []assay.Candidate{
			{ChunkID: "c_1", DocID: "d_1", Disposition: assay.Dropped, Reason: assay.DropBelowKeep, Fused: &assay.Placing{Rank: 1, Score: 0.5}},
			{ChunkID: "c_2", DocID: "d_2", Disposition: assay.Kept, Rerank: &assay.Placing{Rank: 2, Score: 0.25}, Fused: &assay.Placing{Rank: 9, Score: 0.1}},
		},
		Context:  assay.ManifestContext{Tokens: 300, Budget: 3000},
		Prompt:   assay.ManifestPrompt{Tokens: 900},
		Answer:   assay.ManifestAnswer{Citations: make([]assay.Citation, 2), Invalid: []string{"[9]"}},
		Usage:    assay.Usage{InputTokens: 900, OutputTokens: 80, Cost: 0.5},
		Degraded: []assay.StageName{assay.StageRerank},
	})
	root.Finish(nil)
}

func TestTheTreeOfAnAnswer(t *testing.T) {
	p, exported := inMemory(t, Options{})
	answerWithATimeout(t, p)
	spans := byName(t, exported())
	parents := map[string]string{
		"invoke_workflow assay": "", "embeddings bge-small": "invoke_workflow assay", "retrieval docs": "invoke_workflow assay",
		"dense": "retrieval docs", "lexical": "retrieval docs", "fuse": "retrieval docs",
		"rerank ce": "invoke_workflow assay", "assemble": "invoke_workflow assay", "chat extractive": "invoke_workflow assay",
	}
	if len(spans) != len(parents) {
		t.Errorf("there are %d spans, want %d", len(spans), len(parents))
	}
	kinds := map[string]trace.SpanKind{"embeddings bge-small": trace.SpanKindClient, "rerank ce": trace.SpanKindClient}
	for name, parent := range parents {
		if got, want := spans[name].Parent.SpanID(), spans[parent].SpanContext.SpanID(); got != want {
			t.Errorf("the parent of %q is not %q", name, parent)
		}
		want := trace.SpanKindInternal
		if k, ok := kinds[name]; ok {
			want = k
		}
		if got := spans[name].SpanKind; got != want {
			t.Errorf("%s has the kind %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]map[string]string{
		"invoke_workflow assay": {
			"gen_ai.operation.name": "invoke_workflow", "openinference.span.kind": "CHAIN", "assay.manifest.id": "m_1",
			"assay.rerank.status": "timeout", "assay.rerank.fallback": "fused", "assay.degraded": "true", "assay.degraded.stages": "rerank",
			"assay.config.fingerprint": "f_1", "assay.corpus.generation": "9", "assay.candidates.count": "2", "assay.context.kept": "1",
			"assay.context.dropped": "1", "assay.usage.input_tokens": "900", "assay.usage.output_tokens": "80", "assay.usage.cost": "0.5",
			"gen_ai.usage.input_tokens": "", "assay.answer.citations": "2", "assay.answer.invalid_citations": "1",
			"assay.documents":         `[{"id":"c_2","doc":"d_2","rank":2,"score":0.25,"kept":true},{"id":"c_1","doc":"d_1","rank":1,"score":0.5,"kept":false,"reason":"below_keep"}]`,
			"assay.documents.omitted": "0", "error.type": "", "input.value": "", "output.value": "", "gen_ai.retrieval.query.text": "",
		},
		"embeddings bge-small": {
			"gen_ai.operation.name": "embeddings", "gen_ai.provider.name": "openai", "gen_ai.request.model": "bge-small",
			"gen_ai.embeddings.dimension.count": "384", "openinference.span.kind": "EMBEDDING", "gen_ai.usage.input_tokens": "7",
			"gen_ai.usage.output_tokens": "", "assay.stage.name": "embed", "assay.stage.status": "ok", "error.type": "",
		},
		"retrieval docs": {"gen_ai.retrieval.top_k": "50", "openinference.span.kind": "RETRIEVER", "assay.candidates.count": "42", "gen_ai.data_source.id": "docs"},
		"dense":          {"openinference.span.kind": "RETRIEVER", "assay.candidates.count": "41", "gen_ai.retrieval.top_k": "50"},
		"fuse":           {"openinference.span.kind": "CHAIN"},
		"rerank ce": {
			"assay.rerank.status": "timeout", "assay.rerank.candidates": "42", "assay.rerank.scored": "0", "assay.rerank.attempts": "1",
			"assay.rerank.latency_ms": "1500", "assay.rerank.timeout_ms": "1500", "assay.rerank.fallback": "fused",
			"openinference.span.kind": "RERANKER", "error.type": "timeout", "assay.stage.status": "timeout", "assay.stage.reason": "no answer within 1.5s",
		},
		"chat extractive": {
			"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": "900", "gen_ai.usage.output_tokens": "80", "gen_ai.request.top_k": "",
			"gen_ai.response.finish_reasons": `["stop"]`, "gen_ai.response.model": "extractive-1", "openinference.span.kind": "LLM",
			"gen_ai.input.messages": "", "gen_ai.output.messages": "",
		},
	} {
		wantAttributes(t, spans[name], want)
	}
	if s := spans["rerank ce"].Status; s.Code != codes.Error || s.Description != "no answer within 1.5s" {
		t.Errorf("the reranker's span has the status %v", s)
	}
	if s := spans["invoke_workflow assay"].Status; s.Code != codes.Ok {
		t.Errorf("the root has the status %v", s)
	}
	for name, candidates := range map[string]string{"rerank ce": "42", "invoke_workflow assay": "2"} {
		events := spans[name].Events
		if len(events) != 1 || events[0].Name != "assay.fallback" {
			t.Fatalf("%s has the events %v", name, events)
		}
		want := map[string]string{"assay.stage.name": "rerank", "status": "timeout", "elapsed_ms": "1500", "fallback": "fused", "candidates": candidates}
		if got := attributes(events[0].Attributes); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s has the event %v, want %v", name, got, want)
		}
	}
	for name, s := range spans {
		for key, value := range attributes(s.Attributes) {
			if strings.Contains(value, "secret") {
				t.Errorf("%s shows content in %s: %s", name, key, value)
			}
			if len(value) > indexed && key != string(KeyDocuments) {
				t.Errorf("%s: %s has %d bytes", name, key, len(value))
			}
		}
	}
}

func TestContentIsThereWhenItIsAskedFor(t *testing.T) {
	p, exported := inMemory(t, Options{CaptureContent: true})
	answerWithATimeout(t, p)
	spans := byName(t, exported())
	wantAttributes(t, spans["invoke_workflow assay"], map[string]string{
		"input.value": "secret question", "output.value": "secret answer", "gen_ai.retrieval.query.text": "secret query", "assay.content.truncated": "",
	})
	wantAttributes(t, spans["chat extractive"], map[string]string{
		"gen_ai.input.messages":  `[{"role":"user","parts":[{"type":"text","content":"secret prompt"}]}]`,
		"gen_ai.output.messages": `[{"role":"assistant","parts":[{"type":"text","content":"secret answer"}],"finish_reason":"stop"}]`,
	})
}

func TestLongContentIsCutAndSaysSo(t *testing.T) {
	p, exported := inMemory(t, Options{CaptureContent: true})
	_, root := p.StartWorkflow(t.Context(), "docs")
	root.RecordQuestion(strings.Repeat("ä", contentBytes))
	root.Finish(nil)
	_, chat := p.StartStage(t.Context(), assay.StageGenerate, Details{})
	chat.RecordMessages([]assay.Message{
		{Role: "user", Content: "earlier " + strings.Repeat("x", contentBytes)},
		{Role: "assistant", Content: "yes"},
		{Role: "user", Content: "now"},
	}, strings.Repeat("\x01", contentBytes), "stop")
	chat.End(assay.Stage{Name: assay.StageGenerate, Status: assay.StatusOK})
	for _, s := range exported() {
		got := attributes(s.Attributes)
		if got["assay.content.truncated"] != "true" {
			t.Errorf("%s does not say that it is cut", s.Name)
		}
		if s.Name == SpanWorkflow {
			if v := got["input.value"]; len(v) != contentBytes || !utf8.ValidString(v) {
				t.Errorf("the question has %d bytes", len(v))
			}
			continue
		}
		if want := `[{"role":"assistant","parts":[{"type":"text","content":"yes"}]},{"role":"user","parts":[{"type":"text","content":"now"}]}]`; got["gen_ai.input.messages"] != want {
			t.Errorf("input is %s", got["gen_ai.input.messages"])
		}
		var out []message
		if v := got["gen_ai.output.messages"]; len(v) > contentBytes || json.Unmarshal([]byte(v), &out) != nil || len(out) != 1 || len(out[0].Parts[0].Content) < contentBytes/10 {
			t.Errorf("output has %d bytes: %.100s", len(v), v)
		}
	}
}

type statusError int

func (e statusError) Error() string   { return fmt.Sprint("status ", int(e)) }
func (e statusError) StatusCode() int { return int(e) }

func TestErrorTypes(t *testing.T) {
	for _, c := range []struct {
		name   string
		note   func(*Span)
		status assay.Status
		want   string
	}{
		{"timeout", func(*Span) {}, assay.StatusTimeout, "timeout"},
		{"timeout after an answer", func(s *Span) { s.FailStatus(503) }, assay.StatusTimeout, "timeout"},
		{"status in an error", func(s *Span) { s.Fail(fmt.Errorf("x: %w", statusError(429))) }, assay.StatusError, "429"},
		{"status of a success", func(s *Span) { s.Fail(statusError(200)) }, assay.StatusError, "_OTHER"},
		{"status", func(s *Span) { s.FailStatus(502) }, assay.StatusError, "502"},
		{"no status", func(s *Span) { s.FailStatus(0) }, assay.StatusError, "_OTHER"},
		{"unreachable", func(*Span) {}, assay.StatusUnavailable, "unavailable"},
		{"unreachable error", func(s *Span) { s.Fail(assay.ErrUnavailable) }, assay.StatusUnavailable, "unavailable"},
		{"cancelled", func(s *Span) { s.Fail(context.Canceled) }, assay.StatusError, "cancelled"},
		{"ok", func(s *Span) { s.Fail(nil) }, assay.StatusOK, ""},
		{"skipped", func(*Span) {}, assay.StatusSkipped, ""},
		{"disabled", func(*Span) {}, assay.StatusDisabled, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, exported := inMemory(t, Options{})
			_, s := p.StartStage(t.Context(), assay.StageGenerate, Details{Model: assay.Model{Name: "m"}, Provider: "openai"})
			c.note(s)
			s.End(assay.Stage{Name: assay.StageGenerate, Status: c.status, Reason: "why\xff " + strings.Repeat("y", 500)})
			span := exported()[0]
			got := attributes(span.Attributes)
			if got["error.type"] != c.want || got["assay.stage.status"] != string(c.status) {
				t.Errorf("attributes are %v, want error.type %q", got, c.want)
			}
			if failed := span.Status.Code == codes.Error; failed != (c.want != "") || len(span.Events) > 0 != failed {
				t.Errorf("status is %v with %d events", span.Status, len(span.Events))
			}
			if v := got["assay.stage.reason"]; len(v) != indexed || !utf8.ValidString(v) {
				t.Errorf("the reason has %d bytes: %q", len(v), v)
			}
			if !utf8.ValidString(span.Status.Description) || len(span.Status.Description) > indexed {
				t.Errorf("the description is %q", span.Status.Description)
			}
		})
	}
	for want, err := range map[string]error{"timeout": context.DeadlineExceeded, "503": statusError(503), "_OTHER": errors.New("x")} {
		p, exported := inMemory(t, Options{})
		_, root := p.StartWorkflow(t.Context(), "docs")
		root.Finish(err)
		if s := exported()[0]; s.Status.Code != codes.Error || attributes(s.Attributes)["error.type"] != want {
			t.Errorf("root with %v has the status %v and %v", err, s.Status, attributes(s.Attributes))
		}
	}
}

func TestThereMayBeNoSpan(t *testing.T) {
	s := FromContext(t.Context())
	if s != nil || s.TraceID() != "" {
		t.Fatalf("there is a span: %v", s)
	}
	s.RecordReranker(assay.ManifestReranker{})
	s.RecordUsage(assay.Usage{}, "", "")
	s.RecordFound(1)
	s.RecordManifest(&assay.Manifest{})
	s.RecordQuestion("")
	s.RecordQuery("")
	s.RecordAnswer("")
	s.RecordMessages(nil, "", "")
	s.Fail(errors.New("x"))
	s.FailStatus(500)
	s.End(assay.Stage{})
	s.Finish(nil)
}

// However many candidates there are and however long their IDs: valid JSON, within the bound, a prefix
// of the kept ones followed by the dropped ones, and a true number of those left out.
func TestDocumentsAreCutBetweenElements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 120).Draw(t, "n")
		candidates := make([]assay.Candidate, n)
		var kept, dropped []string
		for i := range candidates {
			c := &candidates[i]
			c.ChunkID = fmt.Sprintf("c_%d", i)
			c.DocID = rapid.String().Draw(t, "doc") + strings.Repeat("/long", rapid.IntRange(0, 60).Draw(t, "length"))
			c.Fused = &assay.Placing{Rank: i + 1, Score: rapid.SampledFrom([]float64{0.5, math.NaN(), math.Inf(1)}).Draw(t, "score")}
			c.Disposition = assay.Dropped
			if rapid.Bool().Draw(t, "kept") {
				c.Disposition = assay.Kept
				kept = append(kept, c.ChunkID)
			} else {
				dropped = append(dropped, c.ChunkID)
			}
		}
		max := rapid.IntRange(2, 9000).Draw(t, "max")
		text, omitted := encodeDocuments(candidates, max)
		if len(text) > max {
			t.Fatalf("%d bytes, %d allowed", len(text), max)
		}
		var got []document
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if len(got)+omitted != n {
			t.Fatalf("%d there and %d omitted of %d", len(got), omitted, n)
		}
		want := append(kept, dropped...)
		if !slices.EqualFunc(got, want[:len(got)], func(d document, id string) bool { return d.Chunk == id }) {
			t.Fatalf("order is %v, want %v", got, want)
		}
		if max > 2+len(`{"id":"c_119","doc":"","rank":120,"score":0.5,"kept":false}`)+6*320*6 && n > 0 && len(got) == 0 {
			t.Fatalf("nothing is there though %d bytes are allowed", max)
		}
	})
}

func TestDocumentsUseAllTheBytesTheyMay(t *testing.T) {
	candidates := make([]assay.Candidate, 3)
	for i := range candidates {
		candidates[i].ChunkID = fmt.Sprint("c_", i)
	}
	whole, _ := encodeDocuments(candidates, 1000)
	for want, max := range map[int]int{0: len(whole), 1: len(whole) - 1, 3: 2} {
		if text, omitted := encodeDocuments(candidates, max); omitted != want || len(text) > max {
			t.Errorf("with %d bytes %d are omitted, want %d: %s", max, omitted, want, text)
		}
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("ä\xffö", 2)
	f.Add("\x80\x80\x80\x80\x80", 1)
	f.Fuzz(func(t *testing.T, text string, max int) {
		if max < 0 || max > 1<<20 {
			return
		}
		got := shorten(text, max)
		if len(got) > max || !utf8.ValidString(got) {
			t.Errorf("%q cut to %d is %q", text, max, got)
		}
		if utf8.ValidString(text) && !strings.HasPrefix(text, got) {
			t.Errorf("%q cut to %d is %q, which is no prefix", text, max, got)
		}
		if utf8.ValidString(text) && len(text) <= max && got != text {
			t.Errorf("%q was cut though %d bytes are allowed", text, max)
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	p, err := Setup(b.Context(), quiet(), Options{Exporters: nil})
	if err != nil {
		b.Fatal(err)
	}
	m := &assay.Manifest{Candidates: make([]assay.Candidate, 50)}
	for b.Loop() {
		ctx, root := p.StartWorkflow(b.Context(), "docs")
		for _, name := range []assay.StageName{assay.StageEmbed, assay.StageDense, assay.StageLexical, assay.StageFuse, assay.StageRerank, assay.StageAssemble, assay.StageGenerate} {
			_, s := p.StartStage(ctx, name, Details{Model: assay.Model{Name: "m"}})
			s.End(assay.Stage{Name: name, Status: assay.StatusOK})
		}
		root.RecordManifest(m)
		root.Finish(nil)
	}
}
