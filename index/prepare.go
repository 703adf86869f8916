package index

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"assay"
	"assay/index/bm25"
	"assay/index/dense"
)

// Batch is a change of the corpus that is made in one step: whole or not at all.
type Batch struct {
	Put    []Entry  // documents to add, or to replace those with the same ID
	Delete []string // document IDs; one that is not there is no error
}

// Entry is a document with its chunks and their vectors, in the same order. Every chunk belongs to
// the document and its text is exactly its span of the document's text.
type Entry struct {
	Document assay.Document
	Chunks   []assay.Chunk
	Vectors  [][]float32 // copied, and brought to unit length
}

// Limits of identifiers, well under what a key of the store can hold.
const (
	maxIDBytes    = 1024
	maxDimensions = 1 << 16
)

// prepared is an entry that has been checked, with everything computed that needs no lock.
type prepared struct {
	document assay.Document // without Text
	text     string
	textHash string
	chunks   []chunkRecord
	fields   [][bm25.Fields]bm25.Field
	vectors  [][]float32
	tokens   int
}

// prepare checks a batch and analyses its texts on all cores. It reports every unusable entry, in a
// BatchError, and changes nothing.
func (ix *Index) prepare(ctx context.Context, a *bm25.Analyzer, dimensions int, b Batch) ([]prepared, error) {
	if dimensions < 1 || dimensions > maxDimensions {
		return nil, fmt.Errorf("%w: the embedder has %d dimensions; there must be between 1 and %d", ErrInvalid, dimensions, maxDimensions)
	}
	if err := ix.checkBatch(b); err != nil {
		return nil, err
	}
	out := make([]prepared, len(b.Put))
	problems := make([]error, len(b.Put))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range b.Put {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			out[i], problems[i] = ix.prepareEntry(a, dimensions, &b.Put[i])
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("index batch: %w", err)
	}
	var bad []EntryError
	for i, err := range problems {
		if err != nil {
			bad = append(bad, EntryError{ID: b.Put[i].Document.ID, Err: err})
		}
	}
	if len(bad) > 0 {
		return nil, &BatchError{Entries: bad}
	}
	return out, nil
}

// checkBatch checks what concerns several entries: that nothing is said twice, and the size.
func (ix *Index) checkBatch(b Batch) error {
	size := 0
	documents, chunks := map[string]bool{}, map[string]bool{}
	for i := range b.Put {
		e := &b.Put[i]
		if documents[e.Document.ID] {
			return fmt.Errorf("%w: document %q is twice in one batch", ErrInvalid, e.Document.ID)
		}
		documents[e.Document.ID] = true
		size += e.bytes()
		for _, v := range e.Vectors {
			size += 4 * len(v)
		}
		for _, c := range e.Chunks {
			if chunks[c.ID] {
				return fmt.Errorf("%w: chunk %q is twice in one batch", ErrInvalid, c.ID)
			}
			chunks[c.ID] = true
		}
	}
	for _, id := range b.Delete {
		if documents[id] {
			return fmt.Errorf("%w: document %q is to be both stored and deleted", ErrInvalid, id)
		}
	}
	if size > ix.o.MaxBatchBytes {
		return fmt.Errorf("%w: the batch has %d bytes of texts and vectors: %w of %d (index.max_batch_bytes); use smaller batches",
			ErrInvalid, size, ErrTooLarge, ix.o.MaxBatchBytes)
	}
	return nil
}

