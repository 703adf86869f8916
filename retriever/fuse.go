package retriever

import (
	"cmp"
	"slices"

	"assay"
	"assay/index"
)

// fused is a chunk with its places in the channels.
type fused struct {
	row            index.Row
	dense, lexical *assay.Placing
	score          float64
}

// fuse merges the channels' rankings by weighted reciprocal rank fusion: a chunk's score is the sum
// over the channels of weight / (k + rank), where a channel that did not return it adds nothing
// (Cormack, Clarke and Büttcher, SIGIR 2009; k = 60 there). Only ranks are compared, never scores.
// Ties are broken by the better single rank and then by row, so the order never depends on timing.
func fuse(dense, lexical []index.Hit, o Options) []fused {
	byRow := make(map[index.Row]*fused, len(dense)+len(lexical))
	all := make([]*fused, 0, len(dense)+len(lexical))
	add := func(h index.Hit, weight float64) *fused {
		f := byRow[h.Row]
		if f == nil {
			f = &fused{row: h.Row}
			byRow[h.Row] = f
			all = append(all, f)
		}
		f.score += weight / float64(o.RRFK+h.Rank)
		return f
	}
	for _, h := range dense {
		add(h, o.DenseWeight).dense = &assay.Placing{Rank: h.Rank, Score: h.Score}
	}
	for _, h := range lexical {
		add(h, o.LexicalWeight).lexical = &assay.Placing{Rank: h.Rank, Score: h.Score}
	}
	out := make([]fused, len(all))
	for i, f := range all {
		out[i] = *f
	}
	slices.SortFunc(out, func(a, b fused) int {
		return cmp.Or(
			cmp.Compare(b.score, a.score),
			cmp.Compare(a.best(), b.best()),
			cmp.Compare(a.row, b.row),
		)
	})
	return out
}

// best is the better of the ranks that a chunk has.
func (f fused) best() int {
	switch {
	case f.dense == nil:
		return f.lexical.Rank
	case f.lexical == nil:
		return f.dense.Rank
	}
	return min(f.dense.Rank, f.lexical.Rank)
}
