package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"assay/engine"
	"assay/generate"
	"assay/index"
	"assay/rerank"
	"assay/retriever"
)

// The built-in models, by the names that stand in place of a URL.
const (
	builtinEmbedder    = "builtin"
	extractiveAnswerer = "extractive"
)

// defaultConfig returns every setting's default, in so many words, so that `assay config show` prints
// what is in force and not what is left out.
func defaultConfig() Config {
	ix := index.Options{}.WithDefaults()
	re := retriever.Options{}.WithDefaults()
	rr := rerank.Options{}.WithDefaults()
	en := engine.Options{}.WithDefaults()
	return Config{
		Collection: ix.Collection,
		Ingest:     IngestConfig{Include: []string{}, Exclude: []string{}, MaxFileSize: 200 << 20},
		Chunker:    ChunkerConfig{Size: 256, Overlap: 32, Strategy: "structure", Encoding: "o200k_base"},
		Embed: EmbedConfig{
			URL: builtinEmbedder, BatchSize: 64, BatchTokens: 32768, MaxInputTokens: 8191,
			Concurrency: 4, MaxAttempts: 4, Timeout: Duration(30 * time.Second),
		},
		Index: IndexConfig{
			Analyzer: ix.Analyzer, K1: ix.K1, B: ix.B,
			TitleWeight: ix.TitleWeight, HeadingWeight: ix.HeadingWeight, BodyWeight: ix.BodyWeight,
			MaxQueryTerms: ix.MaxQueryTerms, LockTimeout: Duration(ix.LockTimeout),
			ManifestAge: Duration(ix.ManifestAge), ManifestCount: ix.ManifestCount,
		},
		Dense: DenseConfig{Engine: string(ix.Engine)},
		Retriever: RetrieverConfig{
			Depth: re.Depth, Fusion: string(re.Fusion), RRFK: re.RRFK, DenseWeight: re.DenseWeight, LexicalWeight: re.LexicalWeight,
			Timeout: Duration(re.Timeout), OnFailure: string(re.OnFailure),
			Rewrite: string(en.Rewrite), RewriteTimeout: Duration(en.RewriteTimeout),
		},
		Rerank: RerankConfig{
			Dialect: string(rr.Dialect), Timeout: Duration(rr.Timeout), Keep: en.Keep, Policy: string(rr.Policy),
			BatchSize: rr.BatchSize, Concurrency: rr.Concurrency, MaxConcurrent: rr.MaxConcurrent, MaxAttempts: rr.MaxAttempts,
			BreakerFailures: rr.BreakerFailures, BreakerCooldown: Duration(rr.BreakerCooldown),
		},
		Assemble: AssembleConfig{Budget: en.Assemble.Budget, Order: string(en.Assemble.Order), NearDuplicates: en.Assemble.NearDuplicates},
		Generate: GenerateConfig{
			URL: extractiveAnswerer, MaxTokens: 1024, Timeout: Duration(time.Minute),
			FirstTokenTimeout: Duration(20 * time.Second), MaxAttempts: 3, MinSupport: generate.DefaultMinSupport,
		},
		Server: ServerConfig{
			Listen: "127.0.0.1:8080", RequestTimeout: Duration(en.RequestTimeout), ShutdownTimeout: Duration(30 * time.Second),
			MaxBody: 1 << 20, MaxQuestion: Size(en.MaxQuestion), MaxConcurrent: 64,
			Access: []string{},
		},
	}
}

