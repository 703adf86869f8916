package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"assay/index"
)

func newStats(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "stats",
		Short: "Show what the data directory holds: documents, chunks, sizes, models",
		Example: `  assay stats
  assay stats --json`,
		Args: cobra.NoArgs,
		RunE: e.storeCommand(func() job { return &statsJob{} }),
	}
	e.addJSON(c)
	return c
}

// storeCommand runs a job without arguments.
func (e *env) storeCommand(make func() job) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		cfg, _, err := e.config()
		if err != nil {
			return err
		}
		return e.do(c.Context(), cfg, slog.LevelWarn, make())
	}
}

// statsJob shows what is stored.
type statsJob struct{}

func (*statsJob) name() string   { return "stats" }
func (*statsJob) mode() openMode { return openStore }

func (*statsJob) run(_ context.Context, e *env, a *app) error {
	s := a.index.Stats()
	if e.jsonOut {
		return writeJSON(e.stdout, s)
	}
	printStats(e, s)
	return nil
}

func printStats(e *env, s index.Stats) {
	embedder := "none yet"
	if s.Embedder.Name != "" {
		embedder = fmt.Sprintf("%s (%d dimensions)", s.Embedder.Name, s.Embedder.Dimensions)
	}
	size := func(n int64) string { return humanize.IBytes(uint64(n)) }
	facts := [][2]string{
		{"collection", fmt.Sprintf("%s, generation %d", s.Collection, s.Generation)},
		{"corpus", fmt.Sprintf("%d documents, %d chunks, %d tokens", s.Documents, s.Chunks, s.Tokens)},
		{"embedder", embedder},
		{"chunker", s.Chunker},
		{"analyzer", s.Analyzer},
		{"on disk", fmt.Sprintf("store %s, lexical index %s, graph %s", size(s.Bytes.Store), size(s.Bytes.Lexical), size(s.Bytes.Graph))},
		{"in memory", "vectors " + size(s.Bytes.Dense)},
		{"manifests", fmt.Sprint(s.Manifests)},
		{"cache", fmt.Sprintf("%d vectors", s.Cached)},
	}
	if s.Staged > 0 {
		facts = append(facts, [2]string{"reindex", fmt.Sprintf("unfinished: %d documents are made; `assay reindex` goes on", s.Staged)})
	}
	if s.Degraded != "" {
		facts = append(facts, [2]string{"degraded", s.Degraded})
	}
	for _, f := range facts {
		fmt.Fprintf(e.stdout, "  %-10s %s\n", f[0], oneLine(f[1]))
	}
}

func newCheck(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "check",
		Short: "Check that everything stored agrees: texts, hashes, vectors, both search indexes",
		Long: `Compare everything that must agree: the store with itself, texts with their hashes, vectors with their
checksums, and each search index with the store: every chunk exactly once, and nothing else. Writes
wait meanwhile. The exit status is 1 when something is wrong, and each finding is named.`,
		Example: `  assay check
  assay check --json`,
		Args: cobra.NoArgs,
		RunE: e.storeCommand(func() job { return &checkJob{} }),
	}
	e.addJSON(c)
	return c
}

// checkJob checks what is stored.
type checkJob struct{}

func (*checkJob) name() string   { return "check" }
func (*checkJob) mode() openMode { return openStore }

func (*checkJob) run(ctx context.Context, e *env, a *app) error {
	err := a.index.Check(ctx)
	var corrupt *index.CorruptError
	if err != nil && !errors.As(err, &corrupt) {
		return err
	}
	s := a.index.Stats()
	if e.jsonOut {
		findings := []string{}
		if corrupt != nil {
			findings = findingsOf(corrupt)
		}
		return errors.Join(err, writeJSON(e.stdout, map[string]any{
			"ok": err == nil, "findings": findings, "documents": s.Documents, "chunks": s.Chunks, "generation": s.Generation,
		}))
	}
	if err == nil {
		fmt.Fprintf(e.stdout, "Nothing is wrong: %d documents, %d chunks, generation %d.\n", s.Documents, s.Chunks, s.Generation)
	}
	return err
}

// findingsOf lists what is wrong, one by one.
func findingsOf(err *index.CorruptError) []string {
	out := []string{}
	if list, ok := err.Err.(interface{ Unwrap() []error }); ok {
		for _, finding := range list.Unwrap() {
			out = append(out, finding.Error())
		}
		return out
	}
	return append(out, err.Error())
}
