package ingest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Root is one thing that was asked to be ingested. Make one with ParseRoot, StdinRoot, StreamRoot
// or FSRoot.
type Root struct {
	arg    string // as it was asked for
	base   string // prefix of IDs that would collide
	path   string // on disk: absolute, cleaned, links resolved
	file   bool   // path is a file
	fsys   fs.FS  // FSRoot
	stream io.Reader
}

// ParseRoot reads a command-line argument: an existing file or folder, or "-" for standard input.
func ParseRoot(arg string) (Root, error) {
	if arg == "-" {
		return StdinRoot(os.Stdin), nil
	}
	if arg == "" {
		return Root{}, errors.New("ingest: an empty path: give a file, a folder, or - for standard input")
	}
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Root{}, fmt.Errorf("ingest %s: no such file or folder: check the path (relative ones start in the working directory): %w", arg, err)
	case err != nil:
		return Root{}, fmt.Errorf("ingest %s: %w", arg, err)
	case !info.IsDir() && !info.Mode().IsRegular():
		return Root{}, fmt.Errorf("ingest %s: neither a file nor a folder: pipe a stream in with -", arg)
	}
	path, err := filepath.Abs(arg)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return Root{}, fmt.Errorf("ingest %s: resolve its path: %w", arg, err)
	}
	r := Root{arg: arg, path: path, base: filepath.Base(path), file: !info.IsDir()}
	if r.base == string(filepath.Separator) {
		r.base = "root"
	}
	return r, nil
}

// StdinRoot reads JSON Lines or one document from standard input, under the URI "stdin".
func StdinRoot(r io.Reader) Root { return StreamRoot("stdin", r) }

// StreamRoot reads JSON Lines or one document from a stream, under the URI name. A name with an
// extension helps to tell the format. The stream is read once.
func StreamRoot(name string, r io.Reader) Root {
	return Root{arg: name, base: name, stream: r}
}

// FSRoot reads a file system, such as an embedded corpus; its URIs are "name:/relative/path".
func FSRoot(name string, fsys fs.FS) Root {
	return Root{arg: name, base: name, fsys: fsys}
}

// String is the root as it was asked for.
func (r *Root) String() string { return r.arg }

// Contains reports whether a document with this URI comes from under the root, so that it is gone
// when a complete read of the root does not meet it.
func (r *Root) Contains(uri string) bool {
	switch {
	case r.stream != nil:
		return uri == r.arg || strings.HasPrefix(uri, r.arg+"#")
	case r.fsys != nil:
		return strings.HasPrefix(uri, r.arg+":/")
	case uri == r.path:
		return true
	case r.file:
		if !strings.HasPrefix(uri, r.path+"#") {
			return false
		}
		// "a#b" is a record of "a", unless a file has that name.
		_, err := os.Lstat(uri)
		return err != nil
	}
	return strings.HasPrefix(uri, strings.TrimSuffix(r.path, string(filepath.Separator))+string(filepath.Separator))
}

// uri names the file at a slash path below the root.
func (r *Root) uri(rel string) string {
	switch {
	case r.stream != nil:
		return r.arg
	case r.fsys != nil:
		if rel == "." {
			return r.arg + ":/"
		}
		return r.arg + ":/" + rel
	case rel == ".":
		return r.path
	case r.file:
		return filepath.Join(filepath.Dir(r.path), filepath.FromSlash(rel))
	}
	return filepath.Join(r.path, filepath.FromSlash(rel))
}
