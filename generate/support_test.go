package generate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"assay"
)

func citing(positions ...int) []assay.Citation {
	var out []assay.Citation
	for _, n := range positions {
		out = append(out, assay.Citation{Marker: fmt.Sprintf("[%d]", n), Position: n})
	}
	return out
}

func verifier(t *testing.T, o SupportOptions) *Verifier {
	t.Helper()
	v, err := NewVerifier(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerifySaysWhatIsSupported(t *testing.T) {
	passages := []Passage{
		{Position: 1, Title: "Refund policy", Text: "A refund is returned within 5 business days of approval. Fees are not refunded."},
		{Position: 2, Title: "Signing keys", Text: "Promote the new key with an overlap of 24 hours. Retire the old key.\n\n```\nfw keys promote --overlap 24h\n```"},
		{Position: 3, Title: "Webhooks", Text: "| Code | Meaning |\n|---|---|\n| 503 | the endpoint is overloaded |"},
	}
	tests := []struct{ name, answer, want string }{
		{"in its own words", "A refund is returned within 5 business days of approval. [1]", "1 true"},
		{"marker before the full stop", "Refunds arrive within 5 business days [1].", "1 true"},
		{"in other words", "After approval, the refund takes 5 business days. [1]", "1 true"},
		{"another number", "A refund is returned within 9 business days of approval. [1]", "1 false"},
		{"another passage", "Promote the new key with an overlap. [1]", "1 false"},
		{"invented", "Contact the billing desk in Lisbon by telephone. [2]", "2 false"},
		{"one sentence right, one wrong", "A refund takes 5 business days. [1] The shop sells bicycles in Ghent. [1]", "1 false"},
		{"only the sentence before a marker is cited", "Nobody knows about bicycles in Ghent. A refund takes 5 business days. [1]", "1 true"},
		{"two sources for one sentence", "A refund takes 5 business days and the key overlap is 24 hours [1][2].", "1 true, 2 true"},
		{"a source that adds nothing", "A refund is returned within 5 business days of approval. [1][3]", "1 true, 3 false"},
		{"markers inside of a sentence", "A refund takes 5 business days [1] and the new key has an overlap of 24 hours [2].", "1 true, 2 true"},
		{"code", "Run this:\n\n```\nfw keys promote --overlap 24h\n```\n[2]", "2 true"},
		{"a table", "503 means that the endpoint is overloaded. [3]", "3 true"},
		{"no statement", "Yes. [1]", "1 true"},
		{"an index in code is no citation", "Use `refund[1]` for bicycles.", "1 unchecked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var positions []int
			for _, p := range passages {
				if strings.Contains(tt.answer, fmt.Sprintf("[%d]", p.Position)) {
					positions = append(positions, p.Position)
				}
			}
			var got []string
			for _, c := range verifier(t, SupportOptions{}).Verify(tt.answer, passages, citing(positions...)) {
				verdict := "unchecked"
				if c.Verified != nil {
					verdict = fmt.Sprint(*c.Verified)
				}
				got = append(got, fmt.Sprint(c.Position, " ", verdict))
			}
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}

// What the extractive generator picks stands in its passage, so that all of it is supported.
func TestExtractiveAnswersAreSupported(t *testing.T) {
	v := verifier(t, SupportOptions{})
	passages := passagesOf(rotation, refunds, germanRefunds)
	checked := 0
	for _, question := range []string{"How do I rotate a signing key?", "How long does a refund take?", "Wie lange dauert eine Erstattung?"} {
		r, err := NewExtractive(nil, ExtractiveOptions{}).Generate(t.Context(), Request{Question: question, Passages: passages}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range v.Verify(r.Text, passages, r.Citations) {
			checked++
			if c.Verified == nil || !*c.Verified {
				t.Errorf("%q: %s is not verified in %q", question, c.Marker, r.Text)
			}
		}
	}
	if checked == 0 {
		t.Fatal("nothing was cited")
	}
}

func TestSupportUsesMeaning(t *testing.T) {
	p := Passage{Position: 1, Text: "Money goes back to the card in five days."}
	sentence := "The refund reaches the card within a week."
	without := verifier(t, SupportOptions{}).Support(sentence, p)
	with := verifier(t, SupportOptions{Similarity: func(_, _ string) float64 { return 0.9 }}).Support(sentence, p)
	if with <= without {
		t.Errorf("%.2f with a similar sentence, %.2f without", with, without)
	}
	for _, odd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -3} {
		v := verifier(t, SupportOptions{Similarity: func(_, _ string) float64 { return odd }})
		if s := v.Support(sentence, p); !(s >= 0 && s <= 1) {
			t.Errorf("a similarity of %g gives a support of %g", odd, s)
		}
	}
}

func TestSupportIsAShare(t *testing.T) {
	v := verifier(t, SupportOptions{})
	words := rapid.SliceOf(rapid.SampledFrom([]string{"refund", "5", "days", "key.", "[1]", "Ghent", "返金", "not", "`x`", "\n", "|"}))
	rapid.Check(t, func(t *rapid.T) {
		sentence, text := strings.Join(words.Draw(t, "sentence"), " "), strings.Join(words.Draw(t, "text"), " ")
		s := v.Support(sentence, Passage{Position: 1, Text: text})
		if !(s >= 0 && s <= 1) {
			t.Fatalf("support %g", s)
		}
		if same := v.Support(text, Passage{Position: 1, Text: text}); same != 1 {
			t.Fatalf("%q supports itself by %g", text, same)
		}
	})
}

func TestMinSupportIsChecked(t *testing.T) {
	for _, bad := range []float64{-0.1, 1.1, math.NaN()} {
		if _, err := NewVerifier(SupportOptions{MinSupport: bad}); err == nil || !strings.Contains(err.Error(), "generate.min_support") {
			t.Errorf("%g: %v", bad, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add("A refund takes 5 days. [1]", "It takes 5 days.")
	f.Add("```\ncode\n```\n[1][2] ```", "| a | b |\n|---|---|")
	f.Add("[1]", "")
	v, err := NewVerifier(SupportOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, answer, text string) {
		if len(answer) > 2000 || len(text) > 2000 {
			return
		}
		for _, c := range v.Verify(answer, []Passage{{Position: 1, Text: text}, {Position: 2, Text: "other"}}, citing(1, 2, 7)) {
			if c.Position == 7 && c.Verified != nil {
				t.Error("a passage that was not sent has a verdict")
			}
		}
	})
}

func BenchmarkSupport(b *testing.B) {
	v, err := NewVerifier(SupportOptions{})
	if err != nil {
		b.Fatal(err)
	}
	p := passagesOf(rotation)[0]
	for b.Loop() {
		v.Support("Promote the new key with an overlap of 24 hours.", p)
	}
}
