package engine

import (
	"context"
	"fmt"

	"assay/index"
)

// Deleted is what a deletion did.
type Deleted struct {
	Documents  []DeletedDoc `json:"deleted"`
	Unknown    []string     `json:"unknown"` // names under which nothing is stored
	Generation uint64       `json:"generation"`
	Left       int          `json:"documents"` // in the corpus afterwards
}

// DeletedDoc is a document that was removed.
type DeletedDoc struct {
	ID  string `json:"id"`
	URI string `json:"uri"`
}

// Delete removes documents, named by ID or by URI, in one step: when it returns, none of them is found
// any more. Names under which nothing is stored are reported, and stop nothing.
func (e *Engine) Delete(ctx context.Context, names []string) (Deleted, error) {
	out := Deleted{Documents: []DeletedDoc{}, Unknown: []string{}}
	snap := e.d.Index.Snapshot()
	byURI := map[string][]string{}
	uris := map[string]string{}
	for doc := range snap.AllDocuments() {
		byURI[doc.URI] = append(byURI[doc.URI], doc.ID)
		uris[doc.ID] = doc.URI
	}
	if err := snap.Close(); err != nil {
		return out, err
	}
	var change index.Batch
	taken := map[string]bool{}
	for _, name := range names {
		ids := byURI[name]
		if _, ok := uris[name]; ok {
			ids = []string{name}
		}
		if len(ids) == 0 {
			out.Unknown = append(out.Unknown, name)
		}
		for _, id := range ids {
			if !taken[id] {
				taken[id] = true
				change.Delete = append(change.Delete, id)
				out.Documents = append(out.Documents, DeletedDoc{id, uris[id]})
			}
		}
	}
	if len(change.Delete) > 0 {
		if _, err := e.d.Index.Apply(ctx, e.d.stored(), change); err != nil {
			return Deleted{Documents: []DeletedDoc{}, Unknown: out.Unknown}, fmt.Errorf("delete: %w", err)
		}
	}
	after := e.d.Index.Snapshot()
	defer after.Close()
	out.Generation, out.Left = after.Generation(), after.Documents()
	return out, nil
}
