package ingest

import (
	"strings"
	"testing"
	"time"
)

func TestFrontMatterBecomesFields(t *testing.T) {
	yaml := "---\ntitle: \"Rotate a *key*\"\nversion: 1.10\nlang: en\ndate: 2025-06-10\ncount: 0x10\nempty:\nactive: yes\ntags: [keys, signing]\nauthor:\n  name: Ada\n  roles: [a, b]\nbase: &b {x: 1}\ncopy: *b\n---\n\n# Heading\n"
	d := readOne(t, "a.md", yaml).Document
	if d.Title != "Rotate a *key*" || d.Version != "1.10" || d.Language != "en" || !d.Modified.Equal(time.Date(2025, 6, 10, 0, 0, 0, 0, time.UTC)) || d.Text != "# Heading" {
		t.Errorf("%+v", d)
	}
	for field, want := range map[string]string{"version": "1.10", "date": "2025-06-10", "count": "0x10", "active": "yes", "author.name": "Ada", "copy.x": "1", "title": "Rotate a *key*"} {
		if got := d.Metadata.Get(field); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	if len(d.Metadata["tags"]) != 2 || len(d.Metadata["author.roles"]) != 2 || d.Metadata["empty"] != nil {
		t.Errorf("%v", d.Metadata)
	}

	toml := "+++\ntitle = 'T'\nupdated = 2025-06-10T08:00:00Z\nday = 2025-06-10\nn = 3\n[extra]\nx = ['a', 'b']\n[[parts]]\nname = 'p'\n+++\ntext"
	d = readOne(t, "a.md", toml).Document
	if d.Title != "T" || d.Modified.Hour() != 8 || d.Metadata.Get("day") != "2025-06-10" || d.Metadata.Get("n") != "3" || len(d.Metadata["extra.x"]) != 2 || d.Metadata.Get("parts.name") != "p" || d.Text != "text" {
		t.Errorf("%+v", d)
	}
}

func TestFrontMatterThatIsNoneStaysText(t *testing.T) {
	bomb := "---\na: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n---\ntext"
	for name, c := range map[string]struct {
		src   string
		warns bool
	}{
		"broken YAML":         {"---\ntitle: [unclosed\n---\ntext", true},
		"tabs":                {"---\n\ttitle: x\n---\ntext", true},
		"broken TOML":         {"+++\ntitle = \n+++\ntext", true},
		"never closed":        {"---\ntitle: x\ntext", false},
		"lines across":        {"---\nJust a sentence.\n---\ntext", false},
		"not at the start":    {"text\n---\ntitle: x\n---", false},
		"multiplying aliases": {bomb, true},
		"too long":            {"---\ntitle: " + strings.Repeat("x", maxFrontMatter) + "\na: b\n---\ntext", false},
		"alias to itself":     {"---\na: &a [*a]\n---\ntext", true},
	} {
		r := readOne(t, "a.md", c.src)
		if r.Document == nil || r.Document.Text != c.src || r.Document.Metadata != nil || (len(r.Warnings) > 0) != c.warns {
			t.Errorf("%s: %v %v %+v", name, r.Err, r.Warnings, r.Document)
		}
	}
}

func TestMarkdownTitle(t *testing.T) {
	for src, want := range map[string]string{
		"# Keys **and** `locks` #\n":                     "Keys and locks",
		"text\n\n## Second [level](x.md) {#id}":          "Second level",
		"Title\n=====\n":                                 "Title",
		"Title\n-----\n\n# Later":                        "Title",
		"```\n# not this\n```\n# This":                   "This",
		"- item\n  ~~~sh\n  # not this\n  ~~~\n\n# This": "This",
		"|a|\n|--|\n\n- x\n---\n\n# This":                "This",
		"#hashtag\n\n#\n":                                "page",
		"no heading":                                     "page",
		"# " + strings.Repeat("é", 400):                  strings.Repeat("é", 150) + "…",
		"---\ntitle:\n  - a list\n---\n# Heading":        "a list",
		"---\nTitle: Upper\n---\n# Heading":              "Upper",
		"````\n```\n# not this\n```\n````\n\nThis\n=\n":  "This",
		"<!-- # not this -->\n# This":                    "This",
	} {
		if d := readOne(t, "page.md", src).Document; d.Title != want {
			t.Errorf("%q: title %q, want %q", src, d.Title, want)
		}
	}
	for name, c := range map[string][2]string{
		"a.rst":  {"=====\nTitle\n=====\n\ntext", "Title"},
		"b.rst":  {"Title\n=====\ntext", "Title"},
		"c.adoc": {"= Title\n\ntext", "Title"},
		"d.txt":  {"Title\n=====\ntext", "d"},
	} {
		if d := readOne(t, name, c[0]).Document; d.Title != c[1] {
			t.Errorf("%s: %q", name, d.Title)
		}
	}
}

func TestCommentsGoAndCodeStays(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a.md", "a <!-- x --> b", "a  b"},
		{"a.md", "a\n<!-- one\n# two\n-->\nb", "a\nb"},
		{"a.md", "<!-- a --><!-- b -->\ntext", "text"},
		{"a.md", "a <!-- x\n--> b <!-- y --> c\nd", "a  b  c\nd"},
		{"a.md", "```html\n<!-- kept -->\n```", "```html\n<!-- kept -->\n```"},
		{"a.md", "write `<!-- so -->` and <!-- x -->end", "write `<!-- so -->` and end"},
		{"a.md", "a <!-- never closed\nb", "a <!-- never closed\nb"},
		{"a.md", "import x from 'y'\n\ntext", "import x from 'y'\n\ntext"},
		{"a.mdx", "import X from 'y'\nexport const a = 1;\n\n# T\n\nimport this by hand\n\n```js\nimport X from 'y'\n```", "# T\n\nimport this by hand\n\n```js\nimport X from 'y'\n```"},
	} {
		if got := textOfStream(t, c.name, c.in); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestDates(t *testing.T) {
	for in, want := range map[string]string{
		"2025-03-01": "2025-03-01", "2025-03-01T10:00:00+02:00": "2025-03-01", "March 1, 2025": "2025-03-01", "1 Mar 2025": "2025-03-01",
		"2025-03-01 10:00:00": "2025-03-01", "Sat, 01 Mar 2025 10:00:00 GMT": "2025-03-01",
	} {
		if got, err := parseDate(in); err != nil || got.Format(time.DateOnly) != want {
			t.Errorf("%s: %v %v", in, got, err)
		}
	}
	for _, in := range []string{"", "yesterday", "2025-13-01", "0001-01-01"} {
		if got, err := parseDate(in); err == nil {
			t.Errorf("%q is %v", in, got)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("---\ntitle: x\ntags: [a, b]\n---\n# T <!-- c -->\n```\ncode\n```\n")
	f.Add("+++\na = 1\n[b]\nc = 2025-01-01\n+++\ntext")
	f.Add("---\na: &a {b: *a}\n...\nx")
	f.Fuzz(func(t *testing.T, src string) {
		for _, name := range []string{"a.md", "a.mdx"} {
			if d := parseDirectly(t, name, formatMarkdown, src); d != nil && len(d.Text) > 4*len(src)+10 {
				t.Fatalf("%d bytes of text from %d", len(d.Text), len(src))
			}
		}
	})
}
