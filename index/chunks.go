package index

import (
	"fmt"

	"assay"
)

// ChunksOf returns a document's chunks in the order of the text.
func (s *Snapshot) ChunksOf(id string) ([]assay.Chunk, error) {
	position, ok := s.s.table.byID(id)
	if !ok {
		return nil, fmt.Errorf("document %q: %w", id, ErrNotFound)
	}
	e := s.s.table.documents[position]
	out := make([]assay.Chunk, e.rows)
	for i := range out {
		chunk, _, err := s.Chunk(Row(e.firstRow + uint32(i)))
		if err != nil {
			return nil, err
		}
		out[i] = chunk
	}
	return out, nil
}

// CheckFingerprint compares with what the snapshot was made with: nil when they agree or when it holds
// no document, otherwise a MismatchError.
func (s *Snapshot) CheckFingerprint(f Fingerprint) error {
	return s.ix.checkFingerprint(s.s, f.withAnalyzer(s.s))
}
