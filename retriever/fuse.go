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

// fuse merges the channels' rankings into one. Ties are broken by the better single rank and then by
// row, so the order never depends on timing.
func fuse(dense, lexical []index.Hit, o Options) []fused {
	byRow := make(map[index.Row]*fused, len(dense)+len(lexical))
	all := make([]*fused, 0, len(dense)+len(lexical))
	add := func(h index.Hit, score float64) *fused {
		f := byRow[h.Row]
		if f == nil {
			f = &fused{row: h.Row}
			byRow[h.Row] = f
			all = append(all, f)
		}
		f.score += score
		return f
	}
	denseScore, lexicalScore := o.reciprocalRank(o.DenseWeight), o.reciprocalRank(o.LexicalWeight)
	if o.Fusion == Convex {
		denseScore, lexicalScore = o.normalised(o.DenseWeight, dense), o.normalised(o.LexicalWeight, lexical)
	}
	for _, h := range dense {
		add(h, denseScore(h)).dense = &assay.Placing{Rank: h.Rank, Score: h.Score}
	}
	for _, h := range lexical {
		add(h, lexicalScore(h)).lexical = &assay.Placing{Rank: h.Rank, Score: h.Score}
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

// reciprocalRank scores a hit by weight / (k + rank): only ranks are compared, never scores (Cormack,
// Clarke and Büttcher, SIGIR 2009; k = 60 there). What a channel did not return gets nothing from it.
func (o Options) reciprocalRank(weight float64) func(index.Hit) float64 {
	return func(h index.Hit) float64 { return weight / float64(o.RRFK+h.Rank) }
}

// normalised scores a hit by its share of the channel's best score, times the channel's share of the
// weights: a convex combination (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid
// Retrieval", 2023). Both scales begin at 0, BM25 where no term matches and the cosine where nothing is
// alike, so that the result does not depend on how deep a channel was searched. What a channel did
// not return gets nothing from it.
func (o Options) normalised(weight float64, hits []index.Hit) func(index.Hit) float64 {
	if len(hits) == 0 || hits[0].Score <= 0 {
		return func(index.Hit) float64 { return 0 }
	}
	share := weight / (o.DenseWeight + o.LexicalWeight) / hits[0].Score
	return func(h index.Hit) float64 { return share * max(h.Score, 0) }
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
