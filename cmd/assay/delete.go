package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"assay/engine"
)

func newDelete(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "delete DOCUMENT...",
		Short: "Remove documents from the corpus, by ID, URI or path",
		Long: `Remove documents from the corpus in one step: when the command returns, nothing finds them any more.
A document is named by its ID or its URI, as ` + "`assay search`" + ` shows it, or by the path of its file. One
whose file is still there comes back with the next ingest of its folder.`,
		Example: `  assay delete guides/keys.md
  assay delete /srv/docs/guides/keys.md "tickets.jsonl#4711"
  assay delete --json guides/keys.md`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, _, err := e.config()
			if err != nil {
				return err
			}
			var j deleteJob
			for _, arg := range args {
				path, err := filepath.Abs(arg)
				if err != nil {
					return fmt.Errorf("resolve %s: %w", arg, err)
				}
				if resolved, err := filepath.EvalSymlinks(path); err == nil { // the file may be gone
					path = resolved
				}
				j.Documents = append(j.Documents, namedDocument{arg, path})
			}
			return e.do(c.Context(), cfg, slog.LevelWarn, &j)
		},
	}
	e.addJSON(c)
	return c
}

// namedDocument is a document as the caller names it.
type namedDocument struct {
	Name string // as given
	Path string // what it is if it is a path
}

// deleteJob removes documents.
type deleteJob struct{ Documents []namedDocument }

func (*deleteJob) name() string   { return "delete" }
func (*deleteJob) mode() openMode { return openRead }

func (j *deleteJob) run(ctx context.Context, e *env, a *app) error {
	names := make([]string, len(j.Documents))
	for i, d := range j.Documents {
		names[i] = d.Name
		_, _, isURI := a.index.ByURI(d.Name)
		if _, _, isPath := a.index.ByURI(d.Path); isPath && !isURI && !a.index.Taken(d.Name) {
			names[i] = d.Path
		}
	}
	done, err := a.engine.Delete(ctx, names)
	if err != nil {
		return err
	}
	if e.jsonOut {
		err = writeJSON(e.stdout, done)
	} else {
		printDeleted(e, done)
	}
	if n := len(done.Unknown); err == nil && n > 0 {
		err = &partialError{fmt.Sprintf("%d of the documents are not in the corpus; `assay search` shows what documents are called", n)}
	}
	return err
}

func printDeleted(e *env, d engine.Deleted) {
	for _, doc := range d.Documents {
		fmt.Fprintf(e.stdout, "removed    %s (%s)\n", oneLine(doc.ID), oneLine(doc.URI))
	}
	for _, name := range d.Unknown {
		fmt.Fprintf(e.stdout, "not there  %s\n", oneLine(name))
	}
	fmt.Fprintf(e.stdout, "Done: %d removed. The corpus holds %d documents (generation %d).\n", len(d.Documents), d.Left, d.Generation)
}
