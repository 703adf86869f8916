package chunker

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"assay"

	"pgregory.net/rapid"
)

// newTest makes a Chunker around a shared tokenizer. It doesn't validate, so that sizes down to that
// of a single rune can be tried too.
func newTest(o Options) *Chunker {
	o = o.withDefaults()
	return &Chunker{o, tokenizers()[o.Encoding]}
}

// checkChunks checks everything that the package promises of chunks.
func checkChunks(t interface {
	Helper()
	Fatalf(string, ...any)
}, c *Chunker, text string) []assay.Chunk {
	t.Helper()
	doc := &assay.Document{ID: "d", Text: text}
	chunks := c.Chunk(doc)
	covered := 0
	ids := map[string]bool{}
	for i, k := range chunks {
		if k.Span.Start < 0 || k.Span.End > len(text) || text[k.Span.Start:k.Span.End] != k.Text {
			t.Fatalf("chunk %d: span %v is not its text %q", i, k.Span, k.Text)
		}
		if n := c.Tokenizer().Count(k.Text); n != k.Tokens || n > c.Options().Size {
			t.Fatalf("chunk %d of %d: %d tokens, says %d, size %d: %q", i, len(chunks), n, k.Tokens, c.Options().Size, k.Text)
		}
		if strings.TrimSpace(k.Text) == "" {
			t.Fatalf("chunk %d is white space: %q", i, k.Text)
		}
		if runeFloor(text, k.Span.Start) != k.Span.Start || runeFloor(text, k.Span.End) != k.Span.End {
			t.Fatalf("chunk %d splits a rune: %q", i, k.Text)
		}
		if k.Ordinal != i || k.DocID != "d" || k.ID != assay.ChunkID("d", k.Span, k.Text) || ids[k.ID] {
			t.Fatalf("chunk %d: ordinal %d, document %q, ID %q (seen: %t)", i, k.Ordinal, k.DocID, k.ID, ids[k.ID])
		}
		ids[k.ID] = true
		if i > 0 && (k.Span.Start <= chunks[i-1].Span.Start || k.Span.End <= covered) {
			t.Fatalf("chunk %d at %v after %v", i, k.Span, chunks[i-1].Span)
		}
		if k.Span.Start > covered && strings.TrimFunc(text[covered:k.Span.Start], unicode.IsSpace) != "" {
			t.Fatalf("chunk %d: nothing holds %q", i, text[covered:k.Span.Start])
		}
		if k.Span.Start < covered {
			if n := c.Tokenizer().Count(text[k.Span.Start:covered]); n > max(c.Options().Overlap, 0) {
				t.Fatalf("chunk %d repeats %d tokens, overlap is %d", i, n, c.Options().Overlap)
			}
		}
		covered = k.Span.End
	}
	if strings.TrimFunc(text[covered:], unicode.IsSpace) != "" {
		t.Fatalf("no chunk holds the end: %q", text[covered:])
	}
	return chunks
}

var fragments = append([]string{
	"# Title\n", "## Sub title ##\n\n", "### Deep\n", "###### Deepest\n", "#\n", "Setext\n======\n", "Second\n---\n", "\n", "\n\n", "   \n", "\t", "---\n", "***\n",
	"One sentence. Another one! A third? ", "See e.g. No. 5 of v1.2.3 at https://x.io/a.b. ", "word ", "A paragraph that goes on for a while and then some more, without saying anything.\n",
	"- item one\n", "- item two\n  with more\n", "  - nested\n", "1. first\n", "2) second\n\n   more of it\n", "```go\nfunc f() {}\n\nfunc g() {}\n```\n", "```\nopen\n", "~~~\n# not a heading\n~~~\n",
	"| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n", "x | y\n1 | 2\n", "> quote\n", "文章です。次の文。最後！", "日本語", "é\u0301👩‍👩‍👧‍👦", "\xff", "\x80\x80", "a\rb", "\r\n", "Lead-in:\n\n", "3.2. How do I do it?\n\n", "    indented\n",
}, awkward...)

func drawText(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(fragments), rapid.String()), 0, 60).Draw(t, "parts")
	return strings.Join(parts, "")
}

