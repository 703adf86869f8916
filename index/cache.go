package index

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"assay"
	"assay/index/dense"
)

// The embedding cache is a log of vectors, oldest first, and an index of it by model and text: so
// writes are appended, whatever the hashes are, and the oldest are the first to go.

// GetVectors returns the cached vector of each text hash, nil where there is none. A damaged one
// counts as none.
func (ix *Index) GetVectors(model assay.Model, hashes []string) ([][]float32, error) {
	out := make([][]float32, len(hashes))
	damaged := 0
	err := ix.view(func(tx *bbolt.Tx) error {
		ids, log := tx.Bucket(cacheIDsBucket), tx.Bucket(cacheBucket)
		for i, hash := range hashes {
			key := cacheKey(model, hash)
			sequence := ids.Get(key)
			if sequence == nil {
				continue
			}
			_, data, ok := splitCached(log.Get(sequence))
			v, err := decodeVector(data, model.Dimensions)
			if !ok || err != nil {
				damaged++
				continue
			}
			out[i] = v
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("embedding cache: %w", err)
	}
	if damaged > 0 {
		ix.lg.Warn("damaged vectors in the embedding cache are ignored", "vectors", damaged, "model", model.Name)
	}
	return out, nil
}

// PutVectors caches the vector of each text hash. Ones that are cached already are replaced.
func (ix *Index) PutVectors(model assay.Model, hashes []string, vectors [][]float32) error {
	if len(hashes) != len(vectors) {
		return fmt.Errorf("%w: embedding cache: %d hashes with %d vectors", ErrInvalid, len(hashes), len(vectors))
	}
	if len(model.Name) > maxIDBytes || 4*len(vectors)*max(model.Dimensions, 0) > ix.o.MaxBatchBytes {
		return fmt.Errorf("%w: embedding cache: model name of %d bytes, %d vectors: %w of %d and %d bytes (index.max_batch_bytes)",
			ErrInvalid, len(model.Name), len(vectors), ErrTooLarge, maxIDBytes, ix.o.MaxBatchBytes)
	}
	for i, v := range vectors {
		if len(hashes[i]) > maxIDBytes {
			return fmt.Errorf("%w: embedding cache: hash of %d bytes", ErrInvalid, len(hashes[i]))
		}
		if _, err := dense.Normalised(v, model.Dimensions); err != nil && !errors.Is(err, dense.ErrZero) {
			return fmt.Errorf("%w: embedding cache: vector %d: %w", ErrInvalid, i, err)
		}
	}
	if len(hashes) == 0 {
		return nil
	}
	err := ix.update(func(tx *bbolt.Tx) error {
		c := newCacheWriter(tx)
		for i, hash := range hashes {
			if err := c.put(cacheKey(model, hash), vectors[i]); err != nil {
				return err
			}
		}
		return c.finish(uint64(ix.o.CacheBytes))
	})
	if err != nil {
		return fmt.Errorf("embedding cache: %w", err)
	}
	return nil
}

func cacheKey(model assay.Model, hash string) []byte {
	key := append([]byte(model.Name), 0)
	key = append(key, be32(uint32(model.Dimensions))...)
	return append(key, hash...)
}

// splitCached takes a log entry apart: the length of the key in two bytes, the key, the vector.
func splitCached(entry []byte) (key, vector []byte, ok bool) {
	if len(entry) < 2 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(entry))
	if len(entry) < 2+n {
		return nil, nil, false
	}
	return entry[2 : 2+n], entry[2+n:], true
}

type cacheWriter struct {
	ids, log, meta *bbolt.Bucket
	bytes, next    uint64
}

func newCacheWriter(tx *bbolt.Tx) *cacheWriter {
	meta := tx.Bucket(metaBucket)
	c := &cacheWriter{tx.Bucket(cacheIDsBucket), tx.Bucket(cacheBucket), meta, number(meta.Get(cacheBytesKey)), number(meta.Get(cacheNextKey))}
	c.log.FillPercent = sequentialFill
	return c
}

func (c *cacheWriter) put(key []byte, v []float32) error {
	if old := c.ids.Get(key); old != nil {
		c.bytes -= cachedBytes(key, c.log.Get(old))
		if err := c.log.Delete(old); err != nil {
			return err
		}
	}
	entry := binary.BigEndian.AppendUint16(nil, uint16(len(key)))
	entry = append(append(entry, key...), encodeVector(v)...)
	sequence := be64(c.next)
	c.next++
	c.bytes += cachedBytes(key, entry)
	return errors.Join(c.ids.Put(key, sequence), c.log.Put(sequence, entry))
}

// cachedBytes is what an entry counts in both buckets.
func cachedBytes(key, entry []byte) uint64 { return uint64(len(key) + len(entry) + 16) }

// finish drops the oldest entries past the limit and writes the counters.
func (c *cacheWriter) finish(limit uint64) error {
	cursor := c.log.Cursor()
	for c.bytes > limit {
		sequence, entry := cursor.First()
		if sequence == nil {
			c.bytes = 0
			break
		}
		key, _, ok := splitCached(entry)
		if !ok {
			return fmt.Errorf("entry %x cannot be read", sequence)
		}
		c.bytes -= cachedBytes(key, entry)
		if err := errors.Join(c.ids.Delete(key), cursor.Delete()); err != nil {
			return err
		}
	}
	return errors.Join(c.meta.Put(cacheBytesKey, be64(c.bytes)), c.meta.Put(cacheNextKey, be64(c.next)))
}
