// Package embed turns texts into vectors: through any OpenAI-compatible endpoint (Endpoint), through
// the model that is built into the binary (Builtin), and through a cache in front of either (Cached).
//
// Whatever the source, a vector that leaves this package is finite, not zero, of unit length and of
// the model's dimensions. An answer of an endpoint that is anything else is an error that says which
// endpoint, which model and what was wrong; it is never repaired in silence.
package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"assay"
)

// Embedder turns texts into vectors. It is declared here because this package composes values of
// it: the cache wraps one.
type Embedder interface {
	// Model is the identity of the model. Dimensions may be 0 until the first call has succeeded;
	// Probe makes that call.
	Model() assay.Model
	// EmbedQuery embeds what somebody searches for.
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
	// EmbedDocuments embeds what is searched in: n texts in, n vectors out, in the same order. With
	// an error it may return vectors for a prefix of the texts; those that are there are valid.
	EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error)
}

// probeText is embedded to learn a model's dimensions. Its vector is thrown away.
const probeText = "dimensions"

// Probe returns the identity of e's model with its dimensions, asking the model if they are not
// known yet. Called at start-up, it also shows a wrong address or key before any document is read.
func Probe(ctx context.Context, e Embedder) (assay.Model, error) {
	if m := e.Model(); m.Dimensions > 0 {
		return m, nil
	}
	if _, err := e.EmbedQuery(ctx, probeText); err != nil {
		return e.Model(), err
	}
	return e.Model(), nil
}

// checkTexts refuses blank texts: endpoints answer them with errors, or with vectors that mean
// nothing and are near to everything.
func checkTexts(texts []string) error {
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			return fmt.Errorf("embed: text %d of %d is blank: %w", i+1, len(texts), assay.ErrInvalid)
		}
	}
	return nil
}

// The reasons for which a vector is refused.
var (
	errNotFinite = errors.New("it holds a value that is not a finite number")
	errZero      = errors.New("all its values are 0")
)

// norm is the length of v. A vector that has no direction is an error.
func norm(v []float32) (float64, error) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x) // squares of finite float32 values do not overflow a float64
	}
	switch {
	case math.IsNaN(sum) || math.IsInf(sum, 0):
		return 0, errNotFinite
	case sum == 0:
		return 0, errZero
	}
	return math.Sqrt(sum), nil
}

// normalize scales v to unit length in place.
func normalize(v []float32) error {
	length, err := norm(v)
	if err != nil {
		return err
	}
	for i, x := range v {
		v[i] = float32(float64(x) / length)
	}
	return nil
}
