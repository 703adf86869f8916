package assay

// Query is what somebody asks, with the restrictions under which it is answered.
type Query struct {
	Text    string    `json:"text"`
	History []Message `json:"history,omitempty"` // earlier turns, oldest first
	Filter  Filter    `json:"filter,omitzero"`
	Keep    int       `json:"keep,omitempty"`  // chunks to send; 0 means the configured number
	Depth   int       `json:"depth,omitempty"` // candidates to retrieve; 0 means the configured number
	// Superseded asks also for documents that a newer version replaces.
	Superseded bool `json:"superseded,omitempty"`
	// Duplicates asks also for passages that say what a better one says.
	Duplicates bool `json:"duplicates,omitempty"`
	// Access are the caller's tags: documents with an access list are seen by those who have one of its
	// tags. Nil means the configured ones. No request over HTTP can set it.
	Access []string `json:"access,omitempty"`
}

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"` // "user" or "assistant"
	Content string `json:"content"`
}

// Candidate is a chunk on its way from retrieval to the prompt. Stages add to it and never remove
// it: what was dropped stays, with the reason.
type Candidate struct {
	ChunkID string `json:"chunk_id"`
	DocID   string `json:"doc_id"`
	URI     string `json:"uri"`
	Title   string `json:"title,omitempty"`
	Heading string `json:"heading,omitempty"`
	Version string `json:"version,omitempty"`
	Span    Span   `json:"span"`
	Tokens  int    `json:"tokens"`

	Dense   *Placing `json:"dense,omitempty"`   // absent when that channel did not return it
	Lexical *Placing `json:"lexical,omitempty"` // absent when that channel did not return it
	Fused   *Placing `json:"fused,omitempty"`
	Rerank  *Placing `json:"rerank,omitempty"` // absent when it was not scored

	Disposition Disposition `json:"disposition"`
	Reason      DropReason  `json:"reason,omitempty"`
	Of          string      `json:"of,omitempty"` // the chunk that this one duplicates, or the document that supersedes its own

	Text string `json:"-"` // in the store by ID, never in a manifest
}

// Placing is a position in one ranking and the score that led to it. Scores of different rankings
// are on different scales and are never compared.
type Placing struct {
	Rank  int     `json:"rank"` // 1-based
	Score float64 `json:"score"`
}

// Disposition says whether a candidate entered the prompt.
type Disposition string

// The dispositions.
const (
	Kept    Disposition = "kept"
	Dropped Disposition = "dropped"
)

// DropReason says why a candidate did not enter the prompt.
type DropReason string

// The reasons for dropping a candidate.
const (
	DropBelowKeep     DropReason = "below_keep"      // ranked after the number to keep
	DropOverBudget    DropReason = "over_budget"     // does not fit the token budget
	DropDuplicate     DropReason = "duplicate"       // says what a better one says
	DropSuperseded    DropReason = "superseded"      // of a document that another one replaces
	DropBelowMinScore DropReason = "below_min_score" // under the configured minimum
)

// Compare orders candidates of equal standing, so that no order ever depends on a map or on timing.
func (c *Candidate) Compare(d *Candidate) int {
	switch {
	case c.ChunkID < d.ChunkID:
		return -1
	case c.ChunkID > d.ChunkID:
		return 1
	}
	return 0
}
