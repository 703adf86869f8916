package main

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"assay/engine"
	"assay/ingest"
)

func newIngest(e *env) *cobra.Command {
	var o engine.IngestOptions
	var rebuild bool
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
  generate-docs | assay ingest -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, _, err := e.config()
			if err != nil {
				return err
			}
			roots, err := e.roots(args)
			if err != nil {
				return &usageError{err}
			}
			o.Read.Include = append(slices.Clone(cfg.Ingest.Include), o.Read.Include...)
			o.Read.Exclude = append(slices.Clone(cfg.Ingest.Exclude), o.Read.Exclude...)
			o.Read.MaxFileSize = int64(cfg.Ingest.MaxFileSize)
			o.Read.Workers = cfg.Ingest.Workers
			mode := openWrite
			if rebuild {
				mode = openRebuild
			}
			a, err := e.open(c.Context(), cfg, e.logger(slog.LevelWarn), mode)
			if err != nil {
				return err
			}
			defer a.close()
			progress := newProgress(e.stderr, e.jsonOut)
			o.OnProgress = progress.update
			summary, err := a.engine.Ingest(c.Context(), roots, o)
			progress.finish()
			if e.jsonOut {
				if jsonErr := writeJSON(e.stdout, summaryJSON(summary)); err == nil {
					err = jsonErr
				}
			} else {
				printSummary(e.stdout, summary)
			}
			if err != nil {
				return fmt.Errorf("%w\nwhat is counted above is in the corpus; run the same command again to go on", err)
			}
			if n := summary.Failures(); n > 0 {
				return &partialError{fmt.Sprintf("%d of the documents could not be read; everything else is in the corpus", n)}
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringArrayVar(&o.Read.Include, "include", nil, "read only files that match this pattern; may be repeated")
	f.StringArrayVar(&o.Read.Exclude, "exclude", nil, "leave out what matches this pattern; may be repeated")
	f.BoolVar(&o.Read.NoIgnoreFiles, "no-ignore-files", false, "do not honour .gitignore and .assayignore files")
	f.BoolVar(&o.Read.Force, "force", false, "process unchanged documents too")
	f.BoolVar(&o.Prune, "prune", false, "remove documents below PATH whose source is gone")
	f.BoolVar(&o.DryRun, "dry-run", false, "say what would happen, and change nothing")
	f.BoolVar(&rebuild, "rebuild", false, "empty the corpus first; needed after a change of embedder, chunker or analyser")
	c.MarkFlagsMutuallyExclusive("rebuild", "dry-run")
	e.addJSON(c)
	return c
}

func (e *env) roots(args []string) ([]ingest.Root, error) {
	roots := make([]ingest.Root, len(args))
	for i, arg := range args {
		if arg == "-" {
			roots[i] = ingest.StdinRoot(e.stdin)
			continue
		}
		root, err := ingest.ParseRoot(arg)
		if err != nil {
			return nil, err
		}
		roots[i] = root
	}
	return roots, nil
}

// progress shows how far a run is: a bar on a terminal, otherwise a plain line now and then.
type progress struct {
	w    io.Writer
	bar  *progressbar.ProgressBar
	next time.Time
	off  bool
}

// progressEvery is the time between plain lines.
const progressEvery = 5 * time.Second

func newProgress(w io.Writer, quiet bool) *progress {
	p := &progress{w: w, off: quiet, next: time.Now().Add(progressEvery)}
	if f, ok := w.(*os.File); ok && !quiet && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(-1,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription("ingesting"),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionSetItsString("documents"),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSpinnerType(14),
			progressbar.OptionClearOnFinish())
	}
	return p
}

func (p *progress) update(s engine.Summary) {
	switch {
	case p.off:
	case p.bar != nil:
		p.bar.Describe(fmt.Sprintf("ingesting: %d new, %d changed, %d unchanged, %d skipped, %s",
			s.Added, s.Changed, s.Unchanged, len(s.Skipped), humanize.IBytes(uint64(s.Bytes))))
		_ = p.bar.Set(s.Seen()) // drawing is best effort
	case time.Now().After(p.next):
		p.next = time.Now().Add(progressEvery)
		fmt.Fprintf(p.w, "%d documents: %d new, %d changed, %d unchanged, %d skipped; %d chunks; %s\n",
			s.Seen(), s.Added, s.Changed, s.Unchanged, len(s.Skipped), s.Chunks, humanize.IBytes(uint64(s.Bytes)))
	}
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish() // drawing is best effort
	}
}

// maxSkippedShown is how many skipped documents the summary lists one by one for each reason.
const maxSkippedShown = 10

func printSummary(w io.Writer, s engine.Summary) {
	head := "Done"
	if s.DryRun {
		head = "Dry run: nothing was changed. This would happen"
	}
	seconds := max(s.Duration.Seconds(), 1e-3)
	fmt.Fprintf(w, "%s: %d added, %d changed, %d unchanged, %d removed, %d skipped.\n",
		head, s.Added, s.Changed, s.Unchanged, s.Removed, len(s.Skipped))
	fmt.Fprintf(w, "%d chunks, %d tokens, %s in %s (%.0f documents/s, %.0f chunks/s, %s/s).\n",
		s.Chunks, s.Tokens, humanize.IBytes(uint64(s.Bytes)), s.Duration.Round(time.Millisecond),
		float64(s.Seen())/seconds, float64(s.Chunks)/seconds, humanize.IBytes(uint64(float64(s.Bytes)/seconds)))
	fmt.Fprintf(w, "The corpus holds %d documents (generation %d).\n", s.Documents, s.Generation)
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
