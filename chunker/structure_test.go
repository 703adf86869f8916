package chunker

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"assay"
)

// cut returns the chunks of text, checked, with the path and the text of each in one string.
func cut(t *testing.T, o Options, text string) []string {
	t.Helper()
	var out []string
	for _, k := range checkChunks(t, newTest(o), text) {
		out = append(out, assay.HeadingPath(k.Headings)+": "+k.Text)
	}
	return out
}

func prose(sentences int) string {
	var b strings.Builder
	for i := range sentences {
		fmt.Fprintf(&b, "Sentence number %d says a little about the matter. ", i)
	}
	return strings.TrimSpace(b.String())
}

func TestWholeDocumentIsOneChunkIfItFits(t *testing.T) {
	got := cut(t, Options{}, "\n# Guide\n\nIntro.\n\n## Keys\n\nRotate.\n")
	if want := []string{"Guide: # Guide\n\nIntro.\n\n## Keys\n\nRotate."}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for _, text := range []string{"", " \n\t\n", "\u3000\n"} {
		if got := cut(t, Options{}, text); got != nil {
			t.Errorf("%q has chunks %q", text, got)
		}
	}
}

func TestSmallSectionsShareAChunkUnderTheirParent(t *testing.T) {
	var faq strings.Builder
	faq.WriteString("# FAQ\n")
	for i := range 60 {
		fmt.Fprintf(&faq, "\n## Question %d?\n\n%s\n", i, prose(4))
	}
	chunks := checkChunks(t, newTest(Options{Size: 512}), faq.String())
	for i, k := range chunks {
		if k.Tokens < 400 && i < len(chunks)-1 || !slices.Equal(k.Headings, []string{"FAQ"}) {
			t.Errorf("chunk %d: %d tokens under %q", i, k.Tokens, k.Headings)
		}
		if start := strings.TrimPrefix(k.Text, "# FAQ\n\n"); !strings.HasPrefix(start, "## Question") {
			t.Errorf("chunk %d begins inside a section: %.40q", i, k.Text)
		}
	}
}

func TestSectionsOfDifferentParentsAreNotMixed(t *testing.T) {
	text := "# A\n\n## A1\n\n" + prose(18) + "\n\n## A2\n\nShort.\n\n# B\n\n## B1\n\nShort.\n\n## B2\n\n" + prose(18)
	for _, k := range cut(t, Options{Size: 220}, text) {
		if strings.Contains(k, "Short.\n\n# B") || strings.Contains(k, "## A2") && strings.Contains(k, "## B1") {
			t.Errorf("mixes chapters: %q", k)
		}
	}
}

func TestHeadingsWithoutTextJoinWhatFollows(t *testing.T) {
	text := "# A\n\n## B\n\n### C\n\n" + prose(40) + "\n\n## D\n\n" + prose(5)
	got := cut(t, Options{Size: 128, Overlap: -1}, text)
	if !strings.HasPrefix(got[0], "A: # A\n\n## B\n\n### C\n\nSentence number 0") {
		t.Errorf("first chunk %.80q", got[0])
	}
	if !strings.HasPrefix(got[1], "A > B > C: Sentence") {
		t.Errorf("second chunk %.80q", got[1])
	}
	if last := got[len(got)-1]; !strings.HasPrefix(last, "A > D: ## D") {
		t.Errorf("last chunk %.80q", last)
	}
	for size := 100; size < 160; size++ { // also where a paragraph just fits without its heading
		for _, text := range []string{"# Heading\n\n" + prose(12), "Plain title\n\n" + prose(12)} {
			for _, k := range cut(t, Options{Size: size}, text+"\n\n"+prose(30)) {
				if !strings.Contains(k, "Sentence") {
					t.Errorf("size %d: a heading alone: %q", size, k)
				}
			}
		}
	}
}

func table8() string {
	rows := "| Plan | Calls |\n|------|------:|\n"
	for i := range 8 {
		rows += fmt.Sprintf("| Plan %d | %d00 |\n", i, i)
	}
	return strings.TrimSpace(rows)
}

func TestBlocksStayWholeWhereTheyFit(t *testing.T) {
	code := "```go\n" + strings.Repeat("call(x, y)\n\n", 12) + "```"
	list := "- First item of the list.\n  - Nested item.\n" + strings.Repeat("- Another item. With two sentences.\n", 8)
	for name, block := range map[string]string{"table": table8(), "code": code, "list": strings.TrimSpace(list)} {
		tokens := tokenizers()["o200k_base"].Count(block)
		for before := range 12 {
			text := prose(before) + "\n\n" + block + "\n\n" + prose(10)
			if !slices.ContainsFunc(cut(t, Options{Size: tokens, Overlap: -1}, text), func(k string) bool { return strings.Contains(k, block) }) {
				t.Errorf("%s of %d tokens is cut at size %d after %d sentences", name, tokens, tokens, before)
			}
		}
	}
}

