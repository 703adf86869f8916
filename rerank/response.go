package rerank

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ranking is the answer to one batch; scored says which texts have a score.
type ranking struct {
	scores []float64
	scored []bool
}

func (r ranking) missing() int {
	n := 0
	for _, ok := range r.scored {
		if !ok {
			n++
		}
	}
	return n
}

// item is one score in an answer. TEI calls it score, everybody else relevance_score.
type item struct {
	Index     *int     `json:"index"`
	Score     *float64 `json:"score"`
	Relevance *float64 `json:"relevance_score"`
}

// parseRanking reads an answer to n texts: {index, score} in any order, in an array or in an object's
// results or data. What is no such thing, or names a text twice or one that was not sent, is an error;
// a text may be missing. JSON has no way to write a number that is not finite, and one beyond the
// range of float64 does not decode. quote prepares the server's words for an error.
//
// The dialect does not matter here: gateways answer in one form what they were asked in another.
func parseRanking(data []byte, n int, quote func(string) string) (ranking, error) {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0:
		return ranking{}, errors.New("answered with an empty body")
	case data[0] == '<':
		return ranking{}, errors.New("answered with HTML instead of a ranking")
	}
	items, err := itemsOf(data, quote)
	if err != nil {
		return ranking{}, err
	}
	if len(items) == 0 {
		return ranking{}, errors.New("answered with an empty ranking")
	}
	r := ranking{scores: make([]float64, n), scored: make([]bool, n)}
	for place, it := range items {
		score := it.Relevance
		if score == nil {
			score = it.Score
		}
		switch {
		case it.Index == nil || score == nil:
			return ranking{}, fmt.Errorf("answered without index or score at place %d", place)
		case *it.Index < 0 || *it.Index >= n:
			return ranking{}, fmt.Errorf("answered with index %d for %d texts", *it.Index, n)
		case r.scored[*it.Index]:
			return ranking{}, fmt.Errorf("answered with index %d twice", *it.Index)
		}
		r.scores[*it.Index], r.scored[*it.Index] = *score, true
	}
	return r, nil
}

// itemsOf finds the list of scores. An object that holds an error is one, whatever else it holds.
func itemsOf(data []byte, quote func(string) string) (items []item, err error) {
	noRanking := func(err error) error { return fmt.Errorf("answered something that is no ranking: %w", err) }
	if data[0] != '{' {
		if err := json.Unmarshal(data, &items); err != nil {
			return nil, noRanking(err)
		}
		return items, nil
	}
	var body struct {
		Results *[]item         `json:"results"`
		Data    *[]item         `json:"data"`
		Error   json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return nil, noRanking(err)
	}
	hasError := len(body.Error) > 0 && string(body.Error) != "null"
	switch {
	case hasError || body.Results == nil && body.Data == nil:
		return nil, fmt.Errorf("answered success with an object instead of a ranking: %s", quote(errorDetail(data)))
	case body.Results != nil:
		return *body.Results, nil
	}
	return *body.Data, nil
}

// errorDetail finds the message in an error body: the forms of TEI, Cohere, OpenAI and FastAPI, or the
// text itself.
func errorDetail(data []byte) string {
	var body map[string]json.RawMessage
	if json.Unmarshal(data, &body) == nil {
		for _, field := range []string{"error", "message", "detail"} {
			if text := messageIn(body[field]); text != "" {
				return text
			}
		}
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(data), "\uFFFD")), " ")
	if strings.HasPrefix(text, "<") {
		return "an HTML page"
	}
	return text
}

// messageIn reads a message that is text, an object with a message, or a list of objects with one.
func messageIn(field json.RawMessage) string {
	type message struct {
		Message string          `json:"message"`
		Msg     string          `json:"msg"`
		Loc     json.RawMessage `json:"loc"` // where FastAPI found something amiss
	}
	var text string
	var one message
	var several []message
	switch {
	case json.Unmarshal(field, &text) == nil:
		return text
	case json.Unmarshal(field, &one) == nil:
		return one.Message
	case json.Unmarshal(field, &several) == nil && len(several) > 0:
		first := several[0]
		return strings.TrimSpace(first.Msg + first.Message + " " + string(first.Loc))
	}
	return ""
}
