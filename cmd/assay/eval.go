package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"assay/engine"
	"assay/eval"
	"assay/ingest"
)

func newEval(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "eval",
		Short: "Measure retrieval against judged questions",
		Args:  noSuchCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newEvalRetrieval(e))
	return c
}

// retrievalFlags are the flags of `assay eval retrieval`.
type retrievalFlags struct {
	qrels, writeRun  string
	runs, measures   []string
	depth, relevance int
}

func newEvalRetrieval(e *env) *cobra.Command {
	var f retrievalFlags
	c := &cobra.Command{
		Use:   "retrieval DATASET...",
		Short: "Compare the dense channel, BM25 and their fusion on a judged collection",
		Long: `Compare the dense channel alone, BM25 alone and their fusion, with the configured models, on a
judged collection; metrics are trec_eval's, differences carry a paired bootstrap interval.

DATASET is a folder in the BEIR layout (corpus.jsonl, queries.jsonl, qrels.tsv), which is indexed in
a temporary directory; or a file of questions with evidence (JSON Lines of id, text and evidence
with doc and quote), which is asked of the corpus in --data.

Several datasets give one table a measure, with the mean over the datasets.

With --run, runs in TREC format are scored instead of searching.`,
		Example: `  assay eval retrieval scifact/
  assay eval retrieval examples/ferrywire-eval/queries-128.jsonl
  assay eval retrieval scifact/ --run other-engine.run --measure ndcg@10 --measure recall@100
  assay eval retrieval scifact/ cranfield/ cisi/ --measure ndcg@10
  assay eval retrieval scifact/ --write-run runs/`,
		Args: atLeastOne("give a folder in the BEIR layout or a file of questions"),
		RunE: func(c *cobra.Command, args []string) error {
			var reports []*eval.Report
			for _, dataset := range args {
				one := f
				one.writeRun = runFolder(f.writeRun, dataset, len(args) > 1)
				report, err := e.evalRetrieval(c.Context(), dataset, one)
				if err != nil {
					return err
				}
				reports = append(reports, report)
			}
			return e.printReports(reports)
		},
	}
	c.Flags().StringVar(&f.qrels, "qrels", "", "judgments in TREC or BEIR form (default: qrels.tsv of the folder)")
	c.Flags().StringArrayVar(&f.runs, "run", nil, "score this run in TREC format instead of searching; may be repeated")
	c.Flags().StringVar(&f.writeRun, "write-run", "", "write each arm's ranking to this folder in TREC format")
	c.Flags().StringArrayVar(&f.measures, "measure", nil, "a measure such as ndcg@10 or recall@5; may be repeated")
	c.Flags().IntVar(&f.depth, "depth", 0, "results per question that are judged (default 100)")
	c.Flags().IntVar(&f.relevance, "relevance-level", 1, "the grade from which a document is relevant")
	e.addJSON(c)
	return c
}

func (e *env) evalRetrieval(ctx context.Context, path string, f retrievalFlags) (*eval.Report, error) {
	cfg, _, err := e.config()
	if err != nil {
		return nil, err
	}
	o := eval.Options{Measures: f.measures, Depth: f.depth, Labels: eval.LabelOptions{Level: f.relevance}}
	if err := o.Validate(); err != nil {
		return nil, &usageError{err}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &usageError{fmt.Errorf("there is no dataset at %s; give a folder in the BEIR layout or a file of questions", path)}
	case err != nil:
		return nil, err
	case !info.IsDir():
		return e.evalQuestions(ctx, cfg, path, f, o)
	}
	collection, err := eval.OpenCollection(path, f.qrels)
	if err != nil {
		return nil, err
	}
	ds, err := collection.Dataset()
	if err != nil {
		return nil, err
	}
	if len(f.runs) > 0 {
		return scoreRuns(ctx, ds, f.runs, o)
	}
	dir, err := os.MkdirTemp("", "assay-eval-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	e.dataDir = dir
	a, err := e.open(ctx, cfg, e.logger(slog.LevelWarn), openWrite)
	if err != nil {
		return nil, err
	}
	defer a.close()
	root, err := ingest.ParseRoot(filepath.Join(path, "corpus.jsonl"))
	if err != nil {
		return nil, err
	}
	start := time.Now()
	summary, err := a.engine.Ingest(ctx, []ingest.Root{root}, engine.IngestOptions{})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(e.stderr, "Indexed %d documents (%d chunks) in %s; %d skipped.\n",
		summary.Added, summary.Chunks, time.Since(start).Round(time.Millisecond), len(summary.Skipped))
	return runArms(ctx, a, ds, f, o)
}

// evalQuestions asks questions with evidence of the corpus that is in the data directory.
func (e *env) evalQuestions(ctx context.Context, cfg Config, path string, f retrievalFlags, o eval.Options) (*eval.Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	ds, err := eval.ReadDataset(path, file)
	if err != nil {
		return nil, err
	}
	a, err := e.open(ctx, cfg, e.logger(slog.LevelWarn), openRead)
	if err != nil {
		return nil, err
	}
	defer a.close()
	snap := a.index.Snapshot()
	defer snap.Close()
	o.Corpus = corpus{snap}
	if len(f.runs) > 0 {
		return scoreRuns(ctx, ds, f.runs, o)
	}
	return runArms(ctx, a, ds, f, o)
}

func scoreRuns(ctx context.Context, ds *eval.Dataset, files []string, o eval.Options) (*eval.Report, error) {
	runs := make([]*eval.Run, len(files))
	for i, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		runs[i], err = eval.ReadRun(name, f)
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	return eval.ScoreRuns(ctx, ds, runs, o)
}

// runArms measures the fusion and each channel alone.
func runArms(ctx context.Context, a *app, ds *eval.Dataset, f retrievalFlags, o eval.Options) (*eval.Report, error) {
	arms, err := a.channelArms()
	if err != nil {
		return nil, err
	}
	report, err := eval.Retrieval(ctx, ds, arms, o)
	if err != nil || f.writeRun == "" {
		return report, err
	}
	if err := os.MkdirAll(f.writeRun, 0o755); err != nil {
		return nil, fmt.Errorf("--write-run: %w", err)
	}
	for _, arm := range report.Arms {
		if err := writeRun(filepath.Join(f.writeRun, arm.Name+".run"), arm.Run); err != nil {
			return nil, fmt.Errorf("--write-run: %w", err)
		}
	}
	return report, nil
}

func writeRun(path string, run *eval.Run) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := eval.WriteRun(file, run); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
