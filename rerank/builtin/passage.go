package builtin

import (
	"strings"
	"unicode/utf8"
)

// Bounds of what is read. What is beyond them is cut off, as a model with a fixed length does.
const (
	maxTextWords  = 512
	maxQueryWords = 96
	maxHead       = 300 // bytes of a first line that is still taken for a title
	minSentence   = 5   // words; shorter ones are read with what follows
	maxSentence   = 48
)

// passage is a text in numbers.
type passage struct {
	words     []int32
	head      int   // words of the first line, which holds the title and the headings
	ends      []int // of the sentences below it, as counts of words
	headText  string
	sentences []string // the text of each
	length    int      // words
}

// readPassage reads "Title > Heading\ntext". A text without such a first line has its own first line
// in that place, which mostly says what the text is about too.
func (x *lexicon) readPassage(text string) passage {
	var p passage
	var at []int32
	body := text
	if first, rest, ok := strings.Cut(text, "\n"); ok && len(first) <= maxHead && strings.TrimSpace(rest) != "" {
		p.headText, body = first, rest
		p.words, _ = x.appendWords(nil, nil, first, maxTextWords)
		p.head = len(p.words)
	}
	p.words, at = x.appendWords(p.words, nil, body, maxTextWords)
	p.length = len(p.words)
	from, begin := 0, 0 // of the sentence: its first word, its first byte
	for i := range at {
		n := i + 1 - from
		next := len(body)
		if i+1 < len(at) {
			next = int(at[i+1])
		} else if len(p.words) == maxTextWords {
			next = min(int(at[i])+maxWord, len(body))
			for next < len(body) && !utf8.RuneStart(body[next]) {
				next++
			}
		}
		if i+1 == len(at) || n >= maxSentence || n >= minSentence && endsSentence(body[at[i]:next]) {
			p.ends = append(p.ends, p.head+i+1)
			p.sentences = append(p.sentences, body[begin:next])
			from, begin = i+1, next
		}
	}
	return p
}

// endsSentence reports whether a sentence ends between a word and the next.
func endsSentence(gap string) bool {
	for i := 0; i < len(gap); i++ {
		switch gap[i] {
		case '\n':
			return true
		case '.', '!', '?':
			if i+1 < len(gap) && (gap[i+1] == ' ' || gap[i+1] == '\n' || gap[i+1] == '"' || gap[i+1] == ')') {
				return true
			}
		}
	}
	return strings.Contains(gap, "。")
}
