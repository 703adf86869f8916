package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"assay"
	"assay/engine"
	"assay/examples"
	"assay/ingest"
)

// demoQuestions are answered by the sample corpus.
var demoQuestions = []string{
	"how do I rotate the signing key?",
	"How long does a refund on a monthly plan take?",
	"what happens to an event after the last failed attempt?",
}

func newDemo(e *env) *cobra.Command {
	var noServe bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Ingest the sample corpus, answer three questions, then serve",
		Long: `Ingest the sample corpus (the documentation of an invented product, Ferrywire) into a directory of
its own, answer three questions with the built-in models, print each answer with its citations and
its manifest, and then serve the corpus on 127.0.0.1:8080 until interrupted.
No network, key or configuration file is needed; assay.yaml is not read, unless --config names it.`,
		Example: `  assay demo
  assay demo --no-serve
  assay demo --data ./demo-data --listen 127.0.0.1:9000`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if e.configPath == "" {
				e.configPath = os.DevNull // the built-in models, whatever the working directory holds
			}
			cfg, _, err := e.config(changed(c, map[string]string{"listen": "server.listen"})...)
			if err != nil {
				return err
			}
			if !c.Flags().Changed("data") {
				dir, err := os.MkdirTemp("", "assay-demo-*")
				if err != nil {
					return fmt.Errorf("demo: %w", err)
				}
				defer os.RemoveAll(dir)
				e.dataDir = filepath.Join(dir, "data")
			}
			return e.demo(c.Context(), cfg, !noServe)
		},
	}
	c.Flags().BoolVar(&noServe, "no-serve", false, "end after the three questions")
	c.Flags().String("listen", "", "address and port (default: server.listen)")
	return c
}

func (e *env) demo(ctx context.Context, cfg Config, serve bool) error {
	var listener net.Listener
	if serve { // first, so that a port in use is not found out at the end
		var err error
		if listener, err = listen(cfg.Server); err != nil {
			return err
		}
		defer listener.Close()
	}
	a, err := e.open(ctx, cfg, e.logger(slog.LevelWarn), openWrite)
	if err != nil {
		return err
	}
	defer a.close()
	fmt.Fprintln(e.stdout, "Ingesting the sample corpus: the documentation of Ferrywire, an invented product.")
	summary, err := a.engine.Ingest(ctx, []ingest.Root{ingest.FSRoot("ferrywire", examples.Ferrywire())}, engine.IngestOptions{})
	if err != nil {
		return err
	}
	printSummary(e.stdout, summary, nil)
	for i, question := range demoQuestions {
		fmt.Fprintf(e.stdout, "\n%s\nQuestion %d: %s\n\n", rule(), i+1, question)
		answer, err := a.engine.Answer(ctx, assay.Query{Text: question}, nil)
		if err != nil {
			return askError(err, answer)
		}
		printAnswer(e.stdout, answer)
		printManifest(e.stdout, answer.Manifest)
	}
	fmt.Fprintf(e.stdout, "\n%s\n", rule())
	if !serve {
		fmt.Fprintln(e.stdout, "Next: assay ingest YOUR-DOCS, then assay ask \"...\". With --data DIR the demo's corpus is kept.")
		return nil
	}
	fmt.Fprintf(e.stdout, "Try it:\n  curl -s http://%[1]s/v1/answer -H 'Content-Type: application/json' \\\n       -d '{\"question\": \"%[2]s\"}'\nor open http://%[1]s in a browser. End with Ctrl-C.\n",
		listener.Addr(), demoQuestions[0])
	return e.serve(ctx, a, listener)
}
