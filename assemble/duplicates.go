package assemble

import (
	"hash/fnv"
	"strings"
	"unicode"
)

// duplicates finds, for a candidate, a better one that already says what it says.
//
// Texts are compared as sets of shingles, runs of three words without case, punctuation and markup, so
// that a page that another one quotes is seen under the marks of the quotation. What counts is the share
// of a candidate's shingles that one better candidate has too. Two texts with a Jaccard similarity of t
// share at least t of either, so every near-identical pair is found, and so is a passage that stands
// whole inside of a longer one, which adds nothing. A longer passage that holds a shorter, better one
// stays: it says more. There are at most a thousand candidates, and shared shingles are counted from
// an inverted list, so that the share is exact and no estimate such as MinHash is needed.
//
// A candidate that has a number or a negation that the better one lacks is no duplicate: "30 days" and
// "90 days" in the same words are two answers.
type duplicates struct {
	share  float64        // 0: equal texts alone
	exact  map[string]int // words of a text -> entry
	holder map[uint64][]int
	ids    []string          // chunk IDs by entry
	facts  []map[string]bool // what must not differ, by entry
}

// shingleWords is the length of a shingle: two words are shared by chance, and with five a single
// edited word takes too much with it.
const shingleWords = 3

func newDuplicates(share float64) *duplicates {
	return &duplicates{share: share, exact: make(map[string]int), holder: make(map[uint64][]int)}
}

// text is a candidate's text as it is compared.
type text struct {
	words    string
	shingles map[uint64]bool
	facts    map[string]bool
}

func (d *duplicates) read(s string) text {
	words := comparable(s)
	if len(words) == 0 { // rules, arrows and the like
		words = strings.Fields(s)
	}
	t := text{words: strings.Join(words, " ")}
	if d.share == 0 {
		t.words = strings.Join(strings.Fields(s), " ")
		return t
	}
	t.shingles, t.facts = shingles(words), facts(words)
	return t
}

// of returns the chunk ID of the better candidate that a text duplicates, or "".
func (d *duplicates) of(t text) string {
	if i, ok := d.exact[t.words]; ok {
		return d.ids[i]
	}
	if d.share == 0 {
		return ""
	}
	shared := make([]int, len(d.ids))
	for s := range t.shingles {
		for _, i := range d.holder[s] {
			shared[i]++
		}
	}
	for i, n := range shared {
		if float64(n) >= d.share*float64(len(t.shingles)) && holdsAll(d.facts[i], t.facts) {
			return d.ids[i]
		}
	}
	return ""
}

// add notes a candidate that later ones are compared with.
func (d *duplicates) add(id string, t text) {
	i := len(d.ids)
	d.ids, d.facts = append(d.ids, id), append(d.facts, t.facts)
	if _, known := d.exact[t.words]; !known {
		d.exact[t.words] = i
	}
	for s := range t.shingles {
		d.holder[s] = append(d.holder[s], i)
	}
}

// comparable returns the words of a text in lower case; signs of scripts without spaces and signs of
// currency stand alone.
func comparable(s string) []string {
	var out []string
	start := -1
	flush := func(end int) {
		if start >= 0 {
			out = append(out, strings.ToLower(s[start:end]))
		}
		start = -1
	}
	for i, r := range s {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Sc):
			flush(i)
			out = append(out, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if start < 0 {
				start = i
			}
		case (r == '\'' || r == '’') && start >= 0: // "don't" is one word
		default:
			flush(i)
		}
	}
	flush(len(s))
	return out
}

func shingles(words []string) map[uint64]bool {
	out := make(map[uint64]bool, len(words))
	for i := range max(1, len(words)-shingleWords+1) {
		h := fnv.New64a()
		for _, w := range words[i:min(i+shingleWords, len(words))] {
			_, _ = h.Write([]byte(w)) // never fails, as documented
			_, _ = h.Write([]byte{0})
		}
		out[h.Sum64()] = true
	}
	return out
}

// negations turn a statement into its opposite.
var negations = map[string]bool{
	"not": true, "no": true, "never": true, "without": true, "cannot": true, "except": true, "none": true,
	"nicht": true, "kein": true, "keine": true, "keinen": true, "nie": true, "niemals": true, "ohne": true, "außer": true,
}

// facts are the words that change what is said when they alone differ, each with the one before it.
func facts(words []string) map[string]bool {
	out := make(map[string]bool)
	before := ""
	for _, w := range words {
		if negations[w] || strings.HasSuffix(w, "n't") || strings.HasSuffix(w, "n’t") || strings.ContainsFunc(w, unicode.IsDigit) {
			out[before+" "+w] = true
		}
		before = w
	}
	return out
}

func holdsAll(set, subset map[string]bool) bool {
	for w := range subset {
		if !set[w] {
			return false
		}
	}
	return true
}
