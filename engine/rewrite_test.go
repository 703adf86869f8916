package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"assay"
)

// rewriterFunc is a model that rewrites.
type rewriterFunc func(ctx context.Context, question string, history []assay.Message) (string, error)

func (f rewriterFunc) Rewrite(ctx context.Context, question string, history []assay.Message) (string, error) {
	return f(ctx, question, history)
}

func TestConversationsAreRewritten(t *testing.T) {
	model := func(text string, err error) Rewriter {
		return rewriterFunc(func(context.Context, string, []assay.Message) (string, error) { return text, err })
	}
	history := []assay.Message{{Role: "user", Content: "What is a signing key?"}, {Role: "assistant", Content: "A secret."}}
	const byRule = "How do I rotate it? signing key"
	tests := []struct {
		name     string
		options  Options
		rewriter Rewriter
		history  []assay.Message
		status   assay.Status // "" for no such stage
		reason   string
		want     string
	}{
		{"single question", Options{}, model("never asked", nil), nil, "", "", ""},
		{"by rule", Options{}, nil, history, assay.StatusOK, "", byRule},
		{"by model", Options{}, model("How do I rotate a signing key?", nil), history, assay.StatusOK, "", "How do I rotate a signing key?"},
		{"rule asked for", Options{Rewrite: RewriteRule}, model("never asked", nil), history, assay.StatusOK, "", byRule},
		{"never", Options{Rewrite: RewriteNever}, model("never asked", nil), history, assay.StatusDisabled, "retriever.rewrite", ""},
		{"the model leaves it", Options{}, model("How do I rotate it?", nil), history, assay.StatusOK, "", ""},
		{"the model fails", Options{}, model("", errors.New("500")), history, assay.StatusError, "500", byRule},
		{"the model says nothing", Options{}, model(" \n", nil), history, assay.StatusError, "0 bytes", byRule},
		{"the model says too much", Options{}, model(strings.Repeat("key ", 5000), nil), history, assay.StatusError, "bytes", byRule},
		{"the model is slow", Options{RewriteTimeout: 20 * time.Millisecond}, rewriterFunc(func(ctx context.Context, _ string, _ []assay.Message) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}), history, assay.StatusTimeout, "retriever.rewrite_timeout", byRule},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, setup{options: tt.options})
			w.d.Rewriter = tt.rewriter
			w.ingest(t, pages(), IngestOptions{})
			answer, err := w.Answer(t.Context(), assay.Query{Text: "How do I rotate it?", History: tt.history}, nil)
			if err != nil {
				t.Fatal(err)
			}
			m := answer.Manifest
			if m.Query.Text != "How do I rotate it?" || m.Query.Rewritten != tt.want {
				t.Errorf("asked %q, searched for %q, want %q", m.Query.Text, m.Query.Rewritten, tt.want)
			}
			s := m.Stage(assay.StageRewrite)
			if s == nil {
				if tt.status != "" {
					t.Error("there is no such stage")
				}
				return
			}
			if s.Status != tt.status || !strings.Contains(s.Reason, tt.reason) || s.Status.Degraded() != (s.Fallback != "") {
				t.Errorf("stage %+v, want %s", s, tt.status)
			}
			if degraded := len(m.Degraded) > 0 && m.Degraded[0] == assay.StageRewrite; degraded != tt.status.Degraded() {
				t.Errorf("degraded %v", m.Degraded)
			}
		})
	}
}
