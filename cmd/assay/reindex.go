package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"assay/engine"
)

func newReindex(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "reindex",
		Short: "Chunk and embed everything stored again, after a change of settings",
		Long: `Make the corpus anew from the stored texts, with the chunker, the embedder and the analyser that are
configured now. No source is needed. The former corpus is served until the new one is complete, and is
then replaced in one step. When the command is interrupted, the same command goes on from there.

A server that holds the data directory does it itself: it takes over these settings (chunker, embed,
index.analyzer) from this command and goes on answering; its other settings stay as they are.`,
		Example: `  assay reindex                            # with the settings in assay.yaml
  assay reindex --set chunker.size=512
  assay reindex --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, _, err := e.config()
			if err != nil {
				return err
			}
			return e.do(c.Context(), cfg, slog.LevelWarn, &reindexJob{cfg.Chunker, cfg.Embed, cfg.Index.Analyzer})
		},
	}
	e.addJSON(c)
	return c
}

// reindexJob makes the corpus anew with the settings that decide what is stored.
type reindexJob struct {
	Chunker  ChunkerConfig
	Embed    EmbedConfig
	Analyzer string
}

func (*reindexJob) name() string   { return "reindex" }
func (*reindexJob) mode() openMode { return openReindex }

func (j *reindexJob) run(ctx context.Context, e *env, a *app) error {
	var next *app
	if e.live == nil {
		next = a // opened for this
	} else {
		end, err := e.live.begin()
		if err != nil {
			return err
		}
		defer func() { end(next) }()
		made, err := a.beside(j, e.getenv)
		if err != nil {
			return err
		}
		a = made
	}
	progress := newTicker(e)
	done, err := engine.Reindex(ctx, a.lg, a.deps(), j.Analyzer, progress.reindexed)
	if err == nil && e.live != nil {
		if err = a.compose(); err == nil {
			next = a
		}
	}
	if e.live != nil && next == nil {
		a.close()
	}
	if e.jsonOut {
		if jsonErr := writeJSON(e.stdout, reindexedJSON(done)); err == nil {
			err = jsonErr
		}
	} else if err == nil {
		printReindexed(e, done)
	}
	if err != nil {
		return fmt.Errorf("%w\nthe former corpus is served as before; run the same command again to go on from %d of %d documents", err, done.Resumed+done.Made, done.Documents)
	}
	return nil
}

// beside is an app over the same index with other settings for what is stored.
func (a *app) beside(j *reindexJob, getenv func(string) string) (*app, error) {
	out := &app{cfg: a.cfg, lg: a.lg, index: a.index, traces: a.traces}
	out.cfg.Chunker, out.cfg.Embed, out.cfg.Index.Analyzer = j.Chunker, j.Embed, j.Analyzer
	if err := out.openModels(getenv); err != nil {
		out.close()
		return nil, err
	}
	return out, nil
}

func reindexedJSON(r engine.Reindexed) any {
	return struct {
		engine.Reindexed
		Seconds float64 `json:"seconds"`
	}{r, r.Duration.Seconds()}
}

func printReindexed(e *env, r engine.Reindexed) {
	if r.Needless {
		fmt.Fprintf(e.stdout, "Nothing to do: the %d documents are stored with these settings (generation %d).\n", r.Documents, r.Generation)
		return
	}
	fmt.Fprintf(e.stdout, "Done: %d documents made anew", r.Made)
	if r.Resumed > 0 {
		fmt.Fprintf(e.stdout, ", %d by an earlier run", r.Resumed)
	}
	fmt.Fprintf(e.stdout, "; %d chunks, %d tokens in %s.\nThe corpus holds %d documents (generation %d).\n",
		r.Chunks, r.Tokens, r.Duration.Round(time.Millisecond), r.Documents, r.Generation)
}

// ticker prints how far a reindexing is, now and then.
type ticker struct {
	e    *env
	next time.Time
}

func newTicker(e *env) *ticker { return &ticker{e, time.Now().Add(progressEvery)} }

func (t *ticker) reindexed(r engine.Reindexed) {
	if t.e.jsonOut || time.Now().Before(t.next) {
		return
	}
	t.next = time.Now().Add(progressEvery)
	fmt.Fprintf(t.e.stderr, "%d of %d documents; %d chunks\n", r.Resumed+r.Made, r.Documents, r.Chunks)
}
