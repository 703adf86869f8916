package ingest

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func TestRecordsBecomeDocuments(t *testing.T) {
	lines := []string{
		`{"_id":"https://example.com/a#frag","title":"Keys\u0000 and\nlocks","text":"# not parsed\r\nas is  ","metadata":{"lang":"en","version":1.10,"tags":["a","b"],"big":12345678901234567890,"date":"2025-03-01"}}`,
		``,
		`{"id":42,"text":"by number"}`,
		`{"_id":"<::>","id":"other","text":"_id before id","metadata":{},"extra":[1]}`,
	}
	results := readAll(t, Options{}, StreamRoot("corpus.jsonl", strings.NewReader("\uFEFF"+strings.Join(lines, "\r\n"))))
	if got := ids(results); !slices.Equal(got, []string{"https://example.com/a#frag", "42", "<::>"}) {
		t.Fatalf("%v", got)
	}
	d := results[0].Document
	if d.URI != "corpus.jsonl#https://example.com/a#frag" || d.Text != "# not parsed\nas is  " || d.Title != "Keys and locks" ||
		d.Format != "jsonl" || d.Language != "en" || d.Version != "1.10" || d.Modified.Year() != 2025 ||
		d.Metadata.Get("big") != "12345678901234567890" || len(d.Metadata["tags"]) != 2 {
		t.Errorf("%+v", d)
	}
}

func TestBadLineIsNamedAndTheRestGoesOn(t *testing.T) {
	lines := map[string]SkipReason{
		`{"_id":"x","text":"cut`:                  SkipMalformed,
		`["_id","text"]`:                          SkipMalformed,
		`{"_id":"x","text":7}`:                    SkipMalformed,
		`{"_id":"x"}`:                             SkipMalformed,
		`{"_id":"x","text":"t","metadata":[1]}`:   SkipMalformed,
		`{"_id":"x","text":" \n "}`:               SkipEmpty,
		`{"text":"t"}`:                            SkipBadID,
		`{"_id":"","text":"t"}`:                   SkipBadID,
		`{"_id":{"a":1},"text":"t"}`:              SkipBadID,
		`{"_id":"a\u0007b","text":"t"}`:           SkipBadID,
		`{"_id":"1","text":"again"}`:              SkipDuplicateID,
		"{\"_id\":\"x\",\"text\":\"\xff\xfe\"}":   SkipBadEncoding,
		`{"_id":"x","text":"` + long(2000) + `"}`: SkipTooLarge,
	}
	for line, want := range lines {
		src := `{"_id":"1","text":"before"}` + "\n" + line + "\n" + `{"_id":"2","text":"after"}`
		results := readAll(t, Options{MaxRecordSize: 1000}, StdinRoot(strings.NewReader(src)))
		if got := ids(results); !slices.Equal(got, []string{"1", string(want), "2"}) {
			t.Errorf("%.40s: %v", line, got)
			continue
		}
		if err := results[1].Err; want != SkipDuplicateID && !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%.40s: %v does not name the line", line, err)
		}
		// A line whose record is unknown speaks for all records of its source.
		known := results[1].URI != "stdin"
		if !results[1].Accounts(results[1].URI) || results[1].Accounts("stdin#7") == known {
			t.Errorf("%.40s: %s accounts for the wrong documents", line, results[1].URI)
		}
	}
}

func long(n int) string { return strings.Repeat("y", n) }

func TestRecordsAreFoundByContent(t *testing.T) {
	record := `{"_id":"1","title":"t","text":"` + long(100_000) + `","metadata":{"id":{"text":1}}}`
	for name, content := range map[string]string{
		"stdin": record + "\n" + record, "corpus.json": record, "notes.txt": `{"id": 1, "metadata": {"a": [1]}, "text": "x"}`,
	} {
		if r := readAll(t, Options{}, StreamRoot(name, strings.NewReader(content)))[0]; r.Document == nil || r.Document.Format != "jsonl" {
			t.Errorf("%s: %s %v", name, r.Reason, r.Err)
		}
	}
	for _, content := range []string{`{"metadata":{"_id":"1","text":"x"}}`, `{"a":"_id","b":"text"}`, `{"_id":"1"`, `{braces} in text`} {
		if looksLikeRecords(content) {
			t.Errorf("%s taken for records", content)
		}
	}
}

func TestRecordsInUTF16(t *testing.T) {
	var b bytes.Buffer
	for _, u := range append([]uint16{0xFEFF}, utf16.Encode([]rune(`{"_id":"1","text":"größe"}`+"\n"+`{"_id":"2","text":"환불"}`))...) {
		b.Write([]byte{byte(u), byte(u >> 8)})
	}
	results := readAll(t, Options{}, StreamRoot("c.jsonl", &b))
	if len(results) != 2 || results[1].Document == nil || results[1].Document.Text != "환불" {
		t.Errorf("%+v", results)
	}
}

// Thirty megabytes of records pass through without being held.
func TestRecordsStreamInFlatMemory(t *testing.T) {
	const records = 30_000
	in, out := io.Pipe()
	go func() {
		text := strings.Repeat("x", 1000)
		for i := range records {
			fmt.Fprintf(out, "{\"_id\":\"%d\",\"text\":\"%s\"}\n", i, text)
		}
		out.Close()
	}()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	for r := range Read(t.Context(), discard(), []Root{StreamRoot("c.jsonl", in)}, Options{}) {
		if r.State != StateNew {
			t.Fatalf("%+v", r)
		}
		if n++; n%10_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			// 16 bytes a name, two names a record, and room for the map to grow.
			if grown := int64(now.HeapAlloc) - int64(before.HeapAlloc); grown > 10<<20 {
				t.Errorf("%d MB held after %d records", grown>>20, n)
			}
		}
	}
	if n != records {
		t.Errorf("%d records", n)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte(`{"_id":"1","title":"t","text":"x","metadata":{"a":[1,null,{"b":true}]}}`))
	f.Add([]byte("{\"_id\":\"1\",\"text\":\"x\"}\n{bad\n\n{\"id\":-1.5e3,\"text\":\"y\"}"))
	f.Fuzz(func(t *testing.T, src []byte) {
		lines := bytes.Count(src, []byte("\n")) + 1
		results := readAll(t, Options{Workers: 1}, StreamRoot("c.jsonl", bytes.NewReader(src)))
		if len(results) > max(lines, 1) {
			t.Fatalf("%d results from %d lines", len(results), lines)
		}
		for _, r := range results {
			checkResult(t, r)
			if !utf8.ValidString(r.ID) {
				t.Fatalf("ID %q", r.ID)
			}
		}
	})
}
