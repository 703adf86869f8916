package engine

import (
	"testing"
	"testing/fstest"
	"time"

	"assay"
)

func version(series, front, text string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("---\nseries: " + series + "\n" + front + "\n---\n# Refunds\n\n" + text + "\n")}
}

func TestVersionsOfASeriesReplaceEachOther(t *testing.T) {
	tests := []struct {
		name string
		docs fstest.MapFS
		want map[string]string // document -> what replaces it
	}{
		{"by date", fstest.MapFS{
			"a.md": version("refunds", "effective: 2023-01-01\nversion: 9", "ten days"),
			"b.md": version("refunds", "effective: 2024-01-01\nversion: 1", "seven days"),
			"c.md": version("refunds", "effective: 2025-01-01", "five days"),
		}, map[string]string{"a.md": "c.md", "b.md": "c.md", "c.md": ""}},
		{"by number, compared as numbers", fstest.MapFS{
			"a.md": version("refunds", "version: v2.9", "ten days"),
			"b.md": version("refunds", "version: \"2.10\"", "five days"),
		}, map[string]string{"a.md": "b.md", "b.md": ""}},
		{"a date still to come", fstest.MapFS{
			"a.md": version("refunds", "effective: 2024-01-01", "ten days"),
			"b.md": version("refunds", "effective: 2025-01-01", "seven days"),
			"c.md": version("refunds", "effective: 2999-01-01", "five days"),
		}, map[string]string{"a.md": "b.md", "b.md": "", "c.md": ""}},
		{"two of one day", fstest.MapFS{
			"a.md": version("refunds", "effective: 2024-01-01", "ten days"),
			"b.md": version("refunds", "effective: 2024-01-01", "seven days"),
			"c.md": version("refunds", "effective: 2025-01-01", "five days"),
		}, map[string]string{"a.md": "c.md", "b.md": "c.md", "c.md": ""}},
		{"one without a date or number", fstest.MapFS{
			"a.md": version("refunds", "effective: 2024-01-01", "ten days"),
			"b.md": version("refunds", "version: draft", "five days"),
		}, map[string]string{"a.md": "", "b.md": ""}},
		{"other series", fstest.MapFS{
			"a.md": version("refunds", "effective: 2024-01-01", "ten days"),
			"b.md": version("returns", "effective: 2025-01-01", "five days"),
		}, map[string]string{"a.md": "", "b.md": ""}},
		{"without a series", fstest.MapFS{
			"a.md": {Data: []byte("---\nversion: 1\neffective: 2024-01-01\n---\n# Refunds\n\nten days\n")},
			"b.md": {Data: []byte("---\nversion: 2\neffective: 2025-01-01\n---\n# Refunds\n\nfive days\n")},
		}, map[string]string{"a.md": "", "b.md": ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, setup{})
			w.ingest(t, tt.docs, IngestOptions{})
			snap := w.index.Snapshot()
			defer snap.Close()
			s := w.superseded.of(snap)
			for doc, want := range tt.want {
				if got := s.replacement(doc, assay.Filter{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); got != want {
					t.Errorf("%s is replaced by %q, want %q", doc, got, want)
				}
			}
		})
	}
}
