package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"

	"assay"
	"assay/rerank"
	"assay/rerank/reranktest"
)

// The tests of this file put an engine over a reranker that fails, on a network in memory and under a
// clock that moves only when everybody waits: "in time" is asserted without slack for the machine.

const faultTimeout = 500 * time.Millisecond

var policies = []assay.FallbackPolicy{assay.FallbackFused, assay.FallbackWiden, assay.FallbackFail}

// faulty is the world's engine over another reranker, with a log of its own.
type faulty struct {
	*Engine
	log bytes.Buffer
}

// over returns an engine over a reranker at the other end of n. Call it within the bubble.
func (w *world) over(t *testing.T, n http.RoundTripper, o rerank.Options) *faulty {
	t.Helper()
	f := &faulty{}
	lg := slog.New(slog.NewTextHandler(&f.log, nil))
	o.URL, o.Model, o.Transport, o.FallbackKeep = reranktest.URL, "ce", n, 3
	if o.Timeout == 0 {
		o.Timeout = faultTimeout
	}
	client, err := rerank.New(lg, o)
	if err != nil {
		t.Fatal(err)
	}
	deps := w.d
	deps.Reranker = client
	if f.Engine, err = New(lg, deps, Options{Keep: 1}); err != nil {
		t.Fatal(err)
	}
	return f
}

// refund is a question that the fused order answers; the dense channel makes every page a candidate.
var refund = assay.Query{Text: "refund returned within business days"}

func TestEveryFaultOfTheRerankerIsSeenTheSameEverywhere(t *testing.T) {
	w := newWorld(t, setup{})
	w.ingest(t, pages(), IngestOptions{})
	for _, fault := range reranktest.Faults() {
		for _, policy := range policies {
			t.Run(fault.Name+"/"+string(policy), func(t *testing.T) {
				w.spans.Reset()
				var a *assay.Answer
				var told assay.ManifestReranker
				var log string
				var err error
				var took time.Duration
				synctest.Test(t, func(t *testing.T) {
					n := reranktest.NewNetwork(fault.Serve)
					defer n.Close()
					e := w.over(t, n, rerank.Options{Policy: policy})
					start := time.Now()
					a, err = e.Answer(context.Background(), refund, func(v assay.Event) error {
						if v.Reranker != nil {
							told = *v.Reranker
						}
						return nil
					})
					took = time.Since(start)
					log = e.log.String()
				})
				w.flush(t)
				x := expectation{status: fault.Status}
				if fault.Status != assay.RerankOK {
					x.fallback = policy
				}
				x.answer(t, a, err)
				if took > faultTimeout+50*time.Millisecond || fault.Deadline && took < faultTimeout {
					t.Errorf("the answer took %v of %v", took, faultTimeout)
				}
				if told != a.Manifest.Reranker {
					t.Errorf("the event says %+v, the manifest %+v", told, a.Manifest.Reranker)
				}
				x.manifest(t, a.Manifest)
				x.spans(t, w, a.Manifest)
				x.log(t, log, a.Manifest)
			})
		}
	}
}

// expectation is what all records of one answer must say of the reranker.
type expectation struct {
	status   assay.RerankStatus
	fallback assay.FallbackPolicy // "" when it ranked
}

func (x expectation) answer(t *testing.T, a *assay.Answer, err error) {
	t.Helper()
	if a == nil || a.Manifest == nil {
		t.Fatalf("no manifest; %v", err)
	}
	if x.fallback == assay.FallbackFail {
		if !errors.Is(err, assay.ErrDegraded) || a.Text != "" || !strings.Contains(err.Error(), a.Manifest.Reranker.Error) {
			t.Errorf("the policy is to refuse: %q, %v", a.Text, err)
		}
		return
	}
	// The reranker of these tests finds the last page best, which is another one than the fused order does.
	if err != nil || a.Text == "" || strings.Contains(a.Text, "business days") != (x.fallback != "") {
		t.Errorf("the answer is %q, %v", a.Text, err)
	}
	sent := map[assay.FallbackPolicy]int{assay.FallbackFused: 1, assay.FallbackWiden: 3, "": 1}[x.fallback]
	if len(a.Manifest.Context.Passages) != sent {
		t.Errorf("%d passages were sent, want %d", len(a.Manifest.Context.Passages), sent)
	}
}

func (x expectation) manifest(t *testing.T, m *assay.Manifest) {
	t.Helper()
	r, s := m.Reranker, m.Stage(assay.StageRerank)
	if r.Status != x.status || r.Fallback != x.fallback || (r.Error == "") != (x.fallback == "") || r.TimeoutMS != assay.Milliseconds(faultTimeout) {
		t.Errorf("reranker: %+v", r)
	}
	if s.Status != x.status.Stage() || s.Fallback != string(x.fallback) || s.Reason != r.Error || assay.Milliseconds(s.Duration) != r.LatencyMS {
		t.Errorf("stage %+v, reranker %+v", s, r)
	}
	if slices.Contains(m.Degraded, assay.StageRerank) != (x.fallback != "") || m.DurationMS < r.LatencyMS {
		t.Errorf("degraded %v after %v ms of which the reranker took %v", m.Degraded, m.DurationMS, r.LatencyMS)
	}
	ranked := slices.ContainsFunc(m.Candidates, func(c assay.Candidate) bool { return c.Rerank != nil })
	if ranked != (x.fallback == "") {
		t.Errorf("candidates have placings of the reranker: %v", ranked)
	}
}

