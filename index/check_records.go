package index

import (
	"bytes"
	"context"
	"encoding/json"

	"assay"
)

// manifests checks the manifests with their two indexes and their count.
func (c *checker) manifests(ctx context.Context) error {
	count := 0
	cursor := c.tx.Bucket(manifestsBucket).Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		count++
		var m assay.Manifest
		if err := json.Unmarshal(v, &m); err != nil {
			c.badly("manifest %q: %w", k[8:], err)
			continue
		}
		if !bytes.Equal(c.tx.Bucket(byIDBucket).Get([]byte(m.ID)), k) {
			c.badly("manifest %q is not under its ID", m.ID)
		}
		if m.TraceID != "" && c.tx.Bucket(byTraceBucket).Get([]byte(m.TraceID)) == nil {
			c.badly("manifest %q is not under its trace", m.ID)
		}
	}
	if n := c.tx.Bucket(byIDBucket).Stats().KeyN; n != count {
		c.badly("%d manifests, %d IDs of manifests", count, n)
	}
	if n := number(c.tx.Bucket(metaBucket).Get(manifestCountKey)); n != uint64(count) {
		c.badly("%d manifests, counted as %d", count, n)
	}
	return c.tx.Bucket(byTraceBucket).ForEach(func(k, v []byte) error {
		if c.tx.Bucket(manifestsBucket).Get(v) == nil {
			c.badly("trace %q leads to no manifest", k)
		}
		return ctx.Err()
	})
}

// cache checks the log of vectors with its index and its size.
func (c *checker) cache(ctx context.Context) error {
	size, count := uint64(0), 0
	err := c.tx.Bucket(cacheBucket).ForEach(func(sequence, entry []byte) error {
		key, _, ok := splitCached(entry)
		if !ok || !bytes.Equal(c.tx.Bucket(cacheIDsBucket).Get(key), sequence) {
			c.badly("embedding cache: entry %x is not under its key", sequence)
		}
		size += cachedBytes(key, entry)
		count++
		return ctx.Err()
	})
	if n := c.tx.Bucket(cacheIDsBucket).Stats().KeyN; n != count {
		c.badly("embedding cache: %d vectors, %d keys", count, n)
	}
	if n := number(c.tx.Bucket(metaBucket).Get(cacheBytesKey)); n != size {
		c.badly("embedding cache: %d bytes, counted as %d", size, n)
	}
	return err
}
