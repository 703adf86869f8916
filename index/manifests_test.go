package index_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay"
	"assay/index"
)

func manifest(n int, at time.Time) *assay.Manifest {
	return &assay.Manifest{Schema: assay.ManifestSchema, ID: fmt.Sprint("m", n), TraceID: fmt.Sprint("t", n), CreatedAt: at}
}

func manifestIDs(t *testing.T, ix *index.Index, since time.Time) []string {
	t.Helper()
	var out []string
	for m, err := range ix.Manifests(since) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m.ID)
	}
	return out
}

func TestManifestsAreReadBackAtOnceAndAfterAReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ix := open(t, dir, index.Options{})
	now := time.Now().UTC().Truncate(time.Second)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				m := manifest(w*50+i, now.Add(time.Duration(w*50+i)*time.Second))
				if err := ix.PutManifest(t.Context(), m); err != nil {
					t.Error(err)
				}
				if got, err := ix.Manifest(m.ID); err != nil || got.TraceID != m.TraceID || !got.CreatedAt.Equal(m.CreatedAt) {
					t.Errorf("%+v, %v", got, err)
				}
				if got, err := ix.ManifestByTrace(m.TraceID); err != nil || got.ID != m.ID {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	checkAndClose(t, ix)
	if err := ix.PutManifest(t.Context(), manifest(0, now)); !errors.Is(err, index.ErrClosed) {
		t.Errorf("put after the close: %v", err)
	}

	ix = open(t, dir, index.Options{})
	var want []string
	for i := 199; i >= 0; i-- {
		want = append(want, fmt.Sprint("m", i))
	}
	if got := manifestIDs(t, ix, time.Time{}); !slices.Equal(got, want) {
		t.Errorf("all: %d of them: %v", len(got), got)
	}
	if got := manifestIDs(t, ix, now.Add(150*time.Second)); !slices.Equal(got, want[:50]) {
		t.Errorf("since: %v", got)
	}
	if got := manifestIDs(t, ix, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)); len(got) != 0 {
		t.Errorf("since the far future: %v", got)
	}
	if got := manifestIDs(t, ix, now.Add(time.Hour)); len(got) != 0 {
		t.Errorf("since later than all: %v", got)
	}
	for m := range ix.Manifests(time.Time{}) { // breaking off must leave nothing open
		if m.ID == "m198" {
			break
		}
	}
	for _, id := range []string{"", "m", "nobody"} {
		if _, err := ix.Manifest(id); !errors.Is(err, index.ErrNotFound) {
			t.Errorf("manifest %q: %v", id, err)
		}
		if _, err := ix.ManifestByTrace(id); !errors.Is(err, index.ErrNotFound) {
			t.Errorf("trace %q: %v", id, err)
		}
	}
	if err := ix.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := ix.Manifest("m7"); err != nil {
		t.Errorf("after a reset: %v", err)
	}
}

func TestManifestPutAgainReplacesTheFormer(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	now := time.Now()
	again := manifest(1, now.Add(time.Minute))
	again.TraceID, again.Error = "elsewhere", "late"
	for _, m := range []*assay.Manifest{manifest(1, now), manifest(2, now), again} {
		if err := ix.PutManifest(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		manifestIDs(t, ix, time.Time{}) // which waits until it is written
	}
	if got := manifestIDs(t, ix, time.Time{}); !slices.Equal(got, []string{"m1", "m2"}) {
		t.Errorf("%v", got)
	}
	if m, err := ix.ManifestByTrace("elsewhere"); err != nil || m.Error != "late" {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := ix.ManifestByTrace("t1"); !errors.Is(err, index.ErrNotFound) {
		t.Errorf("the former trace: %v", err)
	}
}

func TestManifestRetention(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ix := open(t, t.TempDir(), index.Options{ManifestAge: time.Hour, ManifestCount: 10})
	for i := range 30 {
		at := now.Add(time.Duration(i-30) * time.Second)
		if i < 5 {
			at = now.Add(-2 * time.Hour)
		}
		if err := ix.PutManifest(t.Context(), manifest(i, at)); err != nil {
			t.Fatal(err)
		}
	}
	got := manifestIDs(t, ix, time.Time{})
	if len(got) != 10 || got[0] != "m29" || got[9] != "m20" {
		t.Errorf("kept %v, want the newest ten", got)
	}
	aged := open(t, t.TempDir(), index.Options{ManifestAge: time.Hour})
	for i, age := range []time.Duration{2 * time.Hour, 61 * time.Minute, 59 * time.Minute, 0} {
		if err := aged.PutManifest(t.Context(), manifest(i, now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	if got := manifestIDs(t, aged, time.Time{}); !slices.Equal(got, []string{"m3", "m2"}) {
		t.Errorf("kept %v, want those of the last hour", got)
	}
}

func TestUnusableManifests(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir(), index.Options{})
	large := manifest(1, time.Now())
	large.Query.Text = strings.Repeat("x", 9<<20)
	for name, m := range map[string]*assay.Manifest{
		"no ID": {CreatedAt: time.Now()}, "no time": {ID: "m"}, "large": large,
		"far future": {ID: "m", CreatedAt: time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"long ID":    {ID: strings.Repeat("x", 5000), CreatedAt: time.Now()},
	} {
		if err := ix.PutManifest(context.Background(), m); !errors.Is(err, index.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
