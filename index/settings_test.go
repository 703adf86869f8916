package index_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"assay"
	"assay/index"
)

func TestOtherSettingsAreAMismatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ix := open(t, dir, index.Options{})
	if err := ix.CheckFingerprint(index.Fingerprint{Embedder: assay.Model{Name: "any", Dimensions: 3}}); err != nil {
		t.Errorf("an empty corpus: %v", err)
	}
	apply(t, ix, index.Batch{Put: []index.Entry{plain("a", "A", "key one")}})
	if err := ix.CheckFingerprint(testFingerprint); err != nil {
		t.Errorf("the same settings: %v", err)
	}
	f := testFingerprint
	f.Embedder.Dimensions, f.Chunker, f.Analyzer = 384, "size=512", "de"
	_, applied := ix.Apply(t.Context(), f, index.Batch{Put: []index.Entry{plain("b", "B", "key two")}})
	for name, err := range map[string]error{"check": ix.CheckFingerprint(f), "apply": applied} {
		var m *index.MismatchError
		if !errors.As(err, &m) || len(m.Fields) != 3 {
			t.Fatalf("%s: %v", name, err)
		}
		for _, want := range []string{"embedder", "384 dimensions", "8 dimensions", "size=512", `"de"`, "assay ingest --rebuild", "--data"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", name, err, want)
			}
		}
	}
	checkAndClose(t, ix)

	var m *index.MismatchError
	if _, err := index.Open(slog.New(slog.DiscardHandler), dir, index.Options{Analyzer: "de"}); !errors.As(err, &m) || m.Fields[0].Field != "analyzer" {
		t.Fatalf("open with another analyser: %v", err)
	}

	// A rebuild opens it all the same, drops the corpus and takes the new settings.
	ix = open(t, dir, index.Options{Analyzer: "de", AllowMismatch: true})
	if got := ix.Stats().Analyzer; got != "en" {
		t.Errorf("searched with %q before the reset", got)
	}
	before := ix.Snapshot()
	if err := ix.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, before, "key", "key one")
	if err := before.Close(); err != nil {
		t.Error(err)
	}
	e := plain("a", "A", "die Katzen schlafen")
	e.Vectors[0] = vectorOf(1, 384)
	f.Analyzer = ""
	if _, err := ix.Apply(t.Context(), f, index.Batch{Put: []index.Entry{e}}); err != nil {
		t.Fatal(err)
	}
	s := ix.Snapshot()
	defer s.Close()
	if s.Generation() != 3 || s.Documents() != 1 || ix.Stats().Analyzer != "de" {
		t.Errorf("generation %d, %d documents, %q", s.Generation(), s.Documents(), ix.Stats().Analyzer)
	}
	if hits, err := s.Lexical(t.Context(), "Katze", 5, assay.Filter{}); err != nil || len(hits) != 1 {
		t.Errorf("%d hits, %v", len(hits), err)
	}
}

func TestAnEmptiedCorpusTakesOtherSettings(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	apply(t, ix, index.Batch{Put: []index.Entry{plain("a", "A", "key one")}})
	apply(t, ix, index.Batch{Delete: []string{"a"}})
	f := index.Fingerprint{Embedder: assay.Model{Name: "other", Dimensions: 3}, Chunker: "other"}
	e := plain("a", "A", "key one")
	e.Vectors[0] = []float32{1, 2, 2}
	if _, err := ix.Apply(t.Context(), f, index.Batch{Put: []index.Entry{e}}); err != nil {
		t.Fatal(err)
	}
	s := ix.Snapshot()
	defer s.Close()
	if hits, err := s.Dense(t.Context(), []float32{1, 2, 2}, 5, assay.Filter{}); err != nil || len(hits) != 1 {
		t.Errorf("%d hits, %v", len(hits), err)
	}
}

func TestHeldDirectoryIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir, index.Options{})
	start := time.Now()
	_, err := index.Open(slog.New(slog.DiscardHandler), dir, index.Options{LockTimeout: 100 * time.Millisecond})
	var locked *index.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("%v", err)
	}
	if locked.PID != os.Getpid() || locked.Command == "" || time.Since(locked.Since) > time.Hour || time.Since(start) > 10*time.Second {
		t.Errorf("%+v after %s", locked, time.Since(start))
	}
	if text := err.Error(); !strings.Contains(text, locked.Command) || !strings.Contains(text, "--data") {
		t.Errorf("%q says neither who nor what to do", text)
	}
	// Another collection of the same directory is another index.
	open(t, dir, index.Options{Collection: "other", LockTimeout: 100 * time.Millisecond})
}

func TestUnusableDirectories(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := index.Open(slog.New(slog.DiscardHandler), file, index.Options{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file as directory: %v", err)
	}
	dir := t.TempDir()
	checkAndClose(t, open(t, dir, index.Options{}))
	path := filepath.Join(dir, "default", "store.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte{0, 0, 0, 0, 0, 0, 0, 99})
	}), db.Close())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := index.Open(slog.New(slog.DiscardHandler), dir, index.Options{}); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("a newer format: %v", err)
	}
}

func TestUnusableOptions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o    index.Options
		want []string
	}{
		"analyser": {index.Options{Analyzer: "klingon"}, []string{"klingon", "cjk", "de", "en", "standard"}},
		"all":      {index.Options{Collection: "../x", K1: -1, B: 2, TitleWeight: 1e9, LockTimeout: -1, CacheBytes: -1}, []string{"collection", "index.k1", "index.b", "index.title_weight", "index.lock_timeout", "index.cache_bytes"}},
		"weights":  {index.Options{TitleWeight: -1, HeadingWeight: -1, BodyWeight: -1}, []string{"all field weights"}},
	} {
		_, err := index.Open(slog.New(slog.DiscardHandler), t.TempDir(), c.o)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", name, err, want)
			}
		}
	}
	if err := (index.Options{}).Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}
