package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"assay/engine"
)

func newManifest(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "manifest [ID]",
		Short: "Show what went into an answer; without an ID, list the latest answers",
		Example: `  assay manifest                          # the latest answers, one line each
  assay manifest m_0199f4c2-…             # one of them, as a table
  assay manifest 4bf92f3577b34da6a3ce929d0e0e4736   # by trace ID
  assay manifest --json m_0199f4c2-…
  assay manifest --json -n 1000 > manifests.jsonl`,
		Args: cobra.MaximumNArgs(1),
	}
	latest := c.Flags().IntP("latest", "n", 20, "how many to list")
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, _, err := e.config()
		if err != nil {
			return err
		}
		return e.do(c.Context(), cfg, slog.LevelError, &manifestJob{args, *latest})
	}
	e.addJSON(c)
	return c
}

// manifestJob shows one manifest, or lists the latest.
type manifestJob struct {
	IDs    []string // at most one
	Latest int
}

func (*manifestJob) name() string   { return "manifest" }
func (*manifestJob) mode() openMode { return openStore }

func (j *manifestJob) run(_ context.Context, e *env, a *app) error {
	if len(j.IDs) == 0 {
		return listManifests(e, a, j.Latest)
	}
	m, err := engine.FindManifest(a.index, j.IDs[0])
	if err != nil {
		return err
	}
	if e.jsonOut {
		return writeJSON(e.stdout, m)
	}
	printManifest(e.stdout, m)
	return nil
}

func listManifests(e *env, a *app, n int) error {
	count := 0
	for m, err := range a.index.Manifests(noTime) {
		if err != nil {
			return err
		}
		if count == n {
			break
		}
		count++
		if e.jsonOut { // JSON Lines
			if err := json.NewEncoder(e.stdout).Encode(m); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(e.stdout, "%s  %s  %s\n", m.CreatedAt.Local().Format("2006-01-02 15:04:05"), m.ID, clip(m.Query.Text, 38))
	}
	if count == 0 && !e.jsonOut {
		fmt.Fprintln(e.stdout, "No answer has been given from this data directory yet; try `assay ask`.")
	}
	return nil
}
