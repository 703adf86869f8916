package index

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"time"

	"assay"
	"assay/index/bm25"
	"assay/index/dense"
)

// Options configure an Index. The zero value of a field means its default; where zero itself is of
// use, a negative value stands for it.
type Options struct {
	Collection string // a folder below the data directory, of a-z, 0-9, _ and -; default "default"
	Analyzer   string // how texts become terms: a bleve analyser such as en, de, cjk, standard; default "en"

	// Engine finds the nearest vectors; default hnsw, our own graph. exact compares with every vector,
	// and coder is the graph of github.com/coder/hnsw; docs/dense.md compares them. It changes nothing
	// that is stored and can be another one at each start.
	Engine string

	// Of BM25F. Only the ranking depends on them, not what is stored. The defaults come from a grid of
	// k1 0.6 to 2, b 0.3 to 0.9 and title weights 0 to 5 over eight public collections: 1.2 and 0.75
	// lie on its plateau (mean nDCG@10 0.632, the best 0.635), 0.9 and 0.4 do not (0.613).
	K1            float64 // saturation of the term frequency; default 1.2
	B             float64 // normalisation by length; default 0.75, negative for none
	TitleWeight   float64 // default 2 (mean 0.636; weight 1 has 0.632, 3 has 0.638), negative for none
	HeadingWeight float64 // default 1, negative for none
	BodyWeight    float64 // default 1, negative for none
	MaxQueryTerms int     // distinct terms of a question that are searched for, the rarest first; default 64, since cost grows with each

	LockTimeout      time.Duration // how long to wait for another process; default 2 s
	MaxDocumentBytes int           // of text, metadata and headings; default 64 MiB, which is a book of 10,000 pages
	MaxBatchBytes    int           // of texts and vectors in one transaction, all of which is held in memory; default 256 MiB

	ManifestAge   time.Duration // manifests older than that are removed; default 30 days
	ManifestCount int           // the newest that many are kept; default 100,000
	CacheBytes    int64         // of the embedding cache; the oldest go first; default 1 GiB, a million vectors of 256 dimensions

	// Workers is how many cores the making of a graph takes; default all but one, which stays free for
	// searches: they would wait for a build that takes all of them.
	Workers int

	// AllowMismatch opens a corpus that was analysed by another analyser, so that it can be reset and
	// built anew. Until then it is searched with the analyser that it was made with.
	AllowMismatch bool
}

// WithDefaults fills in what is not set.
func (o Options) WithDefaults() Options {
	set(&o.Collection, "default")
	set(&o.Analyzer, "en")
	set(&o.Engine, string(dense.Engines[0]))
	set(&o.K1, 1.2)
	set(&o.B, 0.75)
	set(&o.TitleWeight, 2)
	set(&o.HeadingWeight, 1)
	set(&o.BodyWeight, 1)
	set(&o.MaxQueryTerms, 64)
	set(&o.LockTimeout, 2*time.Second)
	set(&o.MaxDocumentBytes, 64<<20)
	set(&o.MaxBatchBytes, 256<<20)
	set(&o.ManifestAge, 30*24*time.Hour)
	set(&o.ManifestCount, 100_000)
	set(&o.CacheBytes, 1<<30)
	set(&o.Workers, max(1, runtime.GOMAXPROCS(0)-1))
	return o
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

var collectionName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// Validate reports every setting that cannot be used.
func (o Options) Validate() error {
	o = o.WithDefaults()
	var errs []error
	if !collectionName.MatchString(o.Collection) {
		errs = append(errs, fmt.Errorf("collection %q: use up to 64 of a-z, 0-9, _ and -, beginning with a letter or digit", o.Collection))
	}
	if _, err := bm25.NewAnalyzer(o.Analyzer); err != nil {
		errs = append(errs, fmt.Errorf("index.%w", err))
	}
	if !slices.Contains(dense.Engines, dense.Engine(o.Engine)) {
		errs = append(errs, fmt.Errorf("dense.engine %q: choose one of %q", o.Engine, dense.Engines))
	}
	if !(o.K1 > 0 && o.K1 <= 100) {
		errs = append(errs, fmt.Errorf("index.k1 is %g; it must be above 0 and at most 100", o.K1))
	}
	if !(o.B <= 1) {
		errs = append(errs, fmt.Errorf("index.b is %g; it must be at most 1", o.B))
	}
	sum := 0.0
	for _, w := range []struct {
		name  string
		value float64
	}{{"title_weight", o.TitleWeight}, {"heading_weight", o.HeadingWeight}, {"body_weight", o.BodyWeight}} {
		if !(w.value <= 1000) {
			errs = append(errs, fmt.Errorf("index.%s is %g; it must be at most 1000", w.name, w.value))
		}
		sum += max(w.value, 0)
	}
	if sum == 0 {
		errs = append(errs, errors.New("index: all field weights are switched off, so nothing could be found"))
	}
	for _, limit := range []struct {
		name  string
		value int64
	}{
		{"max_query_terms", int64(o.MaxQueryTerms)}, {"lock_timeout", int64(o.LockTimeout)},
		{"max_document_bytes", int64(o.MaxDocumentBytes)}, {"max_batch_bytes", int64(o.MaxBatchBytes)},
		{"manifest_age", int64(o.ManifestAge)}, {"manifest_count", int64(o.ManifestCount)}, {"cache_bytes", o.CacheBytes}, {"workers", int64(o.Workers)},
	} {
		if limit.value < 1 {
			errs = append(errs, fmt.Errorf("index.%s is negative; leave it out for the default", limit.name))
		}
	}
	return errors.Join(errs...)
}

func (o Options) params() bm25.Params {
	return bm25.Params{
		K1: o.K1, B: max(o.B, 0), MaxTerms: o.MaxQueryTerms,
		Weights: [bm25.Fields]float64{max(o.TitleWeight, 0), max(o.HeadingWeight, 0), max(o.BodyWeight, 0)},
	}
}

// Fingerprint is what the stored corpus was made with. Parts made with another one cannot be compared
// with it, so it is written with the first document and demanded of every later one.
type Fingerprint struct {
	Embedder         assay.Model `json:"embedder"`
	EmbedderSettings string      `json:"embedder_settings,omitempty"` // what else shapes the vectors, such as a prefix
	Chunker          string      `json:"chunker"`                     // the chunker's settings, in a form of its own
	Analyzer         string      `json:"analyzer"`                    // "" means the one that the index was opened with
}
