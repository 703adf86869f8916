//go:build unix

package ingest

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

func TestFIFODoesNotBlock(t *testing.T) {
	dir := writeTree(t, map[string]string{"a.md": "x"})
	for _, name := range []string{"pipe.md", ".gitignore"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	results := readAll(t, Options{}, parseRoot(t, dir))
	if got := ids(results); !slices.Equal(got, []string{"a.md", "not_a_file"}) || results[1].Reason.Failed() {
		t.Errorf("%v", got)
	}
}
