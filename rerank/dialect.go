package rerank

import (
	"slices"
	"strings"
)

// Dialect is the wire format a reranker speaks.
type Dialect string

// The dialects.
const (
	TEI      Dialect = "tei"      // Hugging Face's text-embeddings-inference
	Cohere   Dialect = "cohere"   // version 2 of Cohere's API
	Jina     Dialect = "jina"     // and those that copied it
	VLLM     Dialect = "vllm"     // vLLM serving a cross-encoder
	LlamaCPP Dialect = "llamacpp" // llama-server --reranking
	Infinity Dialect = "infinity" // michaelfeil/infinity
)

// Scale says how to read a provider's scores. It is for display alone: scores of one call are
// compared with each other and with nothing else.
type Scale string

// The scales.
const (
	Sigmoid Scale = "sigmoid" // the model's output through a sigmoid, between 0 and 1
	Unit    Scale = "unit"    // between 0 and 1, by a rule that the provider does not state
	Logit   Scale = "logit"   // the model's output as it is, of either sign
)

// holds reports whether a score can be on the scale.
func (s Scale) holds(score float64) bool { return s == Logit || score >= 0 && score <= 1 }

// wire is what one dialect does differently from the others. Their answers are told apart by shape.
type wire struct {
	path       string // of the call below a base URL
	scale      Scale
	needsModel bool
	body       func(o *Options, query string, texts []string) any
}

// wires are the dialects in the order in which a check tries them. What decides it are servers that
// answer a neighbour's request too: vLLM has Cohere's path, and llama.cpp TEI's and Jina's, but with
// scores that the neighbour's scale does not hold.
var wires = []struct {
	Dialect
	wire
}{
	{TEI, wire{path: "/rerank", scale: Sigmoid, body: teiBody}},
	{VLLM, wire{path: "/rerank", scale: Sigmoid, body: vllmBody}},
	{Infinity, wire{path: "/rerank", scale: Sigmoid, body: infinityBody}},
	{Cohere, wire{path: "/v2/rerank", scale: Unit, needsModel: true, body: cohereBody}},
	{Jina, wire{path: "/v1/rerank", scale: Unit, needsModel: true, body: jinaBody}},
	{LlamaCPP, wire{path: "/v1/rerank", scale: Logit, body: llamaBody}},
}

func (d Dialect) wire() (wire, bool) {
	for _, w := range wires {
		if w.Dialect == d {
			return w.wire, true
		}
	}
	return wire{}, false
}

// Scale is the scale of the dialect's scores, "" for an unknown dialect.
func (d Dialect) Scale() Scale {
	w, _ := d.wire()
	return w.scale
}

// Dialects lists all dialects, the default first.
func Dialects() []Dialect {
	var out []Dialect
	for _, w := range wires {
		out = append(out, w.Dialect)
	}
	return out
}

func dialectNames() string {
	var names []string
	for _, d := range Dialects() {
		names = append(names, string(d))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// teiRequest is the body of TEI's /rerank. What is over the model's length is cut by the server,
// scores come as its sigmoid, and texts are not sent back.
type teiRequest struct {
	Query      string   `json:"query"`
	Texts      []string `json:"texts"`
	Truncate   bool     `json:"truncate"`
	RawScores  bool     `json:"raw_scores"`
	ReturnText bool     `json:"return_text"`
}

func teiBody(_ *Options, query string, texts []string) any {
	return teiRequest{Query: query, Texts: texts, Truncate: true}
}

// documents is what all the other dialects share. TopN is always the number of documents: zero means
// none to one server and all to another, and a gateway may have a default of its own.
type documents struct {
	Model     string   `json:"model,omitempty"`
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
	TopN      int      `json:"top_n"`
}

func documentsOf(o *Options, query string, texts []string) documents {
	return documents{Model: o.Model, Query: query, Documents: texts, TopN: len(texts)}
}

func llamaBody(o *Options, query string, texts []string) any { return documentsOf(o, query, texts) }

type cohereRequest struct {
	documents
	MaxTokens int `json:"max_tokens_per_doc,omitempty"`
}

func cohereBody(o *Options, query string, texts []string) any {
	return cohereRequest{documentsOf(o, query, texts), o.MaxTokens}
}

type jinaRequest struct {
	documents
	ReturnDocuments bool `json:"return_documents"`
}

func jinaBody(o *Options, query string, texts []string) any {
	return jinaRequest{documents: documentsOf(o, query, texts)}
}

type vllmRequest struct {
	documents
	Truncate int `json:"truncate_prompt_tokens"`
}

// vllmBody asks to cut pairs at the model's own length, which -1 stands for; without it vLLM refuses
// a whole batch for one long text.
func vllmBody(o *Options, query string, texts []string) any {
	return vllmRequest{documentsOf(o, query, texts), -1}
}

type infinityRequest struct {
	documents
	RawScores bool `json:"raw_scores"`
}

func infinityBody(o *Options, query string, texts []string) any {
	return infinityRequest{documents: documentsOf(o, query, texts)}
}
