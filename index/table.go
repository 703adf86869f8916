package index

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/bits-and-blooms/bitset"

	"assay"
	"assay/index/bm25"
)

// Row is the number of a chunk. Rows only grow and are never given twice; a replaced document's
// chunks have new ones.
type Row uint32

// table is an immutable state of the corpus in memory: everything but texts and vectors. A chunk's
// place in it is its slot, a document's place its position; both are in the order of their numbers.
// A newer table shares the arrays of an older one and only appends, beyond what the older one can
// see. Dropped entries stay as tombstones until a third of the slots are, then compact makes new
// arrays: a new epoch.
type table struct {
	epoch    uint64
	rows     []uint32 // by slot, ascending
	chunkIDs []string // by slot
	lengths  []bm25.Lengths
	live     *bitset.BitSet // slots

	documents     []*documentEntry // by position
	liveDocuments *bitset.BitSet   // positions
	names         *names

	totals [bm25.Fields]uint64 // sums of lengths over live slots
	chunks int                 // live
	tokens int                 // of live chunks
}

// documentEntry is a document in memory, without its text. It never changes.
type documentEntry struct {
	number   uint32
	document assay.Document
	firstRow uint32
	rows     int
	tokens   int
	lengths  []bm25.Lengths // of its chunks, while it is on its way into the table
	chunkIDs []string       // likewise
}

func newTable(epoch uint64) *table {
	return &table{epoch: epoch, live: bitset.New(0), liveDocuments: bitset.New(0), names: newNames()}
}

// edit returns a table with documents dropped and added. Positions refer to t.
func (t *table) edit(drop []int, add []*documentEntry) *table {
	out := *t
	out.live, out.liveDocuments = t.live.Clone(), t.liveDocuments.Clone()
	for _, position := range drop {
		d := out.documents[position]
		out.liveDocuments.Clear(uint(position))
		first := out.slotFrom(d.firstRow)
		for slot := first; slot < first+d.rows; slot++ {
			out.live.Clear(uint(slot))
			for f, l := range out.lengths[slot] {
				out.totals[f] -= uint64(l)
			}
		}
		out.chunks -= d.rows
		out.tokens -= d.tokens
	}
	for _, d := range add {
		for i := range d.rows {
			out.live.Set(uint(len(out.rows)))
			out.rows = append(out.rows, d.firstRow+uint32(i))
			out.chunkIDs = append(out.chunkIDs, d.chunkIDs[i])
			out.lengths = append(out.lengths, d.lengths[i])
			for f, l := range d.lengths[i] {
				out.totals[f] += uint64(l)
			}
		}
		d.lengths, d.chunkIDs = nil, nil
		out.names.add(&d.document, len(out.documents))
		out.liveDocuments.Set(uint(len(out.documents)))
		out.documents = append(out.documents, d)
		out.chunks += d.rows
		out.tokens += d.tokens
	}
	return &out
}

// compactFrom is the number of slots under which tombstones are not worth the work.
const compactFrom = 1024

// sparse reports whether it is time to compact: past a third of tombstones.
func (t *table) sparse() bool {
	dead := len(t.rows) - t.chunks
	deadDocuments := len(t.documents) - int(t.liveDocuments.Count())
	return dead > compactFrom && dead > len(t.rows)/3 || deadDocuments > compactFrom && deadDocuments > len(t.documents)/3
}

// compact returns a table without tombstones, and the slots that were kept.
func (t *table) compact(epoch uint64) (out *table, kept []uint32) {
	out = newTable(epoch)
	out.totals, out.chunks, out.tokens = t.totals, t.chunks, t.tokens
	for slot := range t.live.EachSet() {
		kept = append(kept, uint32(slot))
		out.live.Set(uint(len(out.rows)))
		out.rows = append(out.rows, t.rows[slot])
		out.chunkIDs = append(out.chunkIDs, t.chunkIDs[slot])
		out.lengths = append(out.lengths, t.lengths[slot])
	}
	for position := range t.liveDocuments.EachSet() {
		d := t.documents[position]
		out.names.add(&d.document, len(out.documents))
		out.liveDocuments.Set(uint(len(out.documents)))
		out.documents = append(out.documents, d)
	}
	return out, kept
}

// slotFrom is the first slot whose row is not below this one.
func (t *table) slotFrom(row uint32) int {
	slot, _ := slices.BinarySearch(t.rows, row)
	return slot
}

// slot finds a row, live or not.
func (t *table) slot(row uint32) (uint32, bool) {
	slot, ok := slices.BinarySearch(t.rows, row)
	return uint32(slot), ok
}

// isLive reports whether a row holds a chunk.
func (t *table) isLive(row uint32) bool {
	slot, ok := t.slot(row)
	return ok && t.live.Test(uint(slot))
}

// numbered finds a document by its number, live or not.
func (t *table) numbered(number uint32) (position int, ok bool) {
	return slices.BinarySearchFunc(t.documents, number, func(d *documentEntry, n uint32) int { return cmp.Compare(d.number, n) })
}

// tie orders slots of equal score by the chunk's ID, so that the order does not depend on when a
// document came.
func (t *table) tie(a, b uint32) int { return strings.Compare(t.chunkIDs[a], t.chunkIDs[b]) }

func (t *table) corpus() *bm25.Corpus {
	return &bm25.Corpus{Epoch: t.epoch, Slot: t.slot, Live: t.live, Lengths: t.lengths, Count: t.chunks, Totals: t.totals}
}

// byID finds a live document.
func (t *table) byID(id string) (position int, ok bool) { return t.find(t.names.id, id) }

// byURI finds a live document, the latest where several have the same URI.
func (t *table) byURI(uri string) (position int, ok bool) { return t.find(t.names.uri, uri) }

func (t *table) find(index map[string][]uint32, name string) (int, bool) {
	t.names.mu.RLock()
	positions := index[name]
	t.names.mu.RUnlock()
	for _, p := range slices.Backward(positions) {
		if int(p) < len(t.documents) && t.liveDocuments.Test(uint(p)) {
			return int(p), true
		}
	}
	return 0, false
}

// names finds documents for all tables of an epoch: to each name belong the positions that ever had
// it, ascending, and each table picks the one that lives in it.
type names struct {
	mu  sync.RWMutex // guards the maps; the lists are only appended to
	id  map[string][]uint32
	uri map[string][]uint32
}

func newNames() *names {
	return &names{id: map[string][]uint32{}, uri: map[string][]uint32{}}
}

func (n *names) add(d *assay.Document, position int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.id[d.ID] = append(n.id[d.ID], uint32(position))
	n.uri[d.URI] = append(n.uri[d.URI], uint32(position))
}
