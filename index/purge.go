package index

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// purge removes the records of documents that ended at or before the oldest generation that is still
// read. A snapshot of an earlier generation keeps them.
func purge(tx *bbolt.Tx, readable uint64) error {
	var keys [][]byte
	cursor := tx.Bucket(deadBucket).Cursor()
	complete := true
	for k, _ := cursor.First(); k != nil; k, _ = cursor.Next() {
		if binary.BigEndian.Uint64(k) > readable {
			complete = false
			break
		}
		keys = append(keys, append([]byte(nil), k...))
	}
	if len(keys) == 0 {
		return nil
	}
	if first, _ := tx.Bucket(idsBucket).Cursor().First(); first == nil && complete {
		return recreate(tx, corpusBuckets()) // nothing lives, so the buckets can go as a whole
	}
	for _, k := range keys {
		if err := purgeDocument(tx, k[8:]); err != nil {
			return err
		}
		if err := tx.Bucket(deadBucket).Delete(k); err != nil {
			return err
		}
	}
	return nil
}

func recreate(tx *bbolt.Tx, buckets [][]byte) error {
	for _, name := range buckets {
		if err := tx.DeleteBucket(name); err != nil {
			return err
		}
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return nil
}

func purgeDocument(tx *bbolt.Tx, key []byte) error {
	var d documentRecord
	if err := json.Unmarshal(tx.Bucket(documentsBucket).Get(key), &d); err != nil {
		return fmt.Errorf("document number %x: %w", key, err)
	}
	for i := range d.Rows {
		row := d.FirstRow + uint32(i)
		chunk, err := decodeChunk(tx.Bucket(chunksBucket).Get(be32(row)))
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		if err := errors.Join(
			tx.Bucket(chunkIDsBucket).Delete(chunkIDKey(chunk.chunk.ID, row)),
			tx.Bucket(chunksBucket).Delete(be32(row)),
			tx.Bucket(vectorsBucket).Delete(be32(row))); err != nil {
			return err
		}
	}
	return errors.Join(tx.Bucket(textsBucket).Delete(key), tx.Bucket(documentsBucket).Delete(key))
}
