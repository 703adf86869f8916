package builtin

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
)

// The table of document frequencies: a gzip file of lines, each a byte that stands for how rare a
// stem is (see rarity) and the stem. tools/rerank/frequencies writes it.
//
//go:embed frequencies.gz
var frequencyFile []byte

// rarityStep is what one step of a table's byte is worth: the table's rarities lie between 0 and 16.
const rarityStep = 1.0 / 12

var loadFrequencies = sync.OnceValues(func() (frequencies, error) { return parseFrequencies(frequencyFile) })

// frequencies says how rare stems are in English texts of many subjects.
type frequencies struct {
	rarity  map[string]float64
	unknown float64 // of a stem that is not in the table
}

func parseFrequencies(file []byte) (frequencies, error) {
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return frequencies{}, fmt.Errorf("rerank/builtin: table of frequencies: %w", err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return frequencies{}, fmt.Errorf("rerank/builtin: table of frequencies: %w", err)
	}
	f := frequencies{rarity: map[string]float64{}}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n") {
		if len(line) < 2 {
			return frequencies{}, fmt.Errorf("rerank/builtin: table of frequencies: line %d is too short", len(f.rarity)+1)
		}
		r := float64(line[0]-' ') * rarityStep * 2
		f.rarity[line[1:]] = r
		f.unknown = max(f.unknown, r)
	}
	return f, nil
}

// of returns how rare a stem is: the logarithm of how many texts there are for one that has it.
func (f frequencies) of(stem string) float64 {
	if r, ok := f.rarity[stem]; ok {
		return r
	}
	return f.unknown
}

// WriteFrequencies writes a table of the stems in so many texts.
func WriteFrequencies(w io.Writer, texts int, count map[string]int, least int) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	var stems []string
	for s, n := range count {
		if n >= least && s != "" && !strings.ContainsAny(s, "\n") {
			stems = append(stems, s)
		}
	}
	slices.Sort(stems)
	for _, s := range stems {
		n := float64(count[s])
		r := math.Log(1 + (float64(texts)-n+0.5)/(n+0.5))
		step := min(94, int(math.Round(r/(rarityStep*2))))
		if _, err := fmt.Fprintf(z, "%c%s\n", ' '+step, s); err != nil {
			return err
		}
	}
	return z.Close()
}

// Stems returns the distinct stems of a text.
func Stems(text string) []string {
	x := newLexicon()
	x.appendWords(nil, nil, text, maxTextWords)
	return x.stems
}
