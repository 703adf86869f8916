package assay

// Answer is what the caller gets.
type Answer struct {
	Text      string     `json:"answer"`
	Citations []Citation `json:"citations"`
	Manifest  *Manifest  `json:"manifest"`
}

// Citation ties a marker in the answer to the passage that was sent under it.
type Citation struct {
	Marker   string `json:"marker"` // as it stands in the answer: "[2]"
	ChunkID  string `json:"chunk_id"`
	DocID    string `json:"doc_id"`
	URI      string `json:"uri"`
	Title    string `json:"title,omitempty"`
	Heading  string `json:"heading,omitempty"`
	Span     Span   `json:"span"`
	Position int    `json:"position"`           // of the passage in the prompt, 1-based
	Verified *bool  `json:"verified,omitempty"` // whether the passage was found to support the sentence; absent when not checked
}

// Retrieval is the result of a search without an answer: the candidates in their final order, with
// what became of each stage.
type Retrieval struct {
	Candidates []Candidate
	Stages     []Stage
	Reranker   ManifestReranker
	Corpus     ManifestCorpus
	Embedder   Model
	TraceID    string
}

// Event is something that happened on the way to an answer, for callers that show progress: a stage
// has ended, or there is a further piece of the answer's text.
type Event struct {
	Manifest string // ID of the manifest that will be written
	Stage    *Stage
	Reranker *ManifestReranker // beside the rerank stage
	Delta    string
}

// NotReady is one reason why requests cannot be answered now.
type NotReady struct {
	What   string `json:"what"` // the part that is not ready: "index", "embedder"
	Reason string `json:"reason"`
}
