package index

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// A corpus is made anew under other settings while the old one serves: the new documents are staged
// under numbers of their own, and Promote puts them in the place of the old ones in one transaction.
// Until then nothing but the staged bucket knows of them.

// stagedEntry is an entry of the staged bucket.
type stagedEntry struct {
	number uint32 // of the staged document
	source uint32 // of the live document that it was made from
}

func decodeStaged(value []byte) (stagedEntry, error) {
	if len(value) != 8 {
		return stagedEntry{}, errRecord
	}
	return stagedEntry{binary.BigEndian.Uint32(value), binary.BigEndian.Uint32(value[4:])}, nil
}

// hiddenDocuments are the numbers of the documents that are not live: those that were replaced and are
// still read, and those that are staged.
func hiddenDocuments(tx *bbolt.Tx) map[string]bool {
	out := map[string]bool{}
	cursor := tx.Bucket(deadBucket).Cursor()
	for k, _ := cursor.First(); k != nil; k, _ = cursor.Next() {
		out[string(k[8:])] = true
	}
	cursor = tx.Bucket(stagedBucket).Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		if len(v) == 8 {
			out[string(v[:4])] = true
		}
	}
	return out
}

// dropStaged makes everything staged dead as of a generation, for a purge to remove.
func dropStaged(tx *bbolt.Tx, generation uint64) error {
	cursor := tx.Bucket(stagedBucket).Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		if err := tx.Bucket(deadBucket).Put(append(be64(generation), v[:4]...), []byte{}); err != nil {
			return err
		}
	}
	return errors.Join(recreate(tx, [][]byte{stagedBucket}), tx.Bucket(metaBucket).Delete(stagedKey))
}

// current reports whether a staged document was made from what is live under its ID.
func (e stagedEntry) current(live []byte) bool {
	return len(live) == 4 && binary.BigEndian.Uint32(live) == e.source
}

// staged checks that every staged document is there.
func (c *checker) staged() {
	cursor := c.tx.Bucket(stagedBucket).Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		e, err := decodeStaged(v)
		if err == nil && c.tx.Bucket(documentsBucket).Get(be32(e.number)) == nil {
			err = fmt.Errorf("number %d is missing", e.number)
		}
		if err != nil {
			c.badly("staged document %q: %w", k, err)
		}
	}
	if c.tx.Bucket(stagedBucket).Stats().KeyN > 0 && c.tx.Bucket(metaBucket).Get(stagedKey) == nil {
		c.badly("there are staged documents and no fingerprint of them")
	}
}
