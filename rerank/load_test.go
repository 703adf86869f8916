package rerank

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"assay"
)

// capacity is a transport that takes a second for each request, and counts those under way.
type capacity struct {
	mu        sync.Mutex // guards what follows
	now, most int
}

func (s *capacity) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.now--; s.mu.Unlock() }()
	select {
	case <-time.After(time.Second):
		return ranks(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func TestRequestsOfAllQuestionsQueueWithinTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &capacity{}
		c, err := New(nil, Options{URL: "http://reranker.test", Transport: s, Timeout: 2500 * time.Millisecond, MaxConcurrent: 2})
		if err != nil {
			t.Fatal(err)
		}
		outcomes := make(chan Outcome, 7)
		for range cap(outcomes) - 1 {
			go func() { outcomes <- c.Rerank(t.Context(), "q", texts(3), 2) }()
		}
		synctest.Wait()
		hurried, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		go func() { outcomes <- c.Rerank(hurried, "q", texts(3), 2) }()
		byLatency := make(map[string]int)
		for range cap(outcomes) {
			o := <-outcomes
			byLatency[fmt.Sprint(o.Status, " ", o.Latency, " ", o.Attempts)]++
			if o.Attempts == 0 && !strings.Contains(o.Reason, "queued") {
				t.Errorf("the reason does not say that it was queued: %s", o.Reason)
			}
			if o.Attempts == 1 && strings.Contains(o.Reason, "queued") {
				t.Errorf("the reason says that it was queued: %s", o.Reason)
			}
		}
		// Two at a time: four in two seconds; two are cut off in their third; the last one, in a hurry,
		// never got its turn.
		want := map[string]int{"ok 1s 1": 2, "ok 2s 1": 2, "timeout 2.5s 1": 2, "timeout 1.5s 0": 1}
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if fmt.Sprint(byLatency) != fmt.Sprint(want) || s.most != 2 {
			t.Errorf("%v, %d at once", byLatency, s.most)
		}
	})
}

func TestTextsOverTheModelsLengthAreCutAndCounted(t *testing.T) {
	var sent []string
	c, _ := newClient(t, Options{MaxTokens: 2, Timeout: 10 * time.Second, Truncate: func(s string, n int) string {
		words := strings.Fields(s)
		return strings.Join(words[:min(n, len(words))], " ")
	}}, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		sent = append(sent, string(data))
		_, _ = io.WriteString(w, ranked)
	})
	in := []string{"one two three", "one two", "one two three four"}
	o := c.Rerank(t.Context(), "a question of many words", in, 1)
	if o.Status != assay.RerankOK || o.Truncated != 2 || o.Manifest().Truncated != 2 {
		t.Errorf("outcome %+v", o)
	}
	if len(sent) != 1 || !strings.Contains(sent[0], `["one two","one two","one two"]`) || !strings.Contains(sent[0], "of many words") {
		t.Errorf("sent %s", sent)
	}
	if in[0] != "one two three" {
		t.Error("the caller's texts were changed")
	}
}

func TestConcurrentQuestionsShareConnections(t *testing.T) {
	var mu sync.Mutex
	seen := make(map[string]bool)
	c, _ := newClient(t, Options{MaxConcurrent: 3, BatchSize: 1, Timeout: 10 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.RemoteAddr] = true
		mu.Unlock()
		_, _ = io.WriteString(w, `[{"index":0,"score":1}]`)
	})
	for range 5 {
		var questions sync.WaitGroup
		for range 4 {
			questions.Go(func() {
				if o := c.Rerank(t.Context(), "q", texts(6), 2); o.Status != assay.RerankOK {
					t.Errorf("outcome %+v", o)
				}
			})
		}
		questions.Wait()
	}
	// A connection is handed on when its answer has been read to the end, which may be a moment after
	// the next request was let through and dialled; some spare ones are therefore allowed.
	if len(seen) > 2*3 {
		t.Errorf("%d connections for 120 requests of which at most 3 are under way", len(seen))
	}
}
