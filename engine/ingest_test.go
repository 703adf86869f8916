package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"assay/ingest"
)

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
