package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"assay"
)

// Response headers, on every answer.
const (
	headerManifest     = "Assay-Manifest"
	headerRerankStatus = "Assay-Rerank-Status"
	headerDegraded     = "Assay-Degraded"
)

// defaultResults is the number of results of a search that does not say k.
const defaultResults = 10

func (s *Server) answer(w http.ResponseWriter, r *http.Request, a ask, q assay.Query) {
	if a.Stream || strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		s.stream(w, r, q)
		return
	}
	answer, err := s.engine.Answer(r.Context(), q, nil)
	if answer != nil {
		setHeaders(w, answer.Manifest)
	}
	if err != nil {
		s.refuse(w, r, answer, err)
		return
	}
	s.write(w, http.StatusOK, answer)
}

// refuse answers with an error and logs those that an operator can do something about.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, answer *assay.Answer, err error) {
	p := s.problem(r, answer, err)
	s.fail(w, p)
}

func (s *Server) problem(r *http.Request, answer *assay.Answer, err error) problem {
	var m *assay.Manifest
	if answer != nil {
		m = answer.Manifest
	}
	p := problemOf(err, m)
	if p.Status >= 500 {
		s.lg.Error("a request failed", "path", r.URL.Path, "status", p.Status, "manifest", p.Manifest, "error", err)
	}
	return p
}

// setHeaders says in the headers what became of the request.
func setHeaders(w http.ResponseWriter, m *assay.Manifest) {
	if m == nil {
		return
	}
	w.Header().Set(headerManifest, m.ID)
	setRerankStatus(w, m.Reranker.Status)
	setDegraded(w, m.Degraded)
}

// setDegraded names the stages that should have worked and did not.
func setDegraded(w http.ResponseWriter, stages []assay.StageName) {
	names := make([]string, len(stages))
	for i, name := range stages {
		names[i] = string(name)
	}
	if len(names) > 0 {
		w.Header().Set(headerDegraded, strings.Join(names, ", "))
	}
}

// setRerankStatus is for requests that ended before the reranker, too: nothing was there to rank.
func setRerankStatus(w http.ResponseWriter, status assay.RerankStatus) {
	if status == "" {
		status = assay.RerankSkipped
	}
	w.Header().Set(headerRerankStatus, string(status))
}

func (s *Server) search(w http.ResponseWriter, r *http.Request, _ ask, q assay.Query) {
	if q.Keep == 0 {
		q.Keep = defaultResults
	}
	retrieval, err := s.engine.Search(r.Context(), q)
	if retrieval != nil {
		setRerankStatus(w, retrieval.Reranker.Status)
	}
	if err != nil {
		s.refuse(w, r, nil, err)
		return
	}
	s.write(w, http.StatusOK, foundFrom(retrieval, q.Keep))
}

func (s *Server) manifest(w http.ResponseWriter, r *http.Request) {
	m, err := s.engine.Manifest(r.Context(), r.PathValue("id"))
	if err != nil {
		s.refuse(w, r, nil, err)
		return
	}
	s.write(w, http.StatusOK, m)
}

// chunk returns the passage behind a citation, with where it is from.
func (s *Server) chunk(w http.ResponseWriter, r *http.Request) {
	c, doc, err := s.engine.Chunk(r.Context(), r.PathValue("id"))
	if err != nil {
		s.refuse(w, r, nil, err)
		return
	}
	s.write(w, http.StatusOK, struct {
		assay.Chunk
		URI     string `json:"uri"`
		Title   string `json:"title,omitempty"`
		Version string `json:"version,omitempty"`
	}{c, doc.URI, doc.Title, doc.Version})
}

// healthz says that the process lives.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	s.write(w, http.StatusOK, map[string]string{"status": "ok", "version": s.o.Version})
}

// readyz says whether requests can be answered, and if not, why.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	reasons := s.engine.Ready(r.Context())
	status := http.StatusOK
	if len(reasons) > 0 {
		status = http.StatusServiceUnavailable
	} else {
		reasons = []assay.NotReady{}
	}
	s.write(w, status, map[string]any{"ready": len(reasons) == 0, "reasons": reasons})
}

// write sends a value as JSON.
func (s *Server) write(w http.ResponseWriter, status int, v any) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // the type is JSON and is not sniffed; people read it with curl
	if err := encoder.Encode(v); err != nil {
		s.lg.Error("a response could not be encoded", "error", err)
		s.fail(w, problem{Status: http.StatusInternalServerError, Type: "internal", Detail: "the response could not be encoded; the log of the server has the details"})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the caller may have gone; there is nobody else to tell
}

// errClientGone ends a request whose caller no longer reads: it is a cancellation.
var errClientGone = fmt.Errorf("the client no longer reads: %w", context.Canceled)
