package engine

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"assay"
	"assay/index"
)

// supersession knows, for one generation of the corpus, which documents replace which. Two statements
// of the documents' own metadata make it so, and nothing is guessed from titles or paths:
//
//   - "supersedes" names the ID of the older document, or its path relative to the newer one;
//   - documents with the same "series" are versions of one text, in the order of their "effective"
//     dates, or, where none has one, of their version numbers.
//
// A document whose "effective" date is still to come replaces nothing until that day.
type supersession struct {
	generation uint64
	by         map[string]*assay.Document // ID of the older document -> the newer one, without text
	restricted bool                       // some document has an access list
}

// supersessions caches the supersession of the latest generation that was asked for.
type supersessions struct{ latest atomic.Pointer[supersession] }

// of reads the supersession of a snapshot. Two requests that find a new generation at the same time
// both read it, with the same result.
func (c *supersessions) of(snap *index.Snapshot) *supersession {
	if s := c.latest.Load(); s != nil && s.generation == snap.Generation() {
		return s
	}
	s := &supersession{generation: snap.Generation(), by: make(map[string]*assay.Document), restricted: snap.Restricted()}
	var newer []*assay.Document
	series := make(map[string][]*assay.Document)
	for doc := range snap.DocumentsWith("series", "supersedes") {
		if name := doc.Metadata.Get("series"); name != "" {
			series[name] = append(series[name], doc)
		}
		if len(doc.Metadata["supersedes"]) > 0 {
			newer = append(newer, doc)
		}
	}
	for _, versions := range series {
		s.chain(versions)
	}
	for _, doc := range newer { // what a document says outright counts more than its place in a series
		for _, ref := range doc.Metadata["supersedes"] {
			for _, id := range []string{ref, path.Join(path.Dir(doc.ID), ref)} {
				if id != doc.ID && snap.Holds(id) {
					s.by[id] = doc
					break
				}
			}
		}
	}
	c.latest.Store(s)
	return s
}

// chain orders the versions of one text and lets each replace the one before it. Versions that cannot
// be told apart, or of which one states neither a date nor a number, replace nothing.
func (s *supersession) chain(versions []*assay.Document) {
	dated := !slices.ContainsFunc(versions, func(d *assay.Document) bool { return effective(d).IsZero() })
	numbered := !slices.ContainsFunc(versions, func(d *assay.Document) bool { return versionNumber(d.Version) == nil })
	if !dated && !numbered {
		return
	}
	order := func(a, b *assay.Document) int {
		if dated {
			return effective(a).Compare(effective(b))
		}
		return slices.Compare(versionNumber(a.Version), versionNumber(b.Version))
	}
	slices.SortStableFunc(versions, func(a, b *assay.Document) int { return cmp.Or(order(a, b), strings.Compare(a.ID, b.ID)) })
	for i, older := range versions {
		// Two of one day or number stand side by side; what comes after them replaces both.
		next := slices.IndexFunc(versions[i+1:], func(d *assay.Document) bool { return order(older, d) < 0 })
		if next >= 0 {
			s.by[older.ID] = versions[i+1+next]
		}
	}
}

// effective is the day from which a document holds, or the zero time.
func effective(d *assay.Document) time.Time {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, d.Metadata.Get("effective")); err == nil {
			return t
		}
	}
	return time.Time{}
}

// versionNumber reads "2.10" or "v2.10" as its numbers, without zeros at the end; nil is no number.
func versionNumber(version string) []int {
	var out []int
	for part := range strings.SplitSeq(strings.TrimPrefix(strings.TrimSpace(version), "v"), ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil
		}
		out = append(out, n)
	}
	for len(out) > 1 && out[len(out)-1] == 0 {
		out = out[:len(out)-1]
	}
	return out
}

// replacement returns the ID of the document that replaces another at a time under a filter, or "". A
// newer document that the filter hides replaces nothing: who asks for an old version by name is to
// have it. Of a chain the newest is returned.
func (s *supersession) replacement(docID string, f assay.Filter, now time.Time) string {
	id := ""
	seen := map[string]bool{docID: true}
	for doc := s.by[docID]; doc != nil && !seen[doc.ID]; doc = s.by[doc.ID] {
		seen[doc.ID] = true
		if f.Match(doc) && !effective(doc).After(now) {
			id = doc.ID
		}
	}
	return id
}
