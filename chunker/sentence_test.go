package chunker

import (
	"slices"
	"strings"
	"testing"
)

func TestSentencesEndWhereReadersSeeIt(t *testing.T) {
	for _, marked := range []string{ // "|" stands where one ends and another begins
		"One. |Two! |Three? |Four",
		"See e.g. this and i.e. that. |Then Mr. Smith vs. Dr. Jones, cf. Fig. 3. |End.",
		"It is in No. 5 on p. 12. |The answer is no. |Then stop.",
		"Pi is 3.14 and v1.2.3 is out. |Get it at https://x.io/a.b?c=d. |Or read file.txt now.",
		"He said \"stop.\" |She (who knew.) |Left. |**Bold.** |Next.",
		"What?! |No way... |Well... perhaps… yes. |So.",
		"文章です。|次の文！|本当？|「はい。」|終わり",
		"J. R. Smith wrote it. |Am I. |Yes.",
		"Apples, pears, etc. are fruit, etc. |The U.S. economy grew at Acme Inc. last year. |Done.",
		"1. First step. |2.1. Second step. |b. Third.",
		"from 2018 through 2020. |a deferred tax asset was made. |it expires in 2027. |other items",
		"Line one\ngoes on. |Line\ttwo.\n|Three.",
		"Shown by Daubin et al. 2002; see there. |By Smith et al. |The end.",
		"Ends on Dec. 5 at 5 p.m. sharp. |It was Dec. |Then came Jan.",
		"No stop at all", "...", ". . .", "?", "",
	} {
		text := strings.ReplaceAll(marked, "|", "")
		var got strings.Builder
		from := 0
		for _, end := range appendSentences(nil, text, 0, len(text)) {
			a, b := trim(text, from, end)
			if from > 0 && a < b {
				got.WriteString(text[from:a] + "|")
			} else {
				got.WriteString(text[from:a])
			}
			got.WriteString(text[a:b])
			from = b
		}
		if got.String() != marked && strings.Trim(marked, ". ") != "" {
			t.Errorf("got  %q\nwant %q", got.String(), marked)
		}
		if from != len(strings.TrimRight(text, " \n")) {
			t.Errorf("%q: sentences end at %d", text, from)
		}
	}
}

func TestTitlesAreRecognised(t *testing.T) {
	for text, want := range map[string]bool{
		"1.5. What is the difference between Debian and other\nLinux distributions? Why should I choose it?": true,
		"Chapter 1. Definitions and overview": true, "Getting started": true, "What is it?": true,
		"A sentence that ends.": false, "Two\nlines": false, "3.5 is a number.": false, "20.": false, "": false,
		strings.Repeat("long ", 40) + "text": false,
	} {
		if got := looksLikeTitle(text); got != want {
			t.Errorf("looksLikeTitle(%q) = %t", text, got)
		}
	}
}

func TestHeadingsAreRead(t *testing.T) {
	for text, want := range map[string]block{
		"# A":                           {level: 1, title: "A"},
		"###### F ##":                   {level: 6, title: "F"},
		"## C#":                         {level: 2, title: "C#"},
		"##":                            {level: 2},
		"# [Keys](#keys) `fw` **b**":    {level: 1, title: "Keys fw b"},
		"Title\n===":                    {level: 1, title: "Title"},
		"Title\n-----\n":                {level: 2, title: "Title"},
		"# " + strings.Repeat("é", 300): {level: 1, title: strings.Repeat("é", 100) + "…"},
	} {
		blocks := parseBlocks(text)
		if len(blocks) != 1 || blocks[0].kind != heading || blocks[0].level != want.level || blocks[0].title != want.title {
			t.Errorf("%q: %+v", text, blocks)
		}
	}
	for _, text := range []string{"#hash", "####### seven", "    # code", "---", "text\n--", "```\n# in code\n```", "~~~\n# never closed", "a | b\n--- | ---"} {
		if blocks := parseBlocks(text); slices.ContainsFunc(blocks, func(b block) bool { return b.kind == heading }) {
			t.Errorf("%q has a heading: %+v", text, blocks)
		}
	}
}
