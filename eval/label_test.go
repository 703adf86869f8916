package eval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"assay"
)

// memory is a corpus in memory.
type memory struct {
	docs   []assay.Document
	chunks map[string][]assay.Chunk
	fails  bool
}

// chunked cuts a document into chunks of so many bytes.
func (m *memory) chunked(id, text string, size int) *memory {
	if m.chunks == nil {
		m.chunks = map[string][]assay.Chunk{}
	}
	m.docs = append(m.docs, assay.Document{ID: id, URI: "docs/" + id, Text: text})
	for start := 0; start < len(text); start += size {
		span := assay.Span{Start: start, End: min(len(text), start+size)}
		m.chunks[id] = append(m.chunks[id], assay.Chunk{ID: assay.ChunkID(id, span, text[span.Start:span.End]), DocID: id, Span: span})
	}
	return m
}

func (m *memory) Document(_ context.Context, ref string) (assay.Document, bool, error) {
	if m.fails {
		return assay.Document{}, false, errors.New("the store is closed")
	}
	for _, d := range m.docs {
		if d.ID == ref || d.URI == ref {
			return d, true, nil
		}
	}
	return assay.Document{}, false, nil
}

func (m *memory) Chunks(_ context.Context, id string) ([]assay.Chunk, error) {
	return m.chunks[id], nil
}

func (m *memory) Chunk(_ context.Context, id string) (assay.Chunk, bool, error) {
	for _, list := range m.chunks {
		for _, c := range list {
			if c.ID == id {
				return c, true, nil
			}
		}
	}
	return assay.Chunk{}, false, nil
}

