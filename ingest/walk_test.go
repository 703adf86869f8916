package ingest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestWalkHonoursIgnoreFilesIncludeAndExclude(t *testing.T) {
	files := map[string]string{
		".gitignore":           "*.log\n/build/\nsecret/**\n!secret/public.md\nname{1,2}.md\n# comment\n\\#odd.md\ntrail.md   \n",
		".assayignore":         "drafts/\n",
		".hidden.md":           "x",
		".github/ci.md":        "x",
		"a.md":                 "x",
		"a.log":                "x",
		"#odd.md":              "x",
		"trail.md":             "x",
		"name1.md":             "x",
		"build/x.md":           "x",
		"sub/build/x.md":       "x",
		"secret/public.md":     "x",
		"secret/private.md":    "x",
		"drafts/x.md":          "x",
		"sub/drafts/x.md":      "x",
		"sub/.gitignore":       "!kept.log\nlocal.md\n",
		"sub/kept.log":         "x",
		"sub/local.md":         "x",
		"sub/deep/local.md":    "x",
		"node_modules/x/y.txt": "x",
	}
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"default", Options{}, "a.md name1.md node_modules/x/y.txt secret/public.md sub/build/x.md sub/kept.log"},
		{"no ignore files", Options{NoIgnoreFiles: true}, "#odd.md a.log a.md build/x.md drafts/x.md name1.md node_modules/x/y.txt secret/private.md secret/public.md sub/build/x.md sub/deep/local.md sub/drafts/x.md sub/kept.log sub/local.md trail.md"},
		{"include by extension", Options{Include: []string{"*.md"}}, "a.md name1.md secret/public.md sub/build/x.md"},
		{"include a folder", Options{Include: []string{"sub"}}, "sub/build/x.md sub/kept.log"},
		{"include a path", Options{Include: []string{"/sub/*.log", "a.*"}}, "a.md sub/kept.log"},
		{"include across folders", Options{Include: []string{"sub/**"}}, "sub/build/x.md sub/kept.log"},
		{"include what is hidden", Options{Include: []string{".github/**", "a.md"}}, ".github/ci.md a.md"},
		{"include a hidden file", Options{Include: []string{".hidden.md"}}, ".hidden.md"},
		{"alternatives", Options{Include: []string{"{a,name1}.md"}}, "a.md name1.md"},
		{"exclude", Options{Exclude: []string{"sub/", "*.txt"}}, "a.md name1.md secret/public.md"},
		{"exclude and take back", Options{Exclude: []string{"*.md", "!a.md"}}, "a.md node_modules/x/y.txt sub/kept.log"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := parseRoot(t, writeTree(t, files))
			got := strings.Join(ids(readAll(t, c.o, root)), " ")
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if mem := strings.Join(ids(readAll(t, c.o, memRoot(files))), " "); mem != c.want {
				t.Errorf("in memory: %s", mem)
			}
		})
	}
}

func TestFileGivenByNameIsReadThoughIgnored(t *testing.T) {
	dir := writeTree(t, map[string]string{".gitignore": "*.md", ".notes.md": "x"})
	file := filepath.Join(dir, ".notes.md")
	if got := ids(readAll(t, Options{}, parseRoot(t, file))); !reflect.DeepEqual(got, []string{".notes.md"}) {
		t.Errorf("%v", got)
	}
	if got := ids(readAll(t, Options{Exclude: []string{"*.md"}}, parseRoot(t, file))); got != nil {
		t.Errorf("excluded by option: %v", got)
	}
}

func TestLinks(t *testing.T) {
	dir := writeTree(t, map[string]string{"real/a.md": "x", ".data/b.md": "y"})
	outside := writeTree(t, map[string]string{"c.md": "z"})
	for link, target := range map[string]string{
		"copy.md":    filepath.Join("real", "a.md"),
		"b.md":       filepath.Join(dir, ".data", "b.md"), // absolute, and back inside
		"loop":       ".",
		"real/up":    "..",
		"broken.md":  "nowhere.md",
		"out.md":     filepath.Join(outside, "c.md"),
		"out-folder": outside,
		"self.md":    "self.md",
	} {
		if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	results := readAll(t, Options{}, parseRoot(t, dir))
	want := []string{".data/b.md", "unreadable", "real/a.md", "outside_root", "outside_root", "unreadable"}
	if got := ids(results); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, r := range results {
		if r.Err != nil && !strings.Contains(r.Err.Error(), r.URI) {
			t.Errorf("the error does not name %s: %v", r.URI, r.Err)
		}
	}
}

// lockedFS refuses to list one folder and to open one file.
type lockedFS struct{ fstest.MapFS }

func (l lockedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "locked" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return l.MapFS.ReadDir(name)
}

func (l lockedFS) Open(name string) (fs.File, error) {
	if name == "private.md" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return l.MapFS.Open(name)
}

func TestFolderThatCannotBeListedIsSeen(t *testing.T) {
	root := FSRoot("sample", lockedFS{fstest.MapFS{
		"a.md": {Data: []byte("x")}, "locked/b.md": {Data: []byte("x")}, "private.md": {Data: []byte("x")}, "z.md": {Data: []byte("x")},
	}})
	results := readAll(t, Options{}, root)
	if got := ids(results); !slices.Equal(got, []string{"a.md", "unreadable", "unreadable", "z.md"}) {
		t.Fatalf("%v", got)
	}
	r := results[1]
	if r.URI != "sample:/locked" || !errors.Is(r.Err, fs.ErrPermission) || !r.Reason.Failed() || !r.Accounts("sample:/locked/b.md") {
		t.Errorf("%+v", r)
	}
}

func TestRootThatVanishedIsSeen(t *testing.T) {
	dir := writeTree(t, map[string]string{"a.md": "x"})
	folder, file := parseRoot(t, dir), parseRoot(t, filepath.Join(dir, "a.md"))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, root := range []Root{folder, file} {
		r := readAll(t, Options{}, root)
		if len(r) != 1 || r[0].Reason != SkipUnreadable || !r[0].Accounts(root.path) {
			t.Errorf("%+v", r)
		}
	}
}
