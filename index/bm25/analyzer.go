package bm25

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/registry"
	index "github.com/blevesearch/bleve_index_api"
)

// Analyzer turns texts and questions into terms, by the same rules.
type Analyzer struct {
	name     string
	analyzer analysis.Analyzer
}

// NewAnalyzer returns bleve's analyser of that name; an unknown name is an error that lists the
// known ones.
func NewAnalyzer(name string) (*Analyzer, error) {
	known := Names()
	if !slices.Contains(known, name) {
		return nil, fmt.Errorf("analyzer %q is not known; use one of %s", name, strings.Join(known, ", "))
	}
	a, err := registry.NewCache().AnalyzerNamed(name)
	if err != nil {
		return nil, fmt.Errorf("analyzer %q: %w", name, err)
	}
	return &Analyzer{name, a}, nil
}

// Names lists the analysers that can be used.
func Names() []string {
	_, names := registry.AnalyzerTypesAndInstances()
	// "keyword" makes one term of a whole text, which no question would ever equal.
	names = slices.DeleteFunc(names, func(name string) bool { return name == "keyword" })
	slices.Sort(names)
	return names
}

// Name is the name under which the analyser was asked for.
func (a *Analyzer) Name() string { return a.name }

// Field is a text after analysis.
type Field struct {
	Length uint32 // in tokens
	freqs  index.TokenFrequencies
}

// Field analyses one text. The result keeps no reference to it and may be part of several documents.
func (a *Analyzer) Field(text string) Field {
	if text == "" {
		return Field{}
	}
	tokens := a.analyzer.Analyze([]byte(text))
	return Field{uint32(len(tokens)), analysis.TokenFrequency(tokens, nil, index.IndexField)}
}

// Terms analyses a question: each distinct term with the number of times that it occurs. The text is
// never read as query syntax.
func (a *Analyzer) Terms(text string) map[string]int {
	terms := map[string]int{}
	for _, token := range a.analyzer.Analyze([]byte(text)) {
		if len(token.Term) > 0 {
			terms[string(token.Term)]++
		}
	}
	return terms
}
