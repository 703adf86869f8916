package engine

import (
	"context"
	"fmt"
	"time"

	"assay/ingest"
)

// IngestOptions configure one run of the write path.
type IngestOptions struct {
	Read  ingest.Options // Catalogue is set by the engine
	Prune bool           // remove stored documents below the roots whose source is gone
	// PruneAll allows Prune to remove everything below the roots.
	PruneAll bool
	DryRun   bool // say what would happen, and change nothing
	// Gently leaves a core free and lets searches go first: slower, for a process that answers meanwhile.
	Gently bool
	// OnProgress, if set, is called from one goroutine after every document and every commit.
	OnProgress func(Summary)
}

// Summary is what a run did, or, with DryRun, would do.
type Summary struct {
	Added     int           `json:"added"`
	Changed   int           `json:"changed"`
	Unchanged int           `json:"unchanged"`
	Removed   int           `json:"removed"`
	Gone      []string      `json:"removed_documents"` // IDs of those, as far as --prune removed them
	Protected int           `json:"protected"`         // not found and not removed, since what holds them could not be read whole
	Skipped   []SkippedDoc  `json:"skipped"`
	Chunks    int           `json:"chunks"` // written
	Tokens    int           `json:"tokens"` // of those chunks
	Bytes     int64         `json:"bytes"`  // read
	Duration  time.Duration `json:"-"`
	DryRun    bool          `json:"dry_run"`

	Generation uint64 `json:"generation"` // of the corpus after the run
	Documents  int    `json:"documents"`  // in the corpus after the run
}

// SkippedDoc is a source that did not become searchable, and why.
type SkippedDoc struct {
	URI    string            `json:"uri"`
	Reason ingest.SkipReason `json:"reason"`
	Detail string            `json:"detail,omitempty"`
	Kept   bool              `json:"kept,omitempty"` // its earlier version stays searchable
}

// The reasons for skipping that the write path adds to those of package ingest.
const (
	NoText      ingest.SkipReason = "no_text"      // it was read and yields no chunk
	NotStorable ingest.SkipReason = "not_storable" // the index refuses it, such as for its size or its vectors
)

// Ingest reads roots, and writes what is new or changed in batches: each batch is searchable, whole,
// when it is committed. A source that cannot be read is skipped and reported. The summary is
// valid also beside an error; what it counts as added and changed is committed.
func (e *Engine) Ingest(ctx context.Context, roots []ingest.Root, o IngestOptions) (Summary, error) {
	start := time.Now()
	w := &writer{e: e, o: o, seen: make(map[string]bool), summary: Summary{DryRun: o.DryRun, Skipped: []SkippedDoc{}, Gone: []string{}}}
	if o.Gently {
		w.pace = newPace(&e.searches)
		w.o.Read.Workers = 1
	}
	err := w.run(ctx, roots)
	snap := e.d.Index.Snapshot()
	defer snap.Close()
	w.summary.Generation, w.summary.Documents = snap.Generation(), snap.Documents()
	w.summary.Duration = time.Since(start)
	if err != nil {
		err = fmt.Errorf("ingest: %w", err)
	}
	return w.summary, err
}

// Seen is the number of sources that were looked at.
func (s Summary) Seen() int { return s.Added + s.Changed + s.Unchanged + len(s.Skipped) }

// Failures is the number of skipped sources that somebody should look at: documents that were meant
// to be read and could not be.
func (s Summary) Failures() int {
	n := 0
	for _, skipped := range s.Skipped {
		if skipped.Reason.Failed() || skipped.Reason == NoText || skipped.Reason == NotStorable {
			n++
		}
	}
	return n
}
