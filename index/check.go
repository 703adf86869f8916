package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bits-and-blooms/bitset"
	"go.etcd.io/bbolt"

	"assay"
	"assay/index/bm25"
)

// maxProblems bounds what Check reports.
const maxProblems = 50

// checker gathers what is wrong.
type checker struct {
	ix       *Index
	tx       *bbolt.Tx
	s        *state
	problems []error
	count    int
}

func (c *checker) badly(format string, args ...any) {
	if c.count++; c.count <= maxProblems {
		c.problems = append(c.problems, fmt.Errorf(format, args...))
	}
}

// Check compares everything that must agree: the store's buckets with one another, the texts with
// their hashes, the vectors with the model, the table in memory, and both channels with the store:
// each chunk in each of them exactly once, and nothing else. It holds writes back meanwhile. What is
// wrong comes back as a CorruptError.
func (ix *Index) Check(ctx context.Context) error {
	ix.manifests.drain()
	ix.writer.Lock()
	defer ix.writer.Unlock()
	if err := ix.ready(ctx); err != nil {
		return err
	}
	c := &checker{ix: ix, s: ix.current.Load()}
	err := ix.view(func(tx *bbolt.Tx) error {
		c.tx = tx
		for err := range tx.Check() {
			c.badly("store: %w", err)
		}
		steps := []func(context.Context) error{c.documents, c.counts, c.channels, c.graph, c.manifests, c.cache}
		for _, step := range steps {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if c.count == 0 {
		return nil
	}
	return &CorruptError{What: fmt.Sprintf("%d inconsistencies", c.count), Where: ix.dir, Err: errors.Join(c.problems...)}
}

// documents checks every document record with its text and rows, live and dead, and every ID.
func (c *checker) documents(ctx context.Context) error {
	hidden := hiddenDocuments(c.tx)
	live, chunks := 0, 0
	cursor := c.tx.Bucket(documentsBucket).Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		var d documentRecord
		if err := json.Unmarshal(v, &d); err != nil {
			c.badly("document number %x: %w", k, err)
			continue
		}
		chunks += d.Rows
		id := d.Document.ID
		text := c.tx.Bucket(textsBucket).Get(k)
		if assay.HashText(string(text)) != d.TextHash {
			c.badly("document %q: its text does not have its hash", id)
		}
		if !hidden[string(k)] {
			live++
			if !bytes.Equal(c.tx.Bucket(idsBucket).Get([]byte(id)), k) {
				c.badly("document %q is not under its ID", id)
			}
		}
		c.rows(&d, k, string(text), !hidden[string(k)])
	}
	for _, want := range []struct {
		name   []byte
		number int
	}{{idsBucket, live}, {documentsBucket, live + len(hidden)}, {textsBucket, live + len(hidden)}, {chunksBucket, chunks}, {chunkIDsBucket, chunks}, {vectorsBucket, chunks}} {
		if n := c.tx.Bucket(want.name).Stats().KeyN; n != want.number {
			c.badly("%s: %d entries, expected %d", want.name, n, want.number)
		}
	}
	c.staged()
	if live != int(c.s.table.liveDocuments.Count()) {
		c.badly("%d documents stored, %d in memory", live, c.s.table.liveDocuments.Count())
	}
	if live > 0 && c.s.fingerprint == nil {
		c.badly("there are documents and no fingerprint")
	}
	return nil
}

// rows checks the chunks and vectors of one document.
func (c *checker) rows(d *documentRecord, key []byte, text string, live bool) {
	tokens := 0
	memo := newFieldMemo(c.s.analyzer)
	for i := range d.Rows {
		row := d.FirstRow + uint32(i)
		r, err := decodeChunk(c.tx.Bucket(chunksBucket).Get(be32(row)))
		if err != nil {
			c.badly("row %d: %w", row, err)
			continue
		}
		tokens += r.chunk.Tokens
		if c.tx.Bucket(chunkIDsBucket).Get(chunkIDKey(r.chunk.ID, row)) == nil {
			c.badly("row %d: chunk %q is not under its ID", row, r.chunk.ID)
		}
		if r.owner != binary.BigEndian.Uint32(key) || r.chunk.Span.End > len(text) || r.chunk.Span.Start > r.chunk.Span.End {
			c.badly("row %d: it does not fit document %q", row, d.Document.ID)
			continue
		}
		if live {
			body := text[r.chunk.Span.Start:r.chunk.Span.End]
			if lengths := lengthsOf(memo.fields(d.Document.Title, r.chunk.Headings, body)); lengths != r.lengths {
				c.badly("row %d: lengths %v, analysed again %v", row, r.lengths, lengths)
			}
			c.memory(row, &r)
		}
	}
	if tokens != d.Tokens {
		c.badly("document %q: %d tokens, its chunks have %d", d.Document.ID, d.Tokens, tokens)
	}
}

// memory checks a live row's entry in the table and its vector.
func (c *checker) memory(row uint32, r *chunkRecord) {
	slot, ok := c.s.table.slot(row)
	if !ok || !c.s.table.live.Test(uint(slot)) {
		c.badly("row %d: not in memory", row)
		return
	}
	if c.s.table.chunkIDs[slot] != r.chunk.ID || c.s.table.lengths[slot] != r.lengths {
		c.badly("row %d: another chunk in memory", row)
	}
	v, err := decodeVector(c.tx.Bucket(vectorsBucket).Get(be32(row)), c.s.fingerprint.Embedder.Dimensions)
	if err != nil {
		c.badly("row %d: %w", row, err)
		return
	}
	if !slices.Equal(v, c.s.vectors().Vector(slot)) {
		c.badly("row %d: another vector in memory", row)
	}
	length := 0.0
	for _, x := range v {
		length += float64(x) * float64(x)
	}
	if !(math.Abs(length-1) < 1e-5) { // also for NaN
		c.badly("row %d: the vector's length is %g", row, math.Sqrt(length))
	}
}

// counts checks the sums that scoring and statistics rely on, and the counters.
func (c *checker) counts(context.Context) error {
	t := c.s.table
	var totals [bm25.Fields]uint64
	tokens := 0
	for slot := range t.live.EachSet() {
		for f, l := range t.lengths[slot] {
			totals[f] += uint64(l)
		}
	}
	for position := range t.liveDocuments.EachSet() {
		tokens += t.documents[position].tokens
	}
	if totals != t.totals || int(t.live.Count()) != t.chunks || tokens != t.tokens {
		c.badly("the sums in memory are wrong: lengths %v for %v, chunks %d for %d, tokens %d for %d",
			t.totals, totals, t.chunks, t.live.Count(), t.tokens, tokens)
	}
	if v := c.s.vectors(); v != nil && v.Len() != len(t.rows) {
		c.badly("%d vectors for %d rows in memory", v.Len(), len(t.rows))
	}
	meta := c.tx.Bucket(metaBucket)
	if g := number(meta.Get(generationKey)); g != c.s.generation {
		c.badly("generation %d stored, %d in memory", g, c.s.generation)
	}
	for counter, bucket := range map[string][]byte{string(nextRowKey): chunksBucket, string(nextDocumentKey): documentsBucket} {
		if k, _ := c.tx.Bucket(bucket).Cursor().Last(); k != nil && uint64(binary.BigEndian.Uint32(k)) >= number(meta.Get([]byte(counter))) {
			c.badly("%s is %d, %x is in use", counter, number(meta.Get([]byte(counter))), k)
		}
	}
	return nil
}

// channels checks that the lexical index holds each live row once and nothing else.
func (c *checker) channels(context.Context) error {
	rows, err := c.s.reader.Rows()
	if err != nil {
		c.badly("lexical index: %w", err)
		return nil
	}
	want := bitset.New(0)
	for slot := range c.s.table.live.EachSet() {
		want.Set(uint(c.s.table.rows[slot]))
	}
	if missing := difference(want, rows); len(missing) > 0 {
		c.badly("lexical index: %d rows are missing, the first is %d", len(missing), missing[0])
	}
	if surplus := difference(rows, want); len(surplus) > 0 {
		c.badly("lexical index: %d rows too many, the first is %d", len(surplus), surplus[0])
	}
	if g, err := c.s.reader.Generation(); err != nil || g != c.s.generation {
		c.badly("lexical index: generation %d, the store has %d (%v)", g, c.s.generation, err)
	}
	return nil
}

func difference(a, b *bitset.BitSet) []uint { return a.Difference(b).AppendTo(nil) }
