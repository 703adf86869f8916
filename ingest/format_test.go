package ingest

import (
	"archive/zip"
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestContentComesBeforeTheName(t *testing.T) {
	page := "<!DOCTYPE html><html><head><title>t</title></head><body><p>hello</p></body></html>"
	random := make([]byte, 1024)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	var docx bytes.Buffer
	z := zip.NewWriter(&docx)
	for _, name := range []string{"[Content_Types].xml", "_rels/.rels", "word/document.xml"} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte("<x/>"))
	}
	z.Close()
	for _, c := range []struct{ name, content, want, names string }{
		{"a.md", "# T", "markdown", ""},
		{"a.MARKDOWN", "# T", "markdown", ""},
		{"a.txt", "plain", "text", ""},
		{"a.html", "<p>fragment", "html", ""},
		{"a.conf", "key = value", "text", ""},
		{"README", "# Title\n\ntext", "markdown", ""},
		{"README", "---\ntitle: x\n---\ntext", "markdown", ""},
		{"run", "#!/bin/sh\n# comment", "text", ""},
		{"a.txt", page, "html", ""},
		{"a.md", "\uFEFF\n<!-- saved -->\n" + page, "html", ""},
		{"a.xml", `<?xml version="1.0"?>` + page, "html", ""},
		{"a.md", "<div align=center><h1>Logo</h1></div>\n\n# Readme", "markdown", ""},
		{"a.txt", "BM25 is a ranking function.", "text", ""}, // begins like a bitmap
		{"a.txt", "MZ is the state code of somewhere.", "text", ""},
		{"a.txt", `{"a": 1}`, "text", ""},
		{"a.docx", "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", "unsupported_format", "PDF"},
		{"a.txt", "%PDF-1.4 all of it printable", "unsupported_format", "PDF"},
		{"a.pdf", docx.String(), "unsupported_format", "Word"},
		{"a.md", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00", "asset", "PNG"},
		{"a", `{\rtf1\ansi hello}`, "unsupported_format", "rtf"},
		{"a.json", `{"a": 1}`, "unsupported_format", "JSON"},
		{"a", `{"a": 1}`, "unsupported_format", "JSON"},
		{"a.csv", "a,b\n1,2", "unsupported_format", "CSV"},
		{"a.xml", `<?xml version="1.0"?><rss/>`, "unsupported_format", "XML"},
		{"a.page", `<page id="x" xmlns="http://projectmallard.org/1.0/"><p>x</p></page>`, "unsupported_format", "XML"},
		{"a.ipynb", `{"cells": []}`, "unsupported_format", "Jupyter"},
		{"a.eml", "From: a@b\nSubject: c\n\nhello", "unsupported_format", "e-mail"},
		{"a.css", "body { color: red }", "asset", "style sheet"},
		{"a.txt", string(random), "binary", ""},
		{"a", string(random), "binary", ""},
		{"a.md", "", "empty", ""},
		{"a.html", " \n\t\uFEFF\n", "empty", ""},
		{"a.html", "<html><head><title>only a title</title></head><body><nav>x</nav></body></html>", "empty", ""},
		{"a.pdf", "", "empty", ""},
		{"a.txt", "\xff\xfe \x00\n\x00", "empty", ""},
		{"a.md", "---\ntitle: only fields\n---\n\n", "empty", ""},
	} {
		r := readOne(t, c.name, c.content)
		got := string(r.Reason)
		if r.Document != nil {
			got = r.Document.Format
		}
		if got != c.want {
			t.Errorf("%s %.30q: %s (%v), want %s", c.name, c.content, got, r.Err, c.want)
			continue
		}
		if c.names != "" && !strings.Contains(r.Err.Error(), c.names) {
			t.Errorf("%s %.30q: %v does not say %q", c.name, c.content, r.Err, c.names)
		}
		if want := r.Reason != "" && r.Reason != SkipAsset; r.Reason.Failed() != want {
			t.Errorf("%s counts as a failure: %v", r.Reason, !want)
		}
	}
}

func TestLegacyEncodingIsNotTakenForBinary(t *testing.T) {
	for b := 0x80; b <= 0xff; b++ {
		if !looksLikeText([]byte(strings.Repeat(string([]byte{byte(b), ' ', 'a'}), 50))) {
			t.Errorf("byte %x", b)
		}
	}
}
