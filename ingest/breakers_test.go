package ingest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mojibake is what the text of one encoding looks like in another.
var mojibake = []string{"\uFFFD", "Ã©", "Ã¨", "Ã¤", "â€", "Â ", "ï»¿", "ê°", "ì—", "í•", "ã‚", "ãƒ", "Ð¾", "Ñ€", "»ç", "ﾂ"}

// Every file of the collection ends in text or in a reason, and the pages hold the words that are on
// them.
func TestBreakersEndInTextOrAReason(t *testing.T) {
	dir := sharedData(t, "breakers")
	reasons := map[string]SkipReason{
		".pdf": SkipUnsupported, ".docx": SkipUnsupported, ".xlsx": SkipUnsupported, ".xls": SkipUnsupported, ".pptx": SkipUnsupported,
		".epub": SkipUnsupported, ".msg": SkipUnsupported, ".json": SkipUnsupported, ".csv": SkipUnsupported, ".xml": SkipUnsupported,
		".ipynb": SkipUnsupported, ".bin": SkipBinary,
		"derived/empty.md": SkipEmpty, "markitdown/expected_outputs/MEDRPT-2024-PAT-3847_medical_report_scan.md": SkipEmpty,
	}
	words := map[string][]string{
		"apache-docs/da_index.html":                       {"Kørselstidskonfigurationsdirektiver"},
		"apache-docs/de_install.html":                     {"umfaßt", "Überblick für die Ungeduldigen", "$ gzip -d httpd-2_1_NN.tar.gz\n$ tar xvf"},
		"apache-docs/es_configuring.html":                 {"# ", "`"},
		"apache-docs/fr_mod_mod_ssl.html":                 {"négociation", "même", "| Statut: | Extension |"},
		"apache-docs/ja_install.html":                     {"コンパイルとインストール", "ディスク"},
		"apache-docs/ko_custom-error.html":                {"사용자정의 오류 응답", "환경변수"},
		"apache-docs/ko_env.html":                         {"아파치의 환경변수"},
		"apache-docs/ko_install.html":                     {"컴파일과 설치"},
		"apache-docs/ru_getting-started.html":             {"Начало работы", "сервер"},
		"apache-docs/ru_index.html":                       {"Документация"},
		"apache-docs/zh-cn_install.html":                  {"Compilando e Instalando", "instalação"}, // Portuguese, whatever its name
		"derived/fr_mod_ssl.latin1-declared-utf8.html":    {"négociation", "mode", "è", "é"},
		"derived/ja_install.shift_jis-declared-utf8.html": {"コンパイルとインストール"},
		"derived/faq.utf16le-bom.txt":                     {"Debian"},
		"markitdown/test_blog.html":                       {"## Experiment Setup", "gpt-3.5-turbo"},
		"markitdown/test_wikipedia.html":                  {"# Microsoft", "Redmond", "## History"},
	}
	results := readAll(t, Options{}, parseRoot(t, dir))
	seen := map[string]bool{}
	for _, r := range results {
		rel, err := filepath.Rel(dir, r.URI)
		if abs, absErr := filepath.Abs(dir); absErr == nil {
			rel, err = filepath.Rel(abs, r.URI)
		}
		if err != nil {
			t.Fatal(err)
		}
		rel = filepath.ToSlash(rel)
		seen[rel] = true
		checkResult(t, r)
		want, ok := reasons[rel]
		if !ok {
			want = reasons[filepath.Ext(rel)]
		}
		if r.Reason != want {
			t.Errorf("%s: %q (%v), want %q", rel, r.Reason, r.Err, want)
			continue
		}
		if r.Document == nil {
			continue
		}
		if rel != "markitdown/LICENSE" && len(r.Document.Text) < 1000 {
			t.Errorf("%s: only %d bytes of text", rel, len(r.Document.Text))
		}
		for _, word := range words[rel] {
			if !strings.Contains(r.Document.Text, word) {
				t.Errorf("%s: %q is not in the text", rel, word)
			}
		}
		for _, bad := range mojibake {
			if strings.Contains(r.Document.Text+r.Document.Title, bad) {
				t.Errorf("%s: mojibake %q", rel, bad)
			}
		}
	}
	for rel := range words {
		if !seen[rel] {
			t.Errorf("%s was not met", rel)
		}
	}
	files := 0
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files++
		}
		return err
	})
	if err != nil || files != len(results) {
		t.Errorf("%d results for %d files (%v)", len(results), files, err)
	}
}

// The collections in the layout of BEIR keep their own IDs, awkward as they are.
func TestCollectionsKeepTheirIDs(t *testing.T) {
	for file, empty := range map[string]int{"anthropic_docs/corpus.jsonl": 0, "scifact/corpus.jsonl": 0, "cranfield/corpus.jsonl": 2, "debian_faq/corpus.jsonl": 0} {
		path := sharedData(t, file)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		skipped := 0
		results := readAll(t, Options{}, parseRoot(t, path))
		for _, r := range results {
			if r.Reason == SkipEmpty {
				skipped++
				continue
			}
			checkResult(t, r)
			if r.State != StateNew || !strings.HasSuffix(r.URI, "#"+r.ID) {
				t.Errorf("%s: %+v", file, r)
			}
		}
		if lines := strings.Count(string(raw), "\n"); len(results) != lines || skipped != empty {
			t.Errorf("%s: %d results of %d lines, %d empty", file, len(results), lines, skipped)
		}
	}
}
