// Package engine composes the stages: the read path from a question to an answer with its manifest,
// and the write path from sources to the index. The CLI, the server and the evaluation use it, so
// that all of them see the same pipeline.
package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"assay"
	"assay/assemble"
	"assay/chunker"
	"assay/embed"
	"assay/generate"
	"assay/index"
	"assay/rerank"
	"assay/retriever"
	"assay/traces"
)

// Generator writes an answer from passages. Both generators of package generate are one; the engine
// is where either is put.
type Generator interface {
	Model() string
	TemplateHash() string
	// Overhead is the number of prompt tokens without any passage.
	Overhead(question string, history []assay.Message) int
	// PassageTokens is what one passage takes in the prompt, with its delimiters.
	PassageTokens(p generate.Passage) int
	Generate(ctx context.Context, r generate.Request, onText func(delta string) error) (generate.Result, error)
}

// Deps are the stages that an Engine composes.
type Deps struct {
	Index     *index.Index
	Chunker   *chunker.Chunker
	Embedder  embed.Embedder
	Retriever *retriever.Retriever
	Reranker  *rerank.Client
	Generator Generator
	Verifier  *generate.Verifier // nil: citations are not checked
	Rewriter  Rewriter           // nil: conversations are rewritten by rule
	Traces    *traces.Provider
	// Relevance says between 0 and 1 how much of a question a passage speaks of, on one scale for all
	// questions. It is needed with Options.Assemble.MinRelevance alone.
	Relevance func(question string, p generate.Passage) float64
}

// Options configure an Engine. The zero value of a field means its default.
type Options struct {
	Collection     string        // default "default"
	Keep           int           // passages to send; default 5
	MaxQuestion    int           // bytes of a question; default 8 KiB, far over what people type
	MaxHistory     int           // earlier turns of a conversation; default 40
	RequestTimeout time.Duration // for a whole answer; default 90 s, which holds the defaults of all stages
	Rewrite        RewriteMode   // default RewriteAuto
	RewriteTimeout time.Duration // for the model that rewrites; default 3 s, since nothing else has begun before
	Access         []string      // tags of callers that bring none of their own; default none: what has an access list is hidden
	Assemble       assemble.Options
	InputPrice     float64 // per million tokens; 0 means that cost is not computed
	OutputPrice    float64 // per million tokens
	Providers      Providers
	// Settings are all settings that can change an answer, for the fingerprint in manifests. Any value
	// that encodes to JSON.
	Settings any
}

// Providers name whose API each model is called through, as spans show it. "" is left out.
type Providers struct {
	Embedder, Reranker, Generator string
}

// Bounds of what a request can ask for.
const (
	MaxKeep  = 200
	MaxDepth = retriever.MaxDepth
)

// WithDefaults fills in what is not set.
func (o Options) WithDefaults() Options {
	if o.Collection == "" {
		o.Collection = "default"
	}
	if o.Keep == 0 {
		o.Keep = 5
	}
	if o.MaxQuestion == 0 {
		o.MaxQuestion = 8 << 10
	}
	if o.MaxHistory == 0 {
		o.MaxHistory = 40
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = 90 * time.Second
	}
	if o.Rewrite == "" {
		o.Rewrite = RewriteAuto
	}
	if o.RewriteTimeout == 0 {
		o.RewriteTimeout = 3 * time.Second
	}
	o.Assemble = o.Assemble.WithDefaults()
	return o
}

// Validate reports every setting that cannot be used.
func (o Options) Validate() error {
	o = o.WithDefaults()
	errs := []error{o.Assemble.Validate()}
	if o.Keep < 1 || o.Keep > MaxKeep {
		errs = append(errs, fmt.Errorf("rerank.keep is %d; it must be between 1 and %d", o.Keep, MaxKeep))
	}
	if o.MaxQuestion < 1 {
		errs = append(errs, fmt.Errorf("server.max_question is %d; it must be at least 1 byte", o.MaxQuestion))
	}
	if o.Rewrite != RewriteAuto && o.Rewrite != RewriteRule && o.Rewrite != RewriteNever {
		errs = append(errs, fmt.Errorf("retriever.rewrite is %q; it must be %q, %q or %q", o.Rewrite, RewriteAuto, RewriteRule, RewriteNever))
	}
	if o.RewriteTimeout < 0 {
		errs = append(errs, fmt.Errorf("retriever.rewrite_timeout is %s; it must not be negative", o.RewriteTimeout))
	}
	if o.RequestTimeout < 0 {
		errs = append(errs, fmt.Errorf("server.request_timeout is %s; it must not be negative", o.RequestTimeout))
	}
	return errors.Join(errs...)
}

