package ingest

import (
	"fmt"
	"strings"

	"assay"
)

// State says what a Result is.
type State string

// The states.
const (
	StateNew       State = "new"
	StateChanged   State = "changed"
	StateUnchanged State = "unchanged"
	StateSkipped   State = "skipped"
)

// SkipReason says why something was skipped: a closed vocabulary.
type SkipReason string

// The reasons for skipping.
const (
	SkipUnsupported SkipReason = "unsupported_format" // recognised, and not read by this version
	SkipAsset       SkipReason = "asset"              // an image, font, style sheet, script, sound or film: no document
	SkipTooLarge    SkipReason = "too_large"          // past a configured limit, which the error names
	SkipUnreadable  SkipReason = "unreadable"         // the system or the stream refused; of a folder: what is below it was not seen
	SkipEmpty       SkipReason = "empty"              // nothing but white space and boilerplate
	SkipBinary      SkipReason = "binary"             // not text, and of no format that is recognised
	SkipBadEncoding SkipReason = "bad_encoding"       // text in no encoding that fits it
	SkipMalformed   SkipReason = "malformed"          // broken in itself, or it broke the parser
	SkipTimeout     SkipReason = "timeout"            // parsing took longer than allowed
	SkipBadID       SkipReason = "bad_id"             // no ID, or one that cannot be stored
	SkipDuplicateID SkipReason = "duplicate_id"       // a second record with the same ID in one source
	SkipNotRegular  SkipReason = "not_a_file"         // a device, socket or FIFO
	SkipOutside     SkipReason = "outside_root"       // a link that leads out of the folder
	SkipBadOptions  SkipReason = "bad_options"        // nothing was read
)

// Failed reports whether somebody should look at it: a document that should have become searchable
// did not, as against what is no document or is left out on purpose.
func (r SkipReason) Failed() bool {
	switch r {
	case "", SkipAsset, SkipNotRegular, SkipOutside:
		return false
	}
	return true
}

// Result is what became of one source, record or folder.
type Result struct {
	State    State
	Document *assay.Document // StateNew and StateChanged
	ID       string          // of the document, where it is known
	URI      string          // of the document; of the whole source where a record could not be told apart
	Root     string          // as it was asked for
	Bytes    int64           // of the source, or of the record
	Reason   SkipReason      // StateSkipped
	Err      error           // StateSkipped: what, where, what to do
	Warnings []string        // what was odd and has been read all the same

	record bool   // one of several in its source
	wish   string // the ID to give if it is free
	hash   string
}

// Accounts reports whether this result settles the fate of the stored document uri for this run:
// it is the document itself, a record of a source that could not be told apart, or something below a
// folder that could not be read. A document under a root that no result accounts for is gone.
func (r *Result) Accounts(uri string) bool {
	if uri == r.URI {
		return true
	}
	if r.State != StateSkipped || r.record || !strings.HasPrefix(uri, r.URI) {
		return false
	}
	rest := uri[len(r.URI):]
	if rest[0] == '#' {
		return true
	}
	return r.Reason == SkipUnreadable && (rest[0] == '/' || strings.HasSuffix(r.URI, "/"))
}

// skipError carries the reason for skipping through the parsers.
type skipError struct {
	reason SkipReason
	err    error
}

func (e *skipError) Error() string { return e.err.Error() }
func (e *skipError) Unwrap() error { return e.err }

func skipf(reason SkipReason, format string, args ...any) *skipError {
	return &skipError{reason, fmt.Errorf(format, args...)}
}
