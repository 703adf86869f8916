package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// maxIgnoreFile bounds an ignore file: past it nobody wrote it by hand.
const maxIgnoreFile = 1 << 20

// source is one file or stream to read, or something that the walk itself has to report.
type source struct {
	root   *Root
	rel    string // slash path relative to the root: the wished ID
	uri    string
	prefix string // of the ID, when rel is taken
	size   int64  // 0 when unknown
	open   func() (io.ReadCloser, error)
	skip   *skipError // decided by the walk; open is nil
}

// walker goes through the roots and emits their sources in order.
type walker struct {
	lg      *slog.Logger
	o       Options
	include []pattern
	exclude []pattern
	seen    map[[16]byte]struct{} // URIs, so that overlapping roots and links give one document
	disks   []*os.Root            // open until the last source is read
}

func newWalker(lg *slog.Logger, o Options) *walker {
	return &walker{lg: lg, o: o, include: mustPatterns(o.Include), exclude: mustPatterns(o.Exclude), seen: map[[16]byte]struct{}{}}
}

// close is called when every source has been read.
func (w *walker) close() {
	for _, d := range w.disks {
		if err := d.Close(); err != nil {
			w.lg.Warn("close folder", "path", d.Name(), "error", err)
		}
	}
}

// walk reports whether emit wants more.
func (w *walker) walk(ctx context.Context, r *Root, emit func(source) bool) bool {
	if r.stream != nil {
		return emit(source{root: r, rel: r.arg, uri: r.arg, prefix: r.base, open: func() (io.ReadCloser, error) {
			return interruptible(ctx, r.stream), nil
		}})
	}
	t := &tree{walker: w, root: r, emit: emit, fsys: r.fsys}
	if r.file {
		return t.single(filepath.Base(r.path))
	}
	if t.fsys == nil {
		// An os.Root refuses what leads out of it, also when a link changes under the walk.
		disk, err := os.OpenRoot(r.path)
		if err != nil {
			return t.report(".", SkipUnreadable, fmt.Errorf("ingest %s: open the folder: %w", r.path, err))
		}
		w.disks = append(w.disks, disk)
		t.disk, t.fsys = disk, disk.FS()
	}
	return t.dir(ctx, ".", nil)
}

// tree is the walk through one root that is not a stream.
type tree struct {
	*walker
	root *Root
	emit func(source) bool
	fsys fs.FS
	disk *os.Root // nil for an FSRoot
}

// single emits a file that was asked for by name: neither ignore files nor a dot leave it out.
func (t *tree) single(name string) bool {
	if !included(t.include, name) || excluded([]rules{{".", t.exclude}}, name, false) {
		return true
	}
	info, err := os.Stat(t.root.path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("no longer a regular file")
	}
	if err != nil {
		return t.report(name, SkipUnreadable, fmt.Errorf("ingest %s: %w", t.root.path, err))
	}
	return t.file(name, info, filepath.Base(filepath.Dir(t.root.path)))
}

func (t *tree) dir(ctx context.Context, rel string, stack []rules) bool {
	if ctx.Err() != nil {
		return false
	}
	entries, err := fs.ReadDir(t.fsys, rel)
	if err != nil {
		err = fmt.Errorf("ingest %s: list the folder: %w: grant read permission, or exclude it", t.root.uri(rel), err)
		if !t.report(rel, SkipUnreadable, err) {
			return false
		}
	}
	if !t.o.NoIgnoreFiles {
		stack = t.withIgnoreFiles(rel, stack)
	}
	for _, e := range entries {
		child := path.Join(rel, e.Name())
		if strings.HasPrefix(e.Name(), ".") && !wantsHidden(t.include, e.Name()) {
			continue
		}
		// What was said on the command line counts before what files say.
		out, decided := rules{".", t.exclude}.verdict(child, e.IsDir())
		if out || !decided && excluded(stack, child, e.IsDir()) {
			continue
		}
		ok := true
		switch {
		case e.IsDir():
			ok = t.dir(ctx, child, stack)
		case !included(t.include, child):
		case e.Type()&fs.ModeSymlink != 0:
			ok = t.link(child)
		case !e.Type().IsRegular():
			ok = t.report(child, SkipNotRegular, fmt.Errorf("ingest %s: not a regular file but %s: skipped", t.root.uri(child), e.Type()))
		default:
			info, err := e.Info()
			if err != nil {
				ok = t.report(child, SkipUnreadable, fmt.Errorf("ingest %s: %w", t.root.uri(child), err))
				break
			}
			ok = t.file(child, info, t.root.base)
		}
		if !ok {
			return false
		}
	}
	return true
}

