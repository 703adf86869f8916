package assay

import "errors"

// The classes of errors that cross packages. Callers test them with errors.Is; the text of the error
// that wraps them says what, where and what to do. Package server maps each to one HTTP status.
var (
	// ErrInvalid marks a request that cannot be served as it is: the caller must change it.
	ErrInvalid = errors.New("invalid request")
	// ErrNotFound marks a document, chunk or manifest that is not there.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable marks a service that could not be reached at all, as against one that answered
	// with a failure.
	ErrUnavailable = errors.New("unavailable")
	// ErrDegraded marks an answer that was refused because a stage failed whose failure the
	// configuration does not tolerate.
	ErrDegraded = errors.New("degraded beyond what the configuration allows")
)
