package embed

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"assay"
)

// Cache keeps vectors of texts. Its keys are the model's name and dimensions, and the text's hash.
// It is declared here because the index, which keeps the vectors, knows nothing of embedders.
type Cache interface {
	// GetVectors returns a vector for each hash, nil where it has none. They are the caller's.
	GetVectors(model assay.Model, hashes []string) ([][]float32, error)
	// PutVectors keeps a vector for each hash. It keeps no slice that it is given.
	PutVectors(model assay.Model, hashes []string, vectors [][]float32) error
}

// Cached is an Embedder that asks another one only for texts that are not in a Cache. Queries are
// not cached: they seldom come twice, and a store that is written by reading grows without bound.
type Cached struct {
	embedder Embedder
	cache    Cache

	hits, misses, duplicates atomic.Int64
}

var _ Embedder = (*Cached)(nil)

// NewCached puts a cache before an embedder.
func NewCached(e Embedder, c Cache) *Cached { return &Cached{embedder: e, cache: c} }

// CacheStats counts texts since a Cached was made.
type CacheStats struct {
	Hits       int64 `json:"hits"`       // found in the cache
	Misses     int64 `json:"misses"`     // sent to the embedder
	Duplicates int64 `json:"duplicates"` // the same as another text of the same call
}

// Stats returns the counters.
func (c *Cached) Stats() CacheStats {
	return CacheStats{c.hits.Load(), c.misses.Load(), c.duplicates.Load()}
}

// Model is the embedder's.
func (c *Cached) Model() assay.Model { return c.embedder.Model() }

// Fingerprint is the embedder's, "" where it has none.
func (c *Cached) Fingerprint() string {
	if f, ok := c.embedder.(interface{ Fingerprint() string }); ok {
		return f.Fingerprint()
	}
	return ""
}

// EmbedQuery asks the embedder.
func (c *Cached) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	return c.embedder.EmbedQuery(ctx, text)
}

// saveEvery is the number of new vectors after which they are saved, so that a process that dies in
// a large call has paid for at most that many in vain.
const saveEvery = 1024

// EmbedDocuments embeds what the cache lacks, each different text once, and saves it, also when the
// embedder fails half-way.
func (c *Cached) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	model, err := Probe(ctx, c.embedder) // the dimensions are part of the keys
	if err != nil {
		return nil, err
	}
	hashes, first, place := c.distinct(texts)
	known, err := c.lookup(model, hashes)
	if err != nil {
		return nil, err
	}
	var missing []int // places in hashes
	for i, v := range known {
		if v == nil {
			missing = append(missing, i)
		}
	}
	c.hits.Add(int64(len(hashes) - len(missing)))
	for len(missing) > 0 && err == nil {
		part := missing[:min(saveEvery, len(missing))]
		missing = missing[len(part):]
		err = c.fill(ctx, model, texts, hashes, first, part, known)
	}
	out := make([][]float32, 0, len(texts))
	handed := make([]bool, len(known))
	for _, p := range place {
		if known[p] == nil {
			return out, err
		}
		v := known[p]
		if handed[p] { // each caller may change its vectors
			v = append([]float32(nil), v...)
		}
		handed[p] = true
		out = append(out, v)
	}
	return out, err
}

// distinct returns the hash of each different text, the place of its first occurrence in texts, and
// for each text the place of its hash.
func (c *Cached) distinct(texts []string) (hashes []string, first, place []int) {
	salt := c.Fingerprint() // a prefix and the like, which change the vectors of the same text
	seen := make(map[string]int, len(texts))
	place = make([]int, len(texts))
	for i, text := range texts {
		hash := assay.HashText(text)
		if salt != "" {
			hash = assay.HashText(salt + "\x00" + hash)
		}
		p, ok := seen[hash]
		if ok {
			c.duplicates.Add(1)
		} else {
			p = len(hashes)
			seen[hash] = p
			hashes, first = append(hashes, hash), append(first, i)
		}
		place[i] = p
	}
	return hashes, first, place
}

// lookup reads the cache. A vector that cannot be the model's counts as absent and is replaced.
func (c *Cached) lookup(model assay.Model, hashes []string) ([][]float32, error) {
	known, err := c.cache.GetVectors(model, hashes)
	if err != nil {
		return nil, fmt.Errorf("embed cache: read %d vectors of %s: %w", len(hashes), model.Name, err)
	}
	if len(known) != len(hashes) {
		return nil, fmt.Errorf("embed cache: read %d vectors of %s: it returned %d", len(hashes), model.Name, len(known))
	}
	for i, v := range known {
		if _, err := norm(v); err != nil || len(v) != model.Dimensions {
			known[i] = nil
		}
	}
	return known, nil
}

// fill embeds the texts at the given places, puts their vectors into known and saves them.
func (c *Cached) fill(ctx context.Context, model assay.Model, texts, hashes []string, first, places []int, known [][]float32) error {
	part := make([]string, len(places))
	keys := make([]string, len(places))
	for i, p := range places {
		part[i], keys[i] = texts[first[p]], hashes[p]
	}
	c.misses.Add(int64(len(part)))
	vectors, err := c.embedder.EmbedDocuments(ctx, part)
	if len(vectors) > len(part) || err == nil && len(vectors) < len(part) {
		return fmt.Errorf("embed cache: %s returned %d vectors for %d texts", model.Name, len(vectors), len(part))
	}
	for i, v := range vectors {
		if len(v) != model.Dimensions {
			return fmt.Errorf("embed cache: %s returned a vector of %d dimensions instead of %d", model.Name, len(v), model.Dimensions)
		}
		known[places[i]] = v
	}
	if len(vectors) > 0 {
		if saveErr := c.cache.PutVectors(model, keys[:len(vectors)], vectors); saveErr != nil {
			err = errors.Join(err, fmt.Errorf("embed cache: save %d vectors of %s: %w", len(vectors), model.Name, saveErr))
		}
	}
	return err
}
