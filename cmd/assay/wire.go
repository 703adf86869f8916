package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/viterin/vek/vek32"

	"assay"
	"assay/assemble"
	"assay/chunker"
	"assay/embed"
	"assay/embed/builtin"
	"assay/engine"
	"assay/generate"
	"assay/index"
	"assay/rerank"
	"assay/retriever"
	"assay/traces"
)

// openMode says what a command wants of the data directory.
type openMode int

const (
	openStore   openMode = iota // manifests and documents only
	openRead                    // questions too; there must be a corpus
	openWrite                   // the corpus is created when there is none
	openRebuild                 // the corpus is emptied first
	openReindex                 // the corpus is there, and may have been made with other settings
)

// app is everything that a command works with.
type app struct {
	cfg   Config
	lg    *slog.Logger
	index *index.Index
	// What follows is nil with openStore; with openReindex, all but the models are.
	engine *engine.Engine
	traces *traces.Provider
	models models

	closers []func() error
}

// close ends everything in the opposite order of its start.
func (a *app) close() {
	for i := len(a.closers) - 1; i >= 0; i-- {
		if err := a.closers[i](); err != nil {
			a.lg.Error("close", "error", err)
		}
	}
}

// open wires the configured models to the data directory.
func (e *env) open(ctx context.Context, cfg Config, lg *slog.Logger, mode openMode) (_ *app, err error) {
	a := &app{cfg: cfg, lg: lg}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if mode == openStore || mode == openRead || mode == openReindex {
		if _, err := os.Stat(e.dataDir); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no corpus in %s: run `assay ingest PATH` first, or name its directory with --data", e.dataDir)
		}
	}
	if err := a.openIndex(e.dataDir, mode); err != nil {
		return nil, err
	}
	if mode == openStore {
		return a, nil
	}
	if mode == openRebuild {
		if err := a.index.Reset(ctx); err != nil {
			return nil, err
		}
	}
	if mode == openReindex {
		return a, a.openModels(e.getenv)
	}
	return a, a.openEngine(ctx, e.getenv)
}

func (a *app) openIndex(dir string, mode openMode) error {
	o := a.cfg.indexOptions()
	o.AllowMismatch = mode == openStore || mode == openRebuild || mode == openReindex
	if err := o.Validate(); err != nil {
		return &usageError{err}
	}
	ix, err := index.Open(a.lg, dir, o)
	if err != nil {
		return err
	}
	a.index = ix
	a.closers = append(a.closers, ix.Close)
	return nil
}

func (cfg Config) indexOptions() index.Options {
	c := cfg.Index
	return index.Options{
		Collection: cfg.Collection, Analyzer: c.Analyzer,
		K1: c.K1, B: orOff(c.B), TitleWeight: orOff(c.TitleWeight), HeadingWeight: orOff(c.HeadingWeight), BodyWeight: orOff(c.BodyWeight),
		Engine: cfg.Dense.Engine, MaxQueryTerms: c.MaxQueryTerms, LockTimeout: c.LockTimeout.std(),
		ManifestAge: c.ManifestAge.std(), ManifestCount: c.ManifestCount,
	}
}

// orOff turns a configured zero into the negative value with which package index switches something
// off, since its zero means the default.
func orOff(v float64) float64 {
	if v == 0 {
		return -1
	}
	return v
}

func (a *app) openEngine(ctx context.Context, getenv func(string) string) error {
	cfg := a.cfg
	tracing, err := traces.Setup(ctx, a.lg, traces.Options{
		Getenv:         getenv,
		ServiceVersion: version(),
		File:           cfg.Traces.File,
		CaptureContent: strings.EqualFold(getenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"), "true"),
	})
	if err != nil {
		return err
	}
	a.traces = tracing
	a.closers = append(a.closers, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return tracing.Shutdown(ctx)
	})
	if err := a.openModels(getenv); err != nil {
		return err
	}
	return a.compose()
}

// models are what documents and questions go through: everything between the index and the engine.
type models struct {
	chunker   *chunker.Chunker
	embedder  embed.Embedder // without the cache
	retriever *retriever.Retriever
	reranker  *rerank.Client
	generator engine.Generator
	verifier  *generate.Verifier // nil: citations are not checked
	relevance func(question string, p generate.Passage) float64
	rewriter  engine.Rewriter // nil: by rule
}

