package assay_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport is the architecture: which of our top-level packages each may import, besides its own
// sub-packages. "" is the root package. A folder that is not listed here fails the test.
var mayImport = map[string][]string{
	"":          {},
	"ingest":    {""},
	"chunker":   {""},
	"embed":     {""},
	"index":     {""},
	"retriever": {"", "index", "embed"},
	"rerank":    {""},
	"assemble":  {""},
	"generate":  {""},
	"traces":    {""},
	"control":   {}, // carries commands from process to process and knows none of them
	"engine":    {"", "ingest", "chunker", "embed", "index", "retriever", "rerank", "assemble", "generate", "traces"},
	"server":    {"", "traces"},
	"eval":      {""},
	"examples":  {},
	"tools":     {"", "ingest", "chunker", "embed", "index", "retriever", "rerank", "assemble", "generate", "traces", "engine", "server", "eval", "control", "examples"},
	"cmd":       {"", "ingest", "chunker", "embed", "index", "retriever", "rerank", "assemble", "generate", "traces", "engine", "server", "eval", "control", "examples"},
}

// It parses the files itself, so that the result does not depend on what a test cache knows of other
// packages' files.
func TestImportDirections(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != "." || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		files++
		checkImports(t, filepath.ToSlash(path))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files == 0 {
		t.Fatal("no Go file was found")
	}
}

func checkImports(t *testing.T, path string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	from, _, below := strings.Cut(path, "/")
	if !below {
		from = ""
	}
	allowed, known := mayImport[from]
	if !known {
		t.Errorf("%s: the folder %q is not in the import table", path, from)
		return
	}
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		to, ours := "", name == "assay"
		if rest, ok := strings.CutPrefix(name, "assay/"); ok {
			to, _, _ = strings.Cut(rest, "/")
			ours = true
		}
		if !ours || to == from && from != "" || from == "" && to == "" && strings.HasSuffix(path, "_test.go") {
			continue
		}
		if !slices.Contains(allowed, to) {
			t.Errorf("%s imports %q, which the architecture does not allow for %q", path, name, from)
		}
	}
}
