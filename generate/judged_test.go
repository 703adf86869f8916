package generate

import (
	"testing"
)

// What the extractive generator reaches on public collections, with a passage of a relevant document
// among the five that are sent. The bounds are a little under what was measured, so that a change
// that makes answers worse is seen; recall is that of the reference answer's content words.
func TestExtractiveOnJudgedCollections(t *testing.T) {
	x := NewExtractive(nil, ExtractiveOptions{})
	loaded := map[string]*collection{}
	for _, tc := range []struct {
		name               string
		recall, cited      float64 // at least
		refused, tokens    float64 // at most, as a share and on average
		unanswerableRefuse float64 // at least
	}{
		{"anthropic_docs", 0.50, 0.87, 0.08, 85, 0},
		{"mtrag_un/ibmcloud", 0.33, 0.82, 0.12, 90, 0.35},
		{"mtrag_un/fiqa", 0.24, 0.74, 0.13, 105, 0.20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			loaded[tc.name] = load(t, tc.name)
			f := loaded[tc.name].measure(t, x, true, nil)
			t.Log(f)
			if f.n == 0 || f.recall < tc.recall || f.cited < tc.cited || f.tokens > tc.tokens || float64(f.refused) > tc.refused*float64(f.n) {
				t.Errorf("worse than before: %v", f)
			}
			if float64(f.unanswerableRefused) < tc.unanswerableRefuse*float64(f.unanswerable) {
				t.Errorf("answers what cannot be answered: %v", f)
			}
		})
	}
	// Questions on one product are asked of the documentation of another.
	t.Run("other subjects", func(t *testing.T) {
		questions, documents := loaded["anthropic_docs"], loaded["mtrag_un/ibmcloud"]
		if questions == nil || documents == nil {
			t.Skip("the public data sets are not there")
		}
		asked, refused := 0, 0
		for i, q := range questions.queries {
			if i%2 == 0 {
				continue // half of them tell as much
			}
			r, err := x.Generate(t.Context(), Request{Question: q.text, Passages: documents.search(q.text, 5, nil)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if asked++; r.Refused {
				refused++
			}
		}
		t.Logf("%d of %d refused", refused, asked)
		if asked == 0 || float64(refused) < 0.9*float64(asked) {
			t.Errorf("%d of %d refused", refused, asked)
		}
	})
}

func BenchmarkExtractive(b *testing.B) {
	passages := passagesOf(rotation, refunds, germanRefunds, rotation, refunds)
	x := NewExtractive(nil, ExtractiveOptions{})
	for b.Loop() {
		if _, err := x.Generate(b.Context(), Request{Question: "How do I rotate a signing key?", Passages: passages}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
