package embed

import (
	"bytes"
	"encoding/json"
	"fmt"

	openai "github.com/sashabaranov/go-openai"
)

// check maps the vectors of an answer to the n texts that were sent, by index, and refuses what is
// not exactly one usable vector for each.
func (e *Endpoint) check(x *exchange, response openai.EmbeddingResponse, n int) ([][]float32, *Error) {
	refuse := func(format string, args ...any) ([][]float32, *Error) {
		return nil, &Error{URL: e.shown, Model: e.o.Model, Code: x.code, Reason: e.redact(fmt.Sprintf(format, args...))}
	}
	if len(response.Data) != n {
		return refuse("the answer holds %d vectors for %d texts: %s", len(response.Data), n, e.said(x, nil))
	}
	if i, found := nullValue(x.body); found {
		return refuse("vector %d of the answer cannot be used: %v (null)", i, errNotFinite)
	}
	want := int(e.dimensions.Load())
	vectors := make([][]float32, n)
	for _, d := range response.Data {
		if d.Index < 0 || d.Index >= n {
			return refuse("the answer holds a vector with index %d for %d texts", d.Index, n)
		}
		if vectors[d.Index] != nil {
			return refuse("the answer holds two vectors with index %d", d.Index)
		}
		if len(d.Embedding) == 0 {
			return refuse("vector %d of the answer is empty", d.Index)
		}
		if want == 0 {
			want = len(d.Embedding)
		}
		if len(d.Embedding) != want {
			return e.wrongDimensions(x, d.Index, len(d.Embedding), want)
		}
		if err := normalize(d.Embedding); err != nil {
			return refuse("vector %d of the answer cannot be used: %v", d.Index, err)
		}
		vectors[d.Index] = d.Embedding
	}
	// The first good answer decides. Where two calls race for it, the loser is measured by the winner.
	if !e.dimensions.CompareAndSwap(0, int64(want)) {
		if known := int(e.dimensions.Load()); known != want {
			return e.wrongDimensions(x, 0, want, known)
		}
	}
	return vectors, nil
}

func (e *Endpoint) wrongDimensions(x *exchange, index, got, want int) ([][]float32, *Error) {
	return nil, &Error{
		URL: e.shown, Model: e.o.Model, Code: x.code,
		Reason: fmt.Sprintf("vector %d of the answer has %d dimensions instead of %d", index, got, want),
		Hint:   "the server runs another model, or embed.dimensions is not the model's",
	}
}

// nullValue looks for a null inside a vector, which is how some servers write NaN. The decoder takes
// it for 0. Only bodies with a null anywhere are decoded again.
func nullValue(body []byte) (index int, found bool) {
	if !bytes.Contains(body, []byte("null")) {
		return 0, false
	}
	var answer struct {
		Data []struct {
			Embedding []*json.Number `json:"embedding"`
			Index     int            `json:"index"`
		} `json:"data"`
	}
	// The body has been decoded once; what fails here fails because of the shape of other fields.
	if json.Unmarshal(body, &answer) != nil {
		return 0, false
	}
	for _, d := range answer.Data {
		for _, value := range d.Embedding {
			if value == nil {
				return d.Index, true
			}
		}
	}
	return 0, false
}
