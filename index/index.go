// Package index is the durable corpus of one collection: documents, chunks and vectors in one
// transactional store, with a lexical and a dense search index derived from it.
//
// The store (bbolt) is the truth. A write is acknowledged when it is on disk, and searchable in both
// channels when Apply returns. The lexical index (bleve, package bm25) lives beside it and records the
// generation that it has reached; the dense index (package dense) lives in memory. Both are brought
// up to the store by Open, and made anew where they are missing or damaged, so that whatever happens
// to them, or to the process, loses nothing.
//
// Readers take a Snapshot: an immutable generation that stays whole for as long as it is open, while
// writes go on. There is one writer at a time and one process a directory.
package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"assay/index/bm25"
)

// Index is an open collection. It is safe for concurrent use.
type Index struct {
	lg  *slog.Logger
	o   Options
	dir string // of the collection
	db  *bbolt.DB

	writer   sync.Mutex  // guards what follows; held over a whole write
	lexical  *bm25.Index // nil when it could not be opened
	storeID  string      // random, of the store; what derived files are labelled with
	analyzer string      // that texts are analysed with, unless the corpus was made with another one
	behind   error       // why the current state is older than the store; nil when it is not
	epoch    uint64      // the last that was given
	past     []*state    // states that may still be read, oldest first
	closed   bool

	current   atomic.Pointer[state]
	degraded  atomic.Pointer[string] // why the current state is older than the store, for Stats
	manifests manifestQueue
	grower    *grower // nil until the index is open
}

// Open opens a collection in a data directory and creates both where they are missing. Another
// process that holds it is a LockedError, other settings than the stored ones a MismatchError, and
// damage to the store a CorruptError. Damaged search indexes are made anew.
func Open(lg *slog.Logger, dir string, o Options) (*Index, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	return openFolder(lg, filepath.Join(dir, o.Collection), o)
}

func openFolder(lg *slog.Logger, folder string, o Options) (*Index, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("open index: %w; choose another --data directory or make it writable", err)
	}
	db, err := openStore(folder, o.LockTimeout)
	if err != nil {
		return nil, err
	}
	ix := &Index{lg: lg, o: o, dir: folder, db: db, analyzer: o.Analyzer}
	ix.manifests.init(ix)
	if err := ix.start(); err != nil {
		return nil, errors.Join(err, ix.Close())
	}
	ix.startGrower()
	return ix, nil
}

func (ix *Index) start() error {
	if err := ix.update(func(tx *bbolt.Tx) error { return initialise(tx, ix.storePath()) }); err != nil {
		return err
	}
	ix.writer.Lock()
	defer ix.writer.Unlock()
	s, err := ix.load(context.Background())
	if err != nil {
		return err
	}
	ix.publish(s)
	return nil
}

func (ix *Index) storePath() string { return filepath.Join(ix.dir, storeFile) }

// Close writes what is pending and closes the index. It waits for a write that is under way, not for
// snapshots: those can still search but no longer read texts.
func (ix *Index) Close() error {
	ix.grower.stop()
	ix.manifests.close()
	ix.writer.Lock()
	defer ix.writer.Unlock()
	if ix.closed {
		return nil
	}
	ix.closed = true
	var err error
	if s := ix.current.Load(); s != nil {
		err = errors.Join(err, s.release())
		if ix.readable() == s.generation {
			err = errors.Join(err, ix.update(func(tx *bbolt.Tx) error { return purge(tx, s.generation) }))
		}
	}
	if ix.lexical != nil {
		err = errors.Join(err, ix.lexical.Close())
	}
	err = errors.Join(err, os.Remove(filepath.Join(ix.dir, holderFile)), ix.db.Close())
	if err != nil {
		return fmt.Errorf("close index %s: %w", ix.dir, err)
	}
	return nil
}

// publish makes a state the one that new snapshots see. The writer's lock is held.
func (ix *Index) publish(s *state) {
	s.users.Store(1)
	ix.past = append(ix.past, s)
	if old := ix.current.Swap(s); old != nil {
		if err := old.release(); err != nil {
			ix.lg.Warn("release of a former state of the lexical index", "error", err)
		}
	}
	ix.behind = nil
	ix.degraded.Store(nil)
	ix.grower.wake()
}

// fellBehind notes that the current state is older than the store. The writer's lock is held.
func (ix *Index) fellBehind(err error) {
	reason := err.Error()
	ix.behind = err
	ix.degraded.Store(&reason)
}

// readable is the oldest generation that somebody may still read. The writer's lock is held.
func (ix *Index) readable() uint64 {
	current := ix.current.Load()
	alive := ix.past[:0]
	oldest := current.generation
	for _, s := range ix.past {
		if s.users.Load() > 0 {
			alive = append(alive, s)
			oldest = min(oldest, s.generation)
		}
	}
	clear(ix.past[len(alive):])
	ix.past = alive
	return oldest
}
