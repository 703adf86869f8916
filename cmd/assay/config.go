package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v3"
)

// Config is the configuration file: one section a package. Every setting has a default; the zero
// values below are never in force. Secrets come from the environment alone (see secrets).
type Config struct {
	Collection string          `yaml:"collection"`
	Ingest     IngestConfig    `yaml:"ingest"`
	Chunker    ChunkerConfig   `yaml:"chunker"`
	Embed      EmbedConfig     `yaml:"embed"`
	Index      IndexConfig     `yaml:"index"`
	Dense      DenseConfig     `yaml:"dense"`
	Retriever  RetrieverConfig `yaml:"retriever"`
	Rerank     RerankConfig    `yaml:"rerank"`
	Assemble   AssembleConfig  `yaml:"assemble"`
	Generate   GenerateConfig  `yaml:"generate"`
	Server     ServerConfig    `yaml:"server"`
	Traces     TracesConfig    `yaml:"traces"`
}

// IngestConfig says what is read.
type IngestConfig struct {
	Include     []string `yaml:"include"`
	Exclude     []string `yaml:"exclude"`
	MaxFileSize Size     `yaml:"max_file_size"`
	Workers     int      `yaml:"workers"` // 0: one per core
}

// ChunkerConfig says how documents are split.
type ChunkerConfig struct {
	Size     int    `yaml:"size"`
	Overlap  int    `yaml:"overlap"`
	Strategy string `yaml:"strategy"`
	Encoding string `yaml:"encoding"`
}

// EmbedConfig names the embedding model: "builtin", or the URL of an OpenAI-compatible endpoint.
type EmbedConfig struct {
	URL            string   `yaml:"url"`
	Model          string   `yaml:"model"`
	Dimensions     int      `yaml:"dimensions"`
	SendDimensions bool     `yaml:"send_dimensions"`
	QueryPrefix    string   `yaml:"query_prefix"`
	DocumentPrefix string   `yaml:"document_prefix"`
	BatchSize      int      `yaml:"batch_size"`
	BatchTokens    int      `yaml:"batch_tokens"`
	MaxInputTokens int      `yaml:"max_input_tokens"`
	Concurrency    int      `yaml:"concurrency"`
	MaxAttempts    int      `yaml:"max_attempts"`
	Timeout        Duration `yaml:"timeout"`
}

// IndexConfig configures the BM25 index and what is kept.
type IndexConfig struct {
	Analyzer      string   `yaml:"analyzer"`
	K1            float64  `yaml:"k1"`
	B             float64  `yaml:"b"`
	TitleWeight   float64  `yaml:"title_weight"`
	HeadingWeight float64  `yaml:"heading_weight"`
	BodyWeight    float64  `yaml:"body_weight"`
	MaxQueryTerms int      `yaml:"max_query_terms"`
	LockTimeout   Duration `yaml:"lock_timeout"`
	ManifestAge   Duration `yaml:"manifest_age"`
	ManifestCount int      `yaml:"manifest_count"`
}

// DenseConfig chooses how the nearest vectors are found.
type DenseConfig struct {
	Engine string `yaml:"engine"` // hnsw, exact or coder
}

// RetrieverConfig configures the two channels and their fusion.
type RetrieverConfig struct {
	Depth          int      `yaml:"depth"`
	Fusion         string   `yaml:"fusion"`
	RRFK           int      `yaml:"rrf_k"`
	DenseWeight    float64  `yaml:"dense_weight"`
	LexicalWeight  float64  `yaml:"lexical_weight"`
	Timeout        Duration `yaml:"timeout"`
	OnFailure      string   `yaml:"on_failure"`
	Rewrite        string   `yaml:"rewrite"` // of conversations: auto, rule or never
	RewriteTimeout Duration `yaml:"rewrite_timeout"`
}

// RerankConfig configures the reranker and how many chunks are kept after it. An empty URL disables it.
type RerankConfig struct {
	URL             string   `yaml:"url"`
	Dialect         string   `yaml:"dialect"`
	Model           string   `yaml:"model"`
	Timeout         Duration `yaml:"timeout"`
	Keep            int      `yaml:"keep"`
	Policy          string   `yaml:"policy"` // when it does not rank: fused, widen or fail
	FallbackKeep    int      `yaml:"fallback_keep"`
	BatchSize       int      `yaml:"batch_size"`
	MaxTokens       int      `yaml:"max_tokens"` // of a text; 0: the server cuts
	Concurrency     int      `yaml:"concurrency"`
	MaxConcurrent   int      `yaml:"max_concurrent"`
	MaxAttempts     int      `yaml:"max_attempts"`
	BreakerFailures int      `yaml:"breaker_failures"` // 0: no circuit breaker
	BreakerCooldown Duration `yaml:"breaker_cooldown"`
}

// AssembleConfig configures the context.
type AssembleConfig struct {
	Budget         int     `yaml:"budget"`
	Order          string  `yaml:"order"`
	KeepSuperseded bool    `yaml:"keep_superseded"` // send also documents that a newer version replaces
	NearDuplicates float64 `yaml:"near_duplicates"` // 0: equal texts alone
	MinRelevance   float64 `yaml:"min_relevance"`   // of the best passage, or nothing is sent; 0: none
}

