package rerank

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// teiRequest is the body of TEI's /rerank. Passages over the model's length are cut by the server,
// scores come as its sigmoid, and texts are not sent back.
type teiRequest struct {
	Query      string   `json:"query"`
	Texts      []string `json:"texts"`
	Truncate   bool     `json:"truncate"`
	RawScores  bool     `json:"raw_scores"`
	ReturnText bool     `json:"return_text"`
}

// parseTEI reads TEI's answer to n texts: an array of {index, score} in any order. What is no such
// array, or names a text twice or one that was not sent, is an error; a text may be missing. JSON has
// no way to write a number that is not finite, and one beyond the range of float64 does not decode.
// quote prepares the server's words for an error.
func parseTEI(data []byte, n int, quote func(string) string) (ranking, error) {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0:
		return ranking{}, errors.New("answered with an empty body")
	case data[0] == '<':
		return ranking{}, errors.New("answered with HTML instead of a ranking")
	case data[0] == '{':
		return ranking{}, fmt.Errorf("answered success with an object instead of a ranking: %s", quote(errorDetail(data)))
	}
	var items []struct {
		Index *int     `json:"index"`
		Score *float64 `json:"score"`
	}
	if err := json.Unmarshal(data, &items); err != nil {
		return ranking{}, fmt.Errorf("answered something that is no ranking: %w", err)
	}
	if len(items) == 0 {
		return ranking{}, errors.New("answered with an empty ranking")
	}
	r := ranking{scores: make([]float64, n), scored: make([]bool, n)}
	for place, item := range items {
		switch {
		case item.Index == nil || item.Score == nil:
			return ranking{}, fmt.Errorf("answered without index or score at place %d", place)
		case *item.Index < 0 || *item.Index >= n:
			return ranking{}, fmt.Errorf("answered with index %d for %d texts", *item.Index, n)
		case r.scored[*item.Index]:
			return ranking{}, fmt.Errorf("answered with index %d twice", *item.Index)
		}
		r.scores[*item.Index], r.scored[*item.Index] = *item.Score, true
	}
	return r, nil
}

// errorDetail finds the message in an error body: TEI's and Cohere's forms, or the text itself.
func errorDetail(data []byte) string {
	var body map[string]json.RawMessage
	if json.Unmarshal(data, &body) == nil {
		for _, field := range []string{"error", "message", "detail"} {
			var text string
			if json.Unmarshal(body[field], &text) == nil && text != "" {
				return text
			}
			var nested struct {
				Message string `json:"message"`
			}
			if json.Unmarshal(body[field], &nested) == nil && nested.Message != "" {
				return nested.Message
			}
		}
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(data), "\uFFFD")), " ")
	if strings.HasPrefix(text, "<") {
		return "an HTML page"
	}
	return text
}
