package generate

import (
	"math"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// question is what is asked, as sentences are scored against it.
type question struct {
	a       *analyser
	terms   []string           // distinct, in order
	weights map[string]float64 // by term
	total   float64
	pairs   [][2]string // terms that stand side by side
	expects expectation
}

// expectation is what the wording of the question says about its answer.
type expectation int

const (
	anything expectation = iota
	duration
	money
	number
	procedure
	reason
	definition
)

// Which words of a question expect what, in order of precedence.
var expectations = []struct {
	asks *regexp.Regexp
	what expectation
}{
	{regexp.MustCompile(`(?i)\bhow (much|many) (time|days|hours|weeks|months)\b|\bhow (long|soon|quickly|fast|often)\b|\b(since|until|by) when\b|^\W*when\b|\bdeadline\b|\bwie (lange|schnell|oft)\b|^\W*(bis |ab |seit )?wann\b|どのくらい|いつ|何日|何時間|얼마나 걸|언제|며칠|多久|什么时候|何时`), duration},
	{regexp.MustCompile(`(?i)\bhow much\b.*\b(costs?|pay|charged?|fees?|prices?)\b|\b(cost|costs|price|prices|pricing|fee|fees)\b|\bwie viel\b.*\bkoste|\bkostet?\b|\bpreise?\b|いくら|料金|얼마|价格|多少钱`), money},
	{regexp.MustCompile(`(?i)\bhow (many|much|large|big|high|far)\b|\b(maximum|minimum|limit|number of|size)\b|\bwie (viele?|groß|hoch)\b|何(件|個|回|人)|上限|몇|多少|几`), number},
	{regexp.MustCompile(`(?i)\bhow (do|can|could|should|would|to|must|does one|is it possible)\b|\bsteps?\b|\bprocedure\b|\bwhat (do|should|must) (i|we|you) do\b|\bwie (kann|können|muss|müssen|soll|sollen|\p{L}+e|\p{L}+en) (ich|man|wir)\b|\bwie (geht|lässt|funktioniert|wird|werden)\b|\banleitung\b|方法|手順|どうすれ|どうやって|방법|어떻게|怎么|如何|步骤`), procedure},
	{regexp.MustCompile(`(?i)\bwhy\b|\breasons?\b|\bwarum\b|\bwieso\b|なぜ|왜|为什么`), reason},
	{regexp.MustCompile(`(?i)^\W*(what|who) (is|are|does|do) (an? |the )?[\p{L}\p{N}' _-]{2,40}( mean| stand for)?\W*$|^\W*was (ist|sind|bedeutet)\b|とは|(이|란) 무엇|是什么`), definition},
}

// What answers of a kind hold.
var evidence = map[expectation]*regexp.Regexp{
	duration: regexp.MustCompile(`(?i)(\d|\b(a|an|one|two|three|four|five|six|seven|eight|nine|ten|twelve|half|several|few|eine[mnrs]?|zwei|drei|vier|fünf)\b)[ \x{00A0}-]?((business|working|calendar|full|further|more) )?(ms|milliseconds?|s|secs?|seconds?|min|minutes?|h|hours?|days?|nights?|weeks?|months?|quarters?|years?|tag(e|en)?|stunden?|minuten?|sekunden?|wochen?|monat(e|en)?|jahr(e|en)?|werktage?n?)\b|\d\s*(日|時間|分|秒|週間|か月|ヶ月|年|일|시간|분|초|주|개월|天|小时|分钟|周|个月)|\b\d{4}-\d\d-\d\d\b|\b(daily|hourly|weekly|monthly|yearly|immediately|at once|january|february|march|april|may|june|july|august|september|october|november|december)\b`),
	money:    regexp.MustCompile(`(?i)[$€£¥]\s?\d|\d[\d.,]*\s?(€|usd|eur|gbp|dollars?|euros?|cents?|円|원|元|%|per ?cent)|\bfree\b|\bkostenlos\b`),
	number:   regexp.MustCompile(`(?i)\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|twelve|zwei|drei|vier|fünf|zehn|unlimited|no limit)\b`),
	reason:   regexp.MustCompile(`(?i)\b(because|since|due to|so that|reason|caused?|causes|therefore|otherwise|weil|damit|denn|wegen|grund)\b|ため|から|때문|因为`),
}

var imperative = regexp.MustCompile("(?i)^\\W*(add|allow|apply|ask|assign|attach|call|change|check|choose|click|clone|configure|confirm|connect|contact|copy|create|delete|deploy|disable|download|edit|enable|enter|export|fill|find|follow|generate|give|go|grant|import|install|invite|log|make|move|navigate|note|open|paste|pause|press|promote|pull|push|put|raise|read|remove|replace|request|reset|restart|retire|rotate|run|save|select|send|set|sign|specify|start|stop|submit|switch|take|test|turn|type|update|upload|use|verify|visit|wait|watch|write)\\b|`[^`]+`")

// nameWeight is how much more a name counts than a word where the passages do not have it: an answer
// about another one is no answer.
const nameWeight = 1.5

// names are the terms of the question that are written with a capital inside a sentence or with a
// digit. German writes every noun with a capital, which then says nothing.
func (a *analyser) names(text string) field {
	out := field{}
	for i, word := range strings.Fields(text) {
		first, _ := utf8.DecodeRuneInString(word)
		capital := i > 0 && unicode.IsUpper(first) && !a.german
		if capital || strings.ContainsAny(word, "0123456789") {
			for _, t := range a.terms(word) {
				out[t] = true
			}
		}
	}
	return out
}

// floorWeight is what a term weighs that every unit has. It is not 0, since passages that were found for
// a question all share its subject, and the subject is what a question is about.
const floorWeight = 0.35

// newQuestion weighs the question's terms by how rare they are among the units. A term that no unit
// has weighs most: it is what the passages do not speak of.
func newQuestion(text string, a *analyser, units []unit) *question {
	q := &question{a: a, weights: map[string]float64{}}
	var last string
	for _, t := range a.terms(text) {
		if _, seen := q.weights[t]; !seen {
			q.terms = append(q.terms, t)
			q.weights[t] = 0
		}
		if last != "" && last != t {
			q.pairs = append(q.pairs, [2]string{last, t})
		}
		last = t
	}
	names := a.names(text)
	n := float64(len(units))
	for _, t := range q.terms {
		df := 0.0
		for i := range units {
			if units[i].distinct[t] {
				df++
			}
		}
		rarity := math.Log(1+(n-df+0.5)/(df+0.5)) / math.Log(1+(n+0.5)/0.5)
		q.weights[t] = floorWeight + (1-floorWeight)*rarity
		if df == 0 && names[t] {
			q.weights[t] *= nameWeight
		}
		q.total += q.weights[t]
	}
	for _, e := range expectations {
		if e.asks.MatchString(text) {
			q.expects = e.what
			break
		}
	}
	return q
}

// covered is the share of the question's weight for which hit returns how much of a term is there.
func (q *question) covered(hit func(term string) float64) float64 {
	if q.total == 0 {
		return 0
	}
	sum := 0.0
	for _, t := range q.terms {
		sum += q.weights[t] * hit(t)
	}
	return sum / q.total
}

// adjacent is the share of the question's pairs that stand side by side in a unit too.
func (q *question) adjacent(terms []string) float64 {
	if len(q.pairs) == 0 {
		return 0
	}
	found := 0
	for _, p := range q.pairs {
		for i := 1; i < len(terms); i++ {
			if terms[i-1] == p[0] && terms[i] == p[1] {
				found++
				break
			}
		}
	}
	return float64(found) / float64(len(q.pairs))
}

// suits says how a text goes with what the question expects: 1 is neutral.
func (q *question) suits(u *unit) float64 {
	switch q.expects {
	case duration, money, number:
		if evidence[q.expects].MatchString(u.text) {
			return 1.35
		}
		return 0.8
	case reason:
		if evidence[reason].MatchString(u.text) {
			return 1.2
		}
	case procedure:
		if u.kind == step || u.kind == code || imperative.MatchString(u.text) {
			return 1.2
		}
	case definition:
		if u.kind == sentence && q.isSubject(u) {
			return 1.3
		}
	}
	return 1
}

var copula = regexp.MustCompile(`(?i)\b(is|are|means|refers to|stands for|describes|ist|sind|bedeutet|bezeichnet)\b|とは|는 |은 |是`)

// isSubject reports whether a sentence begins with what is asked for and goes on to say what it is.
func (q *question) isSubject(u *unit) bool {
	at := copula.FindStringIndex(u.text)
	if at == nil || at[0] > 80 {
		return false
	}
	head := strings.Join(q.a.terms(u.text[:at[0]]), " ")
	for _, t := range q.terms {
		if !strings.Contains(head, t) {
			return false
		}
	}
	return true
}