// openModels makes the configured models.
func (a *app) openModels(getenv func(string) string) (err error) {
	cfg, m := a.cfg, &a.models
	if m.chunker, err = chunker.New(chunker.Options{
		Size: cfg.Chunker.Size, Overlap: orOffInt(cfg.Chunker.Overlap),
		Strategy: chunker.Strategy(cfg.Chunker.Strategy), Encoding: cfg.Chunker.Encoding,
	}); err != nil {
		return &usageError{err}
	}
	tokens := m.chunker.Tokenizer()
	if m.embedder, err = a.newEmbedder(tokens, getenv); err != nil {
		return err
	}
	if m.retriever, err = retriever.New(a.lg, m.embedder, retriever.Options{
		Depth: cfg.Retriever.Depth, Fusion: retriever.Fusion(cfg.Retriever.Fusion), RRFK: cfg.Retriever.RRFK,
		DenseWeight: cfg.Retriever.DenseWeight, LexicalWeight: cfg.Retriever.LexicalWeight,
		Timeout: cfg.Retriever.Timeout.std(), OnFailure: retriever.FailurePolicy(cfg.Retriever.OnFailure),
	}); err != nil {
		return &usageError{err}
	}
	if m.reranker, err = rerank.New(a.lg, rerankOptions(cfg.Rerank, tokens, getenv)); err != nil {
		return &usageError{err}
	}
	a.closers = append(a.closers, func() error { m.reranker.Close(); return nil })
	if err := m.openSupport(cfg.Generate.MinSupport); err != nil {
		return err
	}
	m.generator, err = a.newGenerator(tokens, getenv)
	if rewriter, ok := m.generator.(engine.Rewriter); ok && cfg.rewritesByModel() {
		m.rewriter = rewriter
	}
	return err
}

// deps are the stages over the index.
func (a *app) deps() engine.Deps {
	return engine.Deps{
		Index: a.index, Chunker: a.models.chunker, Embedder: embed.NewCached(a.models.embedder, a.index),
		Retriever: a.models.retriever, Reranker: a.models.reranker, Generator: a.models.generator,
		Rewriter: a.models.rewriter, Verifier: a.models.verifier, Relevance: a.models.relevance, Traces: a.traces,
	}
}

// compose makes the engine of the models and the index, which must have been written with them.
func (a *app) compose() (err error) {
	cfg := a.cfg
	a.engine, err = engine.New(a.lg, a.deps(), engine.Options{
		Collection: cfg.Collection, Keep: cfg.Rerank.Keep, MaxQuestion: int(cfg.Server.MaxQuestion),
		RequestTimeout: cfg.Server.RequestTimeout.std(),
		Rewrite:        engine.RewriteMode(cfg.Retriever.Rewrite), RewriteTimeout: cfg.Retriever.RewriteTimeout.std(),
		Access:     cfg.Server.Access,
		Assemble:   assembleOptions(cfg.Assemble),
		InputPrice: cfg.Generate.InputPrice, OutputPrice: cfg.Generate.OutputPrice,
		Providers: cfg.providers(),
		Settings:  cfg.answerSettings(a.models.embedder.Model(), a.models.generator.TemplateHash()),
	})
	return err
}

// orOffInt is orOff for whole numbers.
func orOffInt(v int) int {
	if v == 0 {
		return -1
	}
	return v
}

// assembleOptions are the options of the context.
func assembleOptions(c AssembleConfig) assemble.Options {
	return assemble.Options{
		Budget: c.Budget, Order: assemble.Order(c.Order), KeepSuperseded: c.KeepSuperseded, NearDuplicates: orOff(c.NearDuplicates),
		MinRelevance: c.MinRelevance,
	}
}

// rerankOptions are the options of the configured reranker.
func rerankOptions(c RerankConfig, tokens *chunker.Tokenizer, getenv func(string) string) rerank.Options {
	return rerank.Options{
		URL: c.URL, Dialect: rerank.Dialect(c.Dialect), Model: c.Model, APIKey: getenv(secrets["rerank.api_key"]),
		Timeout: c.Timeout.std(), BatchSize: c.BatchSize, MaxTokens: c.MaxTokens, Truncate: tokens.Truncate,
		Concurrency: c.Concurrency, MaxConcurrent: c.MaxConcurrent, MaxAttempts: c.MaxAttempts,
		BreakerFailures: orOffInt(c.BreakerFailures), BreakerCooldown: c.BreakerCooldown.std(),
		Policy: assay.FallbackPolicy(c.Policy), FallbackKeep: c.FallbackKeep,
	}
}

