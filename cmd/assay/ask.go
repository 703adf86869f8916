package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"assay"
)

// queryFlags are the flags of the commands that ask something.
type queryFlags struct {
	keep, depth int
	filter      string
	superseded  bool
	duplicates  bool
}

func (f *queryFlags) add(c *cobra.Command, keep string) {
	c.Flags().IntVarP(&f.keep, "keep", "k", 0, keep)
	c.Flags().IntVar(&f.depth, "depth", 0, "candidates to retrieve (default: retriever.depth)")
	c.Flags().BoolVar(&f.superseded, "superseded", false, "also documents that a newer version replaces")
	c.Flags().StringVar(&f.filter, "filter", "", `only documents that pass, as JSON: {"lang": ["en", "de"]}`)
}

// query makes a query of the command's argument; "-" reads it from standard input.
func (f *queryFlags) query(e *env, args []string) (assay.Query, error) {
	q := assay.Query{Text: strings.Join(args, " "), Keep: f.keep, Depth: f.depth, Superseded: f.superseded, Duplicates: f.duplicates}
	if q.Text == "-" {
		data, err := io.ReadAll(io.LimitReader(e.stdin, maxStdinQuestion))
		if err != nil {
			return q, fmt.Errorf("read the question from standard input: %w", err)
		}
		q.Text = string(data)
	}
	if f.filter != "" {
		if err := json.Unmarshal([]byte(f.filter), &q.Filter); err != nil {
			return q, &usageError{fmt.Errorf("--filter: %w", err)}
		}
	}
	return q, nil
}

// maxStdinQuestion is far over any limit on questions, so that the engine's own error is seen.
const maxStdinQuestion = 4 << 20

func newAsk(e *env) *cobra.Command {
	var f queryFlags
	var showManifest, showContext bool
	c := &cobra.Command{
		Use:   "ask QUESTION",
		Short: "Answer one question, with citations",
		Example: `  assay ask "how long does a refund take?"
  assay ask --show-context --manifest "how do I rotate a key?"
  assay ask --filter '{"lang": "de"}' "Wie lange dauert eine Erstattung?"
  echo "how do I rotate a key?" | assay ask --json -`,
		Args: atLeastOne("give the question, or - to read it from standard input"),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, _, err := e.config()
			if err != nil {
				return err
			}
			q, err := f.query(e, args)
			if err != nil {
				return err
			}
			return e.do(c.Context(), cfg, slog.LevelError, &askJob{q, showManifest, showContext})
		},
	}
	f.add(c, "passages to send to the generator (default: rerank.keep)")
	c.Flags().BoolVar(&f.duplicates, "duplicates", false, "also passages that say what a better one says")
	c.Flags().BoolVar(&showManifest, "manifest", false, "print the whole manifest as a table")
	c.Flags().BoolVar(&showContext, "show-context", false, "print the passages that were sent to the generator")
	e.addJSON(c)
	return c
}

// askJob answers a question.
type askJob struct {
	Query                     assay.Query
	ShowManifest, ShowContext bool
}

func (*askJob) name() string   { return "ask" }
func (*askJob) mode() openMode { return openRead }
func (*askJob) queries()       {}

func (j *askJob) run(ctx context.Context, e *env, a *app) error {
	answer, passages, err := a.engine.AnswerWithContext(ctx, j.Query, nil)
	if err != nil {
		return askError(err, answer)
	}
	if e.jsonOut {
		return writeJSON(e.stdout, askJSON(answer, passages, j.ShowContext))
	}
	printAnswer(e.stdout, answer)
	if len(answer.Manifest.Candidates) == 0 {
		fmt.Fprintln(e.stdout, nothingFound(answer.Manifest.Corpus, j.Query.Filter))
	}
	if j.ShowContext {
		printContext(e.stdout, answer.Manifest, passages)
	}
	if j.ShowManifest {
		printManifest(e.stdout, answer.Manifest)
	} else {
		fmt.Fprintf(e.stdout, "\n%s\n", manifestLine(answer.Manifest))
	}
	return nil
}

// askError adds where to look, and makes mistakes in the question usage errors.
func askError(err error, answer *assay.Answer) error {
	if answer != nil && answer.Manifest != nil {
		err = fmt.Errorf("%w (manifest %s)", err, answer.Manifest.ID)
	}
	if errors.Is(err, assay.ErrInvalid) || errors.Is(err, assay.ErrFilter) {
		return &usageError{err}
	}
	return err
}

// sentPassage is one passage of the context in JSON output.
type sentPassage struct {
	Marker  string `json:"marker"`
	ChunkID string `json:"chunk_id"`
	DocID   string `json:"doc_id"`
	Text    string `json:"text"`
}

// askJSON is the JSON form of an answer: that of POST /v1/answer, and the context when asked for.
func askJSON(answer *assay.Answer, passages []assay.Candidate, withContext bool) any {
	out := struct {
		*assay.Answer
		Context []sentPassage `json:"context,omitempty"`
	}{Answer: answer}
	if withContext {
		for i, p := range passages {
			out.Context = append(out.Context, sentPassage{answer.Manifest.Context.Passages[i].Marker, p.ChunkID, p.DocID, p.Text})
		}
	}
	return out
}

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}
