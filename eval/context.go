package eval

import "assay"

// Names of the metrics over contexts. They are never called recall@k or precision@k: what is divided
// by is what was sent.
const (
	ContextPrecision        = "context_precision"         // relevant passages / passages
	ContextPrecisionRanked  = "context_precision_ranked"  // mean of the precision at each relevant passage
	ContextRecall           = "context_recall"            // units covered / units
	ContextHit              = "context_hit"               // whether any unit is covered
	ContextAllEvidence      = "context_all_evidence"      // whether every unit is
	ContextCeiling          = "context_ceiling"           // the recall of the best context of that many chunks
	ContextNormalisedRecall = "context_normalised_recall" // recall / ceiling
	FirstRelevantPosition   = "first_relevant_position"   // 1-based; absent when there is none
	ContextTokens           = "context_tokens"
	SignalShare             = "signal_share" // tokens of relevant passages / tokens
)

// ScoreManifest measures the context of a manifest. labels may be nil: then only what needs no labels
// is measured.
func ScoreManifest(m *assay.Manifest, labels *QueryLabels) (Scores, error) {
	return ScoreContext(m.Context.Passages, m.Config.Keep, labels)
}

// ScoreContext measures the passages that were sent, in prompt order, where the pipeline could have
// sent keep of them. What the metrics mean stands at their names. A query that is not judged, or a nil
// one, has only its tokens measured. Labels that name chunks refuse passages of another chunking with
// ErrOtherChunking.
func ScoreContext(passages []assay.ContextPassage, keep int, labels *QueryLabels) (Scores, error) {
	s := Scores{}
	tokens := 0
	for i := range passages {
		tokens += passages[i].Tokens
	}
	s.set(ContextTokens, float64(tokens), true)
	if labels == nil || labels.State != StateJudged || len(labels.Units) == 0 {
		return s, nil
	}
	if err := labels.checkPassages(passages); err != nil {
		return nil, err
	}
	var relevant, signal, ranked float64
	covered := make([]bool, len(labels.Units))
	for i := range passages {
		if !labels.relevant(&passages[i], covered) {
			continue
		}
		relevant++
		signal += float64(passages[i].Tokens)
		ranked += relevant / float64(i+1)
		if relevant == 1 {
			s.set(FirstRelevantPosition, float64(i+1), true)
		}
	}
	sent, units := float64(len(passages)), float64(len(labels.Units))
	found := count(covered, len(covered))
	ceiling := float64(labels.ceiling(max(keep, len(passages))))
	ceiling = max(ceiling, found) // passages of another chunking can hold more than those of this one

	s.set(ContextPrecision, relevant/sent, sent > 0)
	s.set(ContextPrecisionRanked, share(ranked, relevant), true)
	s.set(ContextRecall, found/units, true)
	s.set(ContextHit, b2f(found > 0), true)
	s.set(ContextAllEvidence, b2f(found == units), true)
	s.set(ContextCeiling, ceiling/units, true)
	s.set(ContextNormalisedRecall, found/ceiling, ceiling > 0)
	s.set(SignalShare, signal/float64(tokens), tokens > 0)
	return s, nil
}

// OracleContext is what a query's scores would have been had the best context of the same size been
// sent: every metric of the context at its best, everything else as it was.
func OracleContext(observed Scores) Scores {
	oracle := Scores{}
	for name, v := range observed {
		oracle[name] = v
	}
	ceiling, ok := observed[ContextCeiling]
	if !ok {
		return oracle
	}
	reachable := ceiling > 0
	for name, v := range map[string]float64{
		ContextRecall:          ceiling,
		ContextHit:             b2f(reachable),
		ContextAllEvidence:     b2f(ceiling == 1),
		ContextPrecision:       b2f(reachable),
		ContextPrecisionRanked: b2f(reachable),
		SignalShare:            b2f(reachable),
	} {
		oracle[name] = v
	}
	oracle.set(ContextNormalisedRecall, 1, reachable)
	oracle.set(FirstRelevantPosition, 1, reachable)
	return oracle
}

// Tallies collects Scores over many queries in memory that does not grow with their number.
type Tallies struct {
	judged  int
	tallies map[string]*Tally
}

// Add takes one query's scores. A metric that others have and this one lacks counts as undefined for it.
func (t *Tallies) Add(s Scores) {
	if t.tallies == nil {
		t.tallies = map[string]*Tally{}
	}
	for name, v := range s {
		tally := t.tallies[name]
		if tally == nil {
			tally = &Tally{}
			t.tallies[name] = tally
		}
		tally.Add(v, true)
	}
	t.judged++
}

// Summaries returns each metric over all queries that were added.
func (t *Tallies) Summaries() map[string]Summary {
	out := map[string]Summary{}
	for name, tally := range t.tallies {
		s := tally.Summary()
		s.Undefined = t.judged - s.N
		out[name] = s
	}
	return out
}