// newEmbedder makes the configured embedding model.
func (a *app) newEmbedder(tokens *chunker.Tokenizer, getenv func(string) string) (embed.Embedder, error) {
	c := a.cfg.Embed
	if c.URL == builtinEmbedder {
		return embed.NewBuiltin()
	}
	dimensions := c.Dimensions
	if stored := a.index.Stats().Embedder; dimensions == 0 && stored.Name == c.Model {
		dimensions = stored.Dimensions // what the endpoint's first answer had, when the corpus was made
	}
	endpoint, err := embed.NewEndpoint(a.lg, embed.EndpointOptions{
		BaseURL: c.URL, APIKey: getenv(secrets["embed.api_key"]), Model: c.Model, Dimensions: dimensions, SendDimensions: c.SendDimensions,
		QueryPrefix: c.QueryPrefix, DocumentPrefix: c.DocumentPrefix,
		BatchSize: c.BatchSize, BatchTokens: c.BatchTokens, MaxInputTokens: c.MaxInputTokens,
		Count: tokens.Count, Truncate: tokens.Truncate,
		Timeout: c.Timeout.std(), Concurrency: c.Concurrency, MaxAttempts: c.MaxAttempts,
	})
	if err != nil {
		return nil, &usageError{err}
	}
	return endpoint, nil
}

// newGenerator makes the configured generator.
func (a *app) newGenerator(tokens *chunker.Tokenizer, getenv func(string) string) (engine.Generator, error) {
	c := a.cfg.Generate
	if c.URL == extractiveAnswerer {
		model, err := builtin.Load()
		if err != nil {
			return nil, err
		}
		return generate.NewExtractive(a.lg, generate.ExtractiveOptions{Count: tokens.Count, Similarity: similarity(model)}), nil
	}
	endpoint, err := generate.NewEndpoint(a.lg, generate.EndpointOptions{
		URL: c.URL, Model: c.Model, APIKey: getenv(secrets["generate.api_key"]), Template: c.Template,
		MaxTokens: c.MaxTokens, Temperature: c.Temperature,
		Timeout: c.Timeout.std(), FirstTokenTimeout: c.FirstTokenTimeout.std(), MaxAttempts: c.MaxAttempts,
		Count: tokens.Count,
	})
	if err != nil {
		return nil, &usageError{err}
	}
	return endpoint, nil
}

// openSupport makes what checks citations, unless minSupport is 0, and what tells relevance: one scorer.
func (m *models) openSupport(minSupport float64) error {
	model, err := builtin.Load()
	if err != nil {
		return err
	}
	scorer, err := generate.NewVerifier(generate.SupportOptions{Similarity: similarity(model), MinSupport: minSupport})
	if err != nil {
		return &usageError{err}
	}
	m.relevance = func(question string, p generate.Passage) float64 { return scorer.Support(question, p) }
	if minSupport > 0 {
		m.verifier = scorer
	}
	return nil
}

// similarity is the cosine of two texts under the built-in model, which is there whatever model
// embeds the corpus.
func similarity(model *builtin.Model) func(a, b string) float64 {
	return func(a, b string) float64 {
		x, y := make([]float32, model.Dimensions()), make([]float32, model.Dimensions())
		if !model.Embed(x, a) || !model.Embed(y, b) {
			return 0
		}
		return max(0, float64(vek32.Dot(x, y)))
	}
}

// providers name the APIs behind the models, in the terms of OpenTelemetry's conventions.
func (c Config) providers() engine.Providers {
	p := engine.Providers{Embedder: "openai", Reranker: c.Rerank.Dialect, Generator: "openai"}
	if c.Embed.URL == builtinEmbedder {
		p.Embedder = traces.ProviderBuiltin
	}
	if c.Generate.URL == extractiveAnswerer {
		p.Generator = traces.ProviderBuiltin
	}
	return p
}

// answerSettings are the settings that can change an answer: what goes into the fingerprint. Where
// something listens, how long it may take and how often it is tried do not.
func (c Config) answerSettings(embedder assay.Model, templateHash string) any {
	return map[string]any{
		"chunker":   c.Chunker,
		"embedder":  embedder,
		"prefixes":  []string{c.Embed.QueryPrefix, c.Embed.DocumentPrefix},
		"lexical":   []any{c.Index.Analyzer, c.Index.K1, c.Index.B, c.Index.TitleWeight, c.Index.HeadingWeight, c.Index.BodyWeight, c.Index.MaxQueryTerms},
		"dense":     c.Dense,
		"retriever": []any{c.Retriever.Depth, c.Retriever.Fusion, c.Retriever.RRFK, c.Retriever.DenseWeight, c.Retriever.LexicalWeight, c.Retriever.Rewrite},
		"rerank":    []any{c.Rerank.URL != "", c.Rerank.Model, c.Rerank.MaxTokens, c.Rerank.Keep, c.Rerank.Policy, c.Rerank.FallbackKeep},
		"access":    c.Server.Access,
		"assemble":  c.Assemble,
		"generate":  []any{c.Generate.URL == extractiveAnswerer, c.Generate.Model, templateHash, c.Generate.MaxTokens, c.Generate.Temperature},
	}
}
