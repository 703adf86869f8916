package embed

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"assay"
)

func TestTheBuiltinModelTellsTextsApart(t *testing.T) {
	b, err := NewBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	m := b.Model()
	if m.Name == "" || m.Dimensions == 0 {
		t.Fatalf("model is %v", m)
	}
	texts := []string{"How to rotate an API key.", "The ferry leaves at nine in the morning.", "암호 갱신"}
	vectors, err := b.EmbedDocuments(t.Context(), texts)
	if err != nil || len(vectors) != len(texts) {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	for i, v := range vectors {
		if length, err := norm(v); err != nil || len(v) != m.Dimensions || math.Abs(length-1) > 1e-5 {
			t.Errorf("vector of %q has %d dimensions and the length %v (%v)", texts[i], len(v), length, err)
		}
	}
	q, err := b.EmbedQuery(t.Context(), "replace my access keys")
	if err != nil {
		t.Fatal(err)
	}
	if near, far := dot(q, vectors[0]), dot(q, vectors[1]); near <= far {
		t.Errorf("similarity to the right text is %v, to the wrong one %v", near, far)
	}
	again, err := b.EmbedQuery(t.Context(), texts[0])
	if err != nil || !slices.Equal(again, vectors[0]) {
		t.Errorf("the same text has another vector the second time (%v)", err)
	}
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestTheBuiltinModelRefusesBlankTextsAndStops(t *testing.T) {
	b, err := NewBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.EmbedQuery(t.Context(), "\t"); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.EmbedDocuments(ctx, numbered(100)); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
