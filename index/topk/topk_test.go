package topk

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestHeapIsASortedPrefix(t *testing.T) {
	tie := func(a, b uint32) int { return cmp.Compare(a, b) }
	rapid.Check(t, func(t *rapid.T) {
		// Few distinct scores, so that most orders are decided by the tie.
		scores := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 200).Draw(t, "scores")
		k := rapid.IntRange(1, 250).Draw(t, "k")
		whole, left, right := New(k, tie), New(k, tie), New(k, tie)
		var want []Item
		for i, s := range scores {
			item := Item{uint32(i), float64(s)}
			want = append(want, item)
			whole.Push(item.Slot, item.Score)
			if i%3 == 0 {
				left.Push(item.Slot, item.Score)
			} else {
				right.Push(item.Slot, item.Score)
			}
		}
		slices.SortFunc(want, func(a, b Item) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Slot, b.Slot))
		})
		want = want[:min(k, len(want))]
		left.Merge(right)
		if got := left.Sorted(); !slices.Equal(got, want) {
			t.Fatalf("merged: got %v, want %v", got, want)
		}
		if got := whole.Sorted(); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
