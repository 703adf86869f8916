package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"go.etcd.io/bbolt"

	"assay"
)

// maxManifestBytes bounds a manifest as JSON; one with a thousand candidates has some 500 kB.
const maxManifestBytes = 8 << 20

// PutManifest keeps a manifest. It returns as soon as the manifest can be read back; it is on disk
// shortly after, together with others that came meanwhile, or at the latest when Close returns. Only
// when the disk cannot keep up does it wait, for as long as the context allows.
func (ix *Index) PutManifest(ctx context.Context, m *assay.Manifest) error {
	if m.ID == "" || len(m.ID) > maxIDBytes || len(m.TraceID) > maxIDBytes || !m.CreatedAt.Equal(keyedTime(m.CreatedAt)) {
		return fmt.Errorf("%w: a manifest needs an ID, a time between 1970 and 2262, and IDs of at most %d bytes", ErrInvalid, maxIDBytes)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("put manifest %q: %w", m.ID, err)
	}
	if len(data) > maxManifestBytes {
		return fmt.Errorf("%w: manifest %q has %d bytes: %w of %d", ErrInvalid, m.ID, len(data), ErrTooLarge, maxManifestBytes)
	}
	return ix.manifests.put(ctx, &pendingManifest{id: m.ID, trace: m.TraceID, created: m.CreatedAt, data: data})
}

// Manifest returns the manifest with that ID.
func (ix *Index) Manifest(id string) (*assay.Manifest, error) {
	if p := ix.manifests.find(func(p *pendingManifest) bool { return p.id == id }); p != nil {
		return decodeManifest(p.data)
	}
	return ix.storedManifest(byIDBucket, id)
}

// ManifestByTrace returns the manifest that was written under that trace, the latest where there are
// several.
func (ix *Index) ManifestByTrace(traceID string) (*assay.Manifest, error) {
	if p := ix.manifests.find(func(p *pendingManifest) bool { return p.trace == traceID }); p != nil && traceID != "" {
		return decodeManifest(p.data)
	}
	return ix.storedManifest(byTraceBucket, traceID)
}

func (ix *Index) storedManifest(bucket []byte, name string) (*assay.Manifest, error) {
	var data []byte
	err := ix.view(func(tx *bbolt.Tx) error {
		if key := tx.Bucket(bucket).Get([]byte(name)); key != nil {
			data = bytes.Clone(tx.Bucket(manifestsBucket).Get(key))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("manifest %q: %w", name, err)
	}
	if data == nil {
		return nil, fmt.Errorf("manifest %q: %w", name, ErrNotFound)
	}
	return decodeManifest(data)
}

func decodeManifest(data []byte) (*assay.Manifest, error) {
	m := new(assay.Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return m, nil
}

// keyedTime is the nearest time that a key can hold: nanoseconds since 1970 in 63 bits.
func keyedTime(t time.Time) time.Time {
	if earliest := time.Unix(0, 0); t.Before(earliest) {
		return earliest
	}
	if latest := time.Unix(0, math.MaxInt64); t.After(latest) {
		return latest
	}
	return t
}

func timeKey(t time.Time) []byte { return be64(uint64(keyedTime(t).UnixNano())) }

// manifestPage is how many manifests are read in one transaction; none is open during a yield.
const manifestPage = 64

// Manifests yields the manifests that were created at or after a time, newest first. An error ends it.
func (ix *Index) Manifests(since time.Time) iter.Seq2[*assay.Manifest, error] {
	return func(yield func(*assay.Manifest, error) bool) {
		ix.manifests.drain()
		from := timeKey(since)
		var last []byte
		for {
			var page [][]byte
			err := ix.view(func(tx *bbolt.Tx) error {
				cursor := tx.Bucket(manifestsBucket).Cursor()
				k, v := lastBefore(cursor, last)
				for ; k != nil && bytes.Compare(k, from) >= 0 && len(page) < manifestPage; k, v = cursor.Prev() {
					page = append(page, bytes.Clone(v))
					last = bytes.Clone(k)
				}
				return nil
			})
			if err != nil {
				yield(nil, fmt.Errorf("manifests: %w", err))
				return
			}
			for _, data := range page {
				m, err := decodeManifest(data)
				if !yield(m, err) || err != nil {
					return
				}
			}
			if len(page) < manifestPage {
				return
			}
		}
	}
}

// lastBefore moves a cursor to the last key before one, or to the very last for nil.
func lastBefore(c *bbolt.Cursor, key []byte) (k, v []byte) {
	if key == nil {
		return c.Last()
	}
	if k, _ := c.Seek(key); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// writeManifests stores some manifests and removes those that are past keeping.
func (ix *Index) writeManifests(batch []*pendingManifest) error {
	return ix.update(func(tx *bbolt.Tx) error {
		manifests, ids, traces := tx.Bucket(manifestsBucket), tx.Bucket(byIDBucket), tx.Bucket(byTraceBucket)
		manifests.FillPercent = sequentialFill
		count := number(tx.Bucket(metaBucket).Get(manifestCountKey))
		for _, p := range batch {
			key := append(timeKey(p.created), p.id...)
			if old := bytes.Clone(ids.Get([]byte(p.id))); old != nil {
				if err := removeManifest(tx, old); err != nil {
					return err
				}
				count--
			}
			if err := errors.Join(manifests.Put(key, p.data), ids.Put([]byte(p.id), key)); err != nil {
				return err
			}
			count++
			if p.trace == "" || bytes.Compare(traces.Get([]byte(p.trace)), key) > 0 {
				continue
			}
			if err := traces.Put([]byte(p.trace), key); err != nil {
				return err
			}
		}
		count, err := ix.retain(tx, count)
		return cmp.Or(err, tx.Bucket(metaBucket).Put(manifestCountKey, be64(count)))
	})
}

// retainAtOnce bounds how many manifests one write removes, so that none becomes slow; it is more
// than a write adds.
const retainAtOnce = 2 * maxPending

// retain removes the oldest manifests, past the age or the count, and returns how many are left.
func (ix *Index) retain(tx *bbolt.Tx, count uint64) (uint64, error) {
	tooOld := timeKey(time.Now().Add(-ix.o.ManifestAge))
	for range retainAtOnce {
		k, _ := tx.Bucket(manifestsBucket).Cursor().First()
		if k == nil || bytes.Compare(k, tooOld) >= 0 && count <= uint64(ix.o.ManifestCount) {
			break
		}
		if err := removeManifest(tx, bytes.Clone(k)); err != nil {
			return count, err
		}
		count--
	}
	return count, nil
}

// removeManifest removes a manifest and what leads to it.
func removeManifest(tx *bbolt.Tx, key []byte) error {
	var m struct {
		TraceID string `json:"trace_id"`
	}
	if err := json.Unmarshal(tx.Bucket(manifestsBucket).Get(key), &m); err != nil {
		return fmt.Errorf("manifest %q: %w", key[8:], err)
	}
	if traces := tx.Bucket(byTraceBucket); m.TraceID != "" && bytes.Equal(traces.Get([]byte(m.TraceID)), key) {
		if err := traces.Delete([]byte(m.TraceID)); err != nil {
			return err
		}
	}
	return errors.Join(tx.Bucket(byIDBucket).Delete(key[8:]), tx.Bucket(manifestsBucket).Delete(key))
}
