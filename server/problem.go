package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"strings"
	"unicode"
	"unicode/utf8"

	"assay"
)

// problem is an error as callers see it (RFC 9457, application/problem+json).
type problem struct {
	Type     string          `json:"type"`
	Title    string          `json:"title"`
	Status   int             `json:"status"`
	Detail   string          `json:"detail"`             // what went wrong, where, and what to do
	Stage    assay.StageName `json:"stage,omitempty"`    // the stage that failed, if one did
	Manifest string          `json:"manifest,omitempty"` // ID of the record of the failed request
}

// classes maps errors to problems; the first that matches decides. It is the only place where an
// error gets its status.
var classes = []struct {
	is     error
	status int
	typ    string
}{
	{assay.ErrInvalid, http.StatusBadRequest, "invalid-request"},
	{assay.ErrFilter, http.StatusBadRequest, "invalid-filter"},
	{assay.ErrNotFound, http.StatusNotFound, "not-found"},
	{assay.ErrDegraded, http.StatusServiceUnavailable, "degraded"},
	{assay.ErrUnavailable, http.StatusServiceUnavailable, "unavailable"},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, "timeout"},
	{context.Canceled, statusClientClosed, "cancelled"},
}

// statusClientClosed is for callers that went away; it is seen in logs and traces only.
const statusClientClosed = 499

// problemOf describes an error; m is the record of the failed request, or nil.
func problemOf(err error, m *assay.Manifest) problem {
	p := problem{Status: http.StatusBadGateway, Type: "upstream-failed", Detail: err.Error()}
	for _, c := range classes {
		if errors.Is(err, c.is) {
			p.Status, p.Type = c.status, c.typ
			break
		}
	}
	if m != nil {
		p.Manifest = m.ID
		if n := len(m.Degraded); n > 0 {
			p.Stage = m.Degraded[n-1]
		}
	}
	return p
}

// fail writes a problem.
func (s *Server) fail(w http.ResponseWriter, p problem) { writeProblem(w, p) }

func writeProblem(w http.ResponseWriter, p problem) {
	p.complete()
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the caller may have gone; there is nobody else to tell
}

// complete fills in what follows from the rest.
func (p *problem) complete() {
	p.Title = http.StatusText(p.Status)
	if p.Status == statusClientClosed {
		p.Title = "Client Closed Request"
	}
	if !strings.HasPrefix(p.Type, "/") {
		p.Type = "/problems/" + p.Type
	}
}

// printable makes text from a request safe to repeat in a response or a log.
func printable(s string) string {
	if len(s) > 200 {
		s = s[:200] + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) && r != utf8.RuneError {
			return r
		}
		return '?'
	}, s)
}

func stack() string { return string(debug.Stack()) }
