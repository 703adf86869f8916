// Package topk keeps the best k of many scored slots, in memory bounded by k. Both search channels
// rank with it, so that both order ties in the same way.
package topk

import (
	"cmp"
	"slices"
)

// Item is a slot of the corpus and its score; higher is better.
type Item struct {
	Slot  uint32
	Score float64
}

// Tie orders two slots of equal score: negative when a comes first. It must be a total order that
// does not depend on where the slots happen to lie.
type Tie func(a, b uint32) int

// Heap collects the best k items. The zero Heap is not usable; call New.
type Heap struct {
	k     int
	tie   Tie
	items []Item // a heap with the worst on top
}

// preallocate bounds what is reserved before anything is found, since k comes from a caller.
const preallocate = 1024

// New returns a heap for the best k items. k must be positive.
func New(k int, tie Tie) *Heap {
	return &Heap{k: k, tie: tie, items: make([]Item, 0, min(k, preallocate))}
}

// compare orders best first.
func (h *Heap) compare(a, b Item) int {
	if c := cmp.Compare(b.Score, a.Score); c != 0 {
		return c
	}
	return h.tie(a.Slot, b.Slot)
}

// Push offers an item.
func (h *Heap) Push(slot uint32, score float64) {
	item := Item{slot, score}
	if len(h.items) < h.k {
		h.items = append(h.items, item)
		h.up(len(h.items) - 1)
		return
	}
	if score < h.items[0].Score || h.compare(item, h.items[0]) >= 0 {
		return
	}
	h.items[0] = item
	h.down(0)
}

// Merge offers everything that another heap holds.
func (h *Heap) Merge(other *Heap) {
	for _, item := range other.items {
		h.Push(item.Slot, item.Score)
	}
}

// Sorted returns the items best first. The heap is spent afterwards.
func (h *Heap) Sorted() []Item {
	slices.SortFunc(h.items, h.compare)
	return h.items
}

func (h *Heap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if h.compare(h.items[i], h.items[parent]) <= 0 {
			return
		}
		h.items[i], h.items[parent] = h.items[parent], h.items[i]
		i = parent
	}
}

func (h *Heap) down(i int) {
	for {
		worst := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.items); child++ {
			if h.compare(h.items[child], h.items[worst]) > 0 {
				worst = child
			}
		}
		if worst == i {
			return
		}
		h.items[i], h.items[worst] = h.items[worst], h.items[i]
		i = worst
	}
}
