package chunker

import (
	"strings"
	"testing"
	"unicode/utf8"

	"assay"
)

// BenchmarkEnglish compares, over the same English text, chunking with tokenising alone, with
// tiktoken-go, and with an upper limit: one pass over the runes.
func BenchmarkEnglish(b *testing.B) {
	texts := realTexts(b)
	text := strings.Join([]string{texts["state_of_the_union.md"], texts["wikitexts.md"], texts["pubmed.md"], texts["debian-faq.en.txt"], texts["anthropic_docs"]}, "\n\n")
	doc := &assay.Document{ID: "d", Text: text}
	run := func(name, text string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
	runes := 0
	run("runes", text, func() { runes += utf8.RuneCountInString(text) })
	if runes == 0 {
		b.Fatal("no text")
	}
	for _, encoding := range encodings() {
		for _, strategy := range []Strategy{Structure, Fixed} {
			c := newTest(Options{Strategy: strategy, Encoding: encoding})
			run("chunk/"+string(strategy)+"/"+encoding, text, func() { c.Chunk(doc) })
		}
		run("count/"+encoding, text, func() { tokenizers()[encoding].Count(text) })
		part := text[:runeFloor(text, 100_000)]
		peer := oracles()[encoding] // loaded outside the measurement
		run("tiktoken-go/"+encoding, part, func() { peer.EncodeOrdinary(part) })
	}
}

func BenchmarkNewTokenizer(b *testing.B) {
	for _, encoding := range encodings() {
		b.Run(encoding, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := NewTokenizer(encoding); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
