package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"assay/engine"
	"assay/ingest"
)

func newIngest(e *env) *cobra.Command {
	var j ingestJob
	c := &cobra.Command{
		Use:   "ingest PATH...",
		Short: "Read documents into the corpus; only what changed is processed",
		Long: `Read files, folders, or standard input ("-") into the corpus. Markdown, HTML, plain text and JSON
Lines (_id, title, text, metadata) are read; everything else is skipped and named. Documents that
did not change since the last run cost a hash.

Folders honour .gitignore and .assayignore files and leave out hidden files. --include and --exclude
take patterns such as "**/*.md" and "drafts/".`,
		Example: `  assay ingest docs/
  assay ingest --prune docs/ policies/       # and remove what is no longer there
  assay ingest --dry-run --prune docs/       # what would that do?
  assay ingest --exclude 'drafts/' --include '**/*.md' docs/
  assay ingest corpus.jsonl
  generate-docs | assay ingest --name handbook.html -`,
		Args: atLeastOne("give the files and folders to read, or - for standard input"),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, _, err := e.config()
			if err != nil {
				return err
			}
			if _, err := e.roots(args, j.Name); err != nil { // with the paths as they were given
				return &usageError{err}
			}
			if j.Paths, err = absolute(args); err != nil {
				return err
			}
			j.Include = append(slices.Clone(cfg.Ingest.Include), j.Include...)
			j.Exclude = append(slices.Clone(cfg.Ingest.Exclude), j.Exclude...)
			j.MaxFileSize, j.Workers = int64(cfg.Ingest.MaxFileSize), cfg.Ingest.Workers
			return e.do(c.Context(), cfg, slog.LevelWarn, &j)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&j.Include, "include", nil, "read only files that match this pattern; may be repeated")
	f.StringArrayVar(&j.Exclude, "exclude", nil, "leave out what matches this pattern; may be repeated")
	f.BoolVar(&j.NoIgnoreFiles, "no-ignore-files", false, "do not honour .gitignore and .assayignore files")
	f.BoolVar(&j.Force, "force", false, "process unchanged documents too")
	f.BoolVar(&j.Prune, "prune", false, "remove documents below PATH whose source is gone")
	f.BoolVar(&j.PruneAll, "prune-all", false, "let --prune remove everything below PATH when nothing is left there")
	f.BoolVar(&j.DryRun, "dry-run", false, "say what would happen, and change nothing")
	f.StringVar(&j.Name, "name", "stdin", "name of what standard input brings; another name is another document")
	f.BoolVar(&j.Rebuild, "rebuild", false, "empty the corpus first; after a change of settings, reindex does without")
	c.MarkFlagsMutuallyExclusive("rebuild", "dry-run")
	e.addJSON(c)
	return c
}

// absolute makes paths independent of the working directory; "-" stays.
func absolute(paths []string) ([]string, error) {
	out := slices.Clone(paths)
	for i, path := range out {
		if path == "-" {
			continue
		}
		full, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("resolve %s: %w", path, err)
		}
		out[i] = full
	}
	return out, nil
}

// ingestJob reads documents into the corpus.
type ingestJob struct {
	Name                 string   // of what "-" reads
	Paths                []string // absolute, or "-"
	Include, Exclude     []string
	MaxFileSize          int64
	Workers              int
	NoIgnoreFiles, Force bool
	Prune, PruneAll      bool
	DryRun, Rebuild      bool
}

func (*ingestJob) name() string { return "ingest" }

func (j *ingestJob) mode() openMode {
	if j.Rebuild {
		return openRebuild
	}
	return openWrite
}

func (j *ingestJob) run(ctx context.Context, e *env, a *app) error {
	roots, err := e.roots(j.Paths, j.Name)
	if err != nil {
		return &usageError{err}
	}
	if j.Rebuild && e.live != nil { // otherwise it was emptied when it was opened
		if err := a.index.Reset(ctx); err != nil {
			return err
		}
	}
	progress := newProgress(e.stderr, e.isTerminal(), e.jsonOut)
	summary, err := a.engine.Ingest(ctx, roots, engine.IngestOptions{
		Read: ingest.Options{
			Include: j.Include, Exclude: j.Exclude, NoIgnoreFiles: j.NoIgnoreFiles, Force: j.Force,
			MaxFileSize: j.MaxFileSize, Workers: j.Workers,
		},
		Prune: j.Prune || j.PruneAll, PruneAll: j.PruneAll, DryRun: j.DryRun, Gently: e.live != nil, OnProgress: progress.update,
	})
	progress.finish()
	if err == nil && !j.DryRun && e.live == nil { // a server goes on building in the background
		err = a.index.Settle(ctx)
	}
	if e.jsonOut {
		if jsonErr := writeJSON(e.stdout, summaryJSON(summary)); err == nil {
			err = jsonErr
		}
	} else {
		printSummary(e.stdout, summary, err)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; what is counted above is in the corpus, and the same command goes on from there")
	case err != nil && !j.DryRun:
		return fmt.Errorf("%w\nwhat is counted above is in the corpus; run the same command again to go on", err)
	case err != nil:
		return err
	}
	if n := summary.Failures(); n > 0 {
		if j.DryRun {
			return &partialError{fmt.Sprintf("%d of the documents could not be read", n)}
		}
		return &partialError{fmt.Sprintf("%d of the documents could not be read; everything else is in the corpus", n)}
	}
	return nil
}

