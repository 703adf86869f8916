package index

import (
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"assay"
)

// Stats describe a collection.
type Stats struct {
	Collection    string      `json:"collection"`
	Generation    uint64      `json:"generation"`
	Documents     int         `json:"documents"`
	Chunks        int         `json:"chunks"`
	Tokens        int         `json:"tokens"`
	Embedder      assay.Model `json:"embedder,omitzero"`
	Chunker       string      `json:"chunker,omitempty"`
	Analyzer      string      `json:"analyzer"`
	Manifests     int         `json:"manifests"`
	Cached        int         `json:"cached_vectors"`   // in the embedding cache
	Staged        int         `json:"staged,omitempty"` // documents that a reindexing has made so far and that are not searched yet
	Bytes         StatsBytes  `json:"bytes"`
	ManifestsLost int         `json:"manifests_lost"`     // since Open, because they could not be written
	Degraded      string      `json:"degraded,omitempty"` // why searches see an older state than what is stored
}

// StatsBytes are sizes of the parts.
type StatsBytes struct {
	Store   int64 `json:"store"`   // on disk: documents, chunks, vectors, manifests, embedding cache
	Lexical int64 `json:"lexical"` // on disk
	Graph   int64 `json:"graph"`   // on disk
	Dense   int64 `json:"dense"`   // in memory
}

// Stats returns the state of the collection. It does not wait for a write that is under way.
func (ix *Index) Stats() Stats {
	s := ix.current.Load()
	out := Stats{
		Collection: ix.o.Collection,
		Generation: s.generation,
		Documents:  int(s.table.liveDocuments.Count()),
		Chunks:     s.table.chunks,
		Tokens:     s.table.tokens,
		Analyzer:   s.analyzer.Name(),
	}
	if s.fingerprint != nil {
		out.Embedder, out.Chunker = s.fingerprint.Embedder, s.fingerprint.Chunker
		out.Bytes.Dense = 4 * int64(s.fingerprint.Embedder.Dimensions) * int64(s.vectors().Len())
	}
	// What is in use of the file, which grows in steps ahead of it. A closed index has nothing to say.
	_ = ix.view(func(tx *bbolt.Tx) error {
		out.Bytes.Store = tx.Size()
		out.Manifests = int(number(tx.Bucket(metaBucket).Get(manifestCountKey)))
		out.Cached = tx.Bucket(cacheIDsBucket).Stats().KeyN
		out.Staged = tx.Bucket(stagedBucket).Stats().KeyN
		return nil
	})
	if info, err := os.Stat(ix.graphPath()); err == nil {
		out.Bytes.Graph = info.Size()
	}
	out.Bytes.Lexical = folderSize(filepath.Join(ix.dir, bm25Folder))
	if reason := ix.degraded.Load(); reason != nil {
		out.Degraded = *reason
	}
	ix.manifests.mu.Lock()
	out.ManifestsLost = ix.manifests.lost
	ix.manifests.mu.Unlock()
	return out
}

// folderSize sums what can be read; files come and go while bleve merges.
func folderSize(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
