package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"assay"
)

// defaultResults is the number of results that `assay search` prints.
const defaultResults = 10

func newSearch(e *env) *cobra.Command {
	var f queryFlags
	c := &cobra.Command{
		Use:   "search QUERY",
		Short: "Retrieve passages without answering: what each channel found, and in which order",
		Example: `  assay search "key rotation"
  assay search -k 20 --filter '{"effective": {"gte": "2025-01-01"}}' refund
  assay search --json "FW-4012"`,
		Args: atLeastOne("give what to search for"),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, _, err := e.config()
			if err != nil {
				return err
			}
			q, err := f.query(e, args)
			if err != nil {
				return err
			}
			if q.Keep == 0 {
				q.Keep = defaultResults
			}
			return e.do(c.Context(), cfg, slog.LevelError, &searchJob{q})
		},
	}
	f.add(c, fmt.Sprintf("results to print (default %d)", defaultResults))
	e.addJSON(c)
	return c
}

// searchJob retrieves passages.
type searchJob struct{ Query assay.Query }

func (*searchJob) name() string   { return "search" }
func (*searchJob) mode() openMode { return openRead }
func (*searchJob) queries()       {}

func (j *searchJob) run(ctx context.Context, e *env, a *app) error {
	r, err := a.engine.Search(ctx, j.Query)
	if err != nil {
		return askError(err, nil)
	}
	r.Candidates = r.Candidates[:min(j.Query.Keep, len(r.Candidates))]
	if e.jsonOut {
		return writeJSON(e.stdout, searchJSON(r))
	}
	printSearch(e, r, j.Query.Filter)
	return nil
}

// foundPassage is one result in JSON output; its fields are those of POST /v1/search.
type foundPassage struct {
	Rank int `json:"rank"`
	assay.Candidate
	Text string `json:"text"`
}

func searchJSON(r *assay.Retrieval) any {
	results := make([]foundPassage, len(r.Candidates))
	for i, c := range r.Candidates {
		results[i] = foundPassage{i + 1, c, c.Text}
	}
	return map[string]any{"results": results, "stages": r.Stages, "reranker": r.Reranker, "corpus": r.Corpus}
}

func printSearch(e *env, r *assay.Retrieval, f assay.Filter) {
	if len(r.Candidates) == 0 {
		fmt.Fprintln(e.stdout, nothingFound(r.Corpus, f))
	}
	for i, c := range r.Candidates {
		fmt.Fprintf(e.stdout, "%2d. %s\n    %s\n    %s · %d tokens · %s\n", i+1,
			clip(assay.Place(c.Title, c.Heading), 94), clipPath(c.URI, 94), c.ChunkID, c.Tokens, places(c))
		for line := range strings.Lines(snippet(c.Text, 3)) {
			fmt.Fprintf(e.stdout, "    %s\n", strings.TrimRight(line, "\n"))
		}
	}
	for _, s := range r.Stages {
		if s.Status.Degraded() {
			fmt.Fprintf(e.stdout, "\nDegraded: %s %s (%s); %s\n", s.Name, s.Status, s.Reason, s.Fallback)
		}
	}
}
