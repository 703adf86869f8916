package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"assay"
	"assay/generate"
)

// RewriteMode is how the last turn of a conversation becomes a question that can be searched for.
type RewriteMode string

// The ways of rewriting.
const (
	RewriteAuto  RewriteMode = "auto"  // by the chat model where there is one, by the rule otherwise
	RewriteRule  RewriteMode = "rule"  // by the rule of generate.StandAlone
	RewriteNever RewriteMode = "never" // the last turn is searched for as it is
)

// Rewriter is a model that makes the last turn of a conversation stand alone.
type Rewriter interface {
	Rewrite(ctx context.Context, question string, history []assay.Message) (string, error)
}

var _ Rewriter = (*generate.Endpoint)(nil)

// rewrite decides what is searched for. Only conversations pass this stage: a single question is
// searched for as it is, and has no such stage in its manifest.
func (r *request) rewrite() error {
	r.searched = r.q.Text
	if len(r.q.History) == 0 {
		return nil
	}
	ctx, end := r.span.observe(r.ctx, assay.StageRewrite)
	start := time.Now()
	s := assay.Stage{Name: assay.StageRewrite, Status: assay.StatusOK}
	switch {
	case r.e.o.Rewrite == RewriteNever:
		s.Status, s.Reason = assay.StatusDisabled, "retriever.rewrite is never"
	case r.e.o.Rewrite == RewriteAuto && r.e.d.Rewriter != nil:
		if err := r.rewriteByModel(ctx); err != nil {
			s.Status, s.Reason, s.Fallback = assay.StatusOf(err), err.Error(), "rewritten by rule"
			r.searched = generate.StandAlone(r.q.Text, r.q.History)
		}
	default:
		r.searched = generate.StandAlone(r.q.Text, r.q.History)
	}
	s.Duration = time.Since(start)
	end(s)
	if r.searched != r.q.Text {
		r.record.Rewritten(r.searched)
	}
	if err := r.stage(s); err != nil {
		return err
	}
	if r.ctx.Err() != nil {
		return fmt.Errorf("rewrite: %w", context.Cause(r.ctx))
	}
	return nil
}

// rewriteByModel has a deadline of its own, so that a slow model costs the rule's quality and not the
// answer.
func (r *request) rewriteByModel(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.e.o.RewriteTimeout,
		fmt.Errorf("it took longer than retriever.rewrite_timeout (%s): %w", r.e.o.RewriteTimeout, context.DeadlineExceeded))
	defer cancel()
	text, err := r.e.d.Rewriter.Rewrite(ctx, r.q.Text, r.q.History)
	text = strings.TrimSpace(text)
	switch {
	case err != nil:
		return err
	case text == "" || len(text) > r.e.o.MaxQuestion:
		return fmt.Errorf("the model's question has %d bytes; it must have between 1 and %d", len(text), r.e.o.MaxQuestion)
	}
	r.searched = strings.ToValidUTF8(text, "")
	return nil
}
