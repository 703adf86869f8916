package assemble

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"assay"
)

func candidate(id, doc, text string) assay.Candidate {
	return assay.Candidate{ChunkID: id, DocID: doc, Text: text, Tokens: len(strings.Fields(text))}
}

func rules(keep, room int) Rules {
	return Rules{
		Keep: keep, Room: room, Order: BestFirst,
		Cost:        func(c assay.Candidate, _ int) int { return c.Tokens + 1 },
		Count:       func(text string) int { return len(strings.Fields(text)) },
		Replacement: func(string) string { return "" },
	}
}

// fates writes what became of each candidate: "c1 kept, c2 duplicate of c1".
func fates(s Selection) string {
	var out []string
	for _, c := range s.Candidates {
		fate := c.ChunkID + " " + string(c.Disposition)
		if c.Disposition == assay.Dropped {
			fate = c.ChunkID + " " + string(c.Reason)
		}
		if c.Of != "" {
			fate += " of " + c.Of
		}
		out = append(out, fate)
	}
	return strings.Join(out, ", ")
}

func TestSelectSaysWhatBecameOfEachCandidate(t *testing.T) {
	three := []assay.Candidate{candidate("c1", "a", "one two three"), candidate("c2", "b", "four five"), candidate("c3", "c", "six")}
	tests := []struct {
		name       string
		candidates []assay.Candidate
		rules      Rules
		want       string
	}{
		{"all fit", three, rules(5, 100), "c1 kept, c2 kept, c3 kept"},
		{"keep", three, rules(2, 100), "c1 kept, c2 kept, c3 below_keep"},
		{"budget passes over what does not fit", three, rules(5, 7), "c1 kept, c2 kept, c3 over_budget"},
		{"a smaller one takes the room", three, rules(5, 6), "c1 kept, c2 over_budget, c3 kept"},
		{"nothing fits", three, rules(5, 1), "c1 over_budget, c2 over_budget, c3 over_budget"},
		{"a duplicate takes no place", []assay.Candidate{candidate("c1", "a", "same  text"), candidate("c2", "b", "same\ntext"), candidate("c3", "c", "other")},
			rules(2, 100), "c1 kept, c2 duplicate of c1, c3 kept"},
		{"nothing", nil, rules(5, 100), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fates(Select(tt.candidates, tt.rules)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSupersededDocumentsAreDroppedAndNamed(t *testing.T) {
	r := rules(1, 100)
	r.Replacement = func(doc string) string { return map[string]string{"old": "new"}[doc] }
	s := Select([]assay.Candidate{candidate("c1", "old", "seven days"), candidate("c2", "new", "five days")}, r)
	if got, want := fates(s), "c1 superseded of new, c2 kept"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWithoutARelevantPassageNothingIsSent(t *testing.T) {
	list := []assay.Candidate{candidate("c1", "a", "one"), candidate("c2", "b", "two"), candidate("c3", "c", "three"), candidate("c4", "d", "four")}
	for _, tt := range []struct {
		name      string
		relevance map[string]float64
		want      string
	}{
		{"one of the kept is relevant", map[string]float64{"c1": 0.1, "c2": 0.4}, "c1 kept, c2 kept, c3 below_keep, c4 below_keep"},
		{"none of the kept is", map[string]float64{"c1": 0.1, "c2": 0.39, "c3": 0.9}, "c1 below_min_score, c2 below_min_score, c3 below_keep, c4 below_keep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rules(2, 100)
			r.MinRelevance, r.Relevance = 0.4, func(c assay.Candidate) float64 { return tt.relevance[c.ChunkID] }
			s := Select(list, r)
			if got := fates(s); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if len(s.Context) == 0 && s.Tokens != 0 || s.Relevance != max(tt.relevance["c1"], tt.relevance["c2"]) {
				t.Errorf("%d tokens, relevance %g", s.Tokens, s.Relevance)
			}
		})
	}
}

func TestEdgesPutTheBestAtBothEnds(t *testing.T) {
	var list []assay.Candidate
	for i := range 5 {
		list = append(list, candidate(fmt.Sprint(i+1), "d", fmt.Sprint("text ", i)))
	}
	r := rules(5, 100)
	r.Order = Edges
	var order []string
	for _, c := range Select(list, r).Context {
		order = append(order, c.ChunkID)
	}
	if got := strings.Join(order, " "); got != "1 3 5 4 2" {
		t.Errorf("the order is %s", got)
	}
}

func TestSelectKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "n")
		var list []assay.Candidate
		for i := range n {
			words := rapid.IntRange(1, 6).Draw(t, "words")
			same := rapid.IntRange(0, 3).Draw(t, "same")
			list = append(list, candidate(fmt.Sprint("c", i), fmt.Sprint("d", i%4), strings.Repeat(fmt.Sprint("w", same, " "), words)))
		}
		r := rules(rapid.IntRange(1, 8).Draw(t, "keep"), rapid.IntRange(0, 40).Draw(t, "room"))
		r.Order = rapid.SampledFrom([]Order{BestFirst, Edges}).Draw(t, "order")
		r.Replacement = func(doc string) string { return map[string]string{"d3": "d0"}[doc] }
		before := slices.Clone(list)
		s := Select(list, r)
		if !slices.Equal(list, before) {
			t.Fatal("the caller's slice was changed")
		}
		if len(s.Candidates) != n || len(s.Context) > r.Keep {
			t.Fatalf("%d candidates became %d, %d were kept of %d", n, len(s.Candidates), len(s.Context), r.Keep)
		}
		cost, kept := 0, 0
		texts := make(map[string]bool)
		for _, c := range s.Context {
			cost += r.Cost(c, 0)
			if texts[c.Text] || c.DocID == "d3" {
				t.Fatalf("%+v should not have been kept", c)
			}
			texts[c.Text] = true
		}
		if cost > r.Room {
			t.Fatalf("%d tokens are over the room of %d", cost, r.Room)
		}
		for _, c := range s.Candidates {
			if c.Disposition == assay.Kept {
				kept++
			}
			if (c.Disposition == assay.Dropped) == (c.Reason == "") {
				t.Fatalf("%+v: a reason belongs to what is dropped", c)
			}
		}
		if kept != len(s.Context) {
			t.Fatalf("%d are marked as kept, %d are in the context", kept, len(s.Context))
		}
	})
}

