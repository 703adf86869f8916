package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Small pages that are built to become huge or deep end in text or a reason, soon, and in memory
// that has to do with their size.
func TestHostileSourcesAreBounded(t *testing.T) {
	fonts := ""
	for i := range 400 {
		fonts += fmt.Sprintf("<font color=%d>", i)
	}
	for name, c := range map[string]struct {
		src    string
		reason SkipReason
	}{
		"nested-div.html":        {strings.Repeat("<div>", 100_000) + "x", ""},
		"nested-div-closed.html": {strings.Repeat("<div>", 100_000) + "x" + strings.Repeat("</div>", 100_000), ""},
		"nested-list.html":       {strings.Repeat("<ul><li>a ", 5_000), ""},
		"nested-quote.html":      {strings.Repeat("<blockquote>a ", 5_000), ""},
		"nested-table.html":      {strings.Repeat("<table><tr><td>", 5_000) + "x", ""},
		"nested-unknown.html":    {strings.Repeat("<x>", 100_000) + "y", ""},
		"nested-svg.html":        {strings.Repeat("<svg><foreignObject>", 20_000) + "x", SkipEmpty},
		"nested-select.html":     {strings.Repeat("<select><option>", 20_000) + "x", ""},
		"nested-dl.html":         {strings.Repeat("<dl><dd>x", 5_000), ""},
		"unclosed-fonts.html":    {fonts + strings.Repeat("<p>x", 200_000), SkipTooLarge},
		"adoption.html":          {strings.Repeat("<a><b><p></a>", 100_000), SkipTooLarge},
		"huge-spans.html":        {"<table>" + strings.Repeat("<tr><td colspan=100000000 rowspan=100000000>a<td>b", 500), ""},
		"ragged-table.html":      {"<table><tr>" + strings.Repeat("<td>a", 5_000) + strings.Repeat("<tr><td>a<td>b", 5_000), ""},
		"many-superscripts.html": {"<p>" + strings.Repeat("x<sup>2</sup>", 10_000), ""},
		"many-attributes.html":   {"<div " + strings.Repeat("a=b ", 200_000) + ">x</div>", ""},
		"only-angles.html":       {strings.Repeat("<", 300_000), ""},
		"only-comments.html":     {strings.Repeat("<!--", 100_000), SkipEmpty},
		"menu-before-title.html": {strings.Repeat("<div><a>x</a>", 90) + strings.Repeat("<a>x</a><p>", 5_000) + "<h1>t</h1>", ""},
		"one-line.txt":           {strings.Repeat("word ", 10<<20), ""},
		"one-line.md":            {strings.Repeat("word ", 1<<20), ""},
		"many-comments.md":       {strings.Repeat("<!-- x -->y", 100_000), ""},
		"open-comments.md":       {strings.Repeat("<!-- x\n", 100_000), ""},
		"ticks.md":               {strings.Repeat("`<!--", 200_000), ""},
		"blank-lines.md":         {strings.Repeat("\n", 1<<20) + "x", ""},
		"combining.txt":          {"a" + strings.Repeat("\u0301", 300_000), ""},
		"brackets.jsonl":         {strings.Repeat("[", 1_000_000), SkipMalformed},
		"one-line.jsonl":         {`{"_id":"1","text":"` + strings.Repeat("x", 20<<20), SkipTooLarge},
	} {
		start := time.Now()
		r := readOne(t, name, c.src)
		if r.Reason != c.reason {
			t.Errorf("%s: %q (%v), want %q", name, r.Reason, r.Err, c.reason)
		}
		if r.Document != nil && len(r.Document.Text) > 50*len(c.src) {
			t.Errorf("%s: %d bytes of text from %d", name, len(r.Document.Text), len(c.src))
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
}

func TestTextBelowTheDeepestLevelIsKept(t *testing.T) {
	src := "<h1>top</h1>" + strings.Repeat("<div><ul><li>", 300) + "deep" + strings.Repeat("</li></ul></div>", 300) + "<p>after</p><h2>end</h2>"
	text := textOfStream(t, "a.html", src)
	if !strings.Contains(text, "deep") || !strings.HasPrefix(text, "# top\n") || !strings.HasSuffix(text, "\n\nafter\n\n## end") {
		t.Errorf("%q", text)
	}
}

func TestParsingTakesNoLongerThanAllowed(t *testing.T) {
	src := strings.Repeat("<p>word <b>word</b></p>", 50_000)
	results := readAll(t, Options{ParseTimeout: time.Microsecond}, memRoot(map[string]string{"a.html": src, "b.jsonl": `{"_id":"1","text":"x"}`}))
	if r := results[0]; r.Reason != SkipTimeout || !strings.Contains(r.Err.Error(), "1µs") || r.URI != "sample:/a.html" {
		t.Errorf("%+v", r)
	}
	if results[1].State != StateNew {
		t.Errorf("the next one: %+v", results[1])
	}
}

func TestPanicInAParserIsAReason(t *testing.T) {
	rd := reader{lg: discard(), o: Options{}.withDefaults()}
	_, err := rd.guarded(t.Context(), formatHTML, func(context.Context) (*parsed, error) { panic("index out of range") })
	skip, ok := errors.AsType[*skipError](err)
	if !ok || skip.reason != SkipMalformed || !strings.Contains(err.Error(), "index out of range") {
		t.Errorf("%v", err)
	}
}

// A parser that polls nothing cannot hold up the run.
func TestParserThatNeverReturnsIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rd := reader{lg: discard(), o: Options{}.withDefaults()}
		release := make(chan struct{})
		defer close(release)
		start := time.Now()
		_, err := rd.guarded(t.Context(), formatText, func(context.Context) (*parsed, error) {
			<-release
			return nil, nil
		})
		skip, ok := errors.AsType[*skipError](err)
		if !ok || skip.reason != SkipTimeout || time.Since(start) != time.Minute {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}
