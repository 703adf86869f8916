package index

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"
)

// formatVersion is the layout of the store. A store of a higher version is refused, one of a lower
// version is brought up to it by Open.
//
//	1  the first
//	2  staged documents, which a program that knows only version 1 would take for live ones
const formatVersion = 2

// The buckets. Documents and rows have numbers that only grow, and what is written under a number
// never changes: a replaced document gets new numbers. So a snapshot reads what it saw for as long as
// its numbers are there, and the search indexes catch up by comparing sets of rows.
var (
	metaBucket      = []byte("meta")      // format, store, generation, next_row, next_document, fingerprint
	idsBucket       = []byte("ids")       // document ID -> document number, of live documents
	documentsBucket = []byte("documents") // document number -> documentRecord, JSON
	textsBucket     = []byte("texts")     // document number -> text
	chunksBucket    = []byte("chunks")    // row -> chunkRecord
	chunkIDsBucket  = []byte("chunk_ids") // chunk ID, 0, row -> nothing
	vectorsBucket   = []byte("vectors")   // row -> vector
	deadBucket      = []byte("dead")      // generation that ended it, document number -> nothing
	stagedBucket    = []byte("staged")    // document ID -> number that waits to replace it, number that it was made from

	manifestsBucket = []byte("manifests")       // time, ID -> manifest, JSON
	byIDBucket      = []byte("manifest_ids")    // ID -> key in manifests
	byTraceBucket   = []byte("manifest_traces") // trace ID -> key in manifests

	cacheBucket    = []byte("embeddings")    // sequence number -> key in embedding_ids, 0, vector
	cacheIDsBucket = []byte("embedding_ids") // model, 0, text hash -> sequence number
)

var (
	formatKey        = []byte("format")
	storeKey         = []byte("store")
	generationKey    = []byte("generation")
	nextRowKey       = []byte("next_row")
	nextDocumentKey  = []byte("next_document")
	fingerprintKey   = []byte("fingerprint")
	stagedKey        = []byte("staged_fingerprint") // of what is staged
	cacheBytesKey    = []byte("cache_bytes")
	cacheNextKey     = []byte("cache_next")
	manifestCountKey = []byte("manifest_count")
)

// sequentialFill is how full pages are made in buckets whose keys only grow: nothing is ever put
// between them.
const sequentialFill = 0.95

// corpusBuckets hold the corpus, as against manifests and the embedding cache.
func corpusBuckets() [][]byte {
	return [][]byte{idsBucket, documentsBucket, textsBucket, chunksBucket, chunkIDsBucket, vectorsBucket, deadBucket, stagedBucket}
}

// initialise creates what a new store needs and refuses one that is too new.
func initialise(tx *bbolt.Tx, path string) error {
	others := [][]byte{metaBucket, manifestsBucket, byIDBucket, byTraceBucket, cacheBucket, cacheIDsBucket}
	for _, name := range append(corpusBuckets(), others...) {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	m := tx.Bucket(metaBucket)
	switch format := number(m.Get(formatKey)); {
	case format > formatVersion:
		return fmt.Errorf("open index %s: its format is version %d, this program knows up to %d; use a newer one", path, format, formatVersion)
	case format == formatVersion:
		return nil
	case format > 0: // version 1 lacks only a bucket, which is there by now
		return m.Put(formatKey, be64(formatVersion))
	}
	return errors.Join(
		m.Put(formatKey, be64(formatVersion)),
		m.Put(storeKey, []byte(uuid.NewString())))
}

func be32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
func be64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// number reads what be64 wrote; what is absent is 0.
func number(data []byte) uint64 {
	if len(data) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(data)
}

// storedFingerprint returns nil when nothing was stored yet.
func storedFingerprint(tx *bbolt.Tx) (*Fingerprint, error) {
	return fingerprintUnder(tx, fingerprintKey)
}

func fingerprintUnder(tx *bbolt.Tx, key []byte) (*Fingerprint, error) {
	data := tx.Bucket(metaBucket).Get(key)
	if data == nil {
		return nil, nil
	}
	var f Fingerprint
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("fingerprint: %w", err)
	}
	return &f, nil
}