// Validate reports every setting that cannot be used as far as that can be told without opening
// anything; the packages check the rest when they are made.
func (c Config) Validate() error {
	var errs []error
	errs = append(errs, checkListen(c.Server))
	if c.Embed.URL == "" {
		errs = append(errs, fmt.Errorf("embed.url is empty; set it to %q or to the URL of an OpenAI-compatible endpoint", builtinEmbedder))
	}
	if c.Embed.URL != builtinEmbedder && c.Embed.Model == "" {
		errs = append(errs, errors.New("embed.model is not set; an endpoint needs the name of the model"))
	}
	if c.Generate.URL == "" {
		errs = append(errs, fmt.Errorf("generate.url is empty; set it to %q or to the URL of an OpenAI-compatible endpoint", extractiveAnswerer))
	}
	if c.Generate.URL != extractiveAnswerer && c.Generate.Model == "" {
		errs = append(errs, errors.New("generate.model is not set; an endpoint needs the name of the model"))
	}
	if c.Generate.Template != "" {
		if _, err := os.Stat(c.Generate.Template); err != nil {
			errs = append(errs, fmt.Errorf("generate.template: %w", err))
		}
	}
	errs = append(errs, c.checkDeadlines())
	for _, n := range []struct {
		key   string
		value int64
	}{
		{"chunker.size", int64(c.Chunker.Size)}, {"retriever.depth", int64(c.Retriever.Depth)}, {"retriever.rrf_k", int64(c.Retriever.RRFK)},
		{"rerank.keep", int64(c.Rerank.Keep)}, {"assemble.budget", int64(c.Assemble.Budget)}, {"server.max_concurrent", int64(c.Server.MaxConcurrent)},
		{"server.max_body", int64(c.Server.MaxBody)}, {"server.max_question", int64(c.Server.MaxQuestion)},
		{"embed.batch_size", int64(c.Embed.BatchSize)}, {"embed.concurrency", int64(c.Embed.Concurrency)}, {"embed.max_attempts", int64(c.Embed.MaxAttempts)},
		{"generate.max_tokens", int64(c.Generate.MaxTokens)}, {"generate.max_attempts", int64(c.Generate.MaxAttempts)},
		{"index.max_query_terms", int64(c.Index.MaxQueryTerms)}, {"index.manifest_count", int64(c.Index.ManifestCount)}, {"index.manifest_age", int64(c.Index.ManifestAge)},
		{"ingest.max_file_size", int64(c.Ingest.MaxFileSize)},
	} {
		if n.value < 1 {
			errs = append(errs, fmt.Errorf("%s is %d; it must be at least 1", n.key, n.value))
		}
	}
	if c.Ingest.Workers < 0 {
		errs = append(errs, fmt.Errorf("ingest.workers is %d; it must be 0 (one per core) or more", c.Ingest.Workers))
	}
	if c.Retriever.DenseWeight == 0 && c.Retriever.LexicalWeight == 0 {
		errs = append(errs, errors.New("retriever.dense_weight and retriever.lexical_weight are both 0, so nothing would be searched"))
	}
	if c.Generate.InputPrice < 0 || c.Generate.OutputPrice < 0 {
		errs = append(errs, errors.New("generate.input_price and generate.output_price must not be negative"))
	}
	return errors.Join(errs...)
}

// checkDeadlines makes sure that the request's deadline holds those of its stages: a stage's
// fallback is only reached if there is time left for it.
func (c Config) checkDeadlines() error {
	stages := c.Retriever.Timeout.std()
	named := fmt.Sprintf("retriever.timeout %s", c.Retriever.Timeout)
	if c.Rerank.URL != "" {
		stages += c.Rerank.Timeout.std()
		named += fmt.Sprintf(" + rerank.timeout %s", c.Rerank.Timeout)
	}
	if c.rewritesByModel() {
		stages += c.Retriever.RewriteTimeout.std()
		named += fmt.Sprintf(" + retriever.rewrite_timeout %s", c.Retriever.RewriteTimeout)
	}
	if c.Generate.URL != extractiveAnswerer {
		stages += c.Generate.Timeout.std()
		named += fmt.Sprintf(" + generate.timeout %s", c.Generate.Timeout)
	}
	for _, d := range []struct {
		key     string
		timeout Duration
	}{
		{"retriever.timeout", c.Retriever.Timeout}, {"retriever.rewrite_timeout", c.Retriever.RewriteTimeout}, {"rerank.timeout", c.Rerank.Timeout},
		{"generate.timeout", c.Generate.Timeout}, {"server.request_timeout", c.Server.RequestTimeout},
	} {
		if d.timeout <= 0 {
			return fmt.Errorf("%s is %s; it must be longer than nothing", d.key, d.timeout)
		}
	}
	if c.Server.RequestTimeout.std() <= stages {
		return fmt.Errorf("server.request_timeout (%s) cannot hold its stages: %s = %s; raise it, or lower one of them",
			c.Server.RequestTimeout, named, stages)
	}
	return nil
}

// rewritesByModel reports whether the chat model is asked to rewrite conversations.
func (c Config) rewritesByModel() bool {
	return c.Generate.URL != extractiveAnswerer && c.Retriever.Rewrite == string(engine.RewriteAuto)
}

func (d Duration) std() time.Duration { return time.Duration(d) }