func (ix *Index) prepareEntry(a *bm25.Analyzer, dimensions int, e *Entry) (p prepared, err error) {
	defer func() {
		if r := recover(); r != nil { // an analyser that cannot cope with one text must not stop the rest
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	if err := ix.checkDocument(e); err != nil {
		return p, err
	}
	p.document, p.text = e.Document, e.Document.Text
	p.document.Text = ""
	p.textHash = assay.HashText(p.text)
	p.chunks = make([]chunkRecord, len(e.Chunks))
	p.fields = make([][bm25.Fields]bm25.Field, len(e.Chunks))
	p.vectors = make([][]float32, len(e.Chunks))
	analysed := newFieldMemo(a)
	for i, c := range e.Chunks {
		if p.vectors[i], err = dense.Normalised(e.Vectors[i], dimensions); err != nil {
			return p, fmt.Errorf("vector of chunk %q: %w", c.ID, err)
		}
		p.fields[i] = analysed.fields(e.Document.Title, c.Headings, c.Text)
		p.tokens += c.Tokens
		c.DocID, c.Text, c.Headings = "", "", slices.Clone(c.Headings)
		p.chunks[i] = chunkRecord{chunk: c, lengths: lengthsOf(p.fields[i])}
	}
	return p, nil
}

func (ix *Index) checkDocument(e *Entry) error {
	d := &e.Document
	switch {
	case d.ID == "" || len(d.ID) > maxIDBytes || strings.ContainsRune(d.ID, 0):
		return fmt.Errorf("its ID must have 1 to %d bytes and no NUL", maxIDBytes)
	case e.bytes() > ix.o.MaxDocumentBytes:
		return fmt.Errorf("it has %d bytes of text, metadata and headings: %w of %d (index.max_document_bytes)", e.bytes(), ErrTooLarge, ix.o.MaxDocumentBytes)
	case !validUTF8(d):
		return errors.New("its ID, URI, title, text and metadata must be valid UTF-8")
	case len(e.Vectors) != len(e.Chunks):
		return fmt.Errorf("%d chunks with %d vectors", len(e.Chunks), len(e.Vectors))
	}
	for _, c := range e.Chunks {
		switch {
		case c.ID == "" || len(c.ID) > maxIDBytes || strings.ContainsRune(c.ID, 0):
			return fmt.Errorf("a chunk's ID must have 1 to %d bytes and no NUL; this one is %.40q", maxIDBytes, c.ID)
		case c.DocID != d.ID:
			return fmt.Errorf("chunk %q belongs to document %q", c.ID, c.DocID)
		case c.Span.Start < 0 || c.Span.End < c.Span.Start || c.Span.End > len(d.Text):
			return fmt.Errorf("chunk %q: bytes %d to %d are not in a text of %d", c.ID, c.Span.Start, c.Span.End, len(d.Text))
		case c.Text != d.Text[c.Span.Start:c.Span.End]:
			return fmt.Errorf("chunk %q: its text is not bytes %d to %d of the document's", c.ID, c.Span.Start, c.Span.End)
		case c.Ordinal < 0 || c.Tokens < 0:
			return fmt.Errorf("chunk %q: ordinal %d and %d tokens; neither can be negative", c.ID, c.Ordinal, c.Tokens)
		case len(c.Headings) > maxHeadings:
			return fmt.Errorf("chunk %q has %d headings: %w of %d", c.ID, len(c.Headings), ErrTooLarge, maxHeadings)
		}
	}
	return nil
}

// bytes is what a document holds beside its vectors.
func (e *Entry) bytes() int {
	d := &e.Document
	size := len(d.Text) + len(d.Title) + len(d.URI)
	for field, values := range d.Metadata {
		size += len(field)
		for _, v := range values {
			size += len(v)
		}
	}
	for _, c := range e.Chunks {
		for _, h := range c.Headings {
			size += len(h)
		}
	}
	return size
}

// validUTF8 reports whether a document survives being written as JSON.
func validUTF8(d *assay.Document) bool {
	for _, s := range []string{d.ID, d.URI, d.Title, d.Text, d.Format, d.Language, d.Version, d.Hash} {
		if !utf8.ValidString(s) {
			return false
		}
	}
	for field, values := range d.Metadata {
		if !utf8.ValidString(field) || slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			return false
		}
	}
	return true
}

// fieldMemo analyses the fields of a document's chunks; titles and headings recur from one to the next.
type fieldMemo struct {
	analyzer *bm25.Analyzer
	known    map[string]bm25.Field
}

func newFieldMemo(a *bm25.Analyzer) *fieldMemo { return &fieldMemo{a, map[string]bm25.Field{}} }

func (m *fieldMemo) field(text string) bm25.Field {
	f, ok := m.known[text]
	if !ok {
		f = m.analyzer.Field(text)
		m.known[text] = f
	}
	return f
}

func (m *fieldMemo) fields(title string, headings []string, text string) [bm25.Fields]bm25.Field {
	return [bm25.Fields]bm25.Field{
		bm25.Title:   m.field(title),
		bm25.Heading: m.field(strings.Join(headings, "\n")),
		bm25.Body:    m.analyzer.Field(text),
	}
}

func lengthsOf(fields [bm25.Fields]bm25.Field) bm25.Lengths {
	return (&bm25.Doc{Fields: fields}).Lengths()
}