func (x expectation) spans(t *testing.T, w *world, m *assay.Manifest) {
	t.Helper()
	for _, name := range []string{"rerank ce", "invoke_workflow assay"} {
		attrs := w.attributes(t, name)
		if attrs["assay.rerank.status"].AsString() != string(x.status) || attrs["assay.rerank.fallback"].AsString() != string(x.fallback) {
			t.Errorf("span %q says %v", name, attrs)
		}
	}
	if root := w.attributes(t, "invoke_workflow assay"); root["assay.degraded"].AsBool() != (x.fallback != "") || root["assay.manifest.id"].AsString() != m.ID {
		t.Errorf("the root says %v", root)
	}
	stage := w.attributes(t, "rerank ce")
	if stage["assay.rerank.latency_ms"].AsFloat64() != m.Reranker.LatencyMS || stage["assay.rerank.attempts"].AsInt64() != int64(m.Reranker.Attempts) {
		t.Errorf("the span says %v, the manifest %+v", stage, m.Reranker)
	}
	for _, s := range w.spans.GetSpans() {
		if s.Name == "rerank ce" && (s.Status.Code == codes.Error) != (x.fallback != "") {
			t.Errorf("the span has the status %v", s.Status)
		}
	}
}

func (x expectation) log(t *testing.T, log string, m *assay.Manifest) {
	t.Helper()
	if x.fallback == "" {
		if log != "" {
			t.Errorf("nothing is wrong, and the log says %s", log)
		}
		return
	}
	latency := time.Duration(m.Reranker.LatencyMS * float64(time.Millisecond))
	for _, want := range []string{
		"status=" + string(x.status), "fallback=" + string(x.fallback), "latency=" + latency.String(),
		"rerank_status=" + string(x.status), "manifest=" + m.ID,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %s: %s", want, log)
		}
	}
}

func TestARerankerThatRecoversIsUsedAgain(t *testing.T) {
	w := newWorld(t, setup{})
	w.ingest(t, pages(), IngestOptions{})
	for _, policy := range policies {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var up atomic.Bool
				var calls atomic.Int64
				n := reranktest.NewNetwork(func(rw http.ResponseWriter, r *http.Request) {
					calls.Add(1)
					if up.Load() {
						reranktest.Rank(rw, r)
						return
					}
					reranktest.Hang(rw, r)
				})
				defer n.Close()
				e := w.over(t, n, rerank.Options{Policy: policy, BreakerFailures: 2, BreakerCooldown: 5 * time.Second})
				ask := func(want assay.RerankStatus, atMost time.Duration) {
					t.Helper()
					start := time.Now()
					a, err := e.Answer(context.Background(), refund, nil)
					x := expectation{status: want, fallback: policy}
					if want == assay.RerankOK {
						x.fallback = ""
					}
					x.answer(t, a, err)
					x.manifest(t, a.Manifest)
					if took := time.Since(start); took > atMost {
						t.Errorf("%s took %v", want, took)
					}
				}
				ask(assay.RerankTimeout, faultTimeout)
				ask(assay.RerankTimeout, faultTimeout)
				before := calls.Load()
				ask(assay.RerankCircuitOpen, 0) // at once, and without a call
				if n := calls.Load() - before; n != 0 {
					t.Errorf("%d calls with the circuit open", n)
				}
				up.Store(true)
				<-time.After(5 * time.Second)
				ask(assay.RerankOK, 0)
				ask(assay.RerankOK, 0)
				if log := e.log.String(); !strings.Contains(log, "circuit opened") || !strings.Contains(log, "circuit closed") || !strings.Contains(log, "rerank_status=circuit_open") {
					t.Errorf("the log does not tell: %s", log)
				}
			})
		})
	}
}

// TestARerankerThatIsSlowUnderLoad has a service that takes 200 ms alone and as much more for each
// request beside, as one on a CPU does.
func TestARerankerThatIsSlowUnderLoad(t *testing.T) {
	w := newWorld(t, setup{})
	w.ingest(t, pages(), IngestOptions{})
	load := func(t *testing.T, atOnce int) (statuses map[assay.RerankStatus]int, longest time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			busy := 0
			n := reranktest.NewNetwork(func(rw http.ResponseWriter, r *http.Request) {
				mu.Lock()
				busy++
				wait := time.Duration(busy) * 200 * time.Millisecond
				mu.Unlock()
				defer func() { mu.Lock(); busy--; mu.Unlock() }()
				select {
				case <-time.After(wait):
					reranktest.Rank(rw, r)
				case <-r.Context().Done():
				}
			})
			defer n.Close()
			e := w.over(t, n, rerank.Options{MaxConcurrent: atOnce})
			statuses = make(map[assay.RerankStatus]int)
			var asked sync.WaitGroup
			for range 8 {
				asked.Go(func() {
					start := time.Now()
					a, err := e.Answer(context.Background(), refund, nil)
					took := time.Since(start)
					mu.Lock()
					defer mu.Unlock()
					if err != nil || a.Text == "" {
						t.Errorf("no answer: %v", err)
						return
					}
					statuses[a.Manifest.Reranker.Status]++
					longest = max(longest, took)
				})
			}
			asked.Wait()
		})
		return statuses, longest
	}
	for _, tc := range []struct {
		atOnce int
		want   string
	}{
		{8, "map[ok:2 timeout:6]"}, // 200 and 400 ms, and the others later than 500 ms
		{1, "map[ok:2 timeout:6]"}, // one after the other: 200 and 400 ms
	} {
		statuses, longest := load(t, tc.atOnce)
		if got := fmt.Sprint(statuses); got != tc.want || longest > faultTimeout+50*time.Millisecond {
			t.Errorf("%d at once: %s, the longest took %v", tc.atOnce, got, longest)
		}
	}
}