func TestLargeBlocksAreCutBetweenTheirParts(t *testing.T) {
	for name, text := range map[string]string{
		"table": table8() + "\n", "plain table": "Plan | Calls\n" + strings.Repeat("Some plan | 100\n", 20),
	} {
		got := cut(t, Options{Size: 40}, text)
		if first := strings.Split(got[0], "\n"); len(got) < 2 || len(first) < 2 {
			t.Errorf("%s: header alone: %q", name, got)
		}
		for _, k := range got {
			if !strings.HasPrefix(k, ": |") && name == "table" || strings.HasSuffix(k, "| ") {
				t.Errorf("%s: a row is cut: %q", name, k)
			}
		}
	}
	got := cut(t, Options{Size: 40}, "```go\n"+strings.Repeat("    call(x, y)\n    more(x)\n\n", 10)+"    last()\n```\n")
	for i, k := range got {
		body := strings.TrimPrefix(strings.TrimPrefix(k, ": "), "```go\n")
		if !strings.HasPrefix(body, "    call(") || strings.Trim(body, "`\n ") == "" || i < len(got)-1 && !strings.HasSuffix(body, "more(x)") {
			t.Errorf("code is cut inside a paragraph, or a mark stands alone: %q", k)
		}
	}
	for _, k := range cut(t, Options{Size: 64}, strings.Repeat("1. Do this first. Then do that, with care.\n\n   ```\n   run it\n   ```\n   - a detail\n", 12)) {
		if !strings.HasPrefix(k, ": 1. Do this") && !strings.HasPrefix(k, ": - a detail") || strings.Count(k, "```")%2 != 0 {
			t.Errorf("list is cut inside an item: %q", k)
		}
	}
}

func TestCodeInListsHidesItsMarkup(t *testing.T) {
	text := "1. ```sh\n   # not a heading\n   - not an item\n   ```\n2. Next.\n\n# Heading\n\nText."
	blocks := parseBlocks(text)
	if len(blocks) != 3 || blocks[0].kind != list || blocks[1].title != "Heading" {
		t.Fatalf("blocks %+v", blocks)
	}
	got := cut(t, Options{Size: 20, Overlap: -1}, strings.Repeat(text[:strings.Index(text, "# Heading")], 3))
	for _, k := range got {
		if strings.Count(k, "```")%2 != 0 {
			t.Errorf("code is cut: %q", got)
		}
	}
}

func TestTextIsCutBetweenSentences(t *testing.T) {
	got := cut(t, Options{Size: 64, Overlap: -1}, prose(40))
	for _, k := range got {
		if !strings.HasPrefix(k, ": Sentence") || !strings.HasSuffix(k, ".") {
			t.Errorf("cut inside a sentence: %q", k)
		}
	}
	tail := checkChunks(t, newTest(Options{Size: 64, Overlap: -1}), prose(40))
	if a, b := tail[len(tail)-2].Tokens, tail[len(tail)-1].Tokens; a > 2*b {
		t.Errorf("the last chunks have %d and %d tokens: a scrap", a, b)
	}
}

func TestOverlapIsWholeSentencesOfTheSameSection(t *testing.T) {
	chunks := checkChunks(t, newTest(Options{Size: 100, Overlap: 25}), "# A\n\n"+prose(30)+"\n\n# B\n\n"+prose(30)+"\n\n"+table8())
	repeats := 0
	for i := 1; i < len(chunks); i++ {
		before, k := chunks[i-1], chunks[i]
		if k.Span.Start >= before.Span.End {
			continue
		}
		repeats++
		if !strings.HasPrefix(k.Text, "Sentence number") {
			t.Errorf("chunk %d repeats part of a sentence: %.40q", i, k.Text)
		}
		if !slices.Equal(k.Headings, before.Headings) {
			t.Errorf("chunk %d under %q repeats text of %q", i, k.Headings, before.Headings)
		}
	}
	if repeats < 5 {
		t.Errorf("%d of %d chunks repeat anything", repeats, len(chunks))
	}
}

func TestPlainTextIsCutAtItsTitles(t *testing.T) {
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "1.%d. What is the answer to\nquestion %d?\n\n    %s\n\n    %s\n\n", i, i, prose(3), prose(2))
	}
	for i, k := range cut(t, Options{Size: 160, Overlap: -1}, text.String()) {
		if !strings.HasPrefix(k, ": 1.") || !strings.HasSuffix(k, "matter.") {
			t.Errorf("chunk %d: %q", i, k)
		}
	}
}

func TestFixedWindowsOverlapAndEndAtWords(t *testing.T) {
	chunks := checkChunks(t, newTest(Options{Strategy: Fixed, Size: 50, Overlap: 10}), prose(60))
	for i, k := range chunks {
		if i < len(chunks)-1 && k.Tokens < 40 {
			t.Errorf("window %d has %d tokens", i, k.Tokens)
		}
		if i > 0 && k.Span.Start >= chunks[i-1].Span.End {
			t.Errorf("window %d does not overlap", i)
		}
		if k.Headings != nil {
			t.Errorf("window %d has headings", i)
		}
	}
}

func TestChunkerIsSafeForConcurrentUse(t *testing.T) {
	c := newTest(Options{Size: 64})
	want := c.Chunk(&assay.Document{ID: "d", Text: prose(200)})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				if got := c.Chunk(&assay.Document{ID: "d", Text: prose(200)}); len(got) != len(want) || got[len(got)-1].ID != want[len(want)-1].ID {
					t.Error("other chunks than alone")
				}
			}
		})
	}
	wg.Wait()
}
