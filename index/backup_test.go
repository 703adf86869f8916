package index_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay"
	"assay/index"
)

func TestABackupIsRestored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ix := open(t, dir, index.Options{})
	apply(t, ix, index.Batch{Put: []index.Entry{plain("a", "A", "key one"), plain("b", "B", "key two")}})
	if err := ix.PutManifest(t.Context(), &assay.Manifest{ID: "m_1", CreatedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "backup")
	size, err := ix.Backup(t.Context(), path)
	info, statErr := os.Stat(path)
	if err := errors.Join(err, statErr); err != nil || info.Size() != size || info.Mode().Perm() != 0o600 {
		t.Fatalf("%d bytes, %v, %v", size, info, err)
	}
	apply(t, ix, index.Batch{Put: []index.Entry{plain("c", "C", "key three")}}) // is not in it
	if _, err := ix.Backup(t.Context(), path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("an earlier backup is overwritten: %v", err)
	}
	lg := slog.New(slog.DiscardHandler)
	if _, err := index.Restore(t.Context(), lg, path, dir, index.Options{}); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("a collection is overwritten: %v", err)
	}
	other := filepath.Join(t.TempDir(), "new")
	stats, err := index.Restore(t.Context(), lg, path, other, index.Options{})
	if err != nil || stats.Documents != 2 || stats.Manifests != 1 {
		t.Fatalf("%+v, %v", stats, err)
	}
	restored := open(t, other, index.Options{})
	s := restored.Snapshot()
	defer s.Close()
	expect(t, s, "key", "key one", "key two")
	if m, err := restored.Manifest("m_1"); err != nil || m.ID != "m_1" {
		t.Errorf("%v, %v", m, err)
	}
	if entries, err := os.ReadDir(other); err != nil || len(entries) != 1 {
		t.Errorf("the restore left something behind: %v, %v", entries, err)
	}
}

// A backup is of one instant, whatever is written while it is made.
func TestABackupWhileWritingIsWhole(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			id := string(rune('a' + i%20))
			if _, err := ix.Apply(ctx, testFingerprint, index.Batch{Put: []index.Entry{plain(id, id, "key one", "key two")}}); err != nil && ctx.Err() == nil {
				done <- err
				return
			}
		}
	}()
	for range 5 {
		path := filepath.Join(t.TempDir(), "backup")
		if _, err := ix.Backup(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if _, err := index.Restore(t.Context(), slog.New(slog.DiscardHandler), path, t.TempDir(), index.Options{}); err != nil {
			t.Error(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWhatIsNoBackupIsNotRestored(t *testing.T) {
	t.Parallel()
	source := open(t, t.TempDir(), index.Options{})
	apply(t, source, index.Batch{Put: []index.Entry{plain("a", "A", "key one")}})
	good := filepath.Join(t.TempDir(), "good")
	if _, err := source.Backup(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"empty":     {},
		"text":      []byte("# Notes\n"),
		"truncated": data[:len(data)/2],
		"changed":   bytes.ReplaceAll(data, []byte("key one"), []byte("key two")),
	} {
		t.Run(name, func(t *testing.T) {
			path, dir := filepath.Join(t.TempDir(), "backup"), t.TempDir()
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := index.Restore(t.Context(), slog.New(slog.DiscardHandler), path, dir, index.Options{})
			if err == nil {
				t.Fatal("it was restored")
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
	for name, path := range map[string]string{"missing": filepath.Join(t.TempDir(), "x"), "a folder": t.TempDir()} {
		if _, err := index.Restore(t.Context(), slog.New(slog.DiscardHandler), path, t.TempDir(), index.Options{}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestABackupThatIsInterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if _, err := ix.Backup(ctx, filepath.Join(dir, "backup")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if _, err := ix.Backup(t.Context(), filepath.Join(dir, "no", "backup")); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("%v", err)
	}
}

// unpack makes a data directory of an archive in testdata.
func unpack(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	archive := tar.NewReader(z)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o700)
		} else {
			var data []byte
			if data, err = io.ReadAll(archive); err == nil {
				err = os.WriteFile(path, data, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Directories that earlier versions wrote stay readable: with what they hold, and for writes.
func TestFormerFormatsAreRead(t *testing.T) {
	t.Parallel()
	dir := unpack(t, "format1.tar.gz")
	for _, more := range []string{"a further key", "another key"} {
		ix := open(t, dir, index.Options{})
		s := ix.Snapshot()
		if more == "a further key" {
			expect(t, s, "key", "promote the new key", "the key to a plan")
			if s.Generation() != 3 {
				t.Errorf("generation %d", s.Generation())
			}
		}
		if m, err := ix.ManifestByTrace("t1"); err != nil || m.ID != "m_1" {
			t.Errorf("%v, %v", m, err)
		}
		if v, err := ix.GetVectors(testFingerprint.Embedder, []string{"h"}); err != nil || v[0] == nil {
			t.Errorf("%v, %v", v, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		apply(t, ix, index.Batch{Put: []index.Entry{plain(more, "More", more)}})
		checkAndClose(t, ix)
	}
	s := open(t, dir, index.Options{}).Snapshot()
	defer s.Close()
	expect(t, s, "key", "a further key", "another key", "promote the new key", "the key to a plan")
}
