package rerank

import (
	"cmp"
	"context"
)

// truncate cuts the texts that are over the model's length, and counts them.
func (c *Client) truncate(texts []string) (cut []string, truncated int) {
	if c.opts.MaxTokens == 0 {
		return texts, 0
	}
	cut = make([]string, len(texts))
	for i, text := range texts {
		cut[i] = c.opts.Truncate(text, c.opts.MaxTokens)
		if len(cut[i]) < len(text) {
			truncated++
		}
	}
	return cut, truncated
}

// batchResult is what became of one batch.
type batchResult struct {
	first  int // index of the batch's first text
	scores []float64
	scored []bool
	err    error
}

// collect fills in the outcome's scores until all batches are back, one has failed, or the stage's
// time is over. It leaves requests that are under way to their cancelled context instead of
// waiting for them; they report into a buffered channel, so that none of them stays.
func (c *Client) collect(stage context.Context, o *Outcome, e *effort, query string, texts []string) error {
	o.Scores, o.Scored = make([]float64, len(texts)), make([]bool, len(texts))
	texts, o.Truncated = c.truncate(texts)
	batches := c.batches(texts)
	results := make(chan batchResult, len(batches))
	queue := make(chan span, len(batches))
	for _, b := range batches {
		queue <- b
	}
	close(queue)
	for range min(c.opts.Concurrency, len(batches)) {
		go func() {
			for b := range queue {
				r := batchResult{first: b.start}
				if r.err = stage.Err(); r.err == nil {
					r.scores, r.scored, r.err = c.score(stage, e, query, texts[b.start:b.end])
				}
				results <- r
			}
		}()
	}
	for range batches {
		var r batchResult
		select {
		case r = <-results:
		case <-stage.Done():
			return stage.Err()
		}
		for i, ok := range r.scored {
			if ok {
				o.Scores[r.first+i], o.Scored[r.first+i] = r.scores[i], true
				o.ScoredCount++
			}
		}
		if r.err != nil {
			// A request that its context ended fails in many ways; the context knows why.
			return cmp.Or(stage.Err(), r.err)
		}
	}
	return nil
}

// span is a range of the texts.
type span struct{ start, end int }

// batches cuts the texts by count and bytes. A text over the bytes stands alone.
func (c *Client) batches(texts []string) []span {
	var out []span
	start, bytes := 0, 0
	for i, text := range texts {
		if i > start && (i-start == c.opts.BatchSize || bytes+len(text) > c.opts.BatchBytes) {
			out = append(out, span{start, i})
			start, bytes = i, 0
		}
		bytes += len(text)
	}
	return append(out, span{start, len(texts)})
}
