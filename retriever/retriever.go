// Package retriever finds candidates for a question: a dense and a lexical channel, searched side by
// side under one deadline, and fused into one ranking.
package retriever

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"assay"
	"assay/index"
)

// Embedder turns the question into a vector.
type Embedder interface {
	Model() assay.Model
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// Observer is told when a stage begins and, through the function that it returns, how it ended. The
// engine records spans and progress with it.
type Observer func(ctx context.Context, name assay.StageName) (context.Context, func(assay.Stage))

// FailurePolicy is what to do when one of the two channels fails.
type FailurePolicy string

// The failure policies. When both channels fail there is no answer under either.
const (
	Degrade FailurePolicy = "degrade" // go on with the other channel, and say so
	Fail    FailurePolicy = "fail"    // refuse the request
)

// Fusion is how the two channels' rankings become one.
type Fusion string

// The ways of fusion.
const (
	RRF    Fusion = "rrf"    // weighted reciprocal rank fusion
	Convex Fusion = "convex" // weighted sum of normalised scores
)

// Options configure a Retriever. The zero value of a field means its default.
type Options struct {
	Depth         int           // candidates per channel and after fusion; default 50, where recall has flattened on the public collections
	Fusion        Fusion        // default Convex, which ranks better on the public collections (docs/retrieval.md)
	RRFK          int           // the k of reciprocal rank fusion; default 60, as published
	DenseWeight   float64       // default 1
	LexicalWeight float64       // default 2: the built-in embedding model is weaker than BM25
	Timeout       time.Duration // for embedding the question and searching both channels; default 2 s
	OnFailure     FailurePolicy // default Degrade
}

// MaxDepth bounds the candidates that a request can ask for.
const MaxDepth = 1000

// WithDefaults fills in what is not set.
func (o Options) WithDefaults() Options {
	if o.Depth == 0 {
		o.Depth = 50
	}
	if o.Fusion == "" {
		o.Fusion = Convex
	}
	if o.RRFK == 0 {
		o.RRFK = 60
	}
	if o.DenseWeight == 0 && o.LexicalWeight == 0 {
		o.DenseWeight, o.LexicalWeight = 1, 2
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Second
	}
	if o.OnFailure == "" {
		o.OnFailure = Degrade
	}
	return o
}

// Validate reports every setting that cannot be used.
func (o Options) Validate() error {
	o = o.WithDefaults()
	var errs []error
	if o.Depth < 1 || o.Depth > MaxDepth {
		errs = append(errs, fmt.Errorf("retriever.depth is %d; it must be between 1 and %d", o.Depth, MaxDepth))
	}
	if o.Fusion != RRF && o.Fusion != Convex {
		errs = append(errs, fmt.Errorf("retriever.fusion is %q; it must be %q or %q", o.Fusion, RRF, Convex))
	}
	if o.RRFK < 1 {
		errs = append(errs, fmt.Errorf("retriever.rrf_k is %d; it must be at least 1", o.RRFK))
	}
	if o.DenseWeight < 0 || o.LexicalWeight < 0 {
		errs = append(errs, fmt.Errorf("retriever weights are %g and %g; they must not be negative", o.DenseWeight, o.LexicalWeight))
	}
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("retriever.timeout is %s; it must not be negative", o.Timeout))
	}
	if o.OnFailure != Degrade && o.OnFailure != Fail {
		errs = append(errs, fmt.Errorf("retriever.on_failure is %q; it must be %q or %q", o.OnFailure, Degrade, Fail))
	}
	return errors.Join(errs...)
}

// Retriever searches an index. It is safe for concurrent use.
type Retriever struct {
	lg       *slog.Logger
	embedder Embedder
	o        Options
}

// New returns a Retriever that embeds questions with embedder.
func New(lg *slog.Logger, embedder Embedder, o Options) (*Retriever, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Retriever{lg: lg, embedder: embedder, o: o.WithDefaults()}, nil
}

// Options returns the settings in force.
func (r *Retriever) Options() Options { return r.o }

// Result is what a retrieval found and what became of its stages.
type Result struct {
	Candidates []assay.Candidate // best first; Text is filled in
	Stages     []assay.Stage     // embed, dense, lexical, fuse
}

