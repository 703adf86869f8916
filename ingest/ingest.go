// Package ingest turns files, folders and streams into documents and says what has changed since
// they were last stored.
//
// Read walks the roots in lexical order and yields one Result for everything that it met: a new or
// changed document, an unchanged one (which costs a hash and no parsing), or something that was
// skipped and why. Formats are recognised by content first and by name second; text arrives in
// any of the encodings that documentation is found in and leaves as UTF-8. The package neither
// chunks nor stores: what is already there it learns from a Catalogue.
package ingest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Options bound and steer a Read. The zero value means the defaults.
type Options struct {
	// Include, when not empty, keeps only the files that one of these globs matches. A glob is
	// matched against the slash path relative to the root; without a slash it matches the name at
	// any depth; one that matches a folder takes all that is in it. ** crosses folders.
	Include []string
	// Exclude leaves out what it matches, with the semantics of .gitignore (anchored by a slash,
	// a trailing slash for folders only, ! takes back, the last match decides). It counts before
	// the ignore files.
	Exclude []string
	// NoIgnoreFiles switches off the .gitignore and .assayignore files found in the tree.
	NoIgnoreFiles bool

	// MaxFileSize bounds a source that is read whole. Default 200 MiB: manuals fit, disk images
	// do not. JSON Lines are streamed, so that only their records are bounded.
	MaxFileSize int64
	// MaxRecordSize bounds one line of JSON Lines. Default 16 MiB, far over any sane record.
	MaxRecordSize int64
	// MaxHTMLNodes bounds the tree of one HTML page. Default 1,000,000, about 20 MB of
	// ordinary markup and 300 MB of memory.
	MaxHTMLNodes int
	// MaxInFlight bounds the bytes of sources that are read and not yet handed out. Default
	// 256 MiB. A single larger source goes alone.
	MaxInFlight int64
	// ParseTimeout bounds the parsing of one document. Default 60s, since real pages take
	// milliseconds.
	ParseTimeout time.Duration

	// Catalogue is what is already stored; nil means nothing is.
	Catalogue Catalogue
	// Force treats unchanged documents as changed.
	Force bool
	// Workers is how many documents are parsed at once. Default GOMAXPROCS. The order of the
	// results does not depend on it.
	Workers int
}

// Catalogue is what the engine knows of documents already stored. Its methods are called from
// several goroutines at once, also while the caller stores what was yielded.
type Catalogue interface {
	// ByURI returns the ID and hash of the stored document with this URI.
	ByURI(uri string) (id, hash string, ok bool)
	// Taken reports whether a stored document has this ID.
	Taken(id string) bool
}

// emptyCatalogue stands in when nothing is stored yet.
type emptyCatalogue struct{}

var _ Catalogue = emptyCatalogue{}

func (emptyCatalogue) ByURI(string) (id, hash string, ok bool) { return "", "", false }
func (emptyCatalogue) Taken(string) bool                       { return false }

func (o Options) withDefaults() Options {
	defaultTo(&o.MaxFileSize, 200<<20)
	defaultTo(&o.MaxRecordSize, 16<<20)
	defaultTo(&o.MaxHTMLNodes, 1_000_000)
	defaultTo(&o.MaxInFlight, 256<<20)
	defaultTo(&o.ParseTimeout, time.Minute)
	defaultTo(&o.Workers, runtime.GOMAXPROCS(0))
	if o.Catalogue == nil {
		o.Catalogue = emptyCatalogue{}
	}
	return o
}

func defaultTo[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Read yields what becomes of everything under the roots, in the order of the roots and, below a
// folder, in lexical order. A file reached twice, through overlapping roots or links, is one
// document. One bad source never stops the others: it is a skipped Result. The sequence ends early
// when ctx does; the caller asks ctx.Err() before it takes the sequence as complete. Options that
// do not validate yield a single skipped Result with the error.
func Read(ctx context.Context, lg *slog.Logger, roots []Root, o Options) iter.Seq[Result] {
	return func(yield func(Result) bool) {
		if err := o.Validate(); err != nil {
			yield(Result{State: StateSkipped, Reason: SkipBadOptions, Err: err})
			return
		}
		o := o.withDefaults()
		ctx, cancel := context.WithCancel(ctx)
		p := &pipeline{
			lg: lg, o: o,
			order:    make(chan *job, 2*o.Workers),
			work:     make(chan *job),
			inFlight: semaphore.NewWeighted(o.MaxInFlight),
		}
		w := newWalker(lg, o)
		defer w.close()
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		wg.Go(func() { p.produce(ctx, w, roots) })
		for range o.Workers {
			wg.Go(func() { p.parseAll(ctx) })
		}
		p.deliver(ctx, yield)
	}
}

// job is one source on its way through the pipeline.
type job struct {
	source
	weight int64
	out    chan Result // closed when the source is done
}

// pipeline keeps the order of the walk while several sources are parsed at once: every job goes
// into order and into work in the same sequence, so the job at the head of order always has a
// worker or is done, and a full queue can only wait for the consumer.
type pipeline struct {
	lg       *slog.Logger
	o        Options
	order    chan *job
	work     chan *job
	inFlight *semaphore.Weighted
}

func (p *pipeline) produce(ctx context.Context, w *walker, roots []Root) {
	defer close(p.order)
	defer close(p.work)
	for i := range roots {
		ok := w.walk(ctx, &roots[i], func(s source) bool { return p.enqueue(ctx, s) })
		if !ok {
			return
		}
	}
}

// enqueue reports whether the walk goes on.
func (p *pipeline) enqueue(ctx context.Context, s source) bool {
	// A stream weighs nothing here: its size is unknown and its records are bounded one by one.
	j := &job{source: s, weight: min(max(s.size, 0), p.o.MaxInFlight), out: make(chan Result, 4)}
	if err := p.inFlight.Acquire(ctx, j.weight); err != nil {
		return false
	}
	select {
	case p.order <- j:
	case <-ctx.Done():
		return false
	}
	select {
	case p.work <- j:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *pipeline) parseAll(ctx context.Context) {
	for j := range p.work {
		emit := func(r Result) bool {
			select {
			case j.out <- r:
				return true
			case <-ctx.Done():
				return false
			}
		}
		reader{lg: p.lg, o: p.o}.read(ctx, &j.source, emit)
		close(j.out)
	}
}

// deliver hands the results out in order and settles IDs, which depend on it.
func (p *pipeline) deliver(ctx context.Context, yield func(Result) bool) {
	names := newNames(p.o.Catalogue)
	for j := range p.order {
		for {
			var r Result
			var ok bool
			select {
			case r, ok = <-j.out:
			case <-ctx.Done():
				return
			}
			if !ok {
				break
			}
			r.Root = j.root.String()
			if !yield(names.settle(r, &j.source)) {
				return
			}
		}
		p.inFlight.Release(j.weight)
	}
}

// Validate reports everything that is wrong with the options.
func (o Options) Validate() error {
	return validate([]globs{{"include", o.Include}, {"exclude", o.Exclude}}, []bound{
		{"max file size", o.MaxFileSize}, {"max record size", o.MaxRecordSize},
		{"max HTML nodes", int64(o.MaxHTMLNodes)}, {"max bytes in flight", o.MaxInFlight},
		{"parse timeout", int64(o.ParseTimeout)}, {"workers", int64(o.Workers)},
	})
}

// hashOf identifies content together with the parser that read it, so that a parser that learns
// something makes the next run read everything again.
func hashOf(raw []byte) string { return fmt.Sprintf("%x-p%d", sha256.Sum256(raw), parserVersion) }

// parserVersion goes up whenever the same bytes would yield another document.
const parserVersion = 1
