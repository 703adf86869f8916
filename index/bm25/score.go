package bm25

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/bits-and-blooms/bitset"
	index "github.com/blevesearch/bleve_index_api"

	"assay/index/topk"
)

// Params are the parameters of BM25F.
type Params struct {
	K1, B    float64
	Weights  [Fields]float64
	MaxTerms int // distinct terms of a question that are searched for
}

// Corpus is what scoring needs to know of the chunks. It must belong to the same generation as the
// Reader. Counting over it rather than over bleve's statistics makes a score independent of how the
// index is cut into segments and of what was deleted from it.
type Corpus struct {
	Epoch   uint64                          // changes when slots are renumbered
	Slot    func(row uint32) (uint32, bool) // where a row lies
	Live    *bitset.BitSet                  // slots that hold a chunk
	Lengths []Lengths                       // by slot
	Count   int                             // live chunks
	Totals  [Fields]uint64                  // sums of Lengths over live chunks
}

// pollEvery is how many postings are read between two looks at the context.
const pollEvery = 1 << 13

// maxCandidateTerms bounds the distinct terms of a question that are looked up at all, to find the
// rarest among them.
const maxCandidateTerms = 4096

// Search returns at most k allowed slots that hold a term of the question, best first.
//
// A term's score in a chunk is idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average)),
// with idf = ln(1 + (N - df + 0.5) / (df + 0.5)); tf and length are sums over the fields, weighted;
// df counts the chunks that hold the term in any field. Terms are added in ascending order, so that
// equal corpora give equal bits.
func (r *Reader) Search(ctx context.Context, terms map[string]int, k int, p Params, c *Corpus, allowed *bitset.BitSet, tie topk.Tie) (items []topk.Item, err error) {
	defer func() {
		if p := recover(); p != nil {
			items, err = nil, fmt.Errorf("bleve: damaged: %v", p)
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(terms) == 0 || c.Count == 0 {
		return nil, nil
	}
	maps, err := r.slotMaps(c)
	if err != nil {
		return nil, err
	}
	chosen, err := r.choose(ctx, terms, p.MaxTerms)
	if err != nil {
		return nil, err
	}
	s := r.index.scratch()
	defer r.index.release(s)
	s.grow(len(c.Lengths))

	average := 0.0
	for f, total := range c.Totals {
		average += p.Weights[f] * float64(total)
	}
	average /= float64(c.Count)
	for _, term := range chosen {
		if err := r.collect(ctx, term, p, c, maps, s); err != nil {
			return nil, err
		}
		s.add(float64(terms[term]), average, p, c)
	}
	best := topk.New(k, tie)
	for _, slot := range s.scored {
		if allowed.Test(uint(slot)) {
			best.Push(slot, s.score[slot])
		}
	}
	return best.Sorted(), nil
}

// choose returns the terms to search for in ascending order: all of them, or the rarest.
func (r *Reader) choose(ctx context.Context, terms map[string]int, limit int) ([]string, error) {
	all := slices.Sorted(maps.Keys(terms))
	if len(all) <= limit {
		return all, nil
	}
	all = all[:min(len(all), maxCandidateTerms)]
	count := make(map[string]uint64, len(all))
	for _, term := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, field := range fieldNames {
			tfr, err := r.snapshot.TermFieldReader(ctx, []byte(term), field, false, false, false)
			if err != nil {
				return nil, fmt.Errorf("bleve: term %q: %w", term, err)
			}
			count[term] += tfr.Count()
			if err := tfr.Close(); err != nil {
				return nil, fmt.Errorf("bleve: term %q: %w", term, err)
			}
		}
	}
	// Terms that occur nowhere add nothing to any score and must not take a place.
	all = slices.DeleteFunc(all, func(term string) bool { return count[term] == 0 })
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a, b))
	})
	all = all[:min(len(all), limit)]
	slices.Sort(all)
	return all, nil
}

// collect reads the postings of one term in every field into the scratch's tf.
func (r *Reader) collect(ctx context.Context, term string, p Params, c *Corpus, maps [][]uint32, s *scratch) error {
	s.matched = s.matched[:0]
	var posting index.TermFieldDoc
	for f, field := range fieldNames {
		tfr, err := r.snapshot.TermFieldReader(ctx, []byte(term), field, true, false, false)
		if err != nil {
			return fmt.Errorf("bleve: term %q: %w", term, err)
		}
		segment, start := 0, uint64(0) // the segment that the posting lies in, and its first number
		for n := 0; ; n++ {
			if n%pollEvery == pollEvery-1 && ctx.Err() != nil {
				_ = tfr.Close()
				return ctx.Err()
			}
			d, err := tfr.Next(posting.Reset())
			if err != nil {
				_ = tfr.Close()
				return fmt.Errorf("bleve: term %q: %w", term, err)
			}
			if d == nil {
				break
			}
			number := binary.BigEndian.Uint64(d.ID)
			for number-start >= uint64(len(maps[segment])) {
				start += uint64(len(maps[segment]))
				segment++
			}
			slot := maps[segment][number-start]
			if slot == noSlot || !c.Live.Test(uint(slot)) {
				continue
			}
			if !s.seen.Test(uint(slot)) {
				s.seen.Set(uint(slot))
				s.matched = append(s.matched, slot)
			}
			s.tf[slot] += p.Weights[f] * float64(d.Freq)
		}
		if err := tfr.Close(); err != nil {
			return fmt.Errorf("bleve: term %q: %w", term, err)
		}
	}
	return nil
}

// scratch is the working memory of one search, by slot. Between searches everything is zero.
type scratch struct {
	score, tf []float64
	seen, hit *bitset.BitSet // slots in matched, slots in scored
	matched   []uint32       // slots that hold the current term
	scored    []uint32       // slots that hold any term
}

// scratch returns working memory that is all zero.
func (ix *Index) scratch() *scratch {
	if s, ok := ix.scratches.Get().(*scratch); ok {
		return s
	}
	return &scratch{seen: bitset.New(0), hit: bitset.New(0)}
}

func (s *scratch) grow(n int) {
	if len(s.score) < n {
		s.score, s.tf = make([]float64, n), make([]float64, n)
	}
}

// add adds the current term's part to the scores and clears what collect has left.
func (s *scratch) add(occurrences, average float64, p Params, c *Corpus) {
	n, df := float64(c.Count), float64(len(s.matched))
	idf := math.Log(1 + (n-df+0.5)/(df+0.5))
	for _, slot := range s.matched {
		length := 0.0
		for f, l := range c.Lengths[slot] {
			length += p.Weights[f] * float64(l)
		}
		tf := s.tf[slot]
		if tf > 0 { // 0 where all fields that hold the term have weight 0
			s.score[slot] += occurrences * idf * tf * (p.K1 + 1) / (tf + p.K1*(1-p.B+p.B*length/average))
			if !s.hit.Test(uint(slot)) {
				s.hit.Set(uint(slot))
				s.scored = append(s.scored, slot)
			}
		}
		s.tf[slot] = 0
		s.seen.Clear(uint(slot))
	}
	s.matched = s.matched[:0]
}

// release clears what a search has left, also one that broke off, and keeps the memory.
func (ix *Index) release(s *scratch) {
	for _, slot := range s.matched {
		s.tf[slot] = 0
		s.seen.Clear(uint(slot))
	}
	for _, slot := range s.scored {
		s.score[slot] = 0
		s.hit.Clear(uint(slot))
	}
	s.matched, s.scored = s.matched[:0], s.scored[:0]
	ix.scratches.Put(s)
}
