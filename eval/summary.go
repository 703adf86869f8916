package eval

import "math"

// Summary is a metric over many queries.
type Summary struct {
	Value     *float64 `json:"value,omitempty"` // absent when it is defined for no query
	N         int      `json:"n"`               // queries for which it is defined
	Undefined int      `json:"undefined"`       // judged queries for which it is not
}

// Get returns the value and whether there is one.
func (s Summary) Get() (float64, bool) {
	if s.Value == nil {
		return 0, false
	}
	return *s.Value, true
}

// total is how the values of single queries become one.
type total int

const (
	totalMean total = iota
	totalSum
	totalGeometric
)

// geometricFloor stands for zero in geometric means, as in trec_eval.
const geometricFloor = 0.00001

// Tally collects one metric, query by query, in constant memory. Its zero value is a mean over nothing.
// The result does not depend on the order in which values are added, to the last bit.
type Tally struct {
	kind      total
	sum       exactSum
	n         int
	undefined int
}

// Add takes one query's value; ok false means that the metric is undefined for it.
func (t *Tally) Add(v float64, ok bool) {
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		t.undefined++
		return
	}
	t.n++
	if t.kind == totalGeometric {
		v = math.Log(max(v, geometricFloor))
	}
	t.sum.add(v)
}

// Summary returns what has been collected.
func (t *Tally) Summary() Summary {
	s := Summary{N: t.n, Undefined: t.undefined}
	if t.n == 0 {
		return s
	}
	v := t.sum.value()
	if t.kind != totalSum {
		v /= float64(t.n)
	}
	if t.kind == totalGeometric {
		v = math.Exp(v)
	}
	s.Value = &v
	return s
}

// exactSum adds numbers without rounding until the end (Shewchuk's expansions), which makes sums
// independent of order.
type exactSum struct{ parts []float64 }

func (s *exactSum) add(x float64) {
	kept := s.parts[:0]
	for _, y := range s.parts {
		if math.Abs(x) < math.Abs(y) {
			x, y = y, x
		}
		high := x + y
		if low := y - (high - x); low != 0 {
			kept = append(kept, low)
		}
		x = high
	}
	s.parts = append(kept, x)
}

// value is the sum, rounded once: parts do not overlap and grow, so the first addition that leaves a
// remainder decides, and a remainder of exactly half a unit is rounded by the sign of what follows.
func (s *exactSum) value() float64 {
	n := len(s.parts)
	if n == 0 {
		return 0
	}
	n--
	high, low := s.parts[n], 0.0
	for n > 0 && low == 0 {
		n--
		x, y := high, s.parts[n]
		high = x + y
		low = y - (high - x)
	}
	if n > 0 && (low < 0) == (s.parts[n-1] < 0) && low != 0 {
		if y := low * 2; y == (high+y)-high {
			high += y
		}
	}
	return high
}
