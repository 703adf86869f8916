package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"assay/chunker"
	"assay/rerank"
)

func newRerank(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "rerank",
		Short: "Check the configured reranker",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newRerankCheck(e))
	return c
}

// rerankFlags are what `assay rerank check` can be told.
type rerankFlags struct {
	timeout    time.Duration
	candidates []int
	runs       int
}

func newRerankCheck(e *env) *cobra.Command {
	var f rerankFlags
	c := &cobra.Command{
		Use:   "check",
		Short: "Call the reranker with two texts: which dialect answers, on which scale, how fast",
		Long: `Call the configured reranker, or the one at --url, with a question, a text that answers it and one
that does not. The configured dialect is tried first, then the others. Printed are the dialect that
answers, the scale of its scores, both scores, the latency, and whether the right text ranks first.
The key is read from ` + secrets["rerank.api_key"] + `, as when answering.

With --candidates the latency is measured for each of these numbers of candidates, each as long as
a chunk, and a straight line is fitted to it: what a question costs, what each candidate adds, and so
how many candidates fit into rerank.timeout.

Exit status: 0 the reranker works; 1 it does not answer, or ranks the wrong text first.`,
		Example: `  assay rerank check
  assay rerank check --url http://127.0.0.1:8081 --dialect infinity
  assay rerank check --candidates 10,20,50,100 --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, _, err := e.config(changed(c, map[string]string{"url": "rerank.url", "dialect": "rerank.dialect", "model": "rerank.model"})...)
			if err != nil {
				return err
			}
			return e.rerankCheck(c.Context(), cfg, f)
		},
	}
	c.Flags().String("url", "", "address of the reranker (default: rerank.url)")
	c.Flags().String("dialect", "", "dialect to try first (default: rerank.dialect)")
	c.Flags().String("model", "", "name of the model (default: rerank.model)")
	c.Flags().DurationVar(&f.timeout, "timeout", 30*time.Second, "how long to wait for each call; a model that is loaded on demand takes its time")
	c.Flags().IntSliceVar(&f.candidates, "candidates", nil, "measure the latency with these numbers of candidates, such as 10,20,50,100")
	c.Flags().IntVar(&f.runs, "runs", 5, "calls for each number of candidates")
	e.addJSON(c)
	return c
}

// rerankChecked is the result of `assay rerank check`.
type rerankChecked struct {
	rerank.Finding
	Cost *rerankCost `json:"cost,omitempty"`
}

func (e *env) rerankCheck(ctx context.Context, cfg Config, f rerankFlags) error {
	if cfg.Rerank.URL == "" {
		return &usageError{errors.New("rerank check: rerank.url is not set; set it in the configuration, or name the reranker with --url http://127.0.0.1:8081")}
	}
	if err := f.validate(); err != nil {
		return &usageError{err}
	}
	tokens, err := chunker.NewTokenizer(cfg.Chunker.Encoding)
	if err != nil {
		return &usageError{err}
	}
	o := rerankOptions(cfg.Rerank, tokens, e.getenv)
	if err := o.Validate(); err != nil {
		return &usageError{err}
	}
	o.Timeout = f.timeout
	var out rerankChecked
	out.Finding, err = rerank.Check(ctx, e.logger(slog.LevelError), o)
	if err == nil && len(f.candidates) > 0 {
		o.Dialect = out.Dialect
		out.Cost, err = e.measureRerank(ctx, cfg, o, f, tokens)
	}
	if e.jsonOut {
		if jsonErr := writeJSON(e.stdout, out); jsonErr != nil {
			return jsonErr
		}
	} else {
		printRerankCheck(e, cfg, out)
	}
	switch {
	case err != nil:
		return fmt.Errorf("rerank check: %w", err)
	case !out.RelevantFirst:
		return errors.New("rerank check: the text that does not answer the question ranks first; check that the model is a reranker for this language")
	}
	return nil
}

func printRerankCheck(e *env, cfg Config, c rerankChecked) {
	w := e.stdout
	for _, t := range c.Trials {
		note := "answers"
		if t.Reason != "" {
			note = string(t.Status) + ": " + oneLine(t.Reason)
		}
		fmt.Fprintf(w, "%-9s %s\n", t.Dialect, note)
	}
	if c.Dialect == "" {
		return
	}
	fmt.Fprintf(w, "\ndialect   %s at %s\n", c.Dialect, c.URL)
	scale := string(c.Scale)
	if c.OffScale {
		scale += ", but these scores are not on it"
	}
	fmt.Fprintf(w, "scale     %s\nscores    %.4g for the text that answers, %.4g for the one that does not\n", scale, c.Relevant, c.Irrelevant)
	first := "the right text ranks first"
	if !c.RelevantFirst {
		first = "the WRONG text ranks first"
	}
	fmt.Fprintf(w, "ranking   %s\nlatency   %.1f ms for two texts\n", first, c.LatencyMS)
	if d := cfg.Rerank.Timeout.std(); c.LatencyMS > float64(d.Milliseconds()) {
		fmt.Fprintf(w, "          longer than rerank.timeout (%s): questions would be answered without it\n", d)
	}
	if string(c.Dialect) != cfg.Rerank.Dialect {
		fmt.Fprintf(w, "\nThe configured dialect is %s; set rerank.dialect: %s\n", cfg.Rerank.Dialect, c.Dialect)
	}
	if c.Cost != nil {
		printRerankCost(w, cfg, c.Cost)
	}
}
