// Package reranktest has rerankers that fail in every way that a service over HTTP can, for tests of
// what is built on package rerank. They speak TEI's dialect.
package reranktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"assay"
)

// Fault is one way to fail.
type Fault struct {
	Name     string
	Status   assay.RerankStatus // that must come of it
	HTTP     int                // status of the answer that decides, 0 when there is none
	Deadline bool               // it ends only because the stage's time is over
	// Serve answers; the request's body has been read already and can be read again. nil: connecting
	// takes for ever.
	Serve http.HandlerFunc
}

// Faults are all faults of one request, and one answer that looks like a fault and is none.
func Faults() []Fault {
	out := []Fault{
		{Name: "hangs at connect", Status: assay.RerankTimeout, Deadline: true},
		{Name: "hangs before the headers", Status: assay.RerankTimeout, Deadline: true, Serve: Hang},
		{Name: "hangs in the body", Status: assay.RerankTimeout, Deadline: true, Serve: func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `[{"index":0,`)
			_ = http.NewResponseController(w).Flush()
			Hang(w, r)
		}},
		{Name: "resets", Status: assay.RerankUnavailable, Serve: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{Name: "resets in the body", Status: assay.RerankUnavailable, Serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `[{"index":0,`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
	}
	for _, code := range []int{400, 401, 413, 422, 429, 500, 503} {
		out = append(out, Fault{Name: fmt.Sprint("answers ", code), Status: assay.RerankHTTPError, HTTP: code, Serve: func(w http.ResponseWriter, _ *http.Request) {
			if code == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "30")
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"error":"no","error_type":"x"}`)
		}})
	}
	for _, answer := range []struct {
		name   string
		status assay.RerankStatus
		body   func(n int) string // for so many texts
	}{
		{"an error", assay.RerankBadResponse, func(int) string { return `{"error":"Model is overloaded","error_type":"Overloaded"}` }},
		{"an empty body", assay.RerankBadResponse, func(int) string { return "" }},
		{"an empty ranking", assay.RerankBadResponse, func(int) string { return "[]" }},
		{"a short ranking", assay.RerankPartial, func(n int) string { return ranking(n - 1) }},
		{"a long ranking", assay.RerankBadResponse, func(n int) string { return ranking(n + 1) }},
		{"a text twice", assay.RerankBadResponse, func(n int) string { return strings.Replace(ranking(n), `"index":1`, `"index":0`, 1) }},
		{"an index out of range", assay.RerankBadResponse, func(n int) string { return strings.Replace(ranking(n), `"index":1`, `"index":-1`, 1) }},
		{"a score that is no number", assay.RerankBadResponse, func(n int) string { return strings.Replace(ranking(n), `"score":1`, `"score":NaN`, 1) }},
		{"scores that are strings", assay.RerankBadResponse, func(n int) string { return strings.ReplaceAll(ranking(n), `"score":1`, `"score":"1"`) }},
		{"a web page", assay.RerankBadResponse, func(int) string { return "<!doctype html><title>Sign in</title>" }},
		{"an unsorted ranking", assay.RerankOK, ranking},
	} {
		out = append(out, Fault{Name: "answers 200 with " + answer.name, Status: answer.status, HTTP: http.StatusOK, Serve: func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, answer.body(len(texts(r))))
		}})
	}
	return out
}

// Hang waits until the caller goes away.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Rank ranks all texts; the last one is the best.
func Rank(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, ranking(len(texts(r)))) }

// ranking scores n texts in their own order; the last one is the best.
func ranking(n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`{"index":%d,"score":%d}`, i, i)
	}
	return "[" + strings.Join(items, ",") + "]"
}

func texts(r *http.Request) []string {
	var body struct {
		Texts []string `json:"texts"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body) // what cannot be read has no texts
	return body.Texts
}
