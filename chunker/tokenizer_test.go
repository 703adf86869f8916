package chunker

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// The tables are loaded once for all tests: they are read-only.
var (
	tokenizers = sync.OnceValue(func() map[string]*Tokenizer {
		m := map[string]*Tokenizer{}
		for _, name := range encodings() {
			t, err := NewTokenizer(name)
			if err != nil {
				panic(err)
			}
			m[name] = t
		}
		return m
	})
	oracles = sync.OnceValue(func() map[string]*oracle {
		tiktoken.SetBpeLoader(loader.NewOfflineLoader())
		m := map[string]*oracle{}
		for _, name := range encodings() {
			bpe, err := tiktoken.GetEncoding(name)
			if err != nil {
				panic(err)
			}
			m[name] = &oracle{bpe}
		}
		return m
	})
)

// oracle is tiktoken-go.
type oracle struct{ *tiktoken.Tiktoken }

// ends are the ends of the tokens that tiktoken-go finds, as byte offsets.
func (o *oracle) ends(text string) []int {
	var ends []int
	p := 0
	for _, token := range o.EncodeOrdinary(text) {
		p += len(o.Decode([]int{token}))
		ends = append(ends, p)
	}
	return ends
}

func tokenEnds(t *Tokenizer, text string) []int {
	var ends []int
	for p := 0; p < len(text); {
		end := t.next(text, p)
		ends = t.vocab.appendEnds(ends, text, p, end)
		p = end
	}
	return ends
}

// sameTokens compares token boundaries: a token is its bytes, so equal boundaries are equal tokens.
func sameTokens(t *testing.T, encoding, text string) {
	t.Helper()
	want, got := oracles()[encoding].ends(text), tokenEnds(tokenizers()[encoding], text)
	if !slices.Equal(got, want) {
		i := 0
		for i < len(got) && i < len(want) && got[i] == want[i] {
			i++
		}
		from := 0
		if i > 0 {
			from = got[i-1]
		}
		t.Fatalf("%s: tokens differ from byte %d on: %.60q\n got ends %v\nwant ends %v", encoding, from, text[from:],
			got[i:min(i+5, len(got))], want[i:min(i+5, len(want))])
	}
	if n := tokenizers()[encoding].Count(text); n != len(want) {
		t.Fatalf("%s: Count = %d, want %d: %.60q", encoding, n, len(want), text)
	}
}

var awkward = []string{
	"", " ", "\n", "a", "Hello, world.", "don't DON'T we'll I'M they'Re x'd 'tis ''s '", "it's'll", "'ſ 'S 'LL 'lL 'rE 'vE'",
	"   leading", "trailing   ", "a  b   c", "a\n\n\n b", " \n \n  x", "tabs\t\tand\tspaces \t x", "\u00a0nbsp\u00a0\u00a0x", "a\u3000\u3000b\u2028c\u0085d",
	"HELLOworld HelloWorld hELLO McDonald iPhone XMLHttpRequest ÀÉÎõü ǅungla", "1234567 12,345.67 ٣٤٥ Ⅷ ½ 2nd", "a/b//c/\n/\nd !!!\n\n/x ...\r\n\r\n ok",
	"日本語のテキスト。中文文本！한국어 텍스트？", "e\u0301 \u0301e \u0301\u0301ABC A\u0301BC \u0301 x\u0301's", "ʰABC aʰB AʰʰBC", "👩‍👩‍👧‍👦 🇩🇪 ☺️!", "नमस्ते दुनिया", "<|endoftext|> <|fim_prefix|>x",
	"\x00\x01\u200b\ufeffx", "func main() {\n\tfmt.Println(\"x\")\n}\n", strings.Repeat("a", 300), strings.Repeat(" ", 300) + "x", strings.Repeat("=", 300), strings.Repeat("ab", 120) + "'s",
	"| a | b |\n|---|:-:|\n| 1 | 2 |\n", "https://example.com/a_b?c=d&e=%20#f", "aGVsbG8gd29ybGQhIHRoaXMgaXMgYmFzZTY0Cg==",
}

func TestTokensEqualTiktokenOnAwkwardText(t *testing.T) {
	for _, encoding := range encodings() {
		for _, text := range awkward {
			sameTokens(t, encoding, text)
		}
	}
}

func TestTokensEqualTiktokenOnRandomText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("aabcdeEsStTdDmMlLrRvV''''    \n\n\r\t/.,!-0123٣½ʰʰ日ñÀǅ\u0301\u0301\u00a0\u3000ſK")
	for range 3000 {
		var b strings.Builder
		for range r.IntN(40) {
			b.WriteRune(alphabet[r.IntN(len(alphabet))])
		}
		for _, encoding := range encodings() {
			sameTokens(t, encoding, b.String())
		}
	}
	for range 1000 { // any runes
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(string(rune(r.IntN(0x30000)))) // surrogates become U+FFFD
		}
		for _, encoding := range encodings() {
			sameTokens(t, encoding, b.String())
		}
	}
}

