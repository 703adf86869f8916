package ingest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the expected files from what comes out now")

// Each page in testdata/html has beside it the document that it becomes: a change of conversion is a
// diff to review.
func TestPagesBecomeTheExpectedDocuments(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("testdata", "html", "*.html"))
	if err != nil || len(pages) < 5 {
		t.Fatalf("pages: %v %v", pages, err)
	}
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			d := readAll(t, Options{}, parseRoot(t, page))[0].Document
			got := fmt.Sprintf("title: %s\nlanguage: %s\nversion: %s\nmodified: %s\n", d.Title, d.Language, d.Version, d.Modified.Format("2006-01-02"))
			meta, err := d.Metadata.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			got += fmt.Sprintf("metadata: %s\n\n%s\n", meta, d.Text)
			expected := strings.TrimSuffix(page, ".html") + ".md"
			if *update {
				if err := os.WriteFile(expected, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(expected)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("differs from %s; look at it, then run with -update\n%s", expected, got)
			}
		})
	}
}

func TestPageTitleLosesTheNameOfTheSite(t *testing.T) {
	for _, c := range []struct{ title, h1, want string }{
		{"Refunds - Example Docs", "Refunds", "Refunds"},
		{"Example Docs | Refunds", "Refunds", "Refunds"},
		{"Refunds", "All about refunds", "Refunds"},
		{"Refunds - Example Docs", "Money", "Refunds - Example Docs"},
		{"A - B - C", "A - B", "A - B"},
		{"", "Refunds", "Refunds"},
		{"", "", "page"},
	} {
		src := "<html><head><title>" + c.title + "</title></head><body><p>x</p><h1>" + c.h1 + "</h1></body></html>"
		if got := readOne(t, "page.html", src).Document.Title; got != c.want {
			t.Errorf("%q with heading %q: %q, want %q", c.title, c.h1, got, c.want)
		}
	}
}

// Names of classes decide only while they take little: this site calls its content what others call
// their menu.
func TestMostOfAPageIsNeverDropped(t *testing.T) {
	for _, src := range []string{
		`<div class="sidebar"><p>` + strings.Repeat("All of the text. ", 20) + `</p></div>`,
		`<script>` + strings.Repeat("var x = 1;", 1000) + `</script><div class="sidebar"><p>` + strings.Repeat("All of the text. ", 20) + `</p></div>`,
		`<div id="toc"><ul>` + strings.Repeat("<li>All of the text.</li>", 20) + `</ul></div><p>little</p>`,
		`<body class="nav"><main class="menu"><p>` + strings.Repeat("All of the text. ", 20) + `</p></main></body>`,
		`<main></main><p>` + strings.Repeat("All of the text. ", 20) + `</p>`,
		`<article><p>One.</p></article><article><p>` + strings.Repeat("All of the text. ", 3) + `</p></article><p>` + strings.Repeat("All of the text. ", 20) + `</p>`,
	} {
		if got := textOfStream(t, "page.html", src); strings.Count(got, "All of the text.") < 20 {
			t.Errorf("%.60s: %q", src, got)
		}
	}
}

func TestOnlyHeadingOfAPageIsKept(t *testing.T) {
	for _, header := range []string{`<header><h1>Keys</h1><p>slogan</p></header>`, `<div class="page-header"><h1>Keys</h1></div>`, `<div role="banner"><div><h1>Keys</h1></div></div>`} {
		if got := textOfStream(t, "page.html", header+`<p>All about them.</p>`); got != "# Keys\n\nAll about them." {
			t.Errorf("%s: %q", header, got)
		}
	}
	if got := textOfStream(t, "page.html", `<header><h1>Site</h1></header><main><h1>Keys</h1><p>All about them.</p></main>`); got != "# Keys\n\nAll about them." {
		t.Errorf("the name of the site stays: %q", got)
	}
}

func FuzzHTML(f *testing.F) {
	pages, _ := filepath.Glob(filepath.Join("testdata", "html", "*.html"))
	for _, page := range pages {
		src, err := os.ReadFile(page)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Add("<table><tr><td rowspan=9 colspan=9><pre><ul><li><table><caption>x</table>")
	f.Add("<a href=http://x/><h1><code>`<br>``</code><dl><dt><dd></a><math><svg><details><summary>")
	f.Fuzz(func(t *testing.T, src string) {
		first := parseDirectly(t, "a.html", formatHTML, src)
		second := parseDirectly(t, "a.html", formatHTML, src)
		if (first == nil) != (second == nil) || first != nil && first.Text != second.Text {
			t.Fatal("two runs give two texts")
		}
	})
}
