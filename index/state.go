package index

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/bits-and-blooms/bitset"

	"assay"
	"assay/index/bm25"
	"assay/index/dense"
)

// state is one published generation, consistent over the store, the table and both channels. It is
// immutable but for its count of users and its cache of filters.
type state struct {
	generation  uint64
	fingerprint *Fingerprint // nil while nothing was stored
	analyzer    *bm25.Analyzer
	table       *table
	corpus      *bm25.Corpus
	reader      *bm25.Reader

	// The dense channel. A graph that becomes ready is put in while the state is being read: the
	// vectors stay the same, and a search that has begun goes on with the view that it has.
	view    atomic.Pointer[dense.View]
	users   atomic.Int64 // the index counts as one for as long as the state is current
	filters filterCache
}

// vectors is the dense channel; nil while nothing was stored.
func (s *state) vectors() dense.View {
	if v := s.view.Load(); v != nil {
		return *v
	}
	return nil
}

func (s *state) setVectors(v dense.View) { s.view.Store(&v) }

// acquire counts a user, unless the last one has gone already.
func (s *state) acquire() bool {
	for {
		n := s.users.Load()
		if n == 0 {
			return false
		}
		if s.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release gives a use back; the last one frees bleve's reader.
func (s *state) release() error {
	if s.users.Add(-1) > 0 {
		return nil
	}
	return s.reader.Close()
}

// filterCacheSize bounds the filters that a state remembers. Few distinct ones are in use at a time.
const filterCacheSize = 64

// filterCache remembers which slots a filter lets pass.
type filterCache struct {
	mu    sync.Mutex // guards slots
	slots map[string]*bitset.BitSet
}

// allowed returns the live slots whose document passes.
func (s *state) allowed(f assay.Filter) (*bitset.BitSet, error) {
	if f.Empty() {
		return s.table.live, nil
	}
	for _, c := range f.Conditions {
		if len(c.Values) == 0 || len(c.Values) > 1 && !c.Op.TakesMany() {
			return nil, fmt.Errorf("%w: field %q: %s with %d values", assay.ErrFilter, c.Field, c.Op, len(c.Values))
		}
	}
	key := fmt.Sprintf("%q", f.Conditions)
	s.filters.mu.Lock()
	known := s.filters.slots[key]
	s.filters.mu.Unlock()
	if known != nil {
		return known, nil
	}
	out := bitset.New(uint(len(s.table.rows)))
	for position := range s.table.liveDocuments.EachSet() {
		d := s.table.documents[position]
		if d.rows == 0 || !f.Match(&d.document) {
			continue
		}
		first := s.table.slotFrom(d.firstRow)
		for slot := first; slot < first+d.rows; slot++ {
			out.Set(uint(slot))
		}
	}
	s.filters.mu.Lock()
	defer s.filters.mu.Unlock()
	if s.filters.slots == nil || len(s.filters.slots) >= filterCacheSize {
		s.filters.slots = map[string]*bitset.BitSet{}
	}
	s.filters.slots[key] = out
	return out, nil
}
