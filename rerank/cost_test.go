package rerank

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"assay"
)

func TestCostIsTheLineThroughTheOutcomes(t *testing.T) {
	at := func(candidates int, latency time.Duration) Outcome {
		return Outcome{Status: assay.RerankOK, Candidates: candidates, Latency: latency}
	}
	c, err := FitCost([]Outcome{
		at(10, 25*time.Millisecond), at(20, 45*time.Millisecond), at(50, 105*time.Millisecond),
		{Status: assay.RerankTimeout, Candidates: 100, Latency: time.Hour},
	})
	if err != nil || math.Abs(c.InterceptMS-5) > 1e-9 || math.Abs(c.SlopeMS-2) > 1e-9 || math.Abs(c.R2-1) > 1e-12 || c.Outcomes != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	if n := c.Within(205 * time.Millisecond); n != 100 || c.Predict(n).Round(time.Microsecond) != 205*time.Millisecond || c.Within(time.Millisecond) != 0 {
		t.Errorf("%d candidates within 205ms, %v for them", n, c.Predict(n))
	}
	// By hand: x 1 2 3, y 1 3 2: slope 0.5, intercept 1, R2 0.25.
	c, err = FitCost([]Outcome{at(1, time.Millisecond), at(2, 3*time.Millisecond), at(3, 2*time.Millisecond)})
	if err != nil || math.Abs(c.SlopeMS-0.5) > 1e-9 || math.Abs(c.InterceptMS-1) > 1e-9 || math.Abs(c.R2-0.25) > 1e-9 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := FitCost([]Outcome{at(1, time.Second), at(9, time.Second)}); err != nil || c.R2 != 1 || c.SlopeMS != 0 || c.Within(time.Minute) != math.MaxInt {
		t.Errorf("level: %+v, %v", c, err)
	}
	for name, in := range map[string][]Outcome{"nothing": nil, "one number": {at(3, 1), at(3, 2)}} {
		if _, err := FitCost(in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCostFindsAnyLineAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		intercept, slope := rapid.IntRange(0, 10_000).Draw(t, "intercept"), rapid.IntRange(0, 5000).Draw(t, "slope")
		var in []Outcome
		for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(1, 1000), 2, 20, rapid.ID[int]).Draw(t, "candidates") {
			in = append(in, Outcome{Status: assay.RerankOK, Candidates: n, Latency: time.Duration(intercept+slope*n) * time.Microsecond})
		}
		c, err := FitCost(in)
		if err != nil || math.Abs(c.InterceptMS-float64(intercept)/1000) > 1e-6 || math.Abs(c.SlopeMS-float64(slope)/1000) > 1e-6 || math.Abs(c.R2-1) > 1e-6 {
			t.Fatalf("%+v, %v", c, err)
		}
	})
}
