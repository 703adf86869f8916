// Package bm25 is the lexical channel: a bleve index of chunks, and textbook BM25F computed over
// bleve's own postings. Bleve's built-in scoring is not used: its average length counts distinct
// terms a segment, so that scores drift as segments merge, and it applies the square root of the
// frequency and the idf twice.
//
// The index is derived from a store and disposable: Open replaces one that is damaged or belongs to
// another store, and says so.
package bm25

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
	segment "github.com/blevesearch/scorch_segment_api/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// format changes when documents are laid out differently, so that older indexes are rebuilt.
const format = "1"

// Keys of bleve's internal store, which is written in the same step as the documents.
var (
	ownerKey      = []byte("assay.owner")
	generationKey = []byte("assay.generation")
)

// Index is the bleve index of one collection.
type Index struct {
	bleve bleve.Index
	inner index.Index

	closing   sync.Once
	scratches sync.Pool // working memory of searches

	mu    sync.Mutex         // guards slots
	slots map[uint64]slotMap // by bleve's segment ID
}

// Open opens the index in dir or creates it. An index that cannot be read, is damaged, was made by
// another analyser or belongs to another store is replaced by an empty one; replaced then says why.
func Open(dir, store, analyzer string) (ix *Index, replaced string, err error) {
	owner := []byte(format + " " + store + " " + analyzer)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		ix, err := create(dir, owner, analyzer)
		return ix, "", err
	}
	ix, err = open(dir, owner)
	if err == nil {
		return ix, "", nil
	}
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, "", fmt.Errorf("open index %s: another program has it open; end it: %w", dir, err)
	}
	replaced = err.Error()
	if err := os.RemoveAll(dir); err != nil {
		return nil, replaced, fmt.Errorf("remove damaged index: %w", err)
	}
	ix, err = create(dir, owner, analyzer)
	return ix, replaced, err
}

// lockTimeout bounds the wait for bleve's own lock, which is for ever by default.
const lockTimeout = 2 * time.Second

func runtimeConfig() map[string]any { return map[string]any{"bolt_timeout": lockTimeout.String()} }

func create(dir string, owner []byte, analyzer string) (*Index, error) {
	mapping := bleve.NewIndexMapping()
	mapping.DefaultAnalyzer = analyzer
	mapping.StoreDynamic, mapping.DocValuesDynamic = false, false
	b, err := bleve.NewUsing(dir, mapping, scorch.Name, scorch.Name, runtimeConfig())
	if err != nil {
		return nil, fmt.Errorf("create index %s: %w", dir, err)
	}
	ix, err := wrap(b)
	if err == nil {
		err = ix.inner.SetInternal(ownerKey, owner)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create index %s: %w", dir, err), b.Close())
	}
	return ix, nil
}

// open opens an existing index and refuses one that it should not trust. Bleve panics on some
// damage, which is caught here.
func open(dir string, owner []byte) (ix *Index, err error) {
	var b bleve.Index
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged: %v", p)
		}
		if err != nil && b != nil {
			ix, err = nil, errors.Join(err, b.Close())
		}
	}()
	if err := checkRoot(filepath.Join(dir, "store", "root.bolt")); err != nil {
		return nil, err
	}
	opened, err := bleve.OpenUsing(dir, runtimeConfig())
	if err != nil { // opened then holds a nil pointer, which is not a nil interface
		return nil, err
	}
	b = opened
	if ix, err = wrap(b); err != nil {
		return nil, err
	}
	r, err := ix.Reader()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	was, err := r.snapshot.GetInternal(ownerKey)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(was, owner) {
		return nil, fmt.Errorf("made for %q, needed for %q", was, owner)
	}
	return ix, r.verify()
}

// checkRoot refuses a root file that is shorter than its own header says. Bleve would read past its end
// in the background, where the fault ends the process.
func checkRoot(path string) (err error) {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
	if err != nil {
		return err
	}
	return errors.Join(db.View(func(tx *bbolt.Tx) error {
		if info.Size() < tx.Size() {
			return fmt.Errorf("damaged: its root has %d bytes and should have %d", info.Size(), tx.Size())
		}
		return nil
	}), db.Close())
}

func wrap(b bleve.Index) (*Index, error) {
	inner, err := b.Advanced()
	if err != nil {
		return nil, err
	}
	return &Index{bleve: b, inner: inner, slots: map[uint64]slotMap{}}, nil
}

// stuckAfter is how long one batch may take, which is far more than a slow disk needs. After a panic
// in one of its background tasks, bleve waits for ever.
const stuckAfter = 5 * time.Minute

// Apply adds and removes chunks in one step and records the generation that is reached by it. When
// it returns without an error the step is on disk.
func (ix *Index) Apply(add []Doc, remove []uint32, generation uint64) error {
	batch := ix.bleve.NewBatch()
	for i := range add {
		if err := batch.IndexAdvanced(add[i].bleve()); err != nil {
			return fmt.Errorf("bleve: %w", err)
		}
	}
	for _, row := range remove {
		batch.Delete(rowID(row))
	}
	batch.SetInternal(generationKey, binary.BigEndian.AppendUint64(nil, generation))
	done := make(chan error, 1)
	go func() { done <- ix.bleve.Batch(batch) }()
	timer := time.NewTimer(stuckAfter)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("bleve: %w", err)
		}
		return nil
	case <-timer.C:
		return fmt.Errorf("bleve: a batch of %d chunks was not taken within %s", len(add), stuckAfter)
	}
}

// Close closes the index. Readers stay usable until they are closed. Closing twice does nothing;
// bleve itself would panic.
func (ix *Index) Close() (err error) {
	ix.closing.Do(func() { err = ix.bleve.Close() })
	return err
}

// verify compares the checksum of every segment file with its content.
func (r *Reader) verify() error {
	for _, s := range r.snapshot.Segments() {
		persisted, ok := s.Segment().(segment.PersistedSegment)
		if !ok {
			continue
		}
		data, err := os.ReadFile(persisted.Path())
		if err != nil {
			return err
		}
		end := len(data) - crc32.Size
		if end < 0 || crc32.ChecksumIEEE(data[:end]) != binary.BigEndian.Uint32(data[end:]) {
			return fmt.Errorf("damaged: %s: wrong checksum", filepath.Base(persisted.Path()))
		}
	}
	return nil
}
