package rerank

import (
	"errors"
	"fmt"
	"math"
	"time"

	"assay"
)

// Cost is the latency of a reranker as a line over the number of candidates, by least squares. A
// cross-encoder reads every candidate, so a line is what to expect; an R2 far from 1 says that
// something else decides, such as other load.
type Cost struct {
	InterceptMS float64 `json:"intercept_ms"` // per question
	SlopeMS     float64 `json:"slope_ms"`     // per candidate
	R2          float64 `json:"r2"`           // the part of the variance that the line explains
	Outcomes    int     `json:"outcomes"`     // that it was fitted to
}

// FitCost fits the line to the outcomes that ended in a ranking.
func FitCost(outcomes []Outcome) (Cost, error) {
	var n, sumX, sumY float64
	least, most := math.Inf(1), math.Inf(-1)
	ranked := func(yield func(x, y float64)) {
		for _, o := range outcomes {
			if o.Status == assay.RerankOK {
				yield(float64(o.Candidates), float64(o.Latency)/float64(time.Millisecond))
			}
		}
	}
	ranked(func(x, y float64) {
		n++
		sumX += x
		sumY += y
		least, most = min(least, y), max(most, y)
	})
	if n == 0 {
		return Cost{}, errors.New("cost of reranking: no outcome has a ranking")
	}
	meanX, meanY := sumX/n, sumY/n
	var varX, varY, cov float64
	ranked(func(x, y float64) {
		varX += (x - meanX) * (x - meanX)
		varY += (y - meanY) * (y - meanY)
		cov += (x - meanX) * (y - meanY)
	})
	if varX == 0 {
		return Cost{}, fmt.Errorf("cost of reranking: all outcomes have %.0f candidates, and a line needs two numbers", meanX)
	}
	if least == most { // a level line explains it all; its variance is rounding
		return Cost{InterceptMS: least, R2: 1, Outcomes: int(n)}, nil
	}
	slope := cov / varX
	return Cost{InterceptMS: meanY - slope*meanX, SlopeMS: slope, R2: cov * cov / (varX * varY), Outcomes: int(n)}, nil
}

// Predict is the latency to expect for a number of candidates.
func (c Cost) Predict(candidates int) time.Duration {
	return time.Duration((c.InterceptMS + c.SlopeMS*float64(candidates)) * float64(time.Millisecond))
}

// Within is the number of candidates that the line puts within a deadline: 0 where not even one fits,
// and math.MaxInt where candidates cost nothing.
func (c Cost) Within(deadline time.Duration) int {
	room := float64(deadline)/float64(time.Millisecond) - c.InterceptMS
	switch {
	case room < 0:
		return 0
	case c.SlopeMS <= 0 || room/c.SlopeMS >= math.MaxInt32:
		return math.MaxInt
	}
	return int(room / c.SlopeMS)
}