// Retrieve searches both channels of snap for q and fuses what they return. A channel that fails is
// recorded in its stage; the error is non-nil only when nothing could be searched, when the policy
// does not allow to go on, or when ctx is done.
func (r *Retriever) Retrieve(ctx context.Context, snap *index.Snapshot, q assay.Query, observe Observer) (Result, error) {
	depth := q.Depth
	if depth == 0 {
		depth = r.o.Depth
	}
	searchCtx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()

	var embedded, dense, lexical channel
	var g errgroup.Group
	if r.o.DenseWeight > 0 {
		g.Go(func() error {
			embedded, dense = r.searchDense(searchCtx, snap, q, depth, observe)
			return nil
		})
	} else {
		embedded = off(assay.StageEmbed, "the dense channel has weight 0")
		dense = off(assay.StageDense, "the dense channel has weight 0")
	}
	if r.o.LexicalWeight > 0 {
		g.Go(func() error {
			lexical = run(searchCtx, assay.StageLexical, observe, func(ctx context.Context) ([]index.Hit, error) {
				return snap.Lexical(ctx, q.Text, depth, q.Filter)
			})
			return nil
		})
	} else {
		lexical = off(assay.StageLexical, "the lexical channel has weight 0")
	}
	_ = g.Wait() // the functions record their errors in their channels

	err := ctx.Err()
	if err != nil {
		err = fmt.Errorf("retrieve: %w", err)
	} else {
		err = r.judge(&embedded, &dense, &lexical)
	}
	var stages []assay.Stage
	for _, c := range []channel{embedded, dense, lexical} {
		if c.end != nil {
			c.end(c.stage)
		}
		stages = append(stages, c.stage)
	}
	if err != nil {
		return Result{Stages: stages}, err
	}

	ctx, end := observe(ctx, assay.StageFuse)
	start := time.Now()
	list := fuse(dense.hits, lexical.hits, r.o)
	candidates, loadErr := load(ctx, snap, list[:min(depth, len(list))])
	stage := assay.Stage{Name: assay.StageFuse, Status: assay.StatusOf(loadErr), Duration: time.Since(start)}
	if loadErr != nil {
		stage.Reason = loadErr.Error()
	}
	end(stage)
	stages = append(stages, stage)
	if loadErr != nil {
		return Result{Stages: stages}, fmt.Errorf("retrieve: read candidates: %w", loadErr)
	}
	return Result{Candidates: candidates, Stages: stages}, nil
}

// channel is the outcome of one channel, or of embedding the question for it. end tells the observer;
// it is called only when it is known what was done instead.
type channel struct {
	hits  []index.Hit
	stage assay.Stage
	err   error
	end   func(assay.Stage)
}

func off(name assay.StageName, why string) channel {
	return channel{stage: assay.Stage{Name: name, Status: assay.StatusDisabled, Reason: why}}
}

// run times a search and turns its error into a stage.
func run(ctx context.Context, name assay.StageName, observe Observer, search func(context.Context) ([]index.Hit, error)) channel {
	ctx, end := observe(ctx, name)
	start := time.Now()
	hits, err := search(ctx)
	c := channel{hits: hits, err: err, end: end, stage: assay.Stage{Name: name, Status: assay.StatusOf(err), Duration: time.Since(start)}}
	if err != nil {
		c.hits = nil // a part of a ranking is not a ranking
		c.stage.Reason = err.Error()
	}
	return c
}

// searchDense embeds the question and searches for its neighbours; without a vector there is nothing
// for the dense channel to do.
func (r *Retriever) searchDense(ctx context.Context, snap *index.Snapshot, q assay.Query, depth int, observe Observer) (embedded, dense channel) {
	var vector []float32
	embedded = run(ctx, assay.StageEmbed, observe, func(ctx context.Context) (_ []index.Hit, err error) {
		vector, err = r.embedder.EmbedQuery(ctx, q.Text)
		return nil, err
	})
	if embedded.err != nil {
		return embedded, channel{
			err:   embedded.err,
			stage: assay.Stage{Name: assay.StageDense, Status: assay.StatusSkipped, Reason: "the question could not be embedded"},
		}
	}
	return embedded, run(ctx, assay.StageDense, observe, func(ctx context.Context) ([]index.Hit, error) {
		return snap.Dense(ctx, vector, depth, q.Filter)
	})
}

// judge applies the failure policy and writes into the failed stage what is done instead.
func (r *Retriever) judge(embedded, dense, lexical *channel) error {
	err := errors.Join(dense.err, lexical.err)
	if err == nil {
		return nil
	}
	denseWorks := dense.err == nil && r.o.DenseWeight > 0
	lexicalWorks := lexical.err == nil && r.o.LexicalWeight > 0
	if !denseWorks && !lexicalWorks {
		return fmt.Errorf("retrieve: no channel could be searched: %w", err)
	}
	if r.o.OnFailure == Fail {
		return fmt.Errorf("retrieve: %w (retriever.on_failure is %q): %w", assay.ErrDegraded, Fail, err)
	}
	failed, fallback := lexical, "dense channel alone"
	if dense.err != nil {
		failed, fallback = dense, "lexical channel alone"
		if embedded.err != nil {
			failed = embedded
		}
	}
	failed.stage.Fallback = fallback
	r.lg.Warn("retrieval is degraded", "stage", failed.stage.Name, "status", failed.stage.Status,
		"fallback", fallback, "error", err)
	return nil
}

// load reads the chunks behind the fused list.
func load(ctx context.Context, snap *index.Snapshot, list []fused) ([]assay.Candidate, error) {
	out := make([]assay.Candidate, len(list))
	for i, f := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		chunk, doc, err := snap.Chunk(f.row)
		if err != nil {
			return nil, err
		}
		out[i] = assay.Candidate{
			ChunkID: chunk.ID,
			DocID:   doc.ID,
			URI:     doc.URI,
			Title:   doc.Title,
			Heading: assay.HeadingPath(chunk.Headings),
			Version: doc.Version,
			Span:    chunk.Span,
			Tokens:  chunk.Tokens,
			Dense:   f.dense,
			Lexical: f.lexical,
			Fused:   &assay.Placing{Rank: i + 1, Score: f.score},
			Text:    chunk.Text,
		}
	}
	return out, nil
}