// withIgnoreFiles appends to a copy, since siblings share the stack.
func (t *tree) withIgnoreFiles(rel string, stack []rules) []rules {
	for _, name := range []string{".gitignore", ".assayignore"} {
		p := path.Join(rel, name)
		// Not through Open: a FIFO by that name must not block.
		if info, err := fs.Lstat(t.fsys, p); err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
			continue
		}
		data, err := fs.ReadFile(t.fsys, p)
		if err != nil {
			t.lg.Warn("ignore file not read", "path", t.root.uri(p), "error", err)
			continue
		}
		patterns, bad := parseIgnoreFile(string(data))
		if len(bad) > 0 {
			t.lg.Warn("ignore file has lines that are no globs", "path", t.root.uri(p), "lines", bad)
		}
		stack = append(stack[:len(stack):len(stack)], rules{rel, patterns})
	}
	return stack
}

// link follows a link to a file within the root. A folder is not followed: within the root the walk
// meets it by itself, so there are no loops.
func (t *tree) link(rel string) bool {
	uri := t.root.uri(rel)
	if t.disk == nil {
		info, err := fs.Stat(t.fsys, rel)
		if err != nil {
			return t.report(rel, SkipUnreadable, fmt.Errorf("ingest %s: follow the link: %w", uri, err))
		}
		if !info.Mode().IsRegular() {
			return true
		}
		return t.file(rel, info, t.root.base)
	}
	target, err := filepath.EvalSymlinks(uri)
	if err != nil {
		return t.report(rel, SkipUnreadable, fmt.Errorf("ingest %s: follow the link: %w: mend or remove it", uri, err))
	}
	inside, err := filepath.Rel(t.root.path, target)
	if err != nil || !filepath.IsLocal(inside) {
		return t.report(rel, SkipOutside, fmt.Errorf("ingest %s: the link leads out of the folder to %s: name that as a path of its own to ingest it", uri, target))
	}
	inside = filepath.ToSlash(inside)
	// A link with an absolute target is refused by os.Root even when it leads back inside, so the
	// target is asked for by its own path.
	info, err := fs.Stat(t.fsys, inside)
	if err != nil {
		return t.report(rel, SkipUnreadable, fmt.Errorf("ingest %s: follow the link: %w", uri, err))
	}
	switch {
	case info.IsDir(), excludedAnywhere([]rules{{".", t.exclude}}, inside):
		return true
	case !info.Mode().IsRegular():
		return t.report(rel, SkipNotRegular, fmt.Errorf("ingest %s: the link leads to %s, which is no regular file: skipped", uri, target))
	}
	return t.file(inside, info, t.root.base)
}

func (t *tree) file(rel string, info fs.FileInfo, prefix string) bool {
	uri := t.root.uri(rel)
	key := nameKey("uri", uri)
	if _, ok := t.seen[key]; ok {
		t.lg.Debug("already read under another root or link", "uri", uri)
		return true
	}
	t.seen[key] = struct{}{}
	return t.emit(source{root: t.root, rel: rel, uri: uri, prefix: prefix, size: info.Size(),
		open: func() (io.ReadCloser, error) { return t.open(rel) }})
}

// open never blocks on what became a FIFO after the walk saw a file.
func (t *tree) open(rel string) (io.ReadCloser, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	var f *os.File
	var err error
	switch {
	case t.root.file:
		f, err = os.OpenFile(t.root.path, flags, 0)
	case t.disk != nil:
		f, err = t.disk.OpenFile(filepath.FromSlash(rel), flags, 0)
	default:
		return t.fsys.Open(rel)
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, f.Close(), errors.New("no longer a regular file"))
	}
	return f, nil
}

func (t *tree) report(rel string, reason SkipReason, err error) bool {
	return t.emit(source{root: t.root, rel: rel, uri: t.root.uri(rel), skip: &skipError{reason, err}})
}

// interruptible lets go of a stream that never answers when ctx ends. The read that is under way
// stays with its goroutine until the stream itself ends.
func interruptible(ctx context.Context, r io.Reader) io.ReadCloser {
	pr, pw := io.Pipe()
	stop := context.AfterFunc(ctx, func() { pw.CloseWithError(ctx.Err()) })
	go func() {
		defer stop()
		_, err := io.Copy(pw, r)
		pw.CloseWithError(err)
	}()
	return pr
}
