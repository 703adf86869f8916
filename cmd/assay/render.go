package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"assay"
)

// pageWidth is the width that everything printed keeps to.
const pageWidth = 100

// noTime asks for everything since the beginning.
var noTime time.Time

func printAnswer(w io.Writer, a *assay.Answer) {
	fmt.Fprintln(w, wrap(a.Text, pageWidth))
	if len(a.Citations) == 0 {
		return
	}
	fmt.Fprintln(w, "\nSources")
	for _, c := range a.Citations {
		fmt.Fprintf(w, "  %-4s %s\n       %s\n", c.Marker, clip(assay.Place(c.Title, c.Heading), pageWidth-7), clipPath(c.URI, pageWidth-7))
		if c.Verified != nil && !*c.Verified {
			fmt.Fprintln(w, "       NOT SUPPORTED: this passage does not say what is cited from it")
		}
	}
}

// places writes a candidate's ranks: "dense 3, lexical 1".
func places(c assay.Candidate) string {
	var out []string
	for _, p := range []struct {
		name    string
		placing *assay.Placing
	}{{"rerank", c.Rerank}, {"dense", c.Dense}, {"lexical", c.Lexical}} {
		if p.placing != nil {
			out = append(out, fmt.Sprintf("%s %d", p.name, p.placing.Rank))
		}
	}
	return strings.Join(out, ", ")
}

func printContext(w io.Writer, m *assay.Manifest, passages []assay.Candidate) {
	fmt.Fprintf(w, "\nContext: %d passages, %d tokens, order %s\n", len(passages), m.Context.Tokens, m.Context.Order)
	for i, p := range passages {
		sent := m.Context.Passages[i]
		fmt.Fprintf(w, "\n%s %s\n    %s\n    %s · bytes %d to %d · %d tokens\n", sent.Marker,
			clip(assay.Place(p.Title, p.Heading), pageWidth-6), clipPath(p.URI, pageWidth-4), p.ChunkID, p.Span.Start, p.Span.End, p.Tokens)
		for line := range strings.Lines(wrap(p.Text, pageWidth-6)) {
			fmt.Fprintf(w, "    | %s\n", strings.TrimRight(line, "\n"))
		}
	}
}

// manifestLine is a manifest in one line.
func manifestLine(m *assay.Manifest) string {
	line := fmt.Sprintf("%s: %d of %d candidates sent, %d tokens, reranker %s, %.0f ms",
		m.ID, len(m.Context.Passages), len(m.Candidates), m.Context.Tokens, m.Reranker.Status, m.DurationMS)
	if len(m.Degraded) > 0 {
		line += fmt.Sprintf(", DEGRADED: %v", m.Degraded)
	}
	return line
}

func newTable(w io.Writer) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	style := table.StyleLight
	style.Format.Header, style.Format.Footer = text.FormatDefault, text.FormatDefault
	style.Options.SeparateColumns = false
	style.Options.DrawBorder = false
	t.SetStyle(style)
	return t
}

// printManifest prints a whole manifest within pageWidth columns.
func printManifest(w io.Writer, m *assay.Manifest) {
	fmt.Fprintf(w, "\nManifest %s\n", m.ID)
	facts := [][2]string{
		{"question", clip(oneLine(m.Query.Text), 80)},
		{"trace", m.TraceID},
		{"corpus", fmt.Sprintf("%s: generation %d, %d documents, %d chunks", m.Collection, m.Corpus.Generation, m.Corpus.Documents, m.Corpus.Chunks)},
		{"models", fmt.Sprintf("%s (%d dimensions); %s; %s", m.Models.Embedder.Name, m.Models.Embedder.Dimensions, m.Models.Generator, m.Models.Tokenizer)},
		{"settings", fmt.Sprintf("%s: chunk size %d, depth %d, keep %d, %s", m.Config.Fingerprint, m.Config.ChunkSize, m.Config.Depth, m.Config.Keep, m.Config.Tuned.State)},
		{"reranker", rerankerLine(m.Reranker)},
		{"context", fmt.Sprintf("%d passages, %d tokens; prompt %d of %d tokens", len(m.Context.Passages), m.Context.Tokens, m.Prompt.Tokens, m.Context.Budget)},
		{"dropped", droppedLine(m.Candidates)},
		{"answer", answerLine(m)},
	}
	if m.Query.Rewritten != "" {
		facts = slices.Insert(facts, 1, [2]string{"searched", clip(oneLine(m.Query.Rewritten), 80)})
	}
	if m.Error != "" {
		facts = append(facts, [2]string{"error", m.Error})
	}
	for _, f := range facts {
		lines := strings.Split(text.WrapSoft(f[1], pageWidth-12), "\n")
		fmt.Fprintf(w, "  %-9s %s\n", f[0], strings.Join(lines, "\n            "))
	}
	printStages(w, m)
	printPassages(w, m)
	printDropped(w, m)
}

