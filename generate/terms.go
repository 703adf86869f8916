package generate

import (
	"strings"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/german"
	"golang.org/x/text/unicode/norm"
)

// analyser turns text into the terms by which a question and a sentence are compared: lower-case
// stems of words that are not stop words, and bigrams where a script does not put spaces.
type analyser struct {
	german bool
	env    *snowballstem.Env
	stems  map[string]string // of words seen; stemming is most of the work
}

// newAnalyser picks the stemmer by the question's language: German if its small words are, English
// otherwise, which does little harm to other languages.
func newAnalyser(question string) *analyser {
	a := &analyser{env: snowballstem.NewEnv(""), stems: map[string]string{}}
	de, en := 0, 0
	eachWord(question, func(word string, cjk bool) {
		if cjk {
			return
		}
		if strings.ContainsAny(word, "äöüß") {
			de++
		}
		if germanStops[word] {
			de++
		}
		if englishStops[word] {
			en++
		}
	})
	a.german = de > en
	return a
}

// terms returns the terms of a text in order, with repetitions.
func (a *analyser) terms(text string) []string {
	var out []string
	eachWord(text, func(word string, cjk bool) {
		if cjk {
			out = append(out, bigrams(word)...)
			return
		}
		if a.german && germanStops[word] || !a.german && englishStops[word] {
			return
		}
		out = append(out, a.stem(word))
	})
	return out
}

var umlauts = strings.NewReplacer("aue", "aue", "eue", "eue", "que", "que", "ae", "ä", "oe", "ö", "ue", "ü", "ß", "ss")

func (a *analyser) stem(word string) string {
	if stem, ok := a.stems[word]; ok {
		return stem
	}
	stem := word
	if strings.ContainsFunc(word, unicode.IsLetter) {
		if a.german {
			a.env.SetCurrent(umlauts.Replace(word))
			german.Stem(a.env)
		} else {
			a.env.SetCurrent(word)
			english.Stem(a.env)
		}
		stem = a.env.Current()
	}
	a.stems[word] = stem
	return stem
}

// eachWord calls f for every run of letters and digits, in lower case, and apart for every run of a
// script that writes words without spaces or joins particles to them.
func eachWord(text string, f func(word string, cjk bool)) {
	text = norm.NFKC.String(text) // one form for composed, decomposed and full-width signs
	start, cjk := -1, false
	flush := func(end int) {
		if start >= 0 {
			word := strings.ToLower(text[start:end])
			word = strings.TrimSuffix(strings.TrimSuffix(word, "'s"), "’s")
			if word = strings.Trim(word, "'’"); word != "" {
				f(word, cjk)
			}
		}
		start = -1
	}
	for i, r := range text {
		wide := isCJK(r)
		inside := wide || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) ||
			(r == '\'' || r == '’') && start >= 0 && !cjk
		if !inside || start >= 0 && wide != cjk {
			flush(i)
		}
		if inside && start < 0 {
			start, cjk = i, wide
		}
	}
	flush(len(text))
}

func isCJK(r rune) bool {
	return r >= 0x1100 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r == 'ー')
}

// bigrams cuts a run into overlapping pairs. Phrases that only make a question of it are left out first, and
// of single signs only those that mean something alone.
func bigrams(run string) []string {
	var out []string
	for _, part := range strings.Fields(cjkStops.Replace(run)) {
		runes := []rune(part)
		if n := len(runes); n >= 3 && particles[runes[n-1]] && unicode.Is(unicode.Hangul, runes[n-2]) {
			runes = runes[:n-1]
		}
		if len(runes) == 1 && unicode.In(runes[0], unicode.Han, unicode.Katakana) {
			out = append(out, part)
		}
		for i := 0; i+1 < len(runes); i++ {
			if unicode.Is(unicode.Hiragana, runes[i]) && unicode.Is(unicode.Hiragana, runes[i+1]) {
				continue // endings and particles
			}
			out = append(out, string(runes[i:i+2]))
		}
	}
	return out
}

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// The stop words: small words, question words and politeness.
var englishStops = set(`
a about above after again all also am an and any anybody anyone anything are aren't as at be because been before
being below between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during
each either else ever every few for from further get gets getting give given go goes going got had has have haven't
having he hello help her here hers hey hi him his hi how i i'd i'm i've if in into is isn't it it's its itself just
kindly know last lasts let like many may me might mine more most much must my need needs no nor not now of off on once one only
or other our ours out over own please possible question really s same say see shall she should so some somebody
someone something still such t take takes tell than thank thanks that that's the their theirs them then there these
they thing things this those through to too under until up us use used using very want was wasn't way we well were
what what's when where whether which while who whom whose why will with within without won't would wouldn't yes yet
you you'd your yours exactly happen happens mean meaning means long explain describe according anyway
`)

var germanStops = set(`
aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bin bis bist bitte da dabei damit
danke dann das dass dazu dein deine dem den denn der des dich die dies diese diesem diesen dieser dieses dir doch dort dauern dauert
du durch ein eine einem einen einer eines er es etwas euch euer für gegen genau gelten gibt gilt habe haben hallo hat hatte hier
ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder jedes jetzt kann kannst können
könnte könnten machen man mein meine meinem meinen meiner mich mir mit muss müssen nach nein nicht nichts noch nun nur
ob oder ohne schon sehr sein seine seinen seiner sich sie sind so soll sollen sollte sonst um und uns unser unsere unter
viel viele vom von vor wann warum was weil welche welchem welchen welcher welches wenn wer werde werden wie wieder will wir
wird wo woher wohin wurde würde zu zum zur zwischen über lange passiert
`)

// particles end Korean words.
var particles = map[rune]bool{'은': true, '는': true, '이': true, '가': true, '을': true, '를': true, '의': true, '에': true, '로': true, '와': true, '과': true, '도': true}

// cjkStops cuts question phrases and politeness out of a run.
var cjkStops = strings.NewReplacer(func() []string {
	var pairs []string
	for _, phrase := range strings.Fields(`
どのくらい どうすれば どうやって いつまで ください でしょうか ですか ますか ました ません どのように なんですか について とは 何です
什么时候 为什么 怎么样 怎么 什么 如何 多少 哪些 哪个 是否 可以 能否 请问 吗 呢
어떻게 무엇을 무엇 언제 며칠 얼마나 어디 입니까 습니까 인가요 하나요 되나요 나요 있나요 합니까 해야
`) {
		pairs = append(pairs, phrase, " ")
	}
	return pairs
}()...)
