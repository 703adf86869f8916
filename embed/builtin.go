package embed

import (
	"context"
	"fmt"

	"assay"
	"assay/embed/builtin"
)

// Builtin embeds with the model that is part of the binary: no network, no key, the same vectors on
// every machine. It is safe for concurrent use.
type Builtin struct{ model *builtin.Model }

var _ Embedder = (*Builtin)(nil)

// NewBuiltin loads the model, once for the process.
func NewBuiltin() (*Builtin, error) {
	m, err := builtin.Load()
	if err != nil {
		return nil, fmt.Errorf("embed: the built-in model: %w", err)
	}
	return &Builtin{m}, nil
}

// Model is the model's identity; its dimensions are always known.
func (b *Builtin) Model() assay.Model {
	return assay.Model{Name: b.model.Name(), Dimensions: b.model.Dimensions()}
}

// EmbedQuery embeds a query, which the model treats as it does a document.
func (b *Builtin) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := b.EmbedDocuments(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// EmbedDocuments embeds texts on all cores. A text of which the model knows no token has the vector
// of the unknown token. Its errors are blank texts and ctx's; with either there is no vector.
func (b *Builtin) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	if err := checkTexts(texts); err != nil {
		return nil, err
	}
	vectors, err := b.model.EmbedBatch(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("embed: the built-in model: %w", err)
	}
	return vectors, nil
}
