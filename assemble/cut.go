package assemble

import (
	"slices"
	"sort"
	"strings"

	"github.com/rivo/uniseg"

	"assay"
)

// cut makes room for the best of the passages that are over budget when none fits. It is sent up to the
// end of the last sentence that fits: half a sentence may say the opposite of the whole one. The
// candidate keeps its own span; the passage in the context has the one that was sent.
func (s *Selection) cut(r Rules) {
	i := slices.IndexFunc(s.Candidates, func(c assay.Candidate) bool { return c.Reason == assay.DropOverBudget })
	if i < 0 {
		return
	}
	c := &s.Candidates[i]
	ends := sentenceEnds(c.Text)
	upTo := func(end int) assay.Candidate {
		short := *c
		short.Text = c.Text[:end]
		short.Span.End = c.Span.Start + end
		short.Tokens = r.Count(short.Text)
		return short
	}
	// The search finds where it stops fitting; tokens may shrink by a little as a text grows, so that
	// what is found is checked.
	n := sort.Search(len(ends), func(k int) bool { return r.Cost(upTo(ends[k]), 1) > r.Room })
	if n == 0 {
		return
	}
	short := upTo(ends[n-1])
	if r.Cost(short, 1) > r.Room {
		return
	}
	c.Disposition, c.Reason = assay.Kept, ""
	short.Disposition, short.Reason = assay.Kept, ""
	s.Context, s.Tokens = []assay.Candidate{short}, short.Tokens
}

// sentenceEnds are the places behind the sentences of a text, by the Unicode rules, without the space
// that follows.
func sentenceEnds(text string) []int {
	var out []int
	state, at := -1, 0
	for rest := text; rest != ""; {
		var sentence string
		sentence, rest, state = uniseg.FirstSentenceInString(rest, state)
		if trimmed := strings.TrimRight(sentence, " \t\r\n"); trimmed != "" {
			out = append(out, at+len(trimmed))
		}
		at += len(sentence)
	}
	return out
}
