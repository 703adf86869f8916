package assay

import (
	"encoding/json"
	"time"
)

// ManifestSchema names the shape of Manifest; it changes when a field changes its meaning.
const ManifestSchema = "assay.manifest/v1"

// Manifest is the record of how one answer came about. It is written for every answer, also for
// one that failed, and everything that is measured is computed from it.
// Its JSON Schema is docs/manifest.v1.schema.json.
type Manifest struct {
	Schema     string    `json:"schema"`
	ID         string    `json:"id"`
	CreatedAt  time.Time `json:"created_at"`
	TraceID    string    `json:"trace_id,omitempty"`
	Collection string    `json:"collection"`

	Query      ManifestQuery    `json:"query"`
	Config     ManifestConfig   `json:"config"`
	Corpus     ManifestCorpus   `json:"corpus"`
	Models     ManifestModels   `json:"models"`
	Stages     []Stage          `json:"stages"`
	Reranker   ManifestReranker `json:"reranker"`
	Candidates []Candidate      `json:"candidates"`
	Context    ManifestContext  `json:"context"`
	Prompt     ManifestPrompt   `json:"prompt"`
	Answer     ManifestAnswer   `json:"answer"`
	Usage      Usage            `json:"usage"`
	DurationMS float64          `json:"duration_ms"` // from the request's arrival to the end of the answer
	Degraded   []StageName      `json:"degraded"`    // stages that should have worked and did not
	Error      string           `json:"error,omitempty"`
}

// ManifestQuery is the question as it was asked and as it was searched for.
type ManifestQuery struct {
	Text      string `json:"text"`
	Filter    Filter `json:"filter,omitzero"`
	History   int    `json:"history"`             // earlier turns that were given
	Rewritten string `json:"rewritten,omitempty"` // the text that was searched for, where it differs
}

// ManifestConfig is the configuration that shaped the answer.
type ManifestConfig struct {
	Fingerprint string `json:"fingerprint"` // of all settings that can change an answer
	ChunkSize   int    `json:"chunk_size"`
	Depth       int    `json:"depth"`
	Keep        int    `json:"keep"`
	Budget      int    `json:"budget"` // tokens
	Tuned       Tuned  `json:"tuned"`
}

// Tuned says whether keep and depth were chosen by measurement for this very pipeline.
type Tuned struct {
	State       TunedState `json:"state"`
	Keep        int        `json:"k,omitempty"`
	Depth       int        `json:"depth,omitempty"`
	Fingerprint string     `json:"fingerprint,omitempty"` // of the pipeline that was tuned
}

// TunedState is the state of a tuning.
type TunedState string

// The states of a tuning.
const (
	TunedFresh TunedState = "tuned"
	TunedStale TunedState = "stale"
	Untuned    TunedState = "untuned"
)

// ManifestCorpus identifies the state of the corpus that was read.
type ManifestCorpus struct {
	Generation uint64 `json:"generation"` // the commit that was read
	Documents  int    `json:"documents"`
	Chunks     int    `json:"chunks"`
}

// ManifestModels names every model that had a part in the answer.
type ManifestModels struct {
	Embedder  Model  `json:"embedder"`
	Reranker  string `json:"reranker,omitempty"`
	Generator string `json:"generator,omitempty"`
	Tokenizer string `json:"tokenizer"`
}

// RerankStatus is what became of the reranker.
type RerankStatus string

// The closed vocabulary of reranker statuses.
const (
	RerankOK          RerankStatus = "ok"
	RerankDisabled    RerankStatus = "disabled"
	RerankSkipped     RerankStatus = "skipped" // no candidates, or fewer than keep
	RerankTimeout     RerankStatus = "timeout"
	RerankHTTPError   RerankStatus = "http_error"   // it answered with a failure
	RerankUnavailable RerankStatus = "unavailable"  // it could not be reached
	RerankBadResponse RerankStatus = "bad_response" // it answered something that is no ranking
	RerankPartial     RerankStatus = "partial"      // it scored only some of the candidates
	RerankCircuitOpen RerankStatus = "circuit_open" // not called, after repeated failures
	RerankCancelled   RerankStatus = "cancelled"    // the caller went away
)

