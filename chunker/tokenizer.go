package chunker

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// Tokenizer counts tokens of a tiktoken encoding, exactly as tiktoken-go does on valid UTF-8. Names of
// special tokens in a text are ordinary text. It has tiktoken's tables and a splitter and a merge of
// its own, because the library's backtracking pattern and quadratic merge are too slow to run over
// every document. It is safe for concurrent use.
type Tokenizer struct {
	name    string
	vocab   *vocab
	classes *classes
	next    func(s string, p int) int // end of the piece that begins at s[p]
}

// encodings are the names that NewTokenizer knows.
func encodings() []string { return []string{tiktoken.MODEL_O200K_BASE, tiktoken.MODEL_CL100K_BASE} }

func knownEncoding(name string) error {
	if !slices.Contains(encodings(), name) {
		return fmt.Errorf("unknown encoding %q; there are %s", name, strings.Join(encodings(), ", "))
	}
	return nil
}

// NewTokenizer loads an encoding from the tables built into the program. Loading takes a tenth of a
// second and some 20 MB, so share the result.
func NewTokenizer(encoding string) (*Tokenizer, error) {
	if err := knownEncoding(encoding); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	var tables tiktoken.BpeLoader = loader.NewOfflineLoader()
	ranks, err := tables.LoadTiktokenBpe(encoding + ".tiktoken")
	if err != nil {
		return nil, fmt.Errorf("tokenizer %q: load ranks: %w", encoding, err)
	}
	t := &Tokenizer{name: encoding, vocab: newVocab(ranks), classes: newClasses()}
	t.next = t.classes.nextO200K
	if encoding == tiktoken.MODEL_CL100K_BASE {
		t.next = t.classes.nextCL100K
	}
	return t, nil
}

// Name is the encoding's name.
func (t *Tokenizer) Name() string { return t.name }

// Count returns the number of tokens of text. A byte that is not UTF-8 counts as itself.
func (t *Tokenizer) Count(text string) int {
	n := 0
	for p := 0; p < len(text); {
		end := t.next(text, p)
		n += t.vocab.countPiece(text, p, end)
		p = end
	}
	return n
}

// Truncate returns the longest prefix of text that ends where a token and a rune end and that has at
// most limit tokens, counted by itself. It reads no further than it needs to.
func (t *Tokenizer) Truncate(text string, limit int) string {
	n := 0
	for p := 0; p < len(text); {
		end := t.next(text, p)
		tokens := t.vocab.countPiece(text, p, end)
		if n+tokens <= limit {
			n += tokens
			p = end
			continue
		}
		if limit > 0 {
			// A piece cut short may split otherwise than the whole did, so count again; blanks at the end
			// may even need a token less than they did, hence one more than there is room for.
			ends := t.vocab.appendEnds(nil, text, p, end)
			for i := min(limit-n+1, len(ends)); i > 0; i-- {
				if cut := text[:ends[i-1]]; runeFloor(text, len(cut)) == len(cut) && t.Count(cut) <= limit {
					return cut
				}
			}
		}
		return t.Truncate(text[:p], limit)
	}
	return text
}

// runeFloor returns the last rune boundary of s at or before p.
func runeFloor(s string, p int) int {
	for i := p - 1; i >= 0 && i >= p-utf8.UTFMax+1; i-- {
		if utf8.RuneStart(s[i]) {
			if _, size := utf8.DecodeRuneInString(s[i:]); i+size > p {
				return i
			}
			break
		}
	}
	return p
}
