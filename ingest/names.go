package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxIDLength bounds document IDs: stores and URLs have to carry them.
const maxIDLength = 512

// names settles the ID of each document of one run, in the order of the results.
type names struct {
	catalogue Catalogue
	used      map[[16]byte]struct{} // IDs and URIs of this run, hashed: 16 bytes a document, however long they are
}

func newNames(c Catalogue) *names {
	return &names{catalogue: c, used: map[[16]byte]struct{}{}}
}

// settle gives a new document its ID and turns a second record of the same name into a skip.
func (n *names) settle(r Result, s *source) Result {
	if r.State == StateSkipped {
		return r
	}
	if !n.claim("uri", r.URI) {
		skipped := Result{State: StateSkipped, ID: r.ID, URI: r.URI, Root: r.Root, Bytes: r.Bytes, record: true,
			Reason: SkipDuplicateID,
			Err:    fmt.Errorf("ingest %s: an earlier record of this source has the same ID %q: the first one counts, give this one another", s.uri, r.wish)}
		return skipped
	}
	if r.State != StateNew {
		n.claim("id", r.ID)
		return r
	}
	prefix := s.prefix
	if r.record {
		prefix = s.root.base
	}
	for _, id := range candidates(r.wish, prefix, r.URI) {
		if len(id) <= maxIDLength && !n.catalogue.Taken(id) && n.claim("id", id) {
			r.ID, r.Document.ID = id, id
			return r
		}
	}
	return Result{State: StateSkipped, URI: r.URI, Root: r.Root, Bytes: r.Bytes, Reason: SkipBadID, record: r.record,
		Err: fmt.Errorf("ingest %s: the ID %q belongs to another document and cannot be made longer: rename one of them", r.URI, r.wish)}
}

// candidates are the IDs to try, from the most readable on.
func candidates(wish, prefix, uri string) []string {
	sum := sha256.Sum256([]byte(uri))
	prefixed := prefix + "/" + wish
	return []string{wish, prefixed, hex.EncodeToString(sum[:4]) + "/" + prefixed, hex.EncodeToString(sum[:]) + "/" + prefixed}
}

// claim reports whether the name was still free in this run.
func (n *names) claim(kind, name string) bool {
	key := nameKey(kind, name)
	if _, ok := n.used[key]; ok {
		return false
	}
	n.used[key] = struct{}{}
	return true
}

// nameKey stands for a name in sets that have to hold millions.
func nameKey(kind, name string) [16]byte {
	sum := sha256.Sum256([]byte(kind + "\x00" + name))
	return [16]byte(sum[:16])
}

// checkID says what keeps an ID from being stored. Awkward is allowed, invisible is not.
func checkID(id string) error {
	switch {
	case strings.TrimSpace(id) == "":
		return errors.New("the ID is empty")
	case len(id) > maxIDLength:
		return fmt.Errorf("the ID has %d bytes, the limit is %d", len(id), maxIDLength)
	case !utf8.ValidString(id):
		return errors.New("the ID is not UTF-8")
	case strings.ContainsFunc(id, unicode.IsControl):
		return errors.New("the ID has control characters")
	}
	return nil
}
