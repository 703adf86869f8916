package server

import (
	_ "embed"
	"net/http"
)

//go:embed page.html
var pageHTML []byte

// page is the test page: ask a question, watch the stages, open a citation, read the manifest. It
// loads nothing from anywhere else, and puts text from documents on the page as text, never as HTML.
func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(pageHTML) // the caller may have gone; there is nobody else to tell
}
