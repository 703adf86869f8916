package main

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay"
	"assay/engine"
	"assay/eval"
	"assay/examples"
	"assay/ingest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenResults is how many results of each question are golden.
const goldenResults = 5

// A change of ranking is a difference to review: the top results of every sample question, in order,
// and one page of statistics. `go test ./cmd/assay -run Golden -update` rewrites both.
func TestGoldenRanking(t *testing.T) {
	questions, err := filepath.Glob("../../examples/ferrywire-eval/*.jsonl")
	if err != nil || len(questions) == 0 {
		t.Fatalf("there are no questions: %v", err)
	}
	e := &env{stderr: &bytes.Buffer{}, getenv: func(string) string { return "" }, dataDir: t.TempDir()}
	a, err := e.open(t.Context(), defaultConfig(), slog.New(slog.DiscardHandler), openWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if _, err := a.engine.Ingest(t.Context(), []ingest.Root{ingest.FSRoot("ferrywire", examples.Ferrywire())}, engine.IngestOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := a.index.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	snap := a.index.Snapshot()
	defer snap.Close()
	var ranking, stats bytes.Buffer
	for _, path := range questions {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		ds, err := eval.ReadDataset(filepath.Base(path), f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range ds.Queries {
			writeRanking(t, &ranking, a, q)
		}
		arms, err := a.channelArms()
		if err != nil {
			t.Fatal(err)
		}
		report, err := eval.Retrieval(t.Context(), ds, arms, eval.Options{
			Corpus: corpus{snap}, Measures: []string{"recall@5", "all_evidence_recall@5", "recall@20", "mrr", "ndcg@10"}, Depth: 50,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := report.WriteTable(&stats); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&stats)
	}
	golden(t, "ranking.txt", ranking.Bytes())
	golden(t, "stats.txt", stats.Bytes())
}

func writeRanking(t *testing.T, w *bytes.Buffer, a *app, q eval.Query) {
	t.Helper()
	found, err := a.engine.Search(t.Context(), assay.Query{Text: q.Text, Keep: goldenResults})
	if err != nil {
		t.Fatal(err)
	}
	wanted := make(map[string]bool)
	for _, ev := range q.Evidence {
		wanted[ev.Doc] = true
	}
	fmt.Fprintf(w, "%s %s\n", q.ID, q.Text)
	for i, c := range found.Candidates[:min(goldenResults, len(found.Candidates))] {
		mark := " "
		if wanted[c.DocID] {
			mark = "*" // a document with evidence
		}
		fmt.Fprintf(w, "  %d%s %s > %s\n", i+1, mark, c.DocID, c.Heading)
	}
}

// golden compares with a file, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	gotLines, wantLines := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		g, w := line(gotLines, i), line(wantLines, i)
		if g != w {
			t.Errorf("%s, line %d: got %q, want %q; if the change is meant, rewrite it with -update and review the difference", path, i+1, g, w)
			return
		}
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
