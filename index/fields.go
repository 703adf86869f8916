package index

import (
	"iter"
	"slices"

	"assay"
)

// DocumentsWith yields the documents that have one of some metadata fields, without text, in the order
// in which they were stored. It is AllDocuments for those who need few of them.
func (s *Snapshot) DocumentsWith(fields ...string) iter.Seq[*assay.Document] {
	return func(yield func(*assay.Document) bool) {
		for position := range s.s.table.liveDocuments.EachSet() {
			d := &s.s.table.documents[position].document
			if len(d.Metadata) == 0 || !slices.ContainsFunc(fields, func(f string) bool { return len(d.Metadata[f]) > 0 }) {
				continue
			}
			document := *d
			if !yield(&document) {
				return
			}
		}
	}
}

// Holds reports whether there is a document with that ID.
func (s *Snapshot) Holds(id string) bool {
	_, ok := s.s.table.byID(id)
	return ok
}

// Restricted reports whether some document has an access list.
func (s *Snapshot) Restricted() bool {
	for position := range s.s.table.liveDocuments.EachSet() {
		if s.s.table.documents[position].document.Restricted() {
			return true
		}
	}
	return false
}
