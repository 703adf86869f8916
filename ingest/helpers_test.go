package ingest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"assay"

	"golang.org/x/text/unicode/norm"
)

// store is a catalogue in memory: what an engine keeps, without its disk.
type store struct {
	mu    sync.Mutex                 // guards what follows
	byURI map[string]*assay.Document // by URI
	ids   map[string]string          // ID to URI
}

var _ Catalogue = (*store)(nil)

func newStore() *store {
	return &store{byURI: map[string]*assay.Document{}, ids: map[string]string{}}
}

func (s *store) ByURI(uri string) (id, hash string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.byURI[uri]; d != nil {
		return d.ID, d.Hash, true
	}
	return "", "", false
}

func (s *store) Taken(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.ids[id]
	return ok
}

func (s *store) put(t testing.TB, d *assay.Document) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if uri, ok := s.ids[d.ID]; ok && uri != d.URI {
		t.Fatalf("the ID %q of %s was given to %s as well", d.ID, uri, d.URI)
	}
	s.byURI[d.URI], s.ids[d.ID] = d, d.URI
}

// ingestInto reads the roots as an engine does, storing while it reads.
func ingestInto(t testing.TB, s *store, o Options, roots ...Root) []Result {
	t.Helper()
	o.Catalogue = s
	var out []Result
	for r := range Read(context.Background(), discard(), roots, o) {
		if r.Document != nil {
			s.put(t, r.Document)
		}
		out = append(out, r)
	}
	return out
}

func readAll(t testing.TB, o Options, roots ...Root) []Result {
	t.Helper()
	return ingestInto(t, newStore(), o, roots...)
}

// readOne reads a stream that holds one document.
func readOne(t testing.TB, name, content string) Result {
	t.Helper()
	results := readAll(t, Options{}, StreamRoot(name, strings.NewReader(content)))
	if len(results) != 1 {
		t.Fatalf("%s: %d results, want 1", name, len(results))
	}
	return results[0]
}

func textOfStream(t testing.TB, name, content string) string {
	t.Helper()
	r := readOne(t, name, content)
	if r.Document == nil {
		t.Fatalf("%s: skipped: %s: %v", name, r.Reason, r.Err)
	}
	return r.Document.Text
}

// tree writes files below a fresh folder named docs.
func writeTree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "docs")
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func parseRoot(t testing.TB, arg string) Root {
	t.Helper()
	r, err := ParseRoot(arg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func memRoot(files map[string]string) Root {
	fsys := fstest.MapFS{}
	for name, content := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return FSRoot("sample", fsys)
}

// ids are the IDs of what was read, and the reasons of what was not.
func ids(results []Result) []string {
	var out []string
	for _, r := range results {
		if r.State == StateSkipped {
			out = append(out, string(r.Reason))
		} else {
			out = append(out, r.ID)
		}
	}
	return out
}

// sharedData is a file of the public test data, or a skipped test where it is absent.
func sharedData(t testing.TB, path string) string {
	t.Helper()
	full := filepath.Join("..", "..", "shared", "data", filepath.FromSlash(path))
	if _, err := os.Stat(full); err != nil {
		t.Skipf("public test data is absent: %v", err)
	}
	return full
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// checkResult holds for every result, whatever was read.
func checkResult(t testing.TB, r Result) {
	t.Helper()
	if r.State == StateSkipped {
		if r.Reason == "" || r.Err == nil || r.Document != nil {
			t.Fatalf("skipped without saying why: %+v", r)
		}
		return
	}
	if r.Document == nil {
		t.Fatalf("%s without a document", r.State)
	}
	if d := r.Document; d.ID == "" || d.URI == "" || d.Hash == "" || d.Format == "" {
		t.Fatalf("incomplete document: %+v", d)
	}
	checkText(t, r.Document)
}

func checkText(t testing.TB, d *assay.Document) {
	t.Helper()
	for _, s := range []string{d.Text, d.Title, d.ID} {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, invisible) || strings.ContainsRune(s, '\r') {
			t.Fatalf("%q is not clean", s)
		}
	}
	if !norm.NFC.IsNormalString(d.Text) {
		t.Fatalf("%q is not in NFC", d.Text)
	}
	if strings.TrimSpace(d.Text) == "" {
		t.Fatalf("no text in %+v", d)
	}
}

// parseDirectly runs a parser without the pipeline around it, whose goroutines would hide from the
// fuzzer what an input reaches. The document is nil where the source is refused with a reason.
func parseDirectly(t testing.TB, name string, f format, src string) *assay.Document {
	t.Helper()
	p, err := reader{lg: discard(), o: Options{}.withDefaults()}.parse(t.Context(), name, f, []byte(src))
	if err != nil {
		if _, ok := errors.AsType[*skipError](err); !ok {
			t.Fatalf("refused without a reason: %v", err)
		}
		return nil
	}
	checkText(t, p.doc)
	return p.doc
}
