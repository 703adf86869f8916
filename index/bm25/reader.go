package bm25

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/bits-and-blooms/bitset"
	"github.com/blevesearch/bleve/v2/index/scorch"
)

// Reader is a consistent state of the index.
type Reader struct {
	index    *Index
	snapshot *scorch.IndexSnapshot

	once  sync.Once // guards the making of slots
	slots [][]uint32
	err   error
}

// slotMap holds, for each document number of a segment, its slot. A segment never changes, so it
// holds for as long as the corpus keeps its slots: for one epoch.
type slotMap struct {
	epoch uint64
	slots []uint32
}

// noSlot marks documents that the corpus has dropped; they are deleted in the segment too.
const noSlot = ^uint32(0)

// Reader returns the current state. Close it.
func (ix *Index) Reader() (*Reader, error) {
	r, err := ix.inner.Reader()
	if err != nil {
		return nil, fmt.Errorf("bleve: %w", err)
	}
	snapshot, ok := r.(*scorch.IndexSnapshot)
	if !ok || snapshot == nil {
		return nil, fmt.Errorf("bleve: unexpected reader %T; the index is closed or not of the scorch type", r)
	}
	ix.forget(snapshot)
	return &Reader{index: ix, snapshot: snapshot}, nil
}

// forget drops the slot maps of segments that have been merged away.
func (ix *Index) forget(current *scorch.IndexSnapshot) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	alive := map[uint64]bool{}
	for _, s := range current.Segments() {
		alive[s.Id()] = true
	}
	for id := range ix.slots {
		if !alive[id] {
			delete(ix.slots, id)
		}
	}
}

// Close releases the state.
func (r *Reader) Close() error { return r.snapshot.Close() }

// Generation is what the last Apply before this state recorded, 0 when there was none.
func (r *Reader) Generation() (uint64, error) {
	data, err := r.snapshot.GetInternal(generationKey)
	if err != nil {
		return 0, fmt.Errorf("bleve: %w", err)
	}
	if len(data) != 8 {
		return 0, nil
	}
	return binary.BigEndian.Uint64(data), nil
}

// Rows returns the rows that are present. A row that is present twice is an error.
func (r *Reader) Rows() (rows *bitset.BitSet, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("bleve: damaged: %v", p)
		}
	}()
	rows = bitset.New(0)
	for _, s := range r.snapshot.Segments() {
		deleted := s.Deleted()
		for n := range uint64(s.FullSize()) {
			if deleted != nil && deleted.Contains(uint32(n)) {
				continue
			}
			row, err := rowOf(s, n)
			if err != nil {
				return nil, err
			}
			if rows.Test(uint(row)) {
				return nil, fmt.Errorf("bleve: row %d is present twice", row)
			}
			rows.Set(uint(row))
		}
	}
	return rows, nil
}

func rowOf(s *scorch.SegmentSnapshot, number uint64) (uint32, error) {
	id, err := s.DocID(number)
	if err != nil {
		return 0, fmt.Errorf("bleve: %w", err)
	}
	if len(id) != 4 {
		return 0, fmt.Errorf("bleve: document ID %q is not a row", id)
	}
	return binary.BigEndian.Uint32(id), nil
}

// slotMaps returns the slots of each segment's documents, in the order of the segments.
func (r *Reader) slotMaps(c *Corpus) ([][]uint32, error) {
	r.once.Do(func() {
		for _, s := range r.snapshot.Segments() {
			m, err := r.index.slotMap(s, c)
			if err != nil {
				r.err = err
				return
			}
			r.slots = append(r.slots, m)
		}
	})
	return r.slots, r.err
}

func (ix *Index) slotMap(s *scorch.SegmentSnapshot, c *Corpus) ([]uint32, error) {
	ix.mu.Lock()
	known, ok := ix.slots[s.Id()]
	ix.mu.Unlock()
	if ok && known.epoch == c.Epoch {
		return known.slots, nil
	}
	slots := make([]uint32, s.FullSize())
	for n := range slots {
		row, err := rowOf(s, uint64(n))
		if err != nil {
			return nil, err
		}
		if slots[n], ok = c.Slot(row); !ok {
			slots[n] = noSlot
		}
	}
	ix.mu.Lock()
	ix.slots[s.Id()] = slotMap{c.Epoch, slots}
	ix.mu.Unlock()
	return slots, nil
}