func TestChunksKeepTheirPromises(t *testing.T) {
	for _, strategy := range []Strategy{Structure, Fixed} {
		t.Run(string(strategy), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				text := drawText(t)
				size := rapid.OneOf(rapid.IntRange(4, 64), rapid.IntRange(4, 1000)).Draw(t, "size")
				overlap := rapid.IntRange(-1, size/2).Draw(t, "overlap")
				c := newTest(Options{Size: size, Overlap: overlap, Strategy: strategy, Encoding: rapid.SampledFrom(encodings()).Draw(t, "encoding")})
				first := checkChunks(t, c, text)
				if again := c.Chunk(&assay.Document{ID: "d", Text: text}); !reflect.DeepEqual(again, first) {
					t.Fatalf("the same text gave other chunks")
				}
			})
		})
	}
}

func FuzzChunksKeepTheirPromises(f *testing.F) {
	for i, text := range fragments {
		f.Add(text+fragments[(i+7)%len(fragments)]+text, uint16(i), uint16(i/2), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, text string, size, overlap uint16, fixed bool) {
		o := Options{Size: 4 + int(size%1000), Strategy: Structure}
		if o.Overlap = int(overlap)%(o.Size/2+1) - 1; fixed {
			o.Strategy = Fixed
		}
		checkChunks(t, newTest(o), text)
	})
}

func TestCountsOfPartsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t) + strings.Repeat("x", rapid.IntRange(0, 2000).Draw(t, "x")) + drawText(t)
		tok := tokenizers()[rapid.SampledFrom(encodings()).Draw(t, "encoding")]
		c := newCounts(tok, text)
		for range 20 {
			a := rapid.IntRange(0, len(text)).Draw(t, "a")
			b := rapid.IntRange(a, len(text)).Draw(t, "b")
			a, b = trim(text, runeFloor(text, a), max(runeFloor(text, b), runeFloor(text, a)))
			want := tok.Count(text[a:b])
			if got := c.count(a, b); got != want {
				t.Fatalf("count(%d, %d) = %d, want %d for %q", a, b, got, want, text[a:b])
			}
			if _, ok := c.fits(a, b, want); !ok {
				t.Fatalf("%q of %d tokens doesn't fit into as many", text[a:b], want)
			}
			if _, ok := c.fits(a, b, want-1); ok && want > 0 {
				t.Fatalf("%q of %d tokens fits into fewer", text[a:b], want)
			}
		}
	})
}

func TestRealTextsKeepThePromises(t *testing.T) {
	for name, text := range realTexts(t) {
		for _, o := range []Options{{}, {Size: 512, Overlap: 64}, {Size: 40}, {Strategy: Fixed}, {Strategy: Fixed, Size: 100, Overlap: 50, Encoding: "cl100k_base"}} {
			if raceDetector {
				text = text[:runeFloor(text, min(len(text), 60_000))]
			}
			t.Run(name+"/"+newTest(o).Fingerprint(), func(t *testing.T) {
				checkChunks(t, newTest(o), text)
			})
		}
	}
}

