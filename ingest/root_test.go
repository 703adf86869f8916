package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func TestParseRootRefusesWhatIsNotThere(t *testing.T) {
	for _, arg := range []string{"", filepath.Join(t.TempDir(), "missing"), "/dev/null"} {
		if _, err := ParseRoot(arg); err == nil || !strings.Contains(err.Error(), "ingest") {
			t.Errorf("ParseRoot(%q): %v", arg, err)
		}
	}
	if r, err := ParseRoot("-"); err != nil || !r.Contains("stdin#1") {
		t.Errorf("ParseRoot(-): %v %v", r, err)
	}
}

func TestRootContainsWhatComesFromIt(t *testing.T) {
	dir := writeTree(t, map[string]string{"a.md": "x", "a.md#note": "x", "sub/b.md": "x"})
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	folder, file := parseRoot(t, dir), parseRoot(t, filepath.Join(dir, "a.md"))
	sample := FSRoot("sample", fstest.MapFS{})
	stdin := StdinRoot(strings.NewReader(""))
	for _, c := range []struct {
		root Root
		uri  string
		want bool
	}{
		{folder, filepath.Join(dir, "a.md"), true},
		{folder, filepath.Join(dir, "sub", "gone.jsonl#7"), true},
		{folder, dir + "-old/a.md", false},
		{folder, "stdin", false},
		{file, filepath.Join(dir, "a.md"), true},
		{file, filepath.Join(dir, "a.md#record"), true},
		{file, filepath.Join(dir, "a.md#note"), false}, // a file of its own
		{file, filepath.Join(dir, "a.markdown"), false},
		{sample, "sample:/x/y.md", true},
		{sample, "samples:/x/y.md", false},
		{stdin, "stdin", true},
		{stdin, "stdin#7", true},
		{stdin, "stdin.md", false},
	} {
		if got := c.root.Contains(c.uri); got != c.want {
			t.Errorf("root %s contains %s: %v, want %v", c.root.String(), c.uri, got, c.want)
		}
	}
}

func TestURIIsTheResolvedPath(t *testing.T) {
	dir := writeTree(t, map[string]string{"a b#c.md": "x"})
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	direct := readAll(t, Options{}, parseRoot(t, dir))
	linked := readAll(t, Options{}, parseRoot(t, link))
	if direct[0].URI != linked[0].URI || !filepath.IsAbs(direct[0].URI) || !strings.HasSuffix(direct[0].URI, "a b#c.md") {
		t.Errorf("%s and %s", direct[0].URI, linked[0].URI)
	}
}

// What prune relies on: a stored document is gone only if nothing accounts for it.
func TestResultsAccountForStoredDocuments(t *testing.T) {
	unreadableFolder := Result{State: StateSkipped, Reason: SkipUnreadable, URI: "/docs/secret"}
	badLine := Result{State: StateSkipped, Reason: SkipMalformed, URI: "/docs/c.jsonl"}
	badRecord := Result{State: StateSkipped, Reason: SkipEmpty, URI: "/docs/c.jsonl#1", record: true}
	fine := Result{State: StateUnchanged, URI: "/docs/a.md"}
	root := Result{State: StateSkipped, Reason: SkipUnreadable, URI: "sample:/"}
	for _, c := range []struct {
		r    Result
		uri  string
		want bool
	}{
		{unreadableFolder, "/docs/secret/a.md", true},
		{unreadableFolder, "/docs/secret/deep/c.jsonl#4", true},
		{unreadableFolder, "/docs/secretary.md", false},
		{badLine, "/docs/c.jsonl#17", true},
		{badLine, "/docs/c.jsonl/x", false},
		{badLine, "/docs/c.jsonl2#17", false},
		{badRecord, "/docs/c.jsonl#1", true},
		{badRecord, "/docs/c.jsonl#1#2", false},
		{badRecord, "/docs/c.jsonl#12", false},
		{fine, "/docs/a.md", true},
		{fine, "/docs/a.md#1", false},
		{root, "sample:/x.md", true},
	} {
		if got := c.r.Accounts(c.uri); got != c.want {
			t.Errorf("%s %s accounts for %s: %v, want %v", c.r.Reason, c.r.URI, c.uri, got, c.want)
		}
	}
}
