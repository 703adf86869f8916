package traces

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// reporter writes the troubles of exporting to the log: the first at once, then one in a while with
// the number of those left out, and none with a secret in it.
type reporter struct {
	lg      *slog.Logger
	secrets *strings.Replacer
	every   time.Duration

	mu         sync.Mutex // guards what follows
	last       time.Time
	suppressed int
}

func newReporter(lg *slog.Logger, o Options) *reporter {
	return &reporter{lg: lg, secrets: secretsOf(o.Getenv), every: o.ReportEvery}
}

// Handle is the SDK's hook for errors.
func (r *reporter) Handle(err error) {
	r.mu.Lock()
	now := time.Now()
	if !r.last.IsZero() && now.Sub(r.last) < r.every {
		r.suppressed++
		r.mu.Unlock()
		return
	}
	left := r.suppressed
	r.last, r.suppressed = now, 0
	r.mu.Unlock()
	r.lg.Warn("traces: spans are not exported; answers are not affected", "error", r.redact(err.Error()), "left_out", left)
}

// recovered ends a series of failures, so that the next one is reported at once.
func (r *reporter) recovered() {
	r.mu.Lock()
	left := r.suppressed
	r.last, r.suppressed = time.Time{}, 0
	r.mu.Unlock()
	r.lg.Info("traces: spans are exported again", "left_out", left)
}

// longestReport bounds a line about an error, which may hold the body of a collector's answer.
const longestReport = 500

func (r *reporter) redact(text string) string { return shorten(r.secrets.Replace(text), longestReport) }

func (r *reporter) redactError(err error) error {
	if text := err.Error(); r.redact(text) != text {
		return errors.New(r.redact(text))
	}
	return err
}

// secretsOf matches the values of the headers for the collector, in the environment's form and
// decoded, and the credentials in its address.
func secretsOf(getenv func(string) string) *strings.Replacer {
	var found []string
	for _, name := range []string{envHeaders, envTracesHeaders} {
		for _, pair := range strings.Split(getenv(name), ",") {
			_, value, ok := strings.Cut(pair, "=")
			if !ok {
				value = pair // a header that is not well-formed is quoted whole by the SDK
			}
			decoded, _ := url.PathUnescape(value)
			found = append(found, strings.TrimSpace(value), strings.TrimSpace(decoded))
			found = append(found, strings.Fields(decoded)...) // "Bearer x" may come back as "x"
		}
	}
	for _, name := range []string{envEndpoint, envTracesEndpoint} {
		_, rest, _ := strings.Cut(getenv(name), "://")
		if credentials, _, ok := strings.Cut(rest, "@"); ok {
			_, password, _ := strings.Cut(credentials, ":")
			found = append(found, credentials, password)
		}
	}
	// Longer ones first, since a secret may be a part of another one; very short ones are in ordinary words.
	slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range found {
		if len(s) >= 4 && !strings.EqualFold(s, "Bearer") && !strings.EqualFold(s, "Basic") {
			pairs = append(pairs, s, "[redacted]")
		}
	}
	return strings.NewReplacer(pairs...)
}

// handler is the log for the SDK's own messages: warnings and errors, redacted.
func (r *reporter) handler() slog.Handler { return redacting{r.lg.Handler(), r} }

type redacting struct {
	slog.Handler
	r *reporter
}

// sdkWarn is the level that the SDK's warnings have once they have come through logr.
const sdkWarn = slog.Level(-1)

func (h redacting) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= sdkWarn && h.Handler.Enabled(ctx, max(level, slog.LevelWarn))
}

func (h redacting) Handle(ctx context.Context, in slog.Record) error {
	out := slog.NewRecord(in.Time, max(in.Level, slog.LevelWarn), "traces: "+h.r.redact(in.Message), in.PC)
	in.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(slog.String(a.Key, h.r.redact(a.Value.String())))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

func (h redacting) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = slog.String(a.Key, h.r.redact(a.Value.String()))
	}
	return redacting{h.Handler.WithAttrs(clean), h.r}
}

func (h redacting) WithGroup(name string) slog.Handler {
	return redacting{h.Handler.WithGroup(name), h.r}
}

// watched is an exporter whose failures go to the reporter and no further.
type watched struct {
	sdktrace.SpanExporter
	reports *reporter
	failing bool // the SDK makes one call at a time
}

func (w *watched) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := w.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil:
		w.failing = true
		w.reports.Handle(err)
	case w.failing:
		w.failing = false
		w.reports.recovered()
	}
	return nil
}