func printStages(w io.Writer, m *assay.Manifest) {
	t := newTable(w)
	t.AppendHeader(table.Row{"stage", "status", "ms", "note"})
	t.SetColumnConfigs([]table.ColumnConfig{
		{Name: "ms", Align: text.AlignRight},
		{Name: "note", WidthMax: 60, WidthMaxEnforcer: text.WrapSoft},
	})
	for _, s := range m.Stages {
		note := s.Reason
		if s.Fallback != "" {
			note = strings.TrimPrefix(note+"; instead: "+s.Fallback, "; ")
		}
		ms := assay.Milliseconds(s.Duration)
		t.AppendRow(table.Row{s.Name, s.Status, fmt.Sprintf("%.1f", ms), oneLine(note)})
	}
	t.AppendFooter(table.Row{"request", "", fmt.Sprintf("%.1f", m.DurationMS), ""})
	fmt.Fprintln(w)
	t.Render()
}

// printPassages lists what was sent, in prompt order, with the ranks that led there.
func printPassages(w io.Writer, m *assay.Manifest) {
	if len(m.Context.Passages) == 0 {
		return
	}
	byID := make(map[string]assay.Candidate, len(m.Candidates))
	for _, c := range m.Candidates {
		byID[c.ChunkID] = c
	}
	t := newTable(w)
	t.AppendHeader(table.Row{"sent", "passage", "tokens", "dense", "BM25", "fused", "rerank"})
	right := []table.ColumnConfig{{Name: "passage", WidthMax: 52, WidthMaxEnforcer: text.WrapText}}
	for _, name := range []string{"tokens", "dense", "BM25", "fused", "rerank"} {
		right = append(right, table.ColumnConfig{Name: name, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	for _, p := range m.Context.Passages {
		c := byID[p.ChunkID]
		t.AppendRow(table.Row{p.Marker, clip(c.DocID, 52) + "\n" + clip(assay.Place(c.Title, c.Heading), 52), p.Tokens,
			rank(c.Dense), rank(c.Lexical), rank(c.Fused), rank(c.Rerank)})
	}
	fmt.Fprintln(w)
	t.Render()
}

// maxDroppedShown is how many candidates that were not sent are listed: the best ones.
const maxDroppedShown = 5

// printDropped lists the best of what was not sent, with the reason.
func printDropped(w io.Writer, m *assay.Manifest) {
	t := newTable(w)
	t.AppendHeader(table.Row{"rank", "not sent", "reason"})
	t.SetColumnConfigs([]table.ColumnConfig{
		{Name: "rank", Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Name: "not sent", WidthMax: 50, WidthMaxEnforcer: text.WrapText},
		{Name: "reason", WidthMax: 34, WidthMaxEnforcer: text.WrapText},
	})
	shown := 0
	for i, c := range m.Candidates {
		if c.Disposition != assay.Dropped || shown == maxDroppedShown {
			continue
		}
		shown++
		reason := string(c.Reason)
		if c.Of != "" {
			reason += " of " + c.Of
		}
		if c.Reason == assay.DropSuperseded {
			reason = "superseded by " + c.Of
		}
		t.AppendRow(table.Row{i + 1, clip(c.DocID, 50) + "\n" + clip(assay.Place(c.Title, c.Heading), 50), reason})
	}
	if shown > 0 {
		fmt.Fprintln(w)
		t.Render()
	}
}

func rank(p *assay.Placing) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprint(p.Rank)
}

func rerankerLine(r assay.ManifestReranker) string {
	line := string(r.Status)
	if r.Model != "" {
		line = r.Model + ": " + line
	}
	if r.Attempts > 0 {
		line += fmt.Sprintf(", %d of %d candidates scored in %.0f of %.0f ms, %d requests", r.Scored, r.Candidates, r.LatencyMS, r.TimeoutMS, r.Attempts)
	}
	if r.Truncated > 0 {
		line += fmt.Sprintf(", %d truncated", r.Truncated)
	}
	if r.Fallback != "" {
		line += fmt.Sprintf("; fallback %s", r.Fallback)
	}
	if r.Error != "" {
		line += ": " + r.Error
	}
	return line
}

// droppedLine counts the candidates that were not sent, by reason.
func droppedLine(candidates []assay.Candidate) string {
	counts := make(map[assay.DropReason]int)
	for _, c := range candidates {
		if c.Disposition == assay.Dropped {
			counts[c.Reason]++
		}
	}
	var out []string
	for _, reason := range []assay.DropReason{assay.DropBelowKeep, assay.DropDuplicate, assay.DropOverBudget, assay.DropSuperseded, assay.DropBelowMinScore} {
		if counts[reason] > 0 {
			out = append(out, fmt.Sprintf("%d %s", counts[reason], reason))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

func answerLine(m *assay.Manifest) string {
	a := m.Answer
	line := plural(len(a.Citations), "citation")
	if len(a.Invalid) > 0 {
		line += fmt.Sprintf(", %d invalid ones removed (%s)", len(a.Invalid), strings.Join(a.Invalid, " "))
	}
	if n := unsupported(a.Citations); n > 0 {
		line += fmt.Sprintf(", %d not supported by their passages", n)
	}
	if a.Refused {
		line = "refused"
	}
	line += fmt.Sprintf("; finish reason %s; %d tokens in, %d out", a.FinishReason, m.Usage.InputTokens, m.Usage.OutputTokens)
	if m.Usage.Cost > 0 {
		line += fmt.Sprintf("; cost %.6f", m.Usage.Cost)
	}
	return line
}

// unsupported counts the citations that were checked and not found in their passages.
func unsupported(citations []assay.Citation) int {
	n := 0
	for _, c := range citations {
		if c.Verified != nil && !*c.Verified {
			n++
		}
	}
	return n
}

// plural counts things: "1 citation", "2 citations".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// nothingFound says why a search is empty.
func nothingFound(c assay.ManifestCorpus, f assay.Filter) string {
	switch {
	case c.Documents == 0:
		return "The corpus is empty: run `assay ingest PATH` first."
	case !f.Empty():
		return "Nothing was found: no document that passes the filter has any of these words, or none passes it."
	}
	return "Nothing was found."
}

// clipPath shortens a path or address at its beginning, since its end tells more.
func clipPath(s string, width int) string {
	runes := []rune(oneLine(s))
	if len(runes) <= width {
		return string(runes)
	}
	return "…" + string(runes[len(runes)-width+1:])
}

// clip shortens text to a width in columns, with an ellipsis, and makes control characters visible.
func clip(s string, width int) string { return text.Snip(oneLine(s), width, "…") }

// oneLine makes text of any origin safe to print in one line of a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0, unicode.Is(unicode.Bidi_Control, r):
			return '�'
		}
		return r
	}, s)
}

// safe makes text of any origin safe to print: control characters other than line ends and tabs
// could move the cursor or change the terminal.
func safe(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(oneLine(strings.ReplaceAll(line, "\t", "    ")), " ")
	}
	return strings.Join(lines, "\n")
}

// wrap breaks each line of a text at spaces to a width in columns.
func wrap(s string, width int) string {
	lines := strings.Split(safe(s), "\n")
	for i, line := range lines {
		wrapped := strings.Split(text.WrapSoft(line, width), "\n")
		for j := range wrapped {
			wrapped[j] = strings.TrimRight(wrapped[j], " ")
		}
		lines[i] = strings.Join(wrapped, "\n")
	}
	return strings.Join(lines, "\n")
}

// snippet is the beginning of a passage, at most n lines.
func snippet(s string, n int) string {
	lines := strings.Split(wrap(strings.Join(strings.Fields(s), " "), pageWidth-4), "\n")
	if len(lines) > n {
		lines = lines[:n]
		lines[n-1] = text.Snip(lines[n-1], pageWidth-6, "") + " …"
	}
	return strings.Join(lines, "\n")
}
