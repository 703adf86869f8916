package builtin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func model(t testing.TB) *Model {
	t.Helper()
	m, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func embed(m *Model, text string) []float32 {
	v := make([]float32, m.Dimensions())
	m.Embed(v, text)
	return v
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// checkUnit fails unless v is finite and of unit length.
func checkUnit(t *testing.T, text string, v []float32) {
	t.Helper()
	var squares float64
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	if !(math.Abs(squares-1) < 1e-5) { // also false for NaN
		t.Errorf("length² of the vector of %.60q is %v, want 1", text, squares)
	}
}

var oddTexts = []string{
	"", " \n\t", "\x00", "\xff\xfe", "。", "ᚠᚢᚦ", "\U000e0041", "[UNK]", "[PAD]", "##ing", "́", "a\u0301", "�",
	"İstanbul", "Straße", "naïve café", "东京", "서울", "Ωμέγα", "👍🏽", "e = mc²", strings.Repeat("x", 101),
	strings.Repeat("the ", 5000), strings.Repeat("antidisestablishmentarianism", 3),
}

func TestEmbedIsUnit(t *testing.T) {
	m := model(t)
	for _, text := range append(goldenTexts(t), oddTexts...) {
		checkUnit(t, text, embed(m, text))
	}
}

func TestUnknownText(t *testing.T) {
	m := model(t)
	want := embed(m, "")
	for _, text := range []string{"", " ", "\x00\xff", "ᚠᚢᚦ", "\U0001f9ff"} {
		got := make([]float32, m.Dimensions())
		if m.Embed(got, text) {
			t.Errorf("Embed(%q) says that a token is known", text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("Embed(%q) is not the vector of the empty text", text)
		}
	}
	for _, text := range goldenTexts(t) {
		v := make([]float32, m.Dimensions())
		if !m.Embed(v, text) {
			continue
		}
		if got := cosine(v, want); got > 0.2 {
			t.Errorf("%.60q has cosine %.2f with the unknown text", text, got)
		}
	}
	// An unknown word beside known ones changes nothing.
	if !slices.Equal(embed(m, "a horse ᚠᚢᚦ"), embed(m, "a horse")) {
		t.Error("an unknown word changed the vector")
	}
}

func TestOrderOfWordsDoesNotCount(t *testing.T) {
	m := model(t)
	if !slices.Equal(embed(m, "how do I reset my password"), embed(m, "password my reset I do how")) {
		t.Error("the same words in another order have another vector")
	}
}

func TestMeaning(t *testing.T) {
	m := model(t)
	for _, x := range []struct{ query, near, far string }{
		{"heart attack", "The patient suffered a myocardial infarction.", "The committee attacked the proposal."},
		{"install software", "How to set up an application on your computer", "The river floods the valley in spring"},
		{"interest on a loan", "The bank charges five percent a year on borrowed money.", "An interesting museum on a hill"},
		{"aircraft wing lift", "aerodynamic forces on an airfoil at high angles of attack", "how chickens are raised on a farm"},
	} {
		q := embed(m, x.query)
		near, far := cosine(q, embed(m, x.near)), cosine(q, embed(m, x.far))
		if near <= far {
			t.Errorf("%q: %q has cosine %.3f, %q has %.3f", x.query, x.near, near, x.far, far)
		}
	}
}

func TestEmbedBatch(t *testing.T) {
	m := model(t)
	texts := slices.Concat(goldenTexts(t), oddTexts, goldenTexts(t))
	got, err := m.EmbedBatch(t.Context(), texts)
	if err != nil || len(got) != len(texts) {
		t.Fatalf("%d vectors for %d texts, error %v", len(got), len(texts), err)
	}
	for i, text := range texts {
		if !slices.Equal(got[i], embed(m, text)) {
			t.Errorf("vector %d is not that of its text %.40q", i, text)
		}
	}
	if got, err := m.EmbedBatch(t.Context(), nil); len(got) != 0 || err != nil {
		t.Errorf("no texts: %d vectors, error %v", len(got), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := m.EmbedBatch(ctx, texts); !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("cancelled: %d vectors, error %v", len(got), err)
	}
}

func TestTokenVectors(t *testing.T) {
	m := model(t)
	v := make([]float32, m.Dimensions())
	for id := range int32(len(m.scales)) {
		w := m.TokenVector(v, id)
		if !(w >= 0 && w <= 1) {
			t.Fatalf("token %d has weight %v", id, w)
		}
		if w > 0 {
			checkUnit(t, fmt.Sprint("token ", id), v)
		}
	}
	// A text of one token has that token's vector.
	ids := m.Tokens("Horse ᚠ")
	if len(ids) != 1 {
		t.Fatalf("tokens are %v, want one", ids)
	}
	m.TokenVector(v, ids[0])
	if c := cosine(v, embed(m, "horse")); c < 0.99999 {
		t.Errorf("cosine of token and text is %v", c)
	}
}

func TestEmbedTitled(t *testing.T) {
	m := model(t)
	v := make([]float32, m.Dimensions())
	for _, title := range append(goldenTexts(t)[:10], oddTexts...) {
		for _, text := range oddTexts {
			known := m.EmbedTitled(v, title, text)
			checkUnit(t, title+"/"+text, v)
			if want := m.Embed(make([]float32, m.Dimensions()), title+" "+text); known != want {
				t.Errorf("EmbedTitled(%q, %q) is %v", title, text, known)
			}
		}
	}
	if m.EmbedTitled(v, " ", "a horse"); !slices.Equal(v, embed(m, "a horse")) {
		t.Error("a blank title changes the vector")
	}
	title, text := "Password reset", "Open the settings, choose your account, press the button, and follow what the message says."
	m.EmbedTitled(v, title, text)
	q := embed(m, "how to reset a password")
	if titled, joined := cosine(q, v), cosine(q, embed(m, title+"\n"+text)); titled <= joined {
		t.Errorf("cosine %.3f with the title, %.3f with it as a part of the text", titled, joined)
	}
}

func TestWrongDimensionsPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	m := model(t)
	m.Embed(make([]float32, m.Dimensions()+1), "x")
}

func TestEmbedDoesNotAllocate(t *testing.T) {
	m := model(t)
	v := make([]float32, m.Dimensions())
	text := strings.Join(goldenTexts(t), " ")
	m.Embed(v, text)
	if n := testing.AllocsPerRun(20, func() { m.Embed(v, text) }); n > 20 { // some: the pool may be emptied, and is under -race
		t.Errorf("%v allocations for a text", n)
	}
}

func BenchmarkEmbed(b *testing.B) {
	m := model(b)
	v := make([]float32, m.Dimensions())
	all := strings.Join(goldenTexts(b), " ")
	for _, size := range []int{50, 1000, 20000} {
		text := strings.Repeat(all, size/len(all)+1)[:size]
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				m.Embed(v, text)
			}
		})
	}
}

func BenchmarkTokens(b *testing.B) {
	m := model(b)
	text := strings.Join(goldenTexts(b), " ")
	b.SetBytes(int64(len(text)))
	var ids []int32
	var buf buffers
	for b.Loop() {
		ids = m.vocab.appendIDs(ids[:0], &buf, text)
	}
}
