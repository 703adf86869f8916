package engine

import (
	"path"
	"sync/atomic"

	"assay"
	"assay/index"
)

// supersession knows, for one generation of the corpus, which documents say that they replace which:
// the metadata field "supersedes" names the ID of the older one, or its path relative to the newer.
type supersession struct {
	generation uint64
	by         map[string]*assay.Document // ID of the older document -> the newer one, without text
}

// supersessions caches the supersession of the latest generation that was asked for.
type supersessions struct{ latest atomic.Pointer[supersession] }

// of reads the supersession of a snapshot. Two requests that find a new generation at the same time
// both read it, with the same result.
func (c *supersessions) of(snap *index.Snapshot) *supersession {
	if s := c.latest.Load(); s != nil && s.generation == snap.Generation() {
		return s
	}
	s := &supersession{generation: snap.Generation(), by: make(map[string]*assay.Document)}
	known := make(map[string]bool, snap.Documents())
	var newer []*assay.Document
	for doc := range snap.AllDocuments() {
		known[doc.ID] = true
		if len(doc.Metadata["supersedes"]) > 0 {
			newer = append(newer, doc)
		}
	}
	for _, doc := range newer {
		for _, ref := range doc.Metadata["supersedes"] {
			for _, id := range []string{ref, path.Join(path.Dir(doc.ID), ref)} {
				if known[id] && id != doc.ID {
					s.by[id] = doc
					break
				}
			}
		}
	}
	c.latest.Store(s)
	return s
}

// replacement returns the ID of the document that replaces another under a filter, or "". A newer
// document that the filter hides replaces nothing: who asks for an old version by name is to have it.
// Of a chain the newest is returned.
func (s *supersession) replacement(docID string, f assay.Filter) string {
	id := ""
	seen := map[string]bool{docID: true}
	for doc := s.by[docID]; doc != nil && !seen[doc.ID]; doc = s.by[doc.ID] {
		seen[doc.ID] = true
		if f.Match(doc) {
			id = doc.ID
		}
	}
	return id
}
