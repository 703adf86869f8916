package index

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"assay"
)

var (
	// ErrNotFound is returned for a document, chunk, row or manifest that is not there.
	ErrNotFound = assay.ErrNotFound
	// ErrClosed is returned by an index or a snapshot after its Close.
	ErrClosed = errors.New("index: closed")
	// ErrInvalid is returned for input that cannot be stored or searched for; nothing was changed.
	ErrInvalid = fmt.Errorf("index: %w", assay.ErrInvalid)
	// ErrTooLarge is returned, together with ErrInvalid, for input over a limit.
	ErrTooLarge = errors.New("over the limit")
)

// LockedError is returned by Open when another process holds the directory.
type LockedError struct {
	Dir     string
	PID     int // 0 when the holder is not known
	Command string
	Since   time.Time
	Waited  time.Duration
}

// Error says who holds the directory and what to do.
func (e *LockedError) Error() string {
	holder := "another process"
	if e.PID != 0 {
		holder = fmt.Sprintf("process %d (%s), since %s", e.PID, e.Command, e.Since.Local().Format("2006-01-02 15:04:05"))
	}
	return fmt.Sprintf("open index %s: in use by %s; waited %s; end it or use another --data directory", e.Dir, holder, e.Waited)
}

// Mismatch is one setting that differs from what the corpus was made with.
type Mismatch struct {
	Field  string // "embedder", "embedder settings", "chunker" or "analyzer"
	Stored string
	Asked  string
}

// MismatchError is returned when the stored corpus was made with other settings.
type MismatchError struct {
	Dir    string
	Fields []Mismatch
}

// Error says what differs and which command makes it agree.
func (e *MismatchError) Error() string {
	parts := make([]string, len(e.Fields))
	for i, m := range e.Fields {
		parts[i] = fmt.Sprintf("%s is %s, asked for %s", m.Field, m.Stored, m.Asked)
	}
	return fmt.Sprintf("index %s was made with other settings: %s; run `assay reindex` to make it anew from what is stored, or `assay ingest --rebuild` on the sources, or use another --data directory",
		e.Dir, strings.Join(parts, "; "))
}

// compare returns a MismatchError for everything in which two fingerprints differ, or nil.
func (f Fingerprint) compare(dir string, asked Fingerprint) error {
	var fields []Mismatch
	add := func(field, stored, asked string) {
		if stored != asked {
			fields = append(fields, Mismatch{field, stored, asked})
		}
	}
	model := func(m assay.Model) string { return fmt.Sprintf("%q with %d dimensions", m.Name, m.Dimensions) }
	add("embedder", model(f.Embedder), model(asked.Embedder))
	add("embedder settings", fmt.Sprintf("%q", f.EmbedderSettings), fmt.Sprintf("%q", asked.EmbedderSettings))
	add("chunker", fmt.Sprintf("%q", f.Chunker), fmt.Sprintf("%q", asked.Chunker))
	add("analyzer", fmt.Sprintf("%q", f.Analyzer), fmt.Sprintf("%q", asked.Analyzer))
	if len(fields) == 0 {
		return nil
	}
	return &MismatchError{Dir: dir, Fields: fields}
}

// BatchError is returned by Apply for entries that cannot be stored. The others are as they should be:
// without these, the batch can be applied.
type BatchError struct {
	Entries []EntryError // at least one
}

// EntryError says why a document cannot be stored.
type EntryError struct {
	ID  string
	Err error
}

// maxReported bounds the documents that an error's text names.
const maxReported = 10

// Error names the documents, the first ten, and what is wrong with each.
func (e *BatchError) Error() string {
	var parts []string
	for _, entry := range e.Entries[:min(len(e.Entries), maxReported)] {
		parts = append(parts, fmt.Sprintf("document %q: %v", entry.ID, entry.Err))
	}
	if more := len(e.Entries) - maxReported; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more documents", more))
	}
	return "index: cannot be stored: " + strings.Join(parts, "; ")
}

// Unwrap returns ErrInvalid and what is wrong with each document.
func (e *BatchError) Unwrap() []error {
	out := []error{ErrInvalid}
	for _, entry := range e.Entries {
		out = append(out, entry.Err)
	}
	return out
}

// CorruptError is returned when what is on disk cannot be what was written.
type CorruptError struct {
	What  string // what is wrong
	Where string // the file, and the place in it where known
	Err   error  // may be nil
}

// Error says what is damaged and what to do.
func (e *CorruptError) Error() string {
	text := fmt.Sprintf("index %s is damaged: %s", e.Where, e.What)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; restore it from a backup, or move the folder away and ingest the sources again"
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// DegradedError is returned by a write that is stored durably while the search indexes could not be
// brought up to it. Searches go on with the state before it. The next write, or the next Open, makes
// up for it.
type DegradedError struct {
	Generation uint64 // that was stored
	Err        error
}

// Error says what is stored and what is not yet searchable.
func (e *DegradedError) Error() string {
	return fmt.Sprintf("index: generation %d is stored but not searchable yet; the next write or start tries again: %v", e.Generation, e.Err)
}

// Unwrap returns the cause.
func (e *DegradedError) Unwrap() error { return e.Err }
