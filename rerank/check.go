package rerank

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"assay"
)

// The pair that a check asks about. The second text shares words with the question, so that a
// service that counts words and reads nothing is seen too.
const (
	checkQuestion   = "How long does a refund take?"
	checkRelevant   = "Refunds are returned to the original card within five business days of approval."
	checkIrrelevant = "How long the office takes to refund the deposit for a parking space depends on the landlord's mood and the weather."
)

// Finding is what a check found out about a service.
type Finding struct {
	Dialect       Dialect `json:"dialect"` // that the service answers, "" when it answers none
	URL           string  `json:"url"`     // without credentials
	Model         string  `json:"model,omitempty"`
	Scale         Scale   `json:"scale"`
	OffScale      bool    `json:"off_scale,omitempty"` // the scores are not on that scale
	Relevant      float64 `json:"relevant_score"`
	Irrelevant    float64 `json:"irrelevant_score"`
	RelevantFirst bool    `json:"relevant_first"`
	LatencyMS     float64 `json:"latency_ms"` // of a second call, which finds a connection and a loaded model
	Trials        []Trial `json:"trials"`
}

// Trial is one dialect that a check has tried.
type Trial struct {
	Dialect   Dialect            `json:"dialect"`
	URL       string             `json:"url,omitempty"`
	Status    assay.RerankStatus `json:"status"`
	LatencyMS float64            `json:"latency_ms"`
	Reason    string             `json:"reason,omitempty"`
}

// Check asks a service to rank two texts, in the dialect of the options first and then, as long as it
// is not understood, in the others. A dialect whose scale does not hold the scores is taken only if
// no other is understood. The error says that none is; the trials say why.
func Check(ctx context.Context, lg *slog.Logger, o Options) (Finding, error) {
	o = o.WithDefaults()
	o.MaxAttempts, o.BreakerFailures = 1, -1
	others := slices.DeleteFunc(Dialects(), func(d Dialect) bool { return d == o.Dialect })
	var found Finding
	var trials []Trial
	for _, d := range append([]Dialect{o.Dialect}, others...) {
		o.Dialect = d
		f, trial := check(ctx, lg, o)
		trials = append(trials, trial)
		if f.Dialect != "" && (found.Dialect == "" || !f.OffScale) {
			found = f
		}
		if found.Dialect != "" && !found.OffScale {
			break
		}
		switch trial.Status {
		case assay.RerankTimeout, assay.RerankUnavailable, assay.RerankCancelled:
			found.Trials = trials
			return found, fmt.Errorf("%s", trial.Reason) // no dialect makes it answer
		}
	}
	found.Trials = trials
	if found.Dialect == "" {
		return found, fmt.Errorf("no dialect of %s is understood; with the first of them: %s", dialectNames(), trials[0].Reason)
	}
	return found, nil
}

// check tries one dialect.
func check(ctx context.Context, lg *slog.Logger, o Options) (Finding, Trial) {
	trial := Trial{Dialect: o.Dialect, Status: assay.RerankSkipped}
	c, err := New(lg, o)
	if err != nil {
		trial.Reason = err.Error()
		return Finding{}, trial
	}
	defer c.Close()
	texts := []string{checkIrrelevant, checkRelevant} // so that a service that keeps the order is seen
	out := c.Rerank(ctx, checkQuestion, texts, 1)
	trial.URL, trial.Status, trial.LatencyMS, trial.Reason = c.shown, out.Status, assay.Milliseconds(out.Latency), out.Reason
	if out.Status != assay.RerankOK {
		return Finding{}, trial
	}
	if again := c.Rerank(ctx, checkQuestion, texts, 1); again.Status == assay.RerankOK {
		out = again
	}
	f := Finding{
		Dialect: o.Dialect, URL: c.shown, Model: o.Model, Scale: c.wire.scale,
		Irrelevant: out.Scores[0], Relevant: out.Scores[1], RelevantFirst: out.Scores[1] > out.Scores[0],
		LatencyMS: assay.Milliseconds(out.Latency),
	}
	if f.OffScale = !f.Scale.holds(f.Relevant) || !f.Scale.holds(f.Irrelevant); f.OffScale {
		trial.Reason = fmt.Sprintf("the scores %g and %g are not on its scale (%s)", f.Relevant, f.Irrelevant, f.Scale)
	}
	return f, trial
}