// GenerateConfig names the generator: "extractive", or the URL of an OpenAI-compatible endpoint.
type GenerateConfig struct {
	URL               string   `yaml:"url"`
	Model             string   `yaml:"model"`
	Template          string   `yaml:"template"`
	MaxTokens         int      `yaml:"max_tokens"`
	Temperature       float64  `yaml:"temperature"`
	Timeout           Duration `yaml:"timeout"`
	FirstTokenTimeout Duration `yaml:"first_token_timeout"`
	MaxAttempts       int      `yaml:"max_attempts"`
	InputPrice        float64  `yaml:"input_price"`  // per million tokens
	OutputPrice       float64  `yaml:"output_price"` // per million tokens
	MinSupport        float64  `yaml:"min_support"`  // of a cited sentence by its passage; 0: not checked
}

// ServerConfig configures the HTTP server.
type ServerConfig struct {
	Listen          string   `yaml:"listen"`
	RequestTimeout  Duration `yaml:"request_timeout"`
	ShutdownTimeout Duration `yaml:"shutdown_timeout"`
	MaxBody         Size     `yaml:"max_body"`
	MaxQuestion     Size     `yaml:"max_question"`
	MaxConcurrent   int      `yaml:"max_concurrent"`
	AllowRemote     bool     `yaml:"allow_remote"`
	Access          []string `yaml:"access"` // tags of all callers, for documents with an access list
}

// TracesConfig configures tracing beyond the standard OTEL_* variables.
type TracesConfig struct {
	File string `yaml:"file"` // spans are appended to it as lines of OTLP JSON; "" for none
}

// secrets maps the settings that are secret to the environment variables that hold them.
var secrets = map[string]string{
	"embed.api_key":    "ASSAY_EMBED_API_KEY",
	"rerank.api_key":   "ASSAY_RERANK_API_KEY",
	"generate.api_key": "ASSAY_GENERATE_API_KEY",
}

// secretFor returns the environment variable for a key that looks like a secret setting, or "".
func secretFor(key string) string {
	section, name, _ := strings.Cut(key, ".")
	switch strings.ReplaceAll(strings.ToLower(name), "-", "_") {
	case "api_key", "apikey", "key", "token", "secret", "password":
		return secrets[section+".api_key"]
	}
	return ""
}

// Duration is a time.Duration written as "300ms" or "2s".
type Duration time.Duration

// UnmarshalYAML reads the written form.
func (d *Duration) UnmarshalYAML(node *yaml.Node) error {
	v, err := time.ParseDuration(node.Value)
	if err != nil {
		return fmt.Errorf("line %d: %q is not a duration; write it like 300ms, 2s or 1m", node.Line, node.Value)
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML writes it as it is read.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

func (d Duration) String() string { return time.Duration(d).String() }

// Size is a number of bytes written as "200MiB" or "1048576".
type Size int64

// UnmarshalYAML reads the written form.
func (s *Size) UnmarshalYAML(node *yaml.Node) error {
	v, err := humanize.ParseBytes(node.Value)
	if err != nil || v > 1<<62 {
		return fmt.Errorf("line %d: %q is not a size; write it like 64KiB, 200MiB or 1048576", node.Line, node.Value)
	}
	*s = Size(v)
	return nil
}

// MarshalYAML writes it as it is read.
func (s Size) MarshalYAML() (any, error) { return s.String(), nil }

func (s Size) String() string {
	for _, unit := range []struct {
		bytes Size
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if s >= unit.bytes && s%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", s/unit.bytes, unit.name)
		}
	}
	return fmt.Sprint(int64(s))
}

// configFile is the file that is read when --config is not given and it exists.
const configFile = "assay.yaml"

// loadConfig reads the configuration: defaults, then the file, then --set and flags. It returns the
// name of the file that was read, or "". path is what --config says; "" looks for assay.yaml.
func loadConfig(path string, sets []string) (Config, string, error) {
	cfg := defaultConfig()
	explicit := path != ""
	if !explicit {
		path = configFile
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !explicit:
		path = ""
	case err != nil:
		return cfg, "", fmt.Errorf("read configuration: %w", err)
	default:
		if err := decodeStrict(path, data, &cfg); err != nil {
			return cfg, path, fmt.Errorf("configuration %w", err)
		}
		if cfg.Generate.Template != "" && !filepath.IsAbs(cfg.Generate.Template) {
			cfg.Generate.Template = filepath.Join(filepath.Dir(path), cfg.Generate.Template)
		}
	}
	for _, set := range sets {
		key, value, ok := strings.Cut(set, "=")
		if !ok {
			return cfg, path, fmt.Errorf("--set %s: write it as section.key=value, such as rerank.timeout=300ms", clip(set, 40))
		}
		if err := applySetting(&cfg, key, value); err != nil { // which names the key; the value may be a secret
			return cfg, path, fmt.Errorf("--set %w", err)
		}
	}
	return cfg, path, cfg.Validate()
}

// applySetting sets one key, as if it stood in the file.
func applySetting(cfg *Config, key, value string) error {
	var node yaml.Node
	err := yaml.Unmarshal([]byte(value), &node)
	// "query: " is a text here, though it would be a mapping in a file.
	if err != nil || len(node.Content) == 0 || node.Content[0].Kind == yaml.MappingNode {
		node = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: value, Style: yaml.DoubleQuotedStyle}}}
	}
	current := node.Content[0]
	parts := strings.Split(key, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		current = &yaml.Node{Kind: yaml.MappingNode, Line: 1, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Value: parts[i], Line: 1}, current,
		}}
	}
	data, err := yaml.Marshal(current)
	if err != nil {
		return err
	}
	return decodeStrict(key, data, cfg)
}
