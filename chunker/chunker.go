// Package chunker cuts documents into chunks of a configured size in tokens of a tiktoken encoding.
//
// The structure strategy follows the document: a section that fits into a chunk with all that it
// contains stays whole, and small neighbours under one parent share a chunk, whose heading path is
// what they have in common. The text of a section that doesn't fit is cut between blocks; blocks that
// don't fit are cut between list items, table rows, lines of code or sentences; only what is left over
// is cut between tokens. The fixed strategy cuts windows.
//
// Both promise: no chunk over the size, exact spans, every character but white space in some chunk, no
// rune split, the same chunks for the same text.
package chunker

import (
	"errors"
	"fmt"

	"assay"
)

// Strategy is a way to choose where to cut.
type Strategy string

// The strategies.
const (
	Structure Strategy = "structure" // sections, blocks, sentences, and only then tokens
	Fixed     Strategy = "fixed"     // windows of Size tokens
)

// MinSize is the smallest chunk size. A rune may need four tokens, so anything below that can't be
// kept; far below this one chunks hold no thought.
const MinSize = 16

// MaxSize is the largest chunk size: beyond the input of any model, so a larger one is a slip.
const MaxSize = 1 << 20

// version of the algorithm: a change of it that changes chunks must change this, so that stores made
// with another say so.
const version = 1

// Options say how documents are cut. Changing any of them changes chunks and needs a new index.
type Options struct {
	// Size is the most tokens a chunk has. Default 256: a few paragraphs, so that a chunk answers one
	// question, and within the input of most embedding models.
	Size int
	// Overlap is the most tokens that a chunk repeats from the one before it, where both were cut out of
	// one section; at most half of Size. Default 32, or a quarter of Size if that is less: one or two
	// sentences, enough to resolve a pronoun. Negative for none.
	Overlap int
	// Strategy defaults to Structure, since headings and whole tables are what readers and citations need.
	Strategy Strategy
	// Encoding is the tiktoken encoding that tokens are counted in. Default o200k_base, that of current models.
	Encoding string
}

func (o Options) withDefaults() Options {
	if o.Size == 0 {
		o.Size = 256
	}
	if o.Overlap == 0 {
		o.Overlap = min(32, o.Size/4)
	}
	if o.Strategy == "" {
		o.Strategy = Structure
	}
	if o.Encoding == "" {
		o.Encoding = encodings()[0]
	}
	return o
}

// Validate reports everything that is wrong with the options.
func (o Options) Validate() error {
	o = o.withDefaults()
	var errs []error
	if o.Size < MinSize || o.Size > MaxSize {
		errs = append(errs, fmt.Errorf("chunker size %d: must be from %d to %d tokens", o.Size, MinSize, MaxSize))
	} else if o.Overlap > o.Size/2 {
		errs = append(errs, fmt.Errorf("chunker overlap %d: must be at most half of the size, %d tokens", o.Overlap, o.Size/2))
	}
	if o.Strategy != Structure && o.Strategy != Fixed {
		errs = append(errs, fmt.Errorf("chunker strategy %q: must be %s or %s", o.Strategy, Structure, Fixed))
	}
	if err := knownEncoding(o.Encoding); err != nil {
		errs = append(errs, fmt.Errorf("chunker encoding: %w", err))
	}
	return errors.Join(errs...)
}

// Chunker cuts documents. It is safe for concurrent use.
type Chunker struct {
	options   Options
	tokenizer *Tokenizer
}

// New returns a Chunker with a tokenizer of its own.
func New(o Options) (*Chunker, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	t, err := NewTokenizer(o.Encoding)
	if err != nil {
		return nil, err
	}
	return &Chunker{o, t}, nil
}

// Options returns the options with defaults filled in.
func (c *Chunker) Options() Options { return c.options }

// Tokenizer returns the tokenizer that sizes are counted with, to be shared: loading another one costs
// time and memory.
func (c *Chunker) Tokenizer() *Tokenizer { return c.tokenizer }

// Fingerprint identifies everything that changes chunks:
// strategy/size/overlap/encoding/version of the algorithm.
func (c *Chunker) Fingerprint() string {
	o := c.options
	return fmt.Sprintf("%s/%d/%d/%s/%d", o.Strategy, o.Size, max(o.Overlap, 0), o.Encoding, version)
}

// Chunk cuts a document. Chunks come in the order of their starts; a document without anything but
// white space has none.
func (c *Chunker) Chunk(doc *assay.Document) []assay.Chunk {
	s := &splitter{
		doc: doc, text: doc.Text, counts: newCounts(c.tokenizer, doc.Text),
		size: c.options.Size, overlapping: max(c.options.Overlap, 0),
	}
	if c.options.Strategy == Fixed {
		s.windows()
	} else {
		s.sections = parseSections(parseBlocks(doc.Text))
		s.siblings(0, len(s.sections), pack{})
	}
	return s.chunks
}

// splitter is the state of cutting one document.
type splitter struct {
	doc         *assay.Document
	text        string
	counts      *counts
	size        int
	overlapping int // most tokens repeated
	sections    []section
	chunks      []assay.Chunk

	units  []unit // of the section being cut
	filled []int  // tokens from the chunk's start to the end of each unit that fits
	starts []int  // scratch
	ends   []int  // scratch
}

// emit adds the chunk text[start:end].
func (s *splitter) emit(start, end int, headings []string) {
	span, text := assay.Span{Start: start, End: end}, s.text[start:end]
	s.chunks = append(s.chunks, assay.Chunk{
		ID: assay.ChunkID(s.doc.ID, span, text), DocID: s.doc.ID, Ordinal: len(s.chunks), Span: span,
		Headings: headings, Tokens: s.counts.count(start, end), Text: text,
	})
}
