package generate

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"assay"
)

func turnOf(role, content string) assay.Message { return assay.Message{Role: role, Content: content} }

func TestMarkupIsCleanedForReading(t *testing.T) {
	for in, want := range map[string]string{
		"**Bold**, *italic* and __both__ of _them_":          "Bold, italic and both of them",
		"See [the page](a.md \"t\") and [other][ref].":       "See the page and other.",
		"![A picture](x.png) here":                           "A picture here",
		"`code **stays** [1]` but [3] does not":              "`code **stays** [1]` but (3) does not",
		"snake_case_name and 2 * 3 * 4":                      "snake_case_name and 2 * 3 * 4",
		"a<br>b <b>c</b> &lt;d&gt; but <id> and <https://e>": "a b c <d> but <id> and https://e",
		`\*not\* \_this\_ C:\dir`:                            `*not* _this_ C:\dir`,
		"an open ` tick":                                     "an open ' tick",
		"**`fw keys`** and [`x`](y)":                         "`fw keys` and `x`",
		"  many   spaces ":                                   "many spaces",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestSentencesEndWhereReadersEndThem(t *testing.T) {
	for in, want := range map[string]string{
		"One. Two! Three? Four":                    "One.|Two!|Three?|Four",
		"Use e.g. Python or i.e. Go. Then stop.":   "Use e.g. Python or i.e. Go.|Then stop.",
		"Ask Mr. Smith. By J. Doe.":                "Ask Mr. Smith.|By J. Doe.",
		"Run `a. B` now. Done.":                    "Run `a. B` now.|Done.",
		"Version 3.5 is out. It costs 1.000,50 €.": "Version 3.5 is out.|It costs 1.000,50 €.",
		"まず停止します。次に交換します。":                         "まず停止します。|次に交換します。",
		"Das gilt z.B. Montags. Sonst nicht.":      "Das gilt z.B. Montags.|Sonst nicht.",
	} {
		if got := strings.Join(sentences(in), "|"); got != want {
			t.Errorf("%q:\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestPassagesAreCutIntoUnits(t *testing.T) {
	var b blocks
	b.add(0, strings.Join([]string{
		"# Keys", "", "A wrapped line that is long enough to go on in the next line, which", "Ferrywire does. A second sentence.", "",
		"What is a key?", "A secret.", "",
		"Three things:", "- first", "  goes on", "- [ ] second", "  - nested", "", "Left:", "1) one", "", "2) two", "",
		"| A | B |", "|---|:-:|", "| x \\| y | `p|q` |", "| only |", "", "Short label", "Another label", "",
		"Needs:", "A quiet room", "Two chairs", "", "```go", "x := 1", "", "y := 2", "```", "---", "> quoted text here.", "", "Older heading", "-------------", "Text below it.",
	}, "\n"))
	var got []string
	for _, u := range b.units {
		intro := ""
		if u.intro >= 0 {
			intro = " <" + b.units[u.intro].text + ">"
		}
		got = append(got, fmt.Sprintf("%d %s| %s%s%s", u.kind, u.section, u.label, u.text, intro))
	}
	want := []string{
		"0 Keys| A wrapped line that is long enough to go on in the next line, which Ferrywire does.",
		"0 Keys| A second sentence.",
		"0 What is a key?| A secret.",
		"0 What is a key?| Three things:",
		"1 What is a key?| first goes on <Three things:>",
		"1 What is a key?| second <Three things:>",
		"1 What is a key?| nested <Three things:>",
		"0 What is a key?| Left:",
		"2 What is a key?| 1)one <Left:>",
		"2 What is a key?| 2)two <Left:>",
		"3 What is a key?| A: x | y; B: `p|q`",
		"3 What is a key?| A: only",
		"0 What is a key?| Short label",
		"0 What is a key?| Another label",
		"0 What is a key?| Needs:",
		"1 What is a key?| A quiet room <Needs:>",
		"1 What is a key?| Two chairs <Needs:>",
		"4 What is a key?| ```go\nx := 1\n\ny := 2\n``` <Needs:>",
		"0 What is a key?| quoted text here.",
		"0 Older heading| Text below it.",
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("units:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestTermsOfDifferentScripts(t *testing.T) {
	for in, want := range map[string]string{
		"How do I rotate the signing keys, please?": "[rotat sign key]",
		"FW-4093's meaning":                         "[fw 4093]",
		"Wie lange dauern Rückerstattungen?":        "[ruckerstatt]",
		"スプールの交換方法":                                 "[スプ プー ール ルの の交 交換 換方 方法]",
		"鍵":                                         "[鍵]",
		"Key鍵回転key":                                 "[key 鍵回 回転 key]",
		"ＦＷ－４０９３ Schlu\u0308ssel wie":               "[fw 4093 schlussel]",
		"": "[]",
	} {
		if got := fmt.Sprint(newAnalyser(in).terms(in)); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	de := newAnalyser("Wie geht das?")
	if a, b := de.terms("Schlüssel Straße Größen"), de.terms("Schluessel Strasse Groessen"); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("umlauts written out: %v and %v", a, b)
	}
}

func TestLargePassagesTakeNoLongTime(t *testing.T) {
	for name, text := range map[string]string{
		"one line":   strings.Repeat("keys and more words without an end ", 5_000),
		"brackets":   strings.Repeat("[[(", 20_000),
		"backticks":  strings.Repeat("`a", 20_000),
		"asterisks":  strings.Repeat("*a _b ", 10_000),
		"bars":       strings.Repeat("|a", 20_000),
		"list":       strings.Repeat("- keys\n", 10_000),
		"links":      strings.Repeat("[a](b", 10_000),
		"tags":       strings.Repeat("<b <i ", 10_000),
		"code lines": "```\n" + strings.Repeat("x\n", 20_000),
	} {
		start := time.Now()
		extract(t, ExtractiveOptions{}, "How do I rotate keys?", text)
		if took := time.Since(start); took > 8*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}

func FuzzExtractive(f *testing.F) {
	for _, s := range []string{rotation, refunds, germanRefunds, japanese, "|a|b|\n|-|-|\n|c|", "1. a\n\n```\nx\n```\n2. b", "a:\nb\nc"} {
		f.Add(s, "How do I rotate a key?")
	}
	f.Fuzz(func(t *testing.T, text, question string) {
		x := NewExtractive(nil, ExtractiveOptions{MinCoverage: 0.01})
		r, err := x.Generate(t.Context(), Request{Question: question, Passages: passagesOf(text, refunds)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Invalid) > 0 || !r.Refused && len(r.Citations) == 0 {
			t.Fatalf("citations %v, invalid %v of %q", r.Citations, r.Invalid, r.Text)
		}
		if utf8.ValidString(text) && utf8.ValidString(question) && !utf8.ValidString(r.Text) {
			t.Fatalf("answer %q is not UTF-8", r.Text)
		}
	})
}
