package assay

import (
	"context"
	"errors"
	"time"
)

// StageName names a stage of the read path.
type StageName string

// The stages, in the order in which an answer passes them.
const (
	StageRewrite  StageName = "rewrite" // of conversations only
	StageEmbed    StageName = "embed"
	StageDense    StageName = "dense"
	StageLexical  StageName = "lexical"
	StageFuse     StageName = "fuse"
	StageRerank   StageName = "rerank"
	StageAssemble StageName = "assemble"
	StageGenerate StageName = "generate"
)

// Status is how a stage ended.
type Status string

// The closed vocabulary of stage statuses.
const (
	StatusOK          Status = "ok"
	StatusTimeout     Status = "timeout"     // its deadline passed
	StatusError       Status = "error"       // it ran and failed
	StatusUnavailable Status = "unavailable" // it could not be reached
	StatusSkipped     Status = "skipped"     // there was nothing for it to do
	StatusDisabled    Status = "disabled"    // configured away
)

// Degraded reports whether the status means that the stage should have worked and did not.
func (s Status) Degraded() bool {
	return s == StatusTimeout || s == StatusError || s == StatusUnavailable
}

// Stage says what became of one stage of one request.
type Stage struct {
	Name     StageName     `json:"name"`
	Status   Status        `json:"status"`
	Duration time.Duration `json:"-"`
	Reason   string        `json:"reason,omitempty"`   // why it was not ok
	Fallback string        `json:"fallback,omitempty"` // what was done instead
}

// StatusOf maps an error to a stage status. A caller that goes away leaves a stage nothing to do: that
// is no failure of the stage.
func StatusOf(err error) Status {
	switch {
	case err == nil:
		return StatusOK
	case errors.Is(err, context.Canceled):
		return StatusSkipped
	case errors.Is(err, context.DeadlineExceeded):
		return StatusTimeout
	case errors.Is(err, ErrUnavailable):
		return StatusUnavailable
	}
	return StatusError
}
