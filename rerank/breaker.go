package rerank

import (
	"log/slog"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

// verdict is what the end of a stage says about the service.
type verdict int

const (
	unknown  verdict = iota // nothing: it was not asked, or not given its time
	answers                 // it lives, even if it refused this very request
	failures                // it is down, overloaded or talking nonsense
)

// breaker keeps questions from a service that has failed several times in a row. After a while one
// question is let through as a probe, and how that ends decides for the others.
type breaker struct {
	lg      *slog.Logger
	service string
	limit   int

	mu   sync.Mutex // guards what follows, and makes a probe's result and its permit go together
	cb   circuitbreaker.CircuitBreaker[any]
	last string // why the service failed last
}

func newBreaker(lg *slog.Logger, service string, o Options) *breaker {
	if o.BreakerFailures < 0 {
		return nil
	}
	return &breaker{lg: lg, service: service, limit: o.BreakerFailures,
		cb: circuitbreaker.NewBuilder[any]().
			WithFailureThreshold(uint(o.BreakerFailures)).
			WithSuccessThreshold(1). // and so one probe at a time
			WithDelay(o.BreakerCooldown).
			Build()}
}

// allow reports whether the service may be asked, and whether as a probe. If not, it says when the
// next probe is due and why the service failed last.
func (b *breaker) allow() (ok, probe bool, wait time.Duration, last string) {
	if b == nil {
		return true, false, 0, ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.cb.TryAcquirePermit() {
		return false, false, b.cb.RemainingDelay(), b.last
	}
	return true, b.cb.IsHalfOpen(), 0, ""
}

// record takes the end of a stage that allow has let through. Stages from before the circuit opened
// that end after it say nothing about the service as it is now.
func (b *breaker) record(probe bool, v verdict, reason string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if before := b.cb.State(); probe && before != circuitbreaker.HalfOpenState || !probe && before != circuitbreaker.ClosedState {
		return
	}
	switch v {
	case answers:
		b.cb.RecordSuccess()
		if probe {
			b.lg.Info("rerank circuit closed: the service answers again", "service", b.service)
		}
	case failures:
		b.last = reason
		b.cb.RecordFailure()
		if b.cb.IsOpen() {
			b.lg.Warn("rerank circuit opened", "service", b.service, "failures_in_a_row", b.limit, "probe", probe,
				"cooldown", b.cb.RemainingDelay(), "last_error", reason)
		}
	case unknown:
		if probe {
			// The library has no way to give a probe's permit back; going through open makes a new one.
			b.cb.Open()
			b.cb.HalfOpen()
		}
	}
}