func TestHostileTextsTakeLinearTime(t *testing.T) {
	size := 1 << 18
	if raceDetector {
		size = 1 << 16
	}
	var headings, nested strings.Builder
	for i := range size / 10 {
		fmt.Fprintf(&headings, "%s h%d\n", strings.Repeat("#", i%6+1), i)
	}
	for i := 0; nested.Len() < size; i++ {
		nested.WriteString(strings.Repeat("  ", i) + "- x\n")
	}
	for name, text := range map[string]string{
		"one letter": strings.Repeat("a", size), "after a blank": " b " + strings.Repeat("a", size), "Chinese": strings.Repeat("的一是不了人我在有他这中大来上国", size/48), "rare runes": strings.Repeat("𠮷𡈽𪚥", size/12),
		"emoji": strings.Repeat("👩‍👩‍👧‍👦", size/25), "base64": strings.Repeat("aGVsbG8gd29ybGQhIHRoaXMgaXMgYmFzZTY0Cg", size/39), "marks": "e" + strings.Repeat("\u0301", size/2), "not UTF-8": strings.Repeat("\x80", size),
		"headings": headings.String(), "same heading": strings.Repeat("# a\n", size/10), "nested items": nested.String(), "quotes": strings.Repeat(">", size), "fences": strings.Repeat("```\n", size/4), "open brackets": strings.Repeat("# [a](", size/6),
		"items": strings.Repeat("- x\n", size/4), "loose items": strings.Repeat("- x\n\n", size/5), "rows": strings.Repeat("|x|y\n", size/5), "lines": strings.Repeat("a b\n", size/4), "stops": strings.Repeat(". ", size/2), "only stops": strings.Repeat(".", size),
		"blank lines": "a" + strings.Repeat("\n", size) + "b", "blanks": "a" + strings.Repeat(" ", size) + "b", "digits": strings.Repeat("7", size), "rules": strings.Repeat("---\n\n", size/5), "long heading": "# " + strings.Repeat("word ", size/5) + "\n\ntext",
		"quotes and stops": strings.Repeat("\"a.\" ", size/5), "titles": strings.Repeat("Title\n\n", size/7), "fences of many lengths": strings.Repeat("````\n```\n~~~\n", size/13), "case": strings.Repeat("aB", size/2), "blank pairs": strings.Repeat("a  \t ", size/5),
	} {
		for _, o := range []Options{{}, {Size: 1000, Overlap: 500, Strategy: Fixed}} {
			start := time.Now()
			c := newTest(o)
			chunks := c.Chunk(&assay.Document{ID: "d", Text: text})
			d := time.Since(start)
			if d > 15*time.Second || // quadratic ones take minutes
				len(chunks) == 0 {
				t.Errorf("%s, %s: %d chunks took %v", name, c.Fingerprint(), len(chunks), d)
			} else if d > 300*time.Millisecond {
				t.Logf("%s, %s: %d chunks took %v", name, c.Fingerprint(), len(chunks), d)
			}
			for i, k := range chunks {
				if i%50 == 0 && tokenizers()[o.withDefaults().Encoding].Count(k.Text) != k.Tokens || k.Tokens > c.Options().Size {
					t.Fatalf("%s: chunk %d has not %d tokens", name, i, k.Tokens)
				}
			}
		}
	}
}

func TestOptionsAreValidatedTogether(t *testing.T) {
	_, err := New(Options{Size: 8, Strategy: "semantic", Encoding: "gpt2"})
	for _, part := range []string{"size 8: must be from 16 to 1048576", `"semantic"`, "structure or fixed", `"gpt2"`, "o200k_base, cl100k_base"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v doesn't say %q", err, part)
		}
	}
	if err := (Options{Size: 100, Overlap: 51}).Validate(); err == nil || !strings.Contains(err.Error(), "at most half of the size, 50") {
		t.Errorf("error = %v", err)
	}
	for _, size := range []int{-1, 15, MaxSize + 1} {
		if err := (Options{Size: size}).Validate(); err == nil {
			t.Errorf("size %d is valid", size)
		}
	}
	for _, o := range []Options{{}, {Size: MinSize}, {Size: MaxSize}, {Size: 40, Overlap: 20}, {Overlap: -1}} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestDefaultsAndFingerprint(t *testing.T) {
	c, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Options{Size: 256, Overlap: 32, Strategy: Structure, Encoding: "o200k_base"}); c.Options() != want {
		t.Errorf("options = %+v, want %+v", c.Options(), want)
	}
	seen := []string{}
	for _, o := range []Options{{}, {Size: 100}, {Overlap: 10}, {Overlap: -1}, {Strategy: Fixed}, {Encoding: "cl100k_base"}} {
		f := newTest(o).Fingerprint()
		if slices.Contains(seen, f) {
			t.Errorf("%+v shares the fingerprint %s", o, f)
		}
		seen = append(seen, f)
	}
	if seen[0] != "structure/256/32/o200k_base/1" || seen[3] != "structure/256/0/o200k_base/1" {
		t.Errorf("fingerprints = %q", seen)
	}
}
