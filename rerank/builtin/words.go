package builtin

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

// maxWord bounds what counts of one word, in bytes; longer ones are data, not language.
const maxWord = 64

// lexicon numbers the words of one request and knows the stem of each, so that everything after it
// compares numbers.
type lexicon struct {
	byWord map[string]int32
	byStem map[string]int32
	words  []word
	stems  []string
	env    *snowballstem.Env
	buf    []byte
}

// word is a word as it is written, in lower case.
type word struct {
	stem int32
	stop bool // says nothing about the subject
	code bool // holds a digit: a number, a version, an identifier
}

func newLexicon() *lexicon {
	return &lexicon{byWord: map[string]int32{}, byStem: map[string]int32{}, env: snowballstem.NewEnv("")}
}

// id returns the number of a word in lower case.
func (x *lexicon) id(w []byte) int32 {
	if id, ok := x.byWord[string(w)]; ok {
		return id
	}
	text := string(w)
	code := strings.ContainsFunc(text, unicode.IsDigit)
	stem := text
	if !code && len(text) > 2 {
		x.env.SetCurrent(text)
		english.Stem(x.env)
		stem = x.env.Current()
	}
	s, ok := x.byStem[stem]
	if !ok {
		s = int32(len(x.stems))
		x.byStem[stem] = s
		x.stems = append(x.stems, stem)
	}
	id := int32(len(x.words))
	x.byWord[text] = id
	x.words = append(x.words, word{stem: s, stop: stopWords[text], code: code})
	return id
}

// appendWords appends the words of text, at most limit in all, with the byte at which each begins.
// Words are runs of letters and digits; of scripts that put no spaces every pair of signs is one.
func (x *lexicon) appendWords(ids []int32, at []int32, text string, limit int) ([]int32, []int32) {
	buf, start := x.buf[:0], 0
	var before rune // the sign of such a script that stands just before, or 0
	flush := func() {
		if len(buf) > 0 && len(ids) < limit {
			ids, at = append(ids, x.id(buf)), append(at, int32(start))
		}
		buf = buf[:0]
	}
	for i := 0; i < len(text) && len(ids) < limit; {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
		case 'A' <= r && r <= 'Z':
			r += 'a' - 'A'
		case r < utf8.RuneSelf:
			r = 0
		case isDense(r):
			flush()
			if before != 0 {
				buf = utf8.AppendRune(utf8.AppendRune(buf, before), r)
				start = i
				flush()
			}
			before, i = r, i+size
			continue
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			r = unicode.ToLower(r)
		default:
			r = 0
		}
		before = 0
		if r == 0 {
			flush()
		} else if len(buf) < maxWord {
			if len(buf) == 0 {
				start = i
			}
			buf = utf8.AppendRune(buf, r)
		}
		i += size
	}
	flush()
	x.buf = buf[:0]
	return ids, at
}

// isDense reports whether a sign is of a script that writes words without spaces.
func isDense(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// stopWords say how something is asked and not what about.
var stopWords = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(`
a about above after again all also am an and any anybody anyone anything are aren as at be because been before being below
between both but by can cannot could couldn did didn do does doesn doing don down during each either else ever every few for
from further get gets getting give given go goes going got had has have haven having he her here hers him his how i if in into
is isn it its itself just kindly let like ll many may me might mine more most much must my myself need needs no nor not now of off
on once one only or other our ours out over own please possible question re really s said same say see shall she should so some
somebody someone something still such t take takes tell than thank thanks that the their theirs them then there these they
thing things this those through to too under until up us use used using ve very want was wasn way we well were what when where
whether which while who whom whose why will with within without won would wouldn yes yet you your yours d m
`) {
		out[w] = true
	}
	return out
}()