func dataset(t *testing.T, lines ...string) *Dataset {
	t.Helper()
	ds, err := ReadDataset("set", strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

const runbook = "Rotate keys monthly.\n\nDrain  the\tnode before\nyou rotate. Then wait. Drain the node before you sleep. Größe zählt."

func TestQuotesAreFoundWhateverTheirWhiteSpace(t *testing.T) {
	n := normalise(runbook)
	for _, c := range []struct {
		quote string
		want  []string
	}{
		{"Drain the node before", []string{"Drain  the\tnode before", "Drain the node before"}},
		{"  Drain the\nnode before   you rotate. ", []string{"Drain  the\tnode before\nyou rotate."}},
		{"Größe zählt.", []string{"Größe zählt."}},
		{"drain the node", nil},
		{"nowhere", nil},
	} {
		var got []string
		for _, s := range n.find(c.quote) {
			got = append(got, runbook[s.Start:s.End])
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%q: %q, want %q", c.quote, got, c.want)
		}
	}
}

func TestQuotesAreWrittenAsThePageIsRead(t *testing.T) {
	page := "Run `fw keys list`. Put it **next to** the old one.\n\n| Rate tier | T1 | T2 |\n| --- | --- | --- |\n| Barque | 250/s |  |\n"
	n := normalise(page)
	for quote, want := range map[string]string{
		"Run fw keys list.":       "Run `fw keys list`.",
		"Put it next to the old":  "Put it **next to** the old",
		"Rate tier T1 T2":         "Rate tier | T1 | T2",
		"**next to** the old one": "next to** the old one",
		"| Barque | 250/s |":      "Barque | 250/s",
	} {
		got := n.find(quote)
		if len(got) != 1 || page[got[0].Start:got[0].End] != want {
			t.Errorf("%q is found at %v", quote, got)
		}
	}
}

func FuzzQuotes(f *testing.F) {
	f.Add(runbook, 24, 40)
	f.Add("a\u2003b", 0, 5)
	f.Fuzz(func(t *testing.T, text string, start, end int) {
		if start < 0 || end > len(text) || start >= end {
			return
		}
		quote := text[start:end]
		want := string(normalise(quote).text)
		spans := normalise(text).find(quote)
		for _, s := range spans {
			if got := string(normalise(text[s.Start:s.End]).text); got != want {
				t.Fatalf("found %q for %q", got, want)
			}
		}
	})
}

func TestLabelsSurviveRechunking(t *testing.T) {
	ds := dataset(t,
		`{"id":"quote","text":"a","evidence":[{"doc":"r.md","quote":"Then wait."}]}`,
		`{"id":"span","text":"b","evidence":[{"doc":"docs/r.md","start":0,"end":20}]}`)
	for _, size := range []int{25, 60, 1000} {
		corpus := (&memory{}).chunked("r.md", runbook, size).chunked("other.md", runbook, size)
		labels, err := Resolve(context.Background(), ds, corpus, LabelOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range labels.Queries {
			for _, c := range corpus.chunks["r.md"] {
				text := runbook[c.Span.Start:c.Span.End]
				holds := strings.Contains(text, "Then wait.")
				if q.ID == "span" {
					holds = c.Span.Start < 20
				}
				if got := len(q.chunks[c.ID]) > 0; got != holds {
					t.Errorf("chunks of %d: query %s: %q relevant: %v", size, q.ID, text, got)
				}
				passage := assay.ContextPassage{DocID: c.DocID, ChunkID: c.ID, Span: c.Span, Tokens: 1}
				if got := scoreOf(t, []assay.ContextPassage{passage}, 1, q)[ContextHit] == 1; got != holds {
					t.Errorf("chunks of %d: query %s: passage %q relevant: %v", size, q.ID, text, got)
				}
			}
			for _, c := range corpus.chunks["other.md"] {
				if len(q.chunks[c.ID]) > 0 {
					t.Errorf("a chunk of another document is relevant for %s", q.ID)
				}
			}
		}
	}
}

func TestAChunkIsRelevantFromHalfOfASpansCharactersOn(t *testing.T) {
	text := "ßßßßabcd" // 8 characters in 12 bytes
	unit := Unit{DocID: "d", Spans: []assay.Span{{Start: 0, End: len(text)}}, texts: []string{text}, Grade: 1}
	for _, c := range []struct {
		start, end int
		want       bool
	}{{0, 8, true}, {8, 12, true}, {0, 6, false}, {9, 12, false}, {12, 20, false}} {
		if got := unit.coveredBy("d", "c", assay.Span{Start: c.start, End: c.end}, .5); got != c.want {
			t.Errorf("bytes %d to %d: %v", c.start, c.end, got)
		}
	}
	unit.Quote = true
	if unit.coveredBy("d", "c", assay.Span{Start: 0, End: 11}, .5) || !unit.coveredBy("d", "c", assay.Span{Start: 0, End: 12}, .5) {
		t.Error("a quote is covered by all of it and by nothing less")
	}
}

func TestChunkLabelsOfAnotherChunkingAreRefusedByName(t *testing.T) {
	made := (&memory{}).chunked("r.md", runbook, 30)
	id := made.chunks["r.md"][1].ID
	ds := dataset(t, `{"id":"q","text":"a","evidence":[{"chunk":"`+id+`"}]}`)
	labels, err := Resolve(context.Background(), ds, made, LabelOptions{})
	if err != nil || len(labels.Query("q").chunks[id]) != 1 {
		t.Fatalf("against the same chunking: %+v, %v", labels, err)
	}
	other := (&memory{}).chunked("r.md", runbook, 50)
	if _, err := Resolve(context.Background(), ds, other, LabelOptions{}); !errors.Is(err, ErrOtherChunking) || !strings.Contains(err.Error(), id) {
		t.Errorf("against another chunking: %v", err)
	}
	sent := func(c assay.Chunk) []assay.ContextPassage {
		return []assay.ContextPassage{{DocID: c.DocID, ChunkID: c.ID, Span: c.Span, Tokens: 1}}
	}
	if got := scoreOf(t, sent(made.chunks["r.md"][1]), 1, labels.Query("q")); got[ContextRecall] != 1 {
		t.Errorf("a context of the same chunking: %v", got)
	}
	if _, err := ScoreContext(sent(other.chunks["r.md"][1]), 1, labels.Query("q")); !errors.Is(err, ErrOtherChunking) {
		t.Errorf("a context of another chunking: %v", err)
	}
	problems, err := Check(context.Background(), ds, other, LabelOptions{})
	if err != nil || len(problems) != 1 || problems[0].Kind != ProblemChunkNotFound || !strings.Contains(problems[0].String(), id) {
		t.Errorf("checked against another chunking: %v, %v", problems, err)
	}
}

func TestCheckNamesEveryProblem(t *testing.T) {
	ds := dataset(t,
		`{"id":"1","text":"How?","evidence":[{"doc":"r.md","quote":"Then sleep."}]}`,
		`{"id":"2","text":" how? ","evidence":[{"doc":"gone.md"}]}`,
		`{"id":"3","text":"c","evidence":[{"doc":"r.md","start":5,"end":5000}]}`,
		`{"id":"4","text":"d"}`,
		`{"id":"5","text":"e","evidence":[{"doc":"r.md","quote":"Then wait."},{"doc":"r.md","quote":"Then  wait."}]}`,
		`{"id":"6","text":"f","evidence":[{"doc":"r.md","quote":"Rotate keys monthly. Drain the node before you rotate."}]}`,
		`{"id":"7","text":"g","unanswerable":true}`)
	corpus := (&memory{}).chunked("r.md", runbook, 80)
	corpus.chunks["r.md"] = corpus.chunks["r.md"][:1]
	corpus.chunks["r.md"][0].Span.End = 30
	problems, err := Check(context.Background(), ds, corpus, LabelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.QueryID+" "+string(p.Kind))
	}
	want := "2 duplicate_text, 4 unjudged, 5 duplicate_evidence, 1 quote_not_found, 2 document_not_found, 3 span_outside, 5 in_no_chunk, 6 in_no_chunk"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
	labels, err := Resolve(context.Background(), ds, corpus, LabelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]State{"1": StateUnresolved, "4": StateUnjudged, "5": StateJudged, "7": StateUnanswerable}
	for id, want := range states {
		if got := labels.Query(id).State; got != want {
			t.Errorf("query %s is %s, want %s", id, got, want)
		}
	}
	if five := labels.Query("5"); len(five.Units) != 1 || five.ceiling(10) != 0 {
		t.Errorf("query 5 has %d units and a ceiling of %d; the label counts once, and no chunk holds it", len(five.Units), five.ceiling(10))
	}
}

func TestResolvingNeedsACorpusForPlaces(t *testing.T) {
	ds := dataset(t, `{"id":"1","text":"a","evidence":[{"doc":"r.md","quote":"Then wait."}]}`)
	if _, err := Resolve(context.Background(), ds, nil, LabelOptions{}); err == nil || !strings.Contains(err.Error(), "corpus") {
		t.Errorf("without a corpus: %v", err)
	}
	if _, err := Resolve(context.Background(), ds, &memory{fails: true}, LabelOptions{}); err == nil || !strings.Contains(err.Error(), "the store is closed") {
		t.Errorf("with a failing corpus: %v", err)
	}
	if _, err := Resolve(context.Background(), ds, nil, LabelOptions{Overlap: 2, Level: -1}); err == nil || !strings.Contains(err.Error(), "overlap") || !strings.Contains(err.Error(), "level") {
		t.Errorf("with bad options: %v", err)
	}
}
