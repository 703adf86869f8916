package eval

import (
	"math/bits"
	"slices"
)

// coverBudget bounds the search for the best k chunks, in steps; label sets of real datasets take tens.
const coverBudget = 200_000

// maxCover is the most units, of n, that k of the sets cover. Choosing them is a hard problem in
// general; it is solved exactly within a budget that only contrived label sets exceed, and past it the
// figure is an upper bound, so that nothing is called out of reach that might be in reach.
func maxCover(sets [][]int, n, k int) int {
	s := newCover(sets, n)
	if k <= 0 || len(s.sets) == 0 {
		return 0
	}
	s.search(0, k, make(bitset, (n+63)/64), 0)
	if s.steps > coverBudget {
		return s.bound(0, k, 0)
	}
	return s.best
}

type bitset []uint64

type cover struct {
	sets  []bitset // none within another, largest first
	sizes []int
	all   int // units that are in any set
	best  int
	steps int
}

func newCover(lists [][]int, n int) *cover {
	s := &cover{}
	union := make(bitset, (n+63)/64)
	var sets []bitset
	for _, list := range lists {
		set := make(bitset, (n+63)/64)
		for _, u := range list {
			set[u/64] |= 1 << (u % 64)
			union[u/64] |= 1 << (u % 64)
		}
		sets = append(sets, set)
	}
	slices.SortStableFunc(sets, func(a, b bitset) int { return b.size() - a.size() })
	for _, set := range sets {
		if set.size() > 0 && !slices.ContainsFunc(s.sets, set.within) {
			s.sets = append(s.sets, set)
			s.sizes = append(s.sizes, set.size())
		}
	}
	s.all = union.size()
	return s
}

// search tries every choice of k sets from the i-th on that can still be better than the best.
func (s *cover) search(i, k int, have bitset, covered int) {
	s.best = max(s.best, covered)
	s.steps++
	if k == 0 || i == len(s.sets) || s.steps > coverBudget || s.bound(i, k, covered) <= s.best {
		return
	}
	with := slices.Clone(have)
	for w, bits := range s.sets[i] {
		with[w] |= bits
	}
	s.search(i+1, k-1, with, with.size())
	s.search(i+1, k, have, covered)
}

// bound is more than any choice of k sets from the i-th on can reach.
func (s *cover) bound(i, k, covered int) int {
	for _, size := range s.sizes[i:min(len(s.sizes), i+k)] {
		covered += size
	}
	return min(covered, s.all)
}

func (b bitset) size() int {
	n := 0
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

func (b bitset) within(other bitset) bool {
	for w := range b {
		if b[w]&^other[w] != 0 {
			return false
		}
	}
	return true
}
