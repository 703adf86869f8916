package rerank

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"assay"
)

// ErrRequired is returned when the policy is to refuse requests that were not reranked.
var ErrRequired = errors.New("reranking is required and did not happen")

// Outcome is what became of the reranker for one query.
type Outcome struct {
	Status      assay.RerankStatus
	Model       string
	Scores      []float64 // by index of the text; valid where Scored, and a ranking only when Status is ok
	Scored      []bool
	Candidates  int           // texts sent, or meant to be when it failed before
	ScoredCount int           // texts with a valid score when the stage ended
	Truncated   int           // texts that were cut at Options.MaxTokens
	Attempts    int           // requests made, all batches and retries together
	Latency     time.Duration // of the stage
	Timeout     time.Duration // that the stage had
	HTTPStatus  int           // of the answer that decided, 0 when there was none
	Reason      string        // why the status is not ok
	Err         error         // nil when the status is ok, disabled or skipped

	Fallback     assay.FallbackPolicy // the policy in force, when the reranker should have ranked and did not
	fallbackKeep int
}

// Keep is the number of chunks to keep where keep were to be kept of a ranked list. Under the policy
// fail it is an error that wraps ErrRequired.
func (o Outcome) Keep(keep int) (int, error) {
	switch o.Fallback {
	case assay.FallbackFail:
		return 0, fmt.Errorf("%w (rerank.policy is fail): %s", ErrRequired, o.Reason)
	case assay.FallbackWiden:
		if o.fallbackKeep == 0 {
			return 2 * keep, nil
		}
		return max(keep, o.fallbackKeep), nil
	}
	return keep, nil
}

// Apply returns the candidates with their rerank placings in the order to use. Text i of the
// outcome is that of candidate i.
//
// Only a complete ranking orders anything: by score, then fused rank, then chunk ID. After every other
// outcome the order is the fused one and no candidate has a rerank placing. That holds for a partial
// ranking too: the texts that it lacks are not worse than those it has, and both kinds of score
// cannot be put on one scale. Candidates beyond those sent follow in fused order.
func Apply(cands []assay.Candidate, o Outcome) []assay.Candidate {
	out := slices.Clone(cands)
	for i := range out {
		out[i].Rerank = nil
	}
	if o.Status != assay.RerankOK {
		return out
	}
	n := min(len(out), len(o.Scores))
	ranked := out[:n]
	for i := range ranked {
		ranked[i].Rerank = &assay.Placing{Score: o.Scores[i]}
	}
	slices.SortStableFunc(ranked, func(a, b assay.Candidate) int {
		return cmp.Or(cmp.Compare(b.Rerank.Score, a.Rerank.Score), cmp.Compare(fusedRank(a), fusedRank(b)), a.Compare(&b))
	})
	for i := range ranked {
		ranked[i].Rerank.Rank = i + 1
	}
	return out
}

func fusedRank(c assay.Candidate) int {
	if c.Fused == nil {
		return 0
	}
	return c.Fused.Rank
}

// Manifest is the outcome as manifests record it.
func (o Outcome) Manifest() assay.ManifestReranker {
	m := assay.ManifestReranker{
		Status:     o.Status,
		Model:      o.Model,
		Candidates: o.Candidates,
		Scored:     o.ScoredCount,
		Truncated:  o.Truncated,
		LatencyMS:  assay.Milliseconds(o.Latency),
		TimeoutMS:  assay.Milliseconds(o.Timeout),
		Attempts:   o.Attempts,
		Fallback:   o.Fallback,
	}
	if o.Err != nil {
		m.Error = o.Err.Error()
	}
	return m
}

// Stage is the outcome in the vocabulary that all stages share.
func (o Outcome) Stage() assay.Stage {
	return assay.Stage{
		Name:     assay.StageRerank,
		Status:   o.Status.Stage(),
		Duration: o.Latency,
		Reason:   o.Reason,
		Fallback: string(o.Fallback),
	}
}
