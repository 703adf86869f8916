package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/bbolt"

	"assay/index/bm25"
)

// change is what a transaction did to the corpus, for the table and the channels to follow.
type change struct {
	generation  uint64
	fingerprint *Fingerprint
	drop        []int // positions in the table before it
	dropRows    []uint32
	add         []*documentEntry
	docs        []bm25.Doc
	vectors     [][]float32
}

// commit stores a batch in one transaction. It is durable when commit returns without an error, and
// nothing has changed when it returns with one, unless the disk itself failed: then the state is read
// from the store again before the next write. s is the current state; readable is the oldest
// generation that a snapshot still reads.
func (ix *Index) commit(ctx context.Context, s *state, f Fingerprint, batch []prepared, deletes []string, readable uint64) (*change, error) {
	c := &change{generation: s.generation + 1, fingerprint: &f}
	written := false
	err := ix.update(func(tx *bbolt.Tx) error {
		t := transaction{tx: tx, state: s, change: c}
		if err := purge(tx, readable); err != nil {
			return err
		}
		dropped := map[int]bool{}
		for _, id := range deletes {
			if err := t.drop(id, dropped); err != nil {
				return err
			}
		}
		for i := range batch {
			if err := t.drop(batch[i].document.ID, dropped); err != nil {
				return err
			}
		}
		if err := t.put(batch, dropped); err != nil {
			return err
		}
		err := cmp.Or(t.finish(f), ctx.Err())
		written = err == nil
		return err
	})
	if err != nil {
		if written {
			// The disk failed while it was made durable, so only the store knows whether it was.
			ix.fellBehind(err)
		}
		return nil, fmt.Errorf("index commit: %w", err)
	}
	return c, nil
}

// transaction is a write of the corpus on its way.
type transaction struct {
	tx     *bbolt.Tx
	state  *state
	change *change
	// sources is nil where documents become live. Where they are staged, it has the number of the live
	// one that each was made from, by ID.
	sources map[string]uint32
}

// sequential returns a bucket whose keys only grow.
func (t *transaction) sequential(name []byte) *bbolt.Bucket {
	b := t.tx.Bucket(name)
	b.FillPercent = sequentialFill
	return b
}

// drop marks a document dead. Its records stay until no snapshot reads them.
func (t *transaction) drop(id string, dropped map[int]bool) error {
	position, ok := t.state.table.byID(id)
	if !ok || dropped[position] {
		return nil
	}
	dropped[position] = true
	d := t.state.table.documents[position]
	t.change.drop = append(t.change.drop, position)
	for i := range d.rows {
		t.change.dropRows = append(t.change.dropRows, d.firstRow+uint32(i))
	}
	key := append(be64(t.change.generation), be32(d.number)...)
	return errors.Join(
		t.tx.Bucket(idsBucket).Delete([]byte(id)),
		t.tx.Bucket(deadBucket).Put(key, []byte{}))
}

// put gives numbers and writes the new records, each bucket's in the order of its keys.
func (t *transaction) put(batch []prepared, dropped map[int]bool) error {
	meta := t.tx.Bucket(metaBucket)
	row, doc := number(meta.Get(nextRowKey)), number(meta.Get(nextDocumentKey))
	documents, texts := t.sequential(documentsBucket), t.sequential(textsBucket)
	chunks, vectors := t.sequential(chunksBucket), t.sequential(vectorsBucket)
	type pair struct{ key, value []byte }
	var ids, chunkIDs []pair
	for i := range batch {
		p := &batch[i]
		if row+uint64(len(p.chunks)) > math.MaxUint32 || doc >= math.MaxUint32 {
			return fmt.Errorf("%w: all 32-bit row numbers have been given; rebuild into another --data directory", ErrTooLarge)
		}
		e := &documentEntry{number: uint32(doc), document: p.document, firstRow: uint32(row), rows: len(p.chunks), tokens: p.tokens}
		record, err := json.Marshal(documentRecord{p.document, e.firstRow, e.rows, e.tokens, p.textHash})
		if err != nil {
			return fmt.Errorf("document %q: %w", p.document.ID, err)
		}
		key := be32(e.number)
		if err := errors.Join(documents.Put(key, record), texts.Put(key, []byte(p.text))); err != nil {
			return fmt.Errorf("document %q: %w", p.document.ID, err)
		}
		value := key
		if t.sources != nil {
			value = append(be32(e.number), be32(t.sources[p.document.ID])...)
		}
		ids = append(ids, pair{[]byte(p.document.ID), value})
		for j := range p.chunks {
			r := &p.chunks[j]
			r.owner = e.number
			key := be32(uint32(row))
			if err := errors.Join(chunks.Put(key, r.encode()), vectors.Put(key, encodeVector(p.vectors[j]))); err != nil {
				return fmt.Errorf("chunk %q: %w", r.chunk.ID, err)
			}
			chunkIDs = append(chunkIDs, pair{chunkIDKey(r.chunk.ID, uint32(row)), nil})
			e.chunkIDs = append(e.chunkIDs, r.chunk.ID)
			e.lengths = append(e.lengths, r.lengths)
			t.change.docs = append(t.change.docs, bm25.Doc{Row: uint32(row), Fields: p.fields[j]})
			row++
		}
		t.change.vectors = append(t.change.vectors, p.vectors...)
		t.change.add = append(t.change.add, e)
		doc++
	}
	byKey := func(a, b pair) int { return bytes.Compare(a.key, b.key) }
	slices.SortFunc(ids, byKey)
	slices.SortFunc(chunkIDs, byKey)
	names := idsBucket
	if t.sources != nil {
		names = stagedBucket
	}
	for _, p := range ids {
		if err := t.tx.Bucket(names).Put(p.key, p.value); err != nil {
			return err
		}
	}
	for _, p := range chunkIDs {
		if err := t.claim(p.key, dropped); err != nil {
			return err
		}
	}
	return errors.Join(meta.Put(nextRowKey, be64(row)), meta.Put(nextDocumentKey, be64(doc)))
}

// claim writes the entry of a chunk ID, unless a document that stays has a chunk with the same one.
func (t *transaction) claim(key []byte, dropped map[int]bool) error {
	b := t.tx.Bucket(chunkIDsBucket)
	prefix := key[:len(key)-4]
	cursor := b.Cursor()
	for k, _ := cursor.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix) && len(k) == len(key); k, _ = cursor.Next() {
		row := binary.BigEndian.Uint32(k[len(prefix):])
		if !t.state.table.isLive(row) {
			continue
		}
		r, err := decodeChunk(t.tx.Bucket(chunksBucket).Get(k[len(prefix):]))
		if err != nil {
			return err
		}
		if position, ok := t.state.table.numbered(r.owner); ok && !dropped[position] {
			return fmt.Errorf("%w: chunk %q is in document %q already", ErrInvalid, r.chunk.ID, t.state.table.documents[position].document.ID)
		}
	}
	return b.Put(key, []byte{})
}

func chunkIDKey(id string, row uint32) []byte {
	return append(append([]byte(id), 0), be32(row)...)
}

func (t *transaction) finish(f Fingerprint) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	meta := t.tx.Bucket(metaBucket)
	return errors.Join(meta.Put(fingerprintKey, data), meta.Put(generationKey, be64(t.change.generation)))
}
