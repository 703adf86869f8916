package eval

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is a mean with its uncertainty.
type Interval struct {
	Mean      float64 `json:"mean"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Level     float64 `json:"level"`     // the share of resamples between low and high
	N         int     `json:"n"`         // queries
	Resamples int     `json:"resamples"` // drawn
}

// Excludes reports whether a value lies outside the interval. Differences are told from chance where
// the interval excludes 0.
func (i Interval) Excludes(v float64) bool { return v < i.Low || v > i.High }

// Bootstrap is the percentile interval of the mean of values, which for the differences of two arms
// query by query is the paired bootstrap. The same values in the same order, with the same seed, give
// the same interval. Fewer than two values have none; nor have values that are not finite.
func Bootstrap(ctx context.Context, values []float64, level float64, resamples int, seed uint64) (Interval, bool, error) {
	n := len(values)
	var sum exactSum
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return Interval{}, false, nil
		}
		sum.add(v)
	}
	if n < 2 || resamples < 1 {
		return Interval{}, false, nil
	}
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	means := make([]float64, resamples)
	for i := range means {
		if i%64 == 0 && ctx.Err() != nil {
			return Interval{}, false, ctx.Err()
		}
		drawn := 0.0
		for range n {
			drawn += values[rng.IntN(n)]
		}
		means[i] = drawn / float64(n)
	}
	slices.Sort(means)
	tail := (1 - level) / 2
	quantile := func(p float64) float64 { return means[int(math.Round(p*float64(resamples-1)))] }
	return Interval{Mean: sum.value() / float64(n), Low: quantile(tail), High: quantile(1 - tail),
		Level: level, N: n, Resamples: resamples}, true, nil
}
