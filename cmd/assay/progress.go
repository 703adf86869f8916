package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"

	"assay/engine"
)

// progress shows how far a run is: a bar on a terminal, otherwise a plain line now and then.
type progress struct {
	w    io.Writer
	bar  *progressbar.ProgressBar
	next time.Time
	off  bool
}

// progressEvery is the time between plain lines.
const progressEvery = 5 * time.Second

func newProgress(w io.Writer, terminal, quiet bool) *progress {
	p := &progress{w: w, off: quiet, next: time.Now().Add(progressEvery)}
	if terminal && !quiet {
		p.bar = progressbar.NewOptions(-1,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription("ingesting"),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSpinnerType(14),
			progressbar.OptionClearOnFinish())
	}
	return p
}

func (p *progress) update(s engine.Summary) {
	switch {
	case p.off:
	case p.bar != nil:
		p.bar.Describe(fmt.Sprintf("ingesting: %d new, %d changed, %d unchanged, %d skipped, %s",
			s.Added, s.Changed, s.Unchanged, len(s.Skipped), humanize.IBytes(uint64(s.Bytes))))
		_ = p.bar.Set(s.Seen()) // drawing is best effort
	case time.Now().After(p.next):
		p.next = time.Now().Add(progressEvery)
		fmt.Fprintf(p.w, "%d documents: %d new, %d changed, %d unchanged, %d skipped; %d chunks; %s\n",
			s.Seen(), s.Added, s.Changed, s.Unchanged, len(s.Skipped), s.Chunks, humanize.IBytes(uint64(s.Bytes)))
	}
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish() // drawing is best effort
	}
}
