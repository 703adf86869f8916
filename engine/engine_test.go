package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"assay"
	"assay/assemble"
	"assay/chunker"
	"assay/generate"
	"assay/index"
	"assay/ingest"
	"assay/rerank"
	"assay/retriever"
	"assay/traces"
)

// words is a deterministic embedder that fails when told to.
type words struct {
	err   error
	texts int // that were embedded as documents
}

func (*words) Model() assay.Model { return assay.Model{Name: "words", Dimensions: 16} }

func (w *words) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	return wordVector(text), w.err
}

func (w *words) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	if w.err != nil {
		return nil, w.err
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = wordVector(text)
	}
	w.texts += len(texts)
	return out, nil
}

func wordVector(text string) []float32 {
	v := make([]float32, 16)
	v[0] = 0.01 // no vector is zero
	for _, word := range strings.Fields(strings.ToLower(text)) {
		h := fnv.New32a()
		h.Write([]byte(word))
		v[h.Sum32()%16]++
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x * x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// world is an engine with everything that a test wants to look at.
type world struct {
	*Engine
	words  *words
	index  *index.Index
	log    bytes.Buffer
	spans  *tracetest.InMemoryExporter
	traces *traces.Provider
}

// setup is what a test can choose.
type setup struct {
	dir       string
	rerank    rerank.Options
	options   Options
	retriever retriever.Options
	chunker   chunker.Options
	generator Generator
	verifier  *generate.Verifier
	relevance func(string, generate.Passage) float64
}

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{words: &words{}, spans: tracetest.NewInMemoryExporter()}
	lg := slog.New(slog.NewTextHandler(&w.log, nil))
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	w.index, err = index.Open(lg, s.dir, index.Options{})
	must(err)
	w.traces, err = traces.Setup(t.Context(), lg, traces.Options{Exporters: []sdktrace.SpanExporter{w.spans}})
	must(err)
	chunks, err := chunker.New(s.chunker)
	must(err)
	retrieve, err := retriever.New(lg, w.words, s.retriever)
	must(err)
	reranker, err := rerank.New(lg, s.rerank)
	must(err)
	if s.generator == nil {
		s.generator = generate.NewExtractive(lg, generate.ExtractiveOptions{Count: chunks.Tokenizer().Count})
	}
	w.Engine, err = New(lg, Deps{
		Index: w.index, Chunker: chunks, Embedder: w.words, Retriever: retrieve,
		Reranker: reranker, Generator: s.generator, Verifier: s.verifier, Traces: w.traces, Relevance: s.relevance,
	}, s.options)
	must(err)
	t.Cleanup(func() {
		ctx := context.Background()
		reranker.Close()
		if err := w.index.Check(ctx); err != nil {
			t.Error(err)
		}
		if err := errors.Join(w.index.Close(), w.traces.Shutdown(ctx)); err != nil {
			t.Error(err)
		}
	})
	return w
}

// pages are a small corpus with a policy that has an older version.
func pages() fstest.MapFS {
	return fstest.MapFS{
		"keys.md":        {Data: []byte("# Rotate a signing key\n\nCreate the new key. Promote the new key with an overlap of 24 hours. Retire the old key.\n")},
		"refunds.md":     {Data: []byte("---\nsupersedes: old/refunds.md\n---\n# Refund policy\n\nA refund is returned within 5 business days of approval.\n")},
		"old/refunds.md": {Data: []byte("# Refund policy (2022)\n\nA refund is returned within 10 business days of approval.\n")},
		"weather.html":   {Data: []byte("<html><head><title>Weather</title></head><body><main><p>The weather is not covered by the warranty.</p></main></body></html>")},
	}
}

func (w *world) ingest(t *testing.T, fsys fs.FS, o IngestOptions) Summary {
	t.Helper()
	s, err := w.Ingest(t.Context(), []ingest.Root{ingest.FSRoot("docs", fsys)}, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// counts writes what a run did.
func counts(s Summary) string {
	return fmt.Sprintf("%d added, %d changed, %d unchanged, %d removed, %d skipped", s.Added, s.Changed, s.Unchanged, s.Removed, len(s.Skipped))
}

// finds reports whether a text is found in either channel.
func (w *world) finds(t *testing.T, text string) bool {
	t.Helper()
	r, err := w.Search(t.Context(), assay.Query{Text: text, Keep: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Candidates {
		if strings.Contains(c.Text, text) {
			return true
		}
	}
	return false
}

func TestIngestProcessesOnlyWhatChanged(t *testing.T) {
	w := newWorld(t, setup{})
	docs := pages()
	if got := counts(w.ingest(t, docs, IngestOptions{})); got != "4 added, 0 changed, 0 unchanged, 0 removed, 0 skipped" {
		t.Errorf("first run: %s", got)
	}
	embedded := w.words.texts
	if got := counts(w.ingest(t, docs, IngestOptions{})); got != "0 added, 0 changed, 4 unchanged, 0 removed, 0 skipped" {
		t.Errorf("second run: %s", got)
	}
	if w.words.texts != embedded {
		t.Error("unchanged documents were embedded again")
	}
	docs["keys.md"] = &fstest.MapFile{Data: []byte("# Rotate a signing key\n\nAsk the desk for a ceremony.\n")}
	delete(docs, "weather.html")
	dry := w.ingest(t, docs, IngestOptions{Prune: true, DryRun: true})
	if got := counts(dry); got != "0 added, 1 changed, 2 unchanged, 1 removed, 0 skipped" || dry.Documents != 4 {
		t.Errorf("dry run: %s, and %d documents", got, dry.Documents)
	}
	if !w.finds(t, "warranty") || w.finds(t, "ceremony") {
		t.Error("a dry run changed the corpus")
	}
	real := w.ingest(t, docs, IngestOptions{Prune: true})
	if counts(real) != counts(dry) {
		t.Errorf("the dry run said %s, the run did %s", counts(dry), counts(real))
	}
	if w.finds(t, "warranty") || w.finds(t, "overlap of 24 hours") || !w.finds(t, "ceremony") {
		t.Error("old text is still found, or new text is not")
	}
}

func TestWithoutPruneNothingIsRemoved(t *testing.T) {
	w := newWorld(t, setup{})
	w.ingest(t, pages(), IngestOptions{})
	docs := pages()
	delete(docs, "weather.html")
	if got := counts(w.ingest(t, docs, IngestOptions{})); got != "0 added, 0 changed, 3 unchanged, 0 removed, 0 skipped" || !w.finds(t, "warranty") {
		t.Errorf("got %s", got)
	}
}

func TestADocumentThatBecomesEmptyIsReportedAndGone(t *testing.T) {
	w := newWorld(t, setup{})
	docs := pages()
	w.ingest(t, docs, IngestOptions{})
	docs["weather.html"] = &fstest.MapFile{Data: []byte("<html><body><nav>Home</nav></body></html>")}
	s := w.ingest(t, docs, IngestOptions{})
	if counts(s) != "0 added, 0 changed, 3 unchanged, 1 removed, 1 skipped" || s.Skipped[0].Reason != ingest.SkipEmpty && s.Skipped[0].Reason != NoText {
		t.Errorf("got %s: %+v", counts(s), s.Skipped)
	}
	if w.finds(t, "warranty") {
		t.Error("what the page said before is still found")
	}
}

func TestAnUnreadableDocumentStopsNothingAndKeepsItsEarlierVersion(t *testing.T) {
	w := newWorld(t, setup{})
	docs := pages()
	w.ingest(t, docs, IngestOptions{})
	docs["keys.md"] = &fstest.MapFile{Data: []byte("\x00\x01\x02\xff\xfe\x00\x80\x90\x00\x01")}
	docs["new.md"] = &fstest.MapFile{Data: []byte("A further page about webhooks.")}
	s := w.ingest(t, docs, IngestOptions{Prune: true})
	if s.Added != 1 || len(s.Skipped) != 1 || !s.Skipped[0].Kept || s.Removed != 0 {
		t.Errorf("got %s: %+v", counts(s), s.Skipped)
	}
	if s.Failures() != 1 {
		t.Errorf("%d failures are counted", s.Failures())
	}
	if !w.finds(t, "overlap of 24 hours") || !w.finds(t, "webhooks") {
		t.Error("the earlier version is gone, or the new page is not found")
	}
}

func TestAFailingEmbedderEndsTheRunAndTheNextOneGoesOn(t *testing.T) {
	w := newWorld(t, setup{})
	w.words.err = errors.New("the endpoint answered 401")
	s, err := w.Ingest(t.Context(), []ingest.Root{ingest.FSRoot("docs", pages())}, IngestOptions{})
	if err == nil || !strings.Contains(err.Error(), "401") || s.Added != 0 {
		t.Errorf("%s, %v", counts(s), err)
	}
	w.words.err = nil
	if got := w.ingest(t, pages(), IngestOptions{}); got.Added != 4 {
		t.Errorf("the next run: %s", counts(got))
	}
}

// zeroes gives texts with a certain word a vector without direction.
type zeroes struct{ *words }

func (z zeroes) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	out, err := z.words.EmbedDocuments(ctx, texts)
	for i, text := range texts {
		if strings.Contains(text, "warranty") {
			clear(out[i])
		}
	}
	return out, err
}

func TestADocumentThatCannotBeStoredStopsNothing(t *testing.T) {
	w := newWorld(t, setup{})
	w.d.Embedder = zeroes{w.words}
	s := w.ingest(t, pages(), IngestOptions{})
	if counts(s) != "3 added, 0 changed, 0 unchanged, 0 removed, 1 skipped" || s.Skipped[0].Reason != NotStorable || s.Failures() != 1 {
		t.Errorf("got %s: %+v", counts(s), s.Skipped)
	}
	if !w.finds(t, "overlap of 24 hours") {
		t.Error("the others are not found")
	}
}

func TestIngestFromDiskByFolderAndByFile(t *testing.T) {
	w := newWorld(t, setup{})
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("a/one.md", "first page")
	write("a/two.md", "second page")
	run := func(o IngestOptions, paths ...string) Summary {
		var roots []ingest.Root
		for _, p := range paths {
			root, err := ingest.ParseRoot(filepath.Join(dir, p))
			if err != nil {
				t.Fatal(err)
			}
			roots = append(roots, root)
		}
		s, err := w.Ingest(t.Context(), roots, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	run(IngestOptions{}, "a")
	write("a/one.md", "first page, revised")
	if got := counts(run(IngestOptions{Prune: true}, "a/one.md")); got != "0 added, 1 changed, 0 unchanged, 0 removed, 0 skipped" {
		t.Errorf("one file by itself: %s", got)
	}
	if !w.finds(t, "second page") || !w.finds(t, "revised") {
		t.Error("ingesting one file disturbed the rest of its folder")
	}
}

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

// slowReranker answers only when the request ends.
func slowReranker(t *testing.T) string {
	t.Helper()
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-stop:
		}
	}))
	t.Cleanup(func() { close(stop); s.Close() })
	return s.URL
}

// attributes finds a span by its name and returns its attributes.
func (w *world) attributes(t *testing.T, name string) map[attribute.Key]attribute.Value {
	t.Helper()
	out := make(map[attribute.Key]attribute.Value)
	for _, s := range w.spans.GetSpans() {
		if s.Name == name {
			for _, kv := range s.Attributes {
				out[kv.Key] = kv.Value
			}
			return out
		}
	}
	t.Fatalf("there is no span %q", name)
	return nil
}

func (w *world) flush(t *testing.T) {
	t.Helper()
	if err := w.traces.TracerProvider().(*sdktrace.TracerProvider).ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
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
