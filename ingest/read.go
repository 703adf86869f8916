package ingest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"runtime/debug"
	"strings"

	"assay"
)

// headSize is how much of a source is looked at to tell its format.
const headSize = 64 << 10

// reader turns one source into its results.
type reader struct {
	lg *slog.Logger
	o  Options
}

func (rd reader) read(ctx context.Context, s *source, emit func(Result) bool) {
	defer func() {
		if p := recover(); p != nil {
			rd.lg.Error("reading panicked", "uri", s.uri, "panic", p, "stack", string(debug.Stack()))
			emit(rd.skipped(s, skipf(SkipMalformed, "ingest %s: reading it broke (%v): please report the file", s.uri, p)))
		}
	}()
	if err := rd.readSource(ctx, s, emit); err != nil {
		emit(rd.skipped(s, err))
	}
}

// skipped is the result for a source as a whole.
func (rd reader) skipped(s *source, err error) Result {
	r := Result{State: StateSkipped, URI: s.uri, Bytes: max(s.size, 0), Reason: SkipUnreadable, Err: err}
	if skip, ok := errors.AsType[*skipError](err); ok {
		r.Reason = skip.reason
	}
	r.ID, _, _ = rd.o.Catalogue.ByURI(s.uri)
	return r
}

func (rd reader) readSource(ctx context.Context, s *source, emit func(Result) bool) error {
	if s.skip != nil {
		return s.skip
	}
	if err := checkID(s.rel); err != nil {
		return skipf(SkipBadID, "ingest %q: %w: rename the file", s.uri, err)
	}
	f, err := s.open()
	if err != nil {
		return fmt.Errorf("ingest %s: %w: check that it can be read", s.uri, err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, headSize)
	head, err := in.Peek(headSize)
	if err != nil && err != io.EOF {
		return fmt.Errorf("ingest %s: read: %w", s.uri, err)
	}
	format, skip := detect(path.Base(s.rel), head)
	if skip != nil {
		return skipf(skip.reason, "ingest %s: %w", s.uri, skip.err)
	}
	if format == formatJSONL {
		return rd.readRecords(ctx, s, in, head, emit)
	}
	raw, err := rd.readWhole(s, in)
	if err != nil {
		return err
	}
	r := rd.compare(s.uri, s.rel, raw)
	if r.State != StateUnchanged {
		p, err := rd.guarded(ctx, format, func(ctx context.Context) (*parsed, error) {
			return rd.parse(ctx, path.Base(s.rel), format, raw)
		})
		if err != nil {
			if skip, ok := errors.AsType[*skipError](err); ok {
				return skipf(skip.reason, "ingest %s: %w", s.uri, skip.err)
			}
			return fmt.Errorf("ingest %s: %w", s.uri, err)
		}
		p.doc.ID, p.doc.URI, p.doc.Hash = r.ID, r.URI, r.hash
		r.Document, r.Warnings = p.doc, p.warnings
		for _, warning := range p.warnings {
			rd.lg.Warn(warning, "uri", s.uri)
		}
	}
	emit(r)
	return nil
}

func (rd reader) readWhole(s *source, in io.Reader) ([]byte, error) {
	limit := rd.o.MaxFileSize
	if s.size <= limit {
		var buf bytes.Buffer
		buf.Grow(int(max(s.size, 0)) + bytes.MinRead) // the size is a hint: the file may grow meanwhile
		if _, err := buf.ReadFrom(io.LimitReader(in, limit+1)); err != nil {
			return nil, fmt.Errorf("ingest %s: read: %w", s.uri, err)
		}
		if int64(buf.Len()) <= limit {
			return buf.Bytes(), nil
		}
	}
	return nil, skipf(SkipTooLarge, "ingest %s: larger than the maximum file size of %d bytes: raise it, or split the file", s.uri, limit)
}

// compare says whether the content is new, changed or unchanged.
func (rd reader) compare(uri, wish string, raw []byte) Result {
	r := Result{State: StateNew, URI: uri, Bytes: int64(len(raw)), wish: wish, hash: hashOf(raw)}
	if id, hash, ok := rd.o.Catalogue.ByURI(uri); ok {
		r.ID, r.State = id, StateChanged
		if hash == r.hash && !rd.o.Force {
			r.State = StateUnchanged
		}
	}
	return r
}

// parsed is what a parser makes of a source.
type parsed struct {
	doc      *assay.Document
	warnings []string
}

// guarded runs a parser for no longer than ParseTimeout and survives its panic. Parsers poll ctx; one
// that does not is left behind, so that the run goes on.
func (rd reader) guarded(ctx context.Context, f format, parse func(context.Context) (*parsed, error)) (*parsed, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, rd.o.ParseTimeout, errParseTimeout)
	defer cancel()
	type outcome struct {
		p   *parsed
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		var out outcome
		defer func() {
			if p := recover(); p != nil {
				rd.lg.Error("parser panicked", "format", f, "panic", p, "stack", string(debug.Stack()))
				out = outcome{err: skipf(SkipMalformed, "the %s parser broke on it (%v): please report the file", f, p)}
			}
			done <- out
		}()
		out.p, out.err = parse(ctx)
	}()
	select {
	case out := <-done:
		if out.err == nil || ctx.Err() == nil {
			return out.p, out.err
		}
	case <-ctx.Done():
	}
	if errors.Is(context.Cause(ctx), errParseTimeout) {
		return nil, skipf(SkipTimeout, "parsing took longer than the limit of %s: raise it, or simplify the document", rd.o.ParseTimeout)
	}
	return nil, ctx.Err()
}

var errParseTimeout = errors.New("parse timeout")

func (rd reader) parse(ctx context.Context, name string, f format, raw []byte) (*parsed, error) {
	if !looksLikeText(raw) { // beyond the head
		return nil, skipf(SkipBinary, "text with binary data after it: exclude it")
	}
	declared := ""
	if f == formatHTML {
		declared = declaredCharset(raw)
	}
	text, warnings, err := decode(raw, declared)
	if err != nil {
		return nil, err
	}
	text = normalise(text)
	doc := &assay.Document{Format: string(f), Text: text}
	switch f {
	case formatHTML:
		if err := parseHTML(ctx, doc, text, rd.o.MaxHTMLNodes); err != nil {
			return nil, err
		}
	case formatMarkdown:
		warnings = append(warnings, parseMarkdown(doc, text, isMDX(name))...)
	default:
		doc.Title = textTitle(text, path.Ext(name))
	}
	doc.Text = strings.TrimRight(strings.TrimLeft(doc.Text, "\n"), " \t\n") // indentation of the first line stays
	if strings.TrimSpace(doc.Text) == "" {
		return nil, skipf(SkipEmpty, "no text in it")
	}
	if doc.Title == "" {
		doc.Title = strings.TrimSuffix(name, path.Ext(name))
	}
	return &parsed{doc, warnings}, nil
}
