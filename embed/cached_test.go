package embed

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"assay"
)

// memoryCache is a Cache that can be read back and told to fail.
type memoryCache struct {
	vectors map[assay.Model]map[string][]float32
	getErr  error
	putErr  error
}

var _ Cache = (*memoryCache)(nil)

func (c *memoryCache) GetVectors(m assay.Model, hashes []string) ([][]float32, error) {
	out := make([][]float32, len(hashes))
	for i, h := range hashes {
		out[i] = slices.Clone(c.vectors[m][h])
	}
	return out, c.getErr
}

func (c *memoryCache) PutVectors(m assay.Model, hashes []string, vectors [][]float32) error {
	if c.putErr != nil {
		return c.putErr
	}
	if c.vectors == nil {
		c.vectors = map[assay.Model]map[string][]float32{}
	}
	if c.vectors[m] == nil {
		c.vectors[m] = map[string][]float32{}
	}
	for i, h := range hashes {
		c.vectors[m][h] = slices.Clone(vectors[i])
	}
	return nil
}

func TestTheSameTextIsEmbeddedOnce(t *testing.T) {
	e := &fakeEmbedder{model: assay.Model{Name: "m"}}
	cache := &memoryCache{}
	c := NewCached(e, cache)
	texts := []string{"a", "b", "a", "c", "b"}
	got, err := c.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	checkVectors(t, got, texts, 4)
	got[0][0] = 99
	checkVectors(t, got[2:3], []string{"a"}, 4) // duplicates do not share memory

	texts = []string{"d", "c", "a"}
	if got, err = c.EmbedDocuments(t.Context(), texts); err != nil {
		t.Fatal(err)
	}
	checkVectors(t, got, texts, 4)
	if want := [][]string{{"a", "b", "c"}, {"d"}}; !slices.EqualFunc(e.sent, want, slices.Equal) {
		t.Errorf("embedded %v, want %v", e.sent, want)
	}
	if want := (CacheStats{Hits: 2, Misses: 4, Duplicates: 2}); c.Stats() != want {
		t.Errorf("stats are %+v, want %+v", c.Stats(), want)
	}
	if got, err := c.EmbedQuery(t.Context(), "q"); err != nil || !slices.Equal(got, unitVector("q", 4)) || c.Model() != e.model {
		t.Errorf("query gave %v, %v", got, err)
	}
	if got, err := c.EmbedDocuments(t.Context(), nil); len(got) != 0 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestModelsAndFingerprintsDoNotShareVectors(t *testing.T) {
	cache := &memoryCache{}
	for _, e := range []*fakeEmbedder{
		{model: assay.Model{Name: "m", Dimensions: 4}},
		{model: assay.Model{Name: "m", Dimensions: 5}},
		{model: assay.Model{Name: "n", Dimensions: 4}},
		{model: assay.Model{Name: "m", Dimensions: 4}, salt: "passage: "},
	} {
		got, err := NewCached(e, cache).EmbedDocuments(t.Context(), []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		checkVectors(t, got, []string{e.salt + "a"}, e.model.Dimensions)
		if len(e.sent) != 1 {
			t.Errorf("%+v took another model's vector", e.model)
		}
	}
}

func TestAFailureKeepsWhatWasEmbeddedBeforeIt(t *testing.T) {
	cache := &memoryCache{}
	e := &fakeEmbedder{model: assay.Model{Name: "m", Dimensions: 4}}
	if _, err := NewCached(e, cache).EmbedDocuments(t.Context(), []string{"z"}); err != nil {
		t.Fatal(err)
	}
	e.failAt = "bad"
	got, err := NewCached(e, cache).EmbedDocuments(t.Context(), []string{"a", "z", "b", "bad", "z", "c"})
	if err == nil || !strings.Contains(err.Error(), `cannot embed "bad"`) {
		t.Fatalf("error is %v", err)
	}
	checkVectors(t, got, []string{"a", "z", "b"}, 4)
	e.sent, e.failAt = nil, ""
	if _, err := NewCached(e, cache).EmbedDocuments(t.Context(), []string{"a", "b", "c"}); err != nil {
		t.Fatal(err)
	}
	if want := [][]string{{"c"}}; !slices.EqualFunc(e.sent, want, slices.Equal) {
		t.Errorf("after the failure %v was embedded, want %v", e.sent, want)
	}
}

func TestALargeCallIsSavedInParts(t *testing.T) {
	cache := &memoryCache{}
	texts := numbered(saveEvery + 10)
	e := &fakeEmbedder{model: assay.Model{Name: "m", Dimensions: 4}, failAt: texts[saveEvery+3]}
	got, err := NewCached(e, cache).EmbedDocuments(t.Context(), texts)
	if err == nil {
		t.Fatal("no error")
	}
	checkVectors(t, got, texts[:saveEvery+3], 4)
	if len(e.sent) != 2 || len(e.sent[0]) != saveEvery || len(cache.vectors[e.model]) != saveEvery+3 {
		t.Errorf("%d calls, %d vectors saved", len(e.sent), len(cache.vectors[e.model]))
	}
}

func TestACacheThatFailsIsAnErrorAndVectorsAreNotLost(t *testing.T) {
	full := errors.New("disk full")
	e := &fakeEmbedder{model: assay.Model{Name: "m", Dimensions: 4}}
	got, err := NewCached(e, &memoryCache{putErr: full}).EmbedDocuments(t.Context(), []string{"a"})
	if !errors.Is(err, full) {
		t.Errorf("error is %v", err)
	}
	checkVectors(t, got, []string{"a"}, 4)
	if _, err = NewCached(e, &memoryCache{getErr: full}).EmbedDocuments(t.Context(), []string{"a"}); !errors.Is(err, full) {
		t.Errorf("error is %v", err)
	}
}

func TestDamagedVectorsInTheCacheAreReplaced(t *testing.T) {
	e := &fakeEmbedder{model: assay.Model{Name: "m", Dimensions: 4}}
	cache := &memoryCache{}
	bad := [][]float32{{1, 2, 3}, {0, 0, 0, 0}, {}, {1, float32(math.NaN()), 3, 4}}
	texts := []string{"a", "b", "c", "d"}
	var hashes []string
	for _, text := range texts {
		hashes = append(hashes, assay.HashText(text))
	}
	if err := cache.PutVectors(e.model, hashes, bad); err != nil {
		t.Fatal(err)
	}
	got, err := NewCached(e, cache).EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	checkVectors(t, got, texts, 4)
	if again := slices.Collect(maps.Values(cache.vectors[e.model])); len(again) != 4 || len(again[0]) != 4 {
		t.Errorf("the cache holds %v", again)
	}
}

// With any cache content and any failure, what comes back is a correct prefix, and all of it without an error.
func TestCachedReturnsACorrectPrefix(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.StringMatching(`[a-d]{1,2}`)
		cache := &memoryCache{}
		e := &fakeEmbedder{model: assay.Model{Name: "m", Dimensions: 4}}
		for range rapid.IntRange(1, 4).Draw(rt, "calls") {
			e.failAt = rapid.SampledFrom([]string{"", "a", "bb"}).Draw(rt, "failing")
			texts := rapid.SliceOfN(word, 1, 20).Draw(rt, "texts")
			got, err := NewCached(e, cache).EmbedDocuments(t.Context(), texts)
			if err == nil && len(got) != len(texts) || len(got) > len(texts) {
				rt.Fatalf("%d vectors for %d texts, error %v", len(got), len(texts), err)
			}
			checkVectors(t, got, texts[:len(got)], 4)
		}
	})
}
