package main

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/viterin/vek/vek32"
)

// codes measures binary codes: one bit for each component, compared by counting those that differ,
// and the nearest by that compared exactly. It is what a graph over float32 has to be better than.
func (d *dataset) codes() error {
	words := (d.dim + 63) / 64
	encode := func(v []float32) []uint64 {
		out := make([]uint64, words)
		for i, x := range v {
			if x > 0 {
				out[i/64] |= 1 << (i % 64)
			}
		}
		return out
	}
	all := make([]uint64, 0, words*len(d.base))
	for _, v := range d.base {
		all = append(all, encode(v)...)
	}
	if err := d.say(result{Index: "binary codes", BytesPerVector: float64(8 * words)}); err != nil {
		return err
	}
	distances := make([]uint16, len(d.base))
	for _, rescored := range []int{200, 1000} {
		err := d.measure("binary codes", fmt.Sprintf("%d rescored", rescored), func(query []float32, k int) ([]int32, error) {
			q := encode(query)
			counts := make([]int, d.dim+1)
			for i := range distances {
				sum := 0
				for j, x := range all[i*words : (i+1)*words] {
					sum += bits.OnesCount64(x ^ q[j])
				}
				distances[i] = uint16(sum)
				counts[sum]++
			}
			limit, seen := 0, 0
			for limit < len(counts)-1 && seen+counts[limit] < rescored {
				seen += counts[limit]
				limit++
			}
			type scored struct {
				id  int32
				sim float32
			}
			near := make([]scored, 0, seen+counts[limit])
			for i, x := range distances {
				if int(x) <= limit {
					near = append(near, scored{int32(i), vek32.Dot(query, d.base[i])})
				}
			}
			slices.SortFunc(near, func(a, b scored) int {
				switch {
				case a.sim > b.sim:
					return -1
				case a.sim < b.sim:
					return 1
				}
				return int(a.id - b.id)
			})
			out := make([]int32, 0, k)
			for _, s := range near[:min(k, len(near))] {
				out = append(out, s.id)
			}
			return out, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
