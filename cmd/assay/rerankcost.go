package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"assay"
	"assay/chunker"
	"assay/rerank"
	"assay/retriever"
)

func (f rerankFlags) validate() error {
	var errs []error
	if f.timeout <= 0 {
		errs = append(errs, fmt.Errorf("--timeout %s: must be positive", f.timeout))
	}
	if f.runs < 1 || f.runs > 1000 {
		errs = append(errs, fmt.Errorf("--runs %d: must be between 1 and 1000", f.runs))
	}
	different := make(map[int]bool)
	for _, n := range f.candidates {
		if different[n] = true; n < 2 || n > retriever.MaxDepth {
			errs = append(errs, fmt.Errorf("--candidates %d: must be between 2 and %d", n, retriever.MaxDepth))
		}
	}
	if len(different) == 1 {
		errs = append(errs, errors.New("--candidates: give two numbers or more, since a line is fitted to them"))
	}
	return errors.Join(errs...)
}

// rerankCost is the measured latency and the line through it.
type rerankCost struct {
	rerank.Cost
	ChunkTokens int               `json:"chunk_tokens"` // of each candidate
	Points      []rerankCostPoint `json:"points"`
}

// rerankCostPoint is the latency with one number of candidates.
type rerankCostPoint struct {
	Candidates int     `json:"candidates"`
	Runs       int     `json:"runs"`
	MedianMS   float64 `json:"median_ms"`
	MaxMS      float64 `json:"max_ms"`
}

// measureRerank calls the reranker with each number of candidates in turn and then again, so that a
// machine that slows down meanwhile does not bend the line.
func (e *env) measureRerank(ctx context.Context, cfg Config, o rerank.Options, f rerankFlags, tokens *chunker.Tokenizer) (*rerankCost, error) {
	client, err := rerank.New(e.logger(slog.LevelError), o)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	texts := costTexts(slices.Max(f.candidates), cfg.Chunker.Size, tokens)
	ask := func(n int) (rerank.Outcome, error) {
		out := client.Rerank(ctx, "How long does a refund take?", texts[:n], 1)
		if out.Status != assay.RerankOK {
			return out, fmt.Errorf("with %d candidates: %s: %s", n, out.Status, out.Reason)
		}
		return out, nil
	}
	if _, err := ask(f.candidates[0]); err != nil { // and warm up
		return nil, err
	}
	var outcomes []rerank.Outcome
	latencies := make(map[int][]float64)
	for range f.runs {
		for _, n := range f.candidates {
			out, err := ask(n)
			if err != nil {
				return nil, err
			}
			outcomes = append(outcomes, out)
			latencies[n] = append(latencies[n], assay.Milliseconds(out.Latency))
		}
	}
	cost := &rerankCost{ChunkTokens: tokens.Count(texts[0])}
	if cost.Cost, err = rerank.FitCost(outcomes); err != nil {
		return nil, err
	}
	for _, n := range slices.Compact(slices.Sorted(slices.Values(f.candidates))) {
		ms := slices.Sorted(slices.Values(latencies[n]))
		cost.Points = append(cost.Points, rerankCostPoint{n, len(ms), ms[len(ms)/2], ms[len(ms)-1]})
	}
	return cost, nil
}

// costTexts are n different texts of about the size of a chunk.
func costTexts(n, size int, tokens *chunker.Tokenizer) []string {
	body := strings.Repeat("A refund is returned to the original card after approval, and the account shows it in its list of payments. ", size/16+1)
	out := make([]string, n)
	for i := range out {
		out[i] = tokens.Truncate(fmt.Sprintf("Section %d. ", i+1)+body, size)
	}
	return out
}

func printRerankCost(w io.Writer, cfg Config, c *rerankCost) {
	fmt.Fprintf(w, "\nCandidates of %d tokens, %d in a request, %d requests of a question at once:\n\n", c.ChunkTokens, cfg.Rerank.BatchSize, cfg.Rerank.Concurrency)
	t := newTable(w)
	t.AppendHeader(table.Row{"candidates", "runs", "median ms", "longest ms"})
	for _, p := range c.Points {
		t.AppendRow(table.Row{p.Candidates, p.Runs, fmt.Sprintf("%.1f", p.MedianMS), fmt.Sprintf("%.1f", p.MaxMS)})
	}
	t.Render()
	fmt.Fprintf(w, "\nlatency = %.2f ms + %.3f ms for each candidate (R2 %.3f)\n", c.InterceptMS, c.SlopeMS, c.R2)
	timeout, depth := cfg.Rerank.Timeout.std(), cfg.Retriever.Depth
	fits := "any number of candidates fits"
	if n := c.Within(timeout); n < math.MaxInt {
		fits = fmt.Sprintf("%d candidates fit", n)
	}
	fmt.Fprintf(w, "By that line %s into rerank.timeout (%s); retriever.depth is %d, which takes %.0f ms.\n",
		fits, timeout, depth, assay.Milliseconds(c.Predict(depth)))
}