// Engine answers questions and takes documents in. It is safe for concurrent use.
type Engine struct {
	lg          *slog.Logger
	d           Deps
	o           Options
	fingerprint string
	superseded  supersessions
	searches    searches
}

// New returns an Engine over d. The index must have been written with the embedder, chunker and
// analyser that d holds, or be empty: anything else is an error that says what differs.
func New(lg *slog.Logger, d Deps, o Options) (*Engine, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	if o.Assemble.MinRelevance > 0 && d.Relevance == nil {
		return nil, errors.New("assemble.min_relevance is set and there is nothing that tells relevance")
	}
	e := &Engine{lg: lg, d: d, o: o}
	if err := d.Index.CheckFingerprint(d.stored()); err != nil {
		return nil, err
	}
	fingerprint, err := fingerprintOf(o.Settings)
	if err != nil {
		return nil, fmt.Errorf("fingerprint of the settings: %w", err)
	}
	e.fingerprint = fingerprint
	return e, nil
}

// stored is the fingerprint of what the write path puts into the index.
func (d Deps) stored() index.Fingerprint {
	f := index.Fingerprint{Embedder: d.Embedder.Model(), Chunker: d.Chunker.Fingerprint()}
	// An endpoint's vectors depend also on what is put before a text and where it is cut.
	if settings, ok := d.Embedder.(interface{ Fingerprint() string }); ok {
		f.EmbedderSettings = settings.Fingerprint()
	}
	return f
}

// fingerprintOf condenses settings: equal settings give equal fingerprints on every machine.
func fingerprintOf(settings any) (string, error) {
	data, err := json.Marshal(settings) // map keys are sorted, struct fields are in order
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// Fingerprint identifies the settings that can change an answer.
func (e *Engine) Fingerprint() string { return e.fingerprint }

// Index is the index that the engine reads and writes.
func (e *Engine) Index() *index.Index { return e.d.Index }

// passageText is a passage as models see it: under its document's title and its headings, since a
// passage alone often does not say what it is about.
func passageText(title, heading, text string) string {
	place := assay.Place(title, heading)
	if place == "" {
		return text
	}
	return place + "\n" + text
}

// Manifest returns what went into an answer, by its own ID or by that of its trace.
func (e *Engine) Manifest(_ context.Context, id string) (*assay.Manifest, error) {
	return FindManifest(e.d.Index, id)
}

// FindManifest is Engine.Manifest for those who have only the index.
func FindManifest(ix *index.Index, id string) (*assay.Manifest, error) {
	if strings.HasPrefix(id, "m_") {
		return ix.Manifest(id)
	}
	return ix.ManifestByTrace(id)
}

// Chunk returns a passage by its ID, with its document (without the document's text). One that callers
// with the configured tags may not see is not found.
func (e *Engine) Chunk(_ context.Context, id string) (assay.Chunk, *assay.Document, error) {
	snap := e.d.Index.Snapshot()
	defer snap.Close()
	chunk, doc, err := snap.ChunkByID(id)
	if err == nil && !assay.AccessFilter(e.o.Access).Match(doc) {
		return assay.Chunk{}, nil, fmt.Errorf("chunk %q: %w", id, assay.ErrNotFound)
	}
	return chunk, doc, err
}

// Ready reports what keeps the engine from answering.
func (e *Engine) Ready(context.Context) []assay.NotReady {
	snap := e.d.Index.Snapshot()
	defer snap.Close()
	if snap.Chunks() == 0 {
		return []assay.NotReady{{What: "index", Reason: "the corpus is empty; run `assay ingest PATH`"}}
	}
	return nil
}
