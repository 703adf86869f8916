package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"assay/index"
)

func newBackup(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a consistent copy of the corpus to a file, also while it is served",
		Long: `Write everything that is stored to one file: documents, chunks, vectors, manifests and the embedding
cache, as they are at one instant. Reads and writes go on meanwhile. The search indexes are not in it,
since they are made anew from the store. A file that exists is not overwritten.`,
		Example: `  assay backup /backups/assay-2026-07-30.db
  assay backup --json /backups/today.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, _, err := e.config()
			if err != nil {
				return err
			}
			path, err := filepath.Abs(args[0])
			if err != nil {
				return fmt.Errorf("backup %s: %w", args[0], err)
			}
			return e.do(c.Context(), cfg, slog.LevelWarn, &backupJob{path})
		},
	}
	e.addJSON(c)
	return c
}

// backupJob copies the store.
type backupJob struct{ File string } // absolute

func (*backupJob) name() string   { return "backup" }
func (*backupJob) mode() openMode { return openStore }

func (j *backupJob) run(ctx context.Context, e *env, a *app) error {
	start := time.Now()
	size, err := a.index.Backup(ctx, j.File)
	if err != nil {
		return err
	}
	took := time.Since(start)
	if e.jsonOut {
		return writeJSON(e.stdout, map[string]any{"file": j.File, "bytes": size, "seconds": took.Seconds()})
	}
	fmt.Fprintf(e.stdout, "Done: %s (%s in %s). `assay restore` makes a corpus of it.\n", oneLine(j.File), humanize.IBytes(uint64(size)), took.Round(time.Millisecond))
	return nil
}

func newRestore(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data directory of a backup, and check it",
		Long: `Make a corpus of what ` + "`assay backup`" + ` wrote, in a data directory that does not hold one yet. The copy is
opened, its search indexes are made, and everything is checked before it gets its place; a damaged
backup changes nothing.`,
		Example: `  assay restore --data ./restored /backups/assay-2026-07-30.db
  assay restore --json /backups/today.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, _, err := e.config()
			if err != nil {
				return err
			}
			s, err := index.Restore(c.Context(), e.logger(slog.LevelWarn), args[0], e.dataDir, cfg.indexOptions())
			if err != nil {
				return err
			}
			if e.jsonOut {
				return writeJSON(e.stdout, s)
			}
			fmt.Fprintf(e.stdout, "Done, and nothing is wrong: %d documents, %d chunks, generation %d.\n", s.Documents, s.Chunks, s.Generation)
			return nil
		},
	}
	e.addJSON(c)
	return c
}
