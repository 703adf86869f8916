package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"assay"
)

// ask is the body of POST /v1/answer and POST /v1/search.
type ask struct {
	Question string          `json:"question"`
	Filter   assay.Filter    `json:"filter"`
	K        int             `json:"k"`        // chunks to send, or results to return
	Depth    int             `json:"depth"`    // candidates to retrieve
	Messages []assay.Message `json:"messages"` // the conversation so far, oldest first
	Stream   bool            `json:"stream"`   // answer as server-sent events
	// Superseded asks also for documents that a newer version replaces.
	Superseded bool `json:"superseded"`
	// Duplicates asks also for passages that say what a better one says.
	Duplicates bool `json:"duplicates"`
}

// readAsk reads and checks a request body. The error is a problem.
func (s *Server) readAsk(w http.ResponseWriter, r *http.Request) (ask, assay.Query, *problem) {
	var a ask
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return a, assay.Query{}, &problem{Status: http.StatusUnsupportedMediaType, Type: "unsupported-media-type",
			Detail: "send the request as JSON with the header Content-Type: application/json"}
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, s.o.MaxBody))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&a)
	if err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			err = errors.New("there is something after the JSON object")
		}
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return a, assay.Query{}, &problem{Status: http.StatusRequestEntityTooLarge, Type: "too-large",
			Detail: fmt.Sprintf("the body is larger than server.max_body (%d bytes)", s.o.MaxBody)}
	case errors.Is(err, assay.ErrFilter):
		p := problemOf(err, nil)
		return a, assay.Query{}, &p
	case err != nil:
		return a, assay.Query{}, &problem{Status: http.StatusBadRequest, Type: "invalid-json",
			Detail: "the body must be a JSON object such as {\"question\": \"...\"}: " + printable(jsonMistake(err))}
	}
	q, err := a.query()
	if err != nil {
		p := problemOf(err, nil)
		return a, assay.Query{}, &p
	}
	return a, q, nil
}

// jsonMistake says what is wrong with a body in the terms of the one who wrote it.
func jsonMistake(err error) string {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		if wrongType.Field == "" {
			return "it is a " + wrongType.Value
		}
		return fmt.Sprintf("field %q cannot be a %s", wrongType.Field, wrongType.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// query turns the body into a query. Without a question, the last message of the user is the
// question and those before it are the history.
func (a ask) query() (assay.Query, error) {
	q := assay.Query{Text: a.Question, History: a.Messages, Filter: a.Filter, Keep: a.K, Depth: a.Depth, Superseded: a.Superseded, Duplicates: a.Duplicates}
	n := len(a.Messages)
	if strings.TrimSpace(a.Question) != "" || n == 0 {
		return q, nil
	}
	last := a.Messages[n-1]
	if last.Role != "user" {
		return q, fmt.Errorf("%w: give a question, or messages of which the last is the user's", assay.ErrInvalid)
	}
	q.Text, q.History = last.Content, a.Messages[:n-1]
	return q, nil
}

// found is the body of the response of POST /v1/search.
type found struct {
	Results  []result               `json:"results"`
	Stages   []assay.Stage          `json:"stages"`
	Reranker assay.ManifestReranker `json:"reranker"`
	Corpus   assay.ManifestCorpus   `json:"corpus"`
	TraceID  string                 `json:"trace_id,omitempty"`
}

// result is one passage that was found, best first.
type result struct {
	Rank    int            `json:"rank"`
	ChunkID string         `json:"chunk_id"`
	DocID   string         `json:"doc_id"`
	URI     string         `json:"uri"`
	Title   string         `json:"title,omitempty"`
	Heading string         `json:"heading,omitempty"`
	Version string         `json:"version,omitempty"`
	Span    assay.Span     `json:"span"`
	Tokens  int            `json:"tokens"`
	Dense   *assay.Placing `json:"dense,omitempty"`
	Lexical *assay.Placing `json:"lexical,omitempty"`
	Fused   *assay.Placing `json:"fused,omitempty"`
	Rerank  *assay.Placing `json:"rerank,omitempty"`
	Text    string         `json:"text"`
}

func foundFrom(r *assay.Retrieval, k int) found {
	out := found{Results: []result{}, Stages: r.Stages, Reranker: r.Reranker, Corpus: r.Corpus, TraceID: r.TraceID}
	for i, c := range r.Candidates {
		if i == k {
			break
		}
		out.Results = append(out.Results, result{
			Rank: i + 1, ChunkID: c.ChunkID, DocID: c.DocID, URI: c.URI, Title: c.Title, Heading: c.Heading,
			Version: c.Version, Span: c.Span, Tokens: c.Tokens,
			Dense: c.Dense, Lexical: c.Lexical, Fused: c.Fused, Rerank: c.Rerank, Text: c.Text,
		})
	}
	return out
}
