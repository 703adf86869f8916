package generate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// collection is a judged set of questions over documents that are cut into passages.
type collection struct {
	passages []Passage
	terms    []map[string]int
	df       map[string]int
	average  float64
	queries  []judged
}

// judged is a question with what is known about its answer.
type judged struct {
	id, text, answer string
	answerable       bool
	relevant         map[string]bool // by document
	history          string
}

func readLines(t *testing.T, path string, each func(line []byte)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("the public data sets are not there: %v", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		each(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// load reads a collection in the BEIR layout and cuts its documents at paragraphs into passages of
// about 190 words, which is 256 tokens.
func load(t *testing.T, name string) *collection {
	t.Helper()
	dir := filepath.Join("..", "..", "shared", "data", filepath.FromSlash(name))
	c := &collection{df: map[string]int{}}
	type record struct {
		ID       string `json:"_id"`
		Title    string
		Text     string
		Answer   string
		Metadata struct {
			Answerability string
			History       []struct{ Speaker, Text string }
		}
	}
	decode := func(line []byte) record {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	readLines(t, filepath.Join(dir, "corpus.jsonl"), func(line []byte) {
		r := decode(line)
		for _, text := range cut(r.Text, 190) {
			c.add(Passage{ChunkID: fmt.Sprintf("c%d", len(c.passages)), DocID: r.ID, URI: r.ID, Title: r.Title, Text: text})
		}
	})
	relevant := map[string]map[string]bool{}
	readLines(t, filepath.Join(dir, "qrels.tsv"), func(line []byte) {
		f := strings.Split(string(line), "\t")
		if relevant[f[0]] == nil {
			relevant[f[0]] = map[string]bool{}
		}
		relevant[f[0]][f[1]] = true
	})
	answers := map[string]string{}
	readLines(t, filepath.Join(dir, "answers.jsonl"), func(line []byte) { r := decode(line); answers[r.ID] = r.Answer })
	readLines(t, filepath.Join(dir, "queries.jsonl"), func(line []byte) {
		r := decode(line)
		q := judged{id: r.ID, text: r.Text, answer: answers[r.ID], relevant: relevant[r.ID],
			answerable: r.Metadata.Answerability == "" || r.Metadata.Answerability == "ANSWERABLE"}
		for _, h := range r.Metadata.History {
			if h.Speaker == "user" {
				q.history = h.Text
			}
		}
		c.queries = append(c.queries, q)
	})
	return c
}

func cut(text string, size int) []string {
	var out []string
	var open strings.Builder
	n := 0
	for _, line := range strings.SplitAfter(text, "\n") {
		w := len(strings.Fields(line))
		if n > 0 && n+w > size {
			out = append(out, open.String())
			open.Reset()
			n = 0
		}
		open.WriteString(line)
		n += w
	}
	return append(out, open.String())
}

func (c *collection) add(p Passage) {
	a := newAnalyser("")
	counts := map[string]int{}
	for _, t := range a.terms(p.Title + " " + p.Text) {
		counts[t]++
	}
	for t := range counts {
		c.df[t]++
	}
	c.average += float64(len(counts))
	c.passages, c.terms = append(c.passages, p), append(c.terms, counts)
}

// search is BM25 over the passages; only filters documents when it is given.
func (c *collection) search(query string, k int, only map[string]bool) []Passage {
	type hit struct {
		i int
		s float64
	}
	var hits []hit
	terms := newAnalyser("").terms(query)
	for i, counts := range c.terms {
		if only != nil && !only[c.passages[i].DocID] {
			continue
		}
		s := 0.0
		for _, t := range terms {
			if tf := float64(counts[t]); tf > 0 {
				idf := math.Log(1 + (float64(len(c.terms)-c.df[t])+0.5)/(float64(c.df[t])+0.5))
				s += idf * tf * 2.2 / (tf + 1.2*(0.25+0.75*float64(len(counts))*float64(len(c.terms))/c.average))
			}
		}
		if s > 0 {
			hits = append(hits, hit{i, s})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		switch {
		case a.s > b.s:
			return -1
		case a.s < b.s:
			return 1
		}
		return 0
	})
	var out []Passage
	for _, h := range hits[:min(k, len(hits))] {
		p := c.passages[h.i]
		p.Position = len(out) + 1
		p.Marker = fmt.Sprintf("[%d]", p.Position)
		out = append(out, p)
	}
	return out
}

// recall is the share of the reference's content words that are in the answer.
func recall(answer, reference string) float64 {
	a := newAnalyser("")
	have := map[string]bool{}
	for _, t := range a.terms(answer) {
		have[t] = true
	}
	want := map[string]bool{}
	for _, t := range a.terms(reference) {
		want[t] = true
	}
	if len(want) == 0 {
		return 0
	}
	n := 0
	for t := range want {
		if have[t] {
			n++
		}
	}
	return float64(n) / float64(len(want))
}

// rougeL is the longest common subsequence of words as a share of the reference.
func rougeL(answer, reference string) float64 {
	a, b := strings.Fields(strings.ToLower(answer)), strings.Fields(strings.ToLower(reference))
	if len(b) == 0 {
		return 0
	}
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			up := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			diagonal = up
		}
	}
	return float64(row[len(b)]) / float64(len(b))
}

// figures are what an extractive answer reaches on a collection.
type figures struct {
	n, refused, unanswerable, unanswerableRefused int
	recall, rougeL, ceiling, tokens, cited        float64
}

// measure answers every question from the best passages. With gold, the passages of the relevant
// documents come first; the ceiling is the recall of all that was sent.
func (c *collection) measure(t *testing.T, x *Extractive, gold bool, show func(q judged, r Result)) figures {
	t.Helper()
	var f figures
	for _, q := range c.queries {
		if q.answer == "" {
			continue
		}
		passages := c.search(q.text, 5, nil)
		if gold && len(q.relevant) > 0 {
			passages = append(c.search(q.text+" "+q.text, 3, q.relevant), passages...)
			seen := map[string]bool{}
			passages = slices.DeleteFunc(passages, func(p Passage) bool { dup := seen[p.ChunkID]; seen[p.ChunkID] = true; return dup })
			passages = passages[:min(5, len(passages))]
			for i := range passages {
				passages[i].Position, passages[i].Marker = i+1, fmt.Sprintf("[%d]", i+1)
			}
		}
		r, err := x.Generate(t.Context(), Request{Question: q.text, Passages: passages}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if show != nil {
			show(q, r)
		}
		if !q.answerable {
			f.unanswerable++
			if r.Refused {
				f.unanswerableRefused++
			}
			continue
		}
		f.n++
		if r.Refused {
			f.refused++
		}
		var sent strings.Builder
		for _, p := range passages {
			sent.WriteString(p.Text + "\n")
		}
		f.recall += recall(r.Text, q.answer)
		f.rougeL += rougeL(r.Text, q.answer)
		f.ceiling += recall(sent.String(), q.answer)
		f.tokens += float64(r.Usage.OutputTokens)
		for _, citation := range r.Citations {
			if q.relevant[citation.DocID] {
				f.cited++
				break
			}
		}
	}
	n := float64(f.n)
	f.recall, f.rougeL, f.ceiling, f.tokens, f.cited = f.recall/n, f.rougeL/n, f.ceiling/n, f.tokens/n, f.cited/n
	return f
}

func (f figures) String() string {
	return fmt.Sprintf("%d answerable: %d refused, recall %.3f of %.3f sent, ROUGE-L recall %.3f, cites a relevant document %.3f, %.0f tokens; %d unanswerable: %d refused",
		f.n, f.refused, f.recall, f.ceiling, f.rougeL, f.cited, f.tokens, f.unanswerable, f.unanswerableRefused)
}
