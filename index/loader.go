package index

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"assay"
	"assay/index/dense"
	"assay/index/hnsw"
)

// errForeignGraph is returned while loading when the file of a graph is not of this store as it is.
var errForeignGraph = errors.New("the graph does not agree with the store")

// loader fills a state's table and vectors from the store, in the order of rows. The first vectors may
// be in a graph that was kept in a file; the store decides whether they are the right ones.
type loader struct {
	s       *state
	graph   *dense.Graphed // to restore; nil when there is none, or when it is done
	file    *hnsw.File
	at      int       // how many of the graph's keys are behind
	scratch []float32 // a vector of the store

	entries []*documentEntry
	vectors [][]float32
}

// loadPortion is how many documents are added at once.
const loadPortion = 256

func (ix *Index) newLoader(tx *bbolt.Tx, s *state, file *hnsw.File) (*loader, error) {
	view, err := ix.newVectors(s.fingerprint.Embedder)
	if err != nil {
		return nil, err
	}
	s.setVectors(view)
	l := &loader{s: s, scratch: make([]float32, s.fingerprint.Embedder.Dimensions)}
	if graphed, ok := view.(*dense.Graphed); ok && file != nil && len(file.Keys) > 0 {
		if d := file.Graph.Dimensions(); d != len(l.scratch) {
			return nil, fmt.Errorf("%w: it has %d dimensions, the corpus has %d", errForeignGraph, d, len(l.scratch))
		}
		if last, next := file.Keys[len(file.Keys)-1], number(tx.Bucket(metaBucket).Get(nextRowKey)); uint64(last) >= next {
			return nil, fmt.Errorf("%w: it has row %d, the store has given %d rows", errForeignGraph, last, next)
		}
		l.graph, l.file = graphed, file
	}
	return l, nil
}

// newVectors is the one place that chooses how vectors are searched.
func (ix *Index) newVectors(m assay.Model) (dense.View, error) {
	return dense.New(dense.Engine(ix.o.Engine), m.Dimensions)
}

// document reads a document and its rows.
func (l *loader) document(ctx context.Context, tx *bbolt.Tx, key, value []byte) error {
	var d documentRecord
	if err := json.Unmarshal(value, &d); err != nil {
		return err
	}
	if l.graph != nil && d.FirstRow > l.file.Keys[len(l.file.Keys)-1] {
		if err := l.restore(); err != nil {
			return err
		}
	}
	e := &documentEntry{number: binary.BigEndian.Uint32(key), document: d.Document, firstRow: d.FirstRow, rows: d.Rows, tokens: d.Tokens}
	for i := range d.Rows {
		row := d.FirstRow + uint32(i)
		chunk, err := decodeChunk(tx.Bucket(chunksBucket).Get(be32(row)))
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		if err := l.vector(row, tx.Bucket(vectorsBucket).Get(be32(row))); err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		e.chunkIDs = append(e.chunkIDs, chunk.chunk.ID)
		e.lengths = append(e.lengths, chunk.lengths)
	}
	l.entries = append(l.entries, e)
	if len(l.entries) == loadPortion {
		l.add()
		return ctx.Err()
	}
	return nil
}

// vector takes a row's vector, or finds it in the graph.
func (l *loader) vector(row uint32, stored []byte) error {
	if l.graph == nil {
		v, err := decodeVector(stored, len(l.scratch))
		l.vectors = append(l.vectors, v)
		return err
	}
	if err := decodeVectorInto(l.scratch, stored); err != nil {
		return err
	}
	for l.at < len(l.file.Keys) && l.file.Keys[l.at] < row { // rows that are dead by now
		l.at++
	}
	if l.at == len(l.file.Keys) || l.file.Keys[l.at] != row {
		return fmt.Errorf("%w: it is missing there", errForeignGraph)
	}
	if !slices.Equal(l.scratch, l.file.Graph.Vector(uint32(l.at))) {
		return fmt.Errorf("%w: it has another vector there", errForeignGraph)
	}
	return nil
}

// add takes over what was read.
func (l *loader) add() {
	l.s.table = l.s.table.edit(nil, l.entries)
	if len(l.vectors) > 0 {
		l.s.setVectors(l.s.vectors().Extend(l.vectors))
	}
	l.entries, l.vectors = nil, nil
}

// restore ends the part of the rows that are in the graph.
func (l *loader) restore() error {
	l.add()
	if len(l.s.table.rows) == 0 { // nothing of it is live
		l.graph = nil
		return nil
	}
	view, err := l.graph.Restore(dense.FromFile(l.file), l.s.table.slot, len(l.s.table.rows))
	if err != nil {
		return fmt.Errorf("%w: %w", errForeignGraph, err)
	}
	l.s.setVectors(view)
	l.graph = nil
	return nil
}

func (l *loader) finish() error {
	if l.graph != nil {
		return l.restore()
	}
	l.add()
	return nil
}