func TestTokensEqualTiktokenOnRealText(t *testing.T) {
	limit := 60_000 // bytes a file: the library is slow
	if raceDetector {
		limit = 10_000
	}
	for name, text := range realTexts(t) {
		text = text[:runeFloor(text, min(len(text), limit))]
		for _, encoding := range encodings() {
			t.Run(name+"/"+encoding, func(t *testing.T) { sameTokens(t, encoding, text) })
		}
	}
}

// realTexts are the public texts of the shared data folder.
func realTexts(tb testing.TB) map[string]string {
	tb.Helper()
	root := filepath.Join("..", "..", "shared", "data")
	if _, err := os.Stat(root); err != nil {
		tb.Skip("no folder with public texts: ", err)
	}
	texts := map[string]string{}
	paths, _ := filepath.Glob(filepath.Join(root, "chunking_eval", "corpora", "*.md"))
	html, _ := filepath.Glob(filepath.Join(root, "breakers", "apache-docs", "*.html"))
	paths = append(paths, html...)
	paths = append(paths, filepath.Join(root, "debian_faq", "debian-faq.en.txt"))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		texts[filepath.Base(path)] = strings.ToValidUTF8(string(data), "\ufffd")
	}
	var docs strings.Builder
	for _, text := range jsonTexts(tb, filepath.Join(root, "anthropic_docs", "corpus.jsonl")) {
		docs.WriteString(text + "\n\n")
	}
	texts["anthropic_docs"] = docs.String()
	if len(paths) < 10 {
		tb.Fatalf("only %d files under %s", len(paths), root)
	}
	return texts
}

func jsonTexts(tb testing.TB, path string) []string {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var texts []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var record struct{ Text string }
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			tb.Fatal(err)
		}
		texts = append(texts, record.Text)
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return texts
}

func FuzzTokensEqualTiktoken(f *testing.F) {
	for _, text := range awkward {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			t.Skip("the library is quadratic")
		}
		for _, encoding := range encodings() {
			if utf8.ValidString(text) {
				sameTokens(t, encoding, text)
			} else if ends := tokenEnds(tokenizers()[encoding], text); len(ends) == 0 || ends[len(ends)-1] != len(text) {
				t.Fatalf("tokens of invalid UTF-8 end at %v of %d", ends, len(text))
			}
		}
	})
}

func TestLongRunsTokeniseInLinearTime(t *testing.T) {
	size := 1 << 20
	if raceDetector {
		size = 1 << 17
	}
	r := rand.New(rand.NewPCG(3, 4))
	base64 := make([]byte, size)
	for i := range base64 {
		base64[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[r.IntN(52)]
	}
	for name, text := range map[string]string{
		"one letter": strings.Repeat("a", size), "blanks": strings.Repeat(" ", size), "digits": strings.Repeat("7", size), "dashes": strings.Repeat("-", size),
		"Chinese": strings.Repeat("的一是不了人我在有他这中大来上国", size/48), "letters": string(base64), "marks": strings.Repeat("\u0301", size/2), "not UTF-8": strings.Repeat("\xff\x80", size/2),
	} {
		for _, encoding := range encodings() {
			start := time.Now()
			tokenizers()[encoding].Count(text)
			if d := time.Since(start); d > 10*time.Second { // quadratic merging takes hours
				t.Errorf("%s of %s took %v", encoding, name, d)
			} else {
				t.Logf("%s of %s took %v", encoding, name, d)
			}
		}
	}
}

func TestTruncateIsALongestTokenPrefix(t *testing.T) {
	for _, encoding := range encodings() {
		tok := tokenizers()[encoding]
		for _, text := range append(slices.Clone(awkward), "\xff\x80\x80\x80 bad \xe6\x97 bytes", strings.Repeat("\x80", 50)) {
			total := tok.Count(text)
			for limit := -1; limit <= min(total, 60)+1; limit++ {
				got := tok.Truncate(text, limit)
				if !strings.HasPrefix(text, got) || tok.Count(got) > max(limit, 0) || runeFloor(text, len(got)) != len(got) {
					t.Fatalf("%s: Truncate(%q, %d) = %q of %d tokens", encoding, text, limit, got, tok.Count(got))
				}
				if limit >= total && got != text {
					t.Fatalf("%s: Truncate(%q, %d) cut a text of %d tokens to %q", encoding, text, limit, total, got)
				}
				for _, end := range tokenEnds(tok, text) {
					if end > len(got) && runeFloor(text, end) == end && end <= len(got)+20 && tok.Count(text[:end]) <= limit {
						t.Fatalf("%s: Truncate(%q, %d) = %q although %q has %d tokens", encoding, text, limit, got, text[:end], tok.Count(text[:end]))
					}
				}
			}
		}
	}
}

func TestUnknownEncodingNamesTheKnownOnes(t *testing.T) {
	_, err := NewTokenizer("gpt-5")
	if err == nil || !strings.Contains(err.Error(), "o200k_base, cl100k_base") || !strings.Contains(err.Error(), `"gpt-5"`) {
		t.Fatalf("error = %v", err)
	}
}
