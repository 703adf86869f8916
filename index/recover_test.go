package index_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/index"
)

// lexicalFolder is where bleve's index of a collection lies.
func lexicalFolder(dir string) string { return filepath.Join(dir, "default", "bm25") }

// threeGenerations leaves a closed index of three generations and returns a copy of the lexical index
// as it was after the first.
func threeGenerations(t *testing.T, dir string) (first string) {
	t.Helper()
	ix := open(t, dir, index.Options{})
	apply(t, ix, index.Batch{Put: []index.Entry{plain("a", "A", "key a one", "key a two"), plain("b", "B", "key b")}})
	checkAndClose(t, ix)
	first = filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(first, os.DirFS(lexicalFolder(dir))); err != nil {
		t.Fatal(err)
	}
	ix = open(t, dir, index.Options{})
	apply(t, ix, index.Batch{Put: []index.Entry{plain("a", "A", "key a new")}})
	apply(t, ix, index.Batch{Put: []index.Entry{plain("c", "C", "key c")}, Delete: []string{"b"}})
	checkAndClose(t, ix)
	return first
}

// Whatever becomes of the lexical index between two runs, the next start brings it up to the store
// and says so. The first case is a crash after the store had the writes on disk and before bleve did.
func TestOpenBringsTheLexicalIndexUpToTheStore(t *testing.T) {
	t.Parallel()
	eachFile := func(suffix string, change func(path string, data []byte) error) func(*testing.T, string, string) {
		return func(t *testing.T, folder, _ string) {
			changed := 0
			err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
					return err
				}
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				changed++
				return change(path, data)
			})
			if err != nil || changed == 0 {
				t.Fatalf("%d files changed, %v", changed, err)
			}
		}
	}
	write := func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }
	for name, c := range map[string]struct {
		damage func(t *testing.T, folder, first string)
		said   string
	}{
		"behind": {func(t *testing.T, folder, first string) {
			if err := errors.Join(os.RemoveAll(folder), os.CopyFS(folder, os.DirFS(first))); err != nil {
				t.Fatal(err)
			}
		}, "from_generation=1 to_generation=3 chunks_to_add=2 chunks_to_remove=3"},
		"missing": {func(t *testing.T, folder, _ string) {
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
		}, "chunks_to_add=2"},
		"a file in its place": {func(t *testing.T, folder, _ string) {
			if err := errors.Join(os.RemoveAll(folder), write(folder, []byte("x"))); err != nil {
				t.Fatal(err)
			}
		}, "rebuilt from the store"},
		"truncated segments":  {eachFile(".zap", func(p string, d []byte) error { return write(p, d[:len(d)/2]) }), "chunks_to_add=2"},
		"empty segments":      {eachFile(".zap", func(p string, d []byte) error { return write(p, nil) }), "chunks_to_add=2"},
		"flipped bit":         {eachFile(".zap", func(p string, d []byte) error { d[len(d)/3] ^= 4; return write(p, d) }), "rebuilt from the store"},
		"missing segments":    {eachFile(".zap", func(p string, _ []byte) error { return os.Remove(p) }), "chunks_to_add=2"},
		"truncated root":      {eachFile("root.bolt", func(p string, d []byte) error { return write(p, d[:4096*5]) }), "rebuilt from the store"},
		"garbage in the root": {eachFile("root.bolt", func(p string, d []byte) error { return write(p, bytes.Repeat([]byte("junk"), len(d)/4)) }), "rebuilt from the store"},
		"no description":      {eachFile("index_meta.json", func(p string, _ []byte) error { return os.Remove(p) }), "rebuilt from the store"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := threeGenerations(t, dir)
			c.damage(t, lexicalFolder(dir), first)
			var log bytes.Buffer
			ix, err := index.Open(slog.New(slog.NewTextHandler(&log, nil)), dir, index.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer checkAndClose(t, ix)
			if !strings.Contains(log.String(), c.said) || !strings.Contains(log.String(), "has caught up") {
				t.Errorf("the log does not say %q:\n%s", c.said, log.String())
			}
			s := ix.Snapshot()
			defer s.Close()
			expect(t, s, "key", "key a new", "key c")
			if s.Generation() != 3 {
				t.Errorf("generation %d", s.Generation())
			}
		})
	}
}

func TestLexicalIndexOfAnotherStoreIsNotUsed(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	threeGenerations(t, dir)
	ix := open(t, other, index.Options{})
	apply(t, ix, index.Batch{Put: []index.Entry{plain("x", "X", "key x")}})
	checkAndClose(t, ix)
	if err := errors.Join(os.RemoveAll(lexicalFolder(dir)), os.Rename(lexicalFolder(other), lexicalFolder(dir))); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, index.Options{}).Snapshot()
	defer s.Close()
	expect(t, s, "key", "key a new", "key c")
}

// A copy of a running directory is what a crash leaves: the store is copied under its own
// transaction, the lexical index as it happens to be.
func TestCopyOfARunningDirectoryOpens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ix := open(t, dir, index.Options{})
	apply(t, ix, index.Batch{Put: []index.Entry{plain("a", "A", "key a one", "key a two")}})
	held := ix.Snapshot() // so that the replaced document is still there when the copy is made
	defer held.Close()
	apply(t, ix, index.Batch{Put: []index.Entry{plain("a", "A", "key a new")}})
	crashed := t.TempDir()
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	again := open(t, crashed, index.Options{})
	s := again.Snapshot()
	defer s.Close()
	expect(t, s, "key", "key a new")
	apply(t, again, index.Batch{Put: []index.Entry{plain("b", "B", "key b")}})
}

func TestDamagedStoreIsReportedAsSuch(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func([]byte) []byte{
		"truncated": func(d []byte) []byte { return d[:4096*5] },
		"two pages": func(d []byte) []byte { return d[:4096*2+100] },
		"garbage":   func(d []byte) []byte { return bytes.Repeat([]byte("junk"), len(d)/4) },
		"zeroes":    func(d []byte) []byte { return make([]byte, len(d)) },
		"no pages":  func(d []byte) []byte { clear(d[4096*2:]); return d },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			threeGenerations(t, dir)
			path := filepath.Join(dir, "default", "store.db")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = index.Open(slog.New(slog.DiscardHandler), dir, index.Options{})
			var corrupt *index.CorruptError
			if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "backup") {
				t.Errorf("%v", err)
			}
		})
	}
}