func TestOptionsReportEveryProblem(t *testing.T) {
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	err := Options{Budget: 5, Order: "random", NearDuplicates: 1.2, MinRelevance: -1}.Validate()
	for _, key := range []string{"assemble.budget", "assemble.order", "assemble.near_duplicates", "assemble.min_relevance"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v does not name %s", err, key)
		}
	}
}

func TestRecordWritesTheManifest(t *testing.T) {
	start := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	r := NewRecord(start, "default", "trace", assay.Query{Text: "q", History: make([]assay.Message, 2)},
		assay.ManifestConfig{Keep: 2, Budget: 100}, assay.ManifestModels{})
	r.Stages(assay.Stage{Name: assay.StageDense, Status: assay.StatusOK}, assay.Stage{Name: assay.StageRerank, Status: assay.StatusTimeout})
	r.Reranker(assay.ManifestReranker{Status: assay.RerankTimeout})
	s := Select([]assay.Candidate{candidate("c1", "a", "one two"), candidate("c2", "b", "three"), candidate("c3", "c", "four")}, rules(2, 100))
	r.Selection(s, Edges)
	r.Answer(assay.ManifestPrompt{Tokens: 9}, "text", assay.ManifestAnswer{}, assay.Usage{InputTokens: 9})
	m := r.Finish(start.Add(1500*time.Microsecond), errors.New("boom"))
	if m.ID != r.ID() || !strings.HasPrefix(m.ID, "m_") || m.Query.History != 2 || m.DurationMS != 1.5 || m.Error != "boom" {
		t.Errorf("manifest %+v", m)
	}
	if fmt.Sprint(m.Degraded) != "[rerank]" || m.Context.Tokens != 3 || len(m.Candidates) != 3 {
		t.Errorf("degraded %v, context %+v", m.Degraded, m.Context)
	}
	for i, want := range []string{"1 [1] c1", "2 [2] c2"} {
		p := m.Context.Passages[i]
		if got := fmt.Sprint(p.Position, " ", p.Marker, " ", p.ChunkID); got != want {
			t.Errorf("passage %d is %s, want %s", i, got, want)
		}
	}
	if m.Answer.TextHash != assay.HashText("text") || m.Answer.Citations == nil {
		t.Errorf("answer %+v", m.Answer)
	}
}

func TestIDsSortByTime(t *testing.T) {
	last := ""
	for range 100 {
		id := newID()
		if id <= last {
			t.Fatalf("%s follows %s", id, last)
		}
		last = id
	}
}
