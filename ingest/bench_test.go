package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/korean"
)

// BenchmarkRead measures files and bytes a second, from memory, one worker, so that it is the parsers
// that are measured.
func BenchmarkRead(b *testing.B) {
	page, err := os.ReadFile(filepath.Join("testdata", "html", "structure.html"))
	if err != nil {
		b.Fatal(err)
	}
	html := string(page) + strings.Repeat("<h2>Part</h2><p>Some text with a <a href=https://x.example/y>link</a>, <code>code</code> and words.</p><ul><li>one<li>two</ul>", 100)
	markdown := "---\ntitle: T\ntags: [a, b]\n---\n" + strings.Repeat("## Part\n\nSome text with a [link](https://x.example/y), `code` and words.\n\n- one\n- two\n\n", 200)
	records := strings.Repeat(`{"_id":"1","title":"t","text":"`+strings.Repeat("Some words of a record. ", 40)+`"}`+"\n", 20)
	for name, content := range map[string]string{"a.html": html, "a.md": markdown, "a.txt": markdown, "a.jsonl": records, "korean.txt": legacyText(b)} {
		b.Run(name, func(b *testing.B) {
			root := memRoot(map[string]string{name: content})
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				for r := range Read(b.Context(), discard(), []Root{root}, Options{Workers: 1}) {
					if r.Reason != "" && r.Reason != SkipDuplicateID {
						b.Fatal(r.Err)
					}
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "files/s")
		})
	}
}

func legacyText(b *testing.B) string {
	raw, err := korean.EUCKR.NewEncoder().String(strings.Repeat(samples["korean"]+"\n", 100))
	if err != nil {
		b.Fatal(err)
	}
	return raw
}

// BenchmarkUnchanged measures what a file costs that has not changed: its hash.
func BenchmarkUnchanged(b *testing.B) {
	content := strings.Repeat("Some text with words.\n", 1000)
	root, s := memRoot(map[string]string{"a.md": content}), newStore()
	ingestInto(b, s, Options{}, root)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		for r := range Read(b.Context(), discard(), []Root{root}, Options{Workers: 1, Catalogue: s}) {
			if r.State != StateUnchanged {
				b.Fatal(r.State)
			}
		}
	}
}
