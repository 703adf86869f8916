package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	"assay"
)

// stream answers with server-sent events: "stage" for each stage as it ends, "token" for each piece
// of text, then "citations", "manifest" and "done"; or "error", with a problem, after which nothing
// follows.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, q assay.Query) {
	out := &events{w: w, flush: http.NewResponseController(w)}
	answer, err := s.engine.Answer(r.Context(), q, out.event)
	if err != nil {
		p := s.problem(r, answer, err)
		if !out.started {
			if answer != nil {
				setHeaders(w, answer.Manifest)
			}
			s.fail(w, p)
			return
		}
		p.complete()
		_ = out.send("error", p) // the caller may have gone; there is nobody else to tell
		return
	}
	out.start(answer.Manifest.ID, answer.Manifest.Reranker.Status)
	for _, e := range []struct {
		name string
		data any
	}{
		{"citations", answer.Citations},
		{"manifest", answer.Manifest},
		{"done", map[string]string{"manifest": answer.Manifest.ID}},
	} {
		if out.send(e.name, e.data) != nil {
			return
		}
	}
}

// events writes server-sent events. What happens before the reranker has ended is held back until
// then, since its status stands in the headers; and where the request is refused for it, for good.
type events struct {
	w       http.ResponseWriter
	flush   *http.ResponseController
	started bool
	held    []assay.Event
	bad     []assay.StageName // that ended badly before the headers were sent
	err     error
}

func (e *events) event(v assay.Event) error {
	if v.Stage != nil && v.Stage.Status.Degraded() && !e.started {
		e.bad = append(e.bad, v.Stage.Name)
	}
	if !e.started && (v.Reranker == nil || v.Reranker.Fallback == assay.FallbackFail) {
		e.held = append(e.held, v)
		return nil
	}
	if v.Reranker != nil {
		e.start(v.Manifest, v.Reranker.Status)
	}
	return e.write(v)
}

// start sends the headers and what was held back. It does nothing the second time.
func (e *events) start(manifest string, status assay.RerankStatus) {
	if e.started {
		return
	}
	e.started = true
	h := e.w.Header()
	h.Set(headerManifest, manifest)
	setRerankStatus(e.w, status)
	setDegraded(e.w, e.bad)
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // reverse proxies must pass events on as they come
	e.w.WriteHeader(http.StatusOK)
	for _, v := range e.held {
		_ = e.write(v) // the error stays in e.err, and ends the request at the next event
	}
	e.held = nil
}

func (e *events) write(v assay.Event) error {
	if v.Stage != nil {
		return e.send("stage", v.Stage)
	}
	return e.send("token", map[string]string{"delta": v.Delta})
}

func (e *events) send(name string, v any) error {
	if e.err != nil {
		return e.err
	}
	data, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", name, data)
	}
	if err == nil {
		err = e.flush.Flush()
	}
	if err != nil {
		e.err = fmt.Errorf("%w: %w", errClientGone, err)
	}
	return e.err
}