// Stage maps a reranker's status to the vocabulary that all stages share.
func (s RerankStatus) Stage() Status {
	switch s {
	case RerankOK:
		return StatusOK
	case RerankDisabled:
		return StatusDisabled
	case RerankSkipped, RerankCancelled:
		return StatusSkipped
	case RerankTimeout:
		return StatusTimeout
	case RerankUnavailable, RerankCircuitOpen:
		return StatusUnavailable
	}
	return StatusError
}

// FallbackPolicy is what to do when the reranker did not rank.
type FallbackPolicy string

// The fallback policies.
const (
	FallbackFused FallbackPolicy = "fused" // keep the fused order and the same number of chunks
	FallbackWiden FallbackPolicy = "widen" // keep the fused order and more chunks
	FallbackFail  FallbackPolicy = "fail"  // refuse the request
)

// ManifestReranker says what became of the reranker.
type ManifestReranker struct {
	Status     RerankStatus   `json:"status"`
	Model      string         `json:"model,omitempty"`
	Candidates int            `json:"candidates"`          // sent to it
	Scored     int            `json:"scored"`              // that came back with a valid score
	Truncated  int            `json:"truncated,omitempty"` // that were cut to the model's length before they were sent
	LatencyMS  float64        `json:"latency_ms"`
	TimeoutMS  float64        `json:"timeout_ms,omitempty"`
	Attempts   int            `json:"attempts"`
	Fallback   FallbackPolicy `json:"fallback,omitempty"` // the policy that was applied, when it did not rank
	Error      string         `json:"error,omitempty"`
}

// ManifestContext is what entered the prompt, in prompt order.
type ManifestContext struct {
	Passages []ContextPassage `json:"passages"`
	Tokens   int              `json:"tokens"`
	Budget   int              `json:"budget"`
	Order    string           `json:"order"`
}

// ContextPassage is one passage in the prompt. Marker is how the answer cites it.
type ContextPassage struct {
	Position int    `json:"position"` // 1-based
	Marker   string `json:"marker"`   // "[1]"
	ChunkID  string `json:"chunk_id"`
	DocID    string `json:"doc_id"`
	Span     Span   `json:"span"`
	Tokens   int    `json:"tokens"`
}

// ManifestPrompt identifies the prompt without holding its text.
type ManifestPrompt struct {
	Tokens       int    `json:"tokens"`
	TemplateHash string `json:"template_hash,omitempty"`
}

// ManifestAnswer identifies the answer without holding its text.
type ManifestAnswer struct {
	TextHash     string     `json:"text_hash,omitempty"`
	Citations    []Citation `json:"citations"`
	Invalid      []string   `json:"invalid_citations,omitempty"` // markers that point at nothing that was sent
	Refused      bool       `json:"refused"`
	FinishReason string     `json:"finish_reason,omitempty"`
}

// Usage counts tokens and, where prices are configured, money.
type Usage struct {
	InputTokens  int     `json:"input_tokens"`
	OutputTokens int     `json:"output_tokens"`
	Cost         float64 `json:"cost,omitempty"` // in the currency of the configured prices
}

// stageJSON is Stage on the wire: durations are milliseconds.
type stageJSON struct {
	Name       StageName `json:"name"`
	Status     Status    `json:"status"`
	DurationMS float64   `json:"duration_ms"`
	Reason     string    `json:"reason,omitempty"`
	Fallback   string    `json:"fallback,omitempty"`
}

// MarshalJSON writes the duration in milliseconds.
func (s Stage) MarshalJSON() ([]byte, error) {
	return json.Marshal(stageJSON{s.Name, s.Status, Milliseconds(s.Duration), s.Reason, s.Fallback})
}

// UnmarshalJSON reads the duration in milliseconds.
func (s *Stage) UnmarshalJSON(data []byte) error {
	var w stageJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*s = Stage{w.Name, w.Status, time.Duration(w.DurationMS * float64(time.Millisecond)), w.Reason, w.Fallback}
	return nil
}

// Milliseconds is a duration as manifests write it: to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Stage returns the record of one stage, or nil.
func (m *Manifest) Stage(name StageName) *Stage {
	for i := range m.Stages {
		if m.Stages[i].Name == name {
			return &m.Stages[i]
		}
	}
	return nil
}