func (e *env) roots(args []string, stdin string) ([]ingest.Root, error) {
	if stdin == "" {
		return nil, errors.New("--name must not be empty")
	}
	roots := make([]ingest.Root, len(args))
	for i, arg := range args {
		if arg == "-" {
			roots[i] = ingest.StreamRoot(stdin, e.stdin)
			continue
		}
		root, err := ingest.ParseRoot(arg)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w; what was ingested from there is removed with `assay delete`", err)
		}
		if err != nil {
			return nil, err
		}
		roots[i] = root
	}
	return roots, nil
}

// maxSkippedShown is how many skipped documents the summary lists one by one for each reason.
const maxSkippedShown = 10

// printSummary prints what a run did; err is why it ended early, or nil.
func printSummary(w io.Writer, s engine.Summary, err error) {
	head := "Done"
	switch {
	case s.DryRun:
		head = "Dry run, nothing was changed"
	case err != nil:
		head = "Ended early"
	}
	seconds := max(s.Duration.Seconds(), 1e-3)
	fmt.Fprintf(w, "%s: %d added, %d changed, %d unchanged, %d removed, %d skipped.\n",
		head, s.Added, s.Changed, s.Unchanged, s.Removed, len(s.Skipped))
	fmt.Fprintf(w, "%d chunks, %d tokens, %s in %s (%.0f documents/s, %.0f chunks/s, %s/s).\n",
		s.Chunks, s.Tokens, humanize.IBytes(uint64(s.Bytes)), s.Duration.Round(time.Millisecond),
		float64(s.Seen())/seconds, float64(s.Chunks)/seconds, humanize.IBytes(uint64(float64(s.Bytes)/seconds)))
	fmt.Fprintf(w, "The corpus holds %d documents (generation %d).\n", s.Documents, s.Generation)
	printNames(w, "Removed", s.Gone)
	if s.Protected > 0 {
		fmt.Fprintf(w, "\n%d stored documents were not found and not removed, since what holds them could not be read whole.\n", s.Protected)
	}
	byReason := make(map[ingest.SkipReason][]engine.SkippedDoc)
	for _, skipped := range s.Skipped {
		byReason[skipped.Reason] = append(byReason[skipped.Reason], skipped)
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		list := byReason[reason]
		fmt.Fprintf(w, "\nSkipped, %s (%d):\n", reason, len(list))
		for _, skipped := range list[:min(len(list), maxSkippedShown)] {
			fmt.Fprintf(w, "  %s\n", skippedLine(skipped))
		}
		if more := len(list) - maxSkippedShown; more > 0 {
			fmt.Fprintf(w, "  and %d more; --json lists all\n", more)
		}
	}
}

// printNames lists documents, the first ones by name.
func printNames(w io.Writer, what string, names []string) {
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s (%d):\n", what, len(names))
	for _, name := range names[:min(len(names), maxSkippedShown)] {
		fmt.Fprintf(w, "  %s\n", clip(name, pageWidth-2))
	}
	if more := len(names) - maxSkippedShown; more > 0 {
		fmt.Fprintf(w, "  and %d more; --json lists all\n", more)
	}
}

func skippedLine(s engine.SkippedDoc) string {
	line := oneLine(s.URI)
	if s.Detail != "" {
		line += ": " + oneLine(strings.TrimPrefix(s.Detail, "ingest "+s.URI+": "))
	}
	if s.Kept {
		line += " (its earlier version stays in the corpus)"
	}
	return line
}

// summaryJSON is the JSON form of a summary, with the time in seconds.
func summaryJSON(s engine.Summary) any {
	return struct {
		engine.Summary
		Seconds float64 `json:"seconds"`
	}{s, s.Duration.Seconds()}
}

func rule() string { return strings.Repeat("─", pageWidth) }
