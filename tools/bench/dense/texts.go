package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"assay/embed/builtin"
)

// passageWords is how many words are embedded at once.
const passageWords = 100

// embedded embeds the passages of the HTML and text files in a folder, at most n, with the built-in
// model. Queries are passages that are left out of the base. Equal passages count once.
func embedded(folder string, n, queries int) (*dataset, error) {
	texts, err := passages(folder)
	if err != nil {
		return nil, err
	}
	if len(texts) > n { // from all over the folder
		step := float64(len(texts)) / float64(n)
		for i := range n {
			texts[i] = texts[int(float64(i)*step)]
		}
		texts = texts[:n]
	}
	m, err := builtin.Load()
	if err != nil {
		return nil, err
	}
	vectors, err := m.EmbedBatch(context.Background(), texts)
	if err != nil {
		return nil, err
	}
	var base, query [][]float32
	step := max(len(vectors)/queries, 1)
	for i, v := range vectors {
		if !slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) {
			continue // the model knows none of its words
		}
		if i%step == 0 && len(query) < queries {
			query = append(query, v)
			continue
		}
		base = append(base, v)
	}
	if len(query) == 0 {
		return nil, fmt.Errorf("%s: no passages", folder)
	}
	fmt.Fprintf(os.Stderr, "%d passages and %d queries of %d dimensions\n", len(base), len(query), m.Dimensions())
	return withTruth(base, query, m.Dimensions()), nil
}

func passages(folder string) (out []string, err error) {
	known := map[string]bool{}
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := read(path)
		if err != nil {
			return err
		}
		for words := range slices.Chunk(strings.Fields(text), passageWords) {
			passage := strings.Join(words, " ")
			if len(words) > passageWords/4 && !known[passage] {
				known[passage] = true
				out = append(out, passage)
			}
		}
		return nil
	})
	return out, err
}

// read returns a file's text; none for other kinds of files.
func read(path string) (string, error) {
	name := strings.TrimSuffix(path, ".gz")
	if !slices.Contains([]string{".html", ".txt", ".rst"}, filepath.Ext(name)) {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if name != path {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		if data, err = io.ReadAll(r); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
	}
	if filepath.Ext(name) != ".html" {
		return string(data), nil
	}
	var out strings.Builder
	tokens := html.NewTokenizer(bytes.NewReader(data))
	hidden := false
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return out.String(), nil
		case html.StartTagToken, html.EndTagToken:
			t := tokens.Token()
			if t.Data == "script" || t.Data == "style" || t.Data == "nav" {
				hidden = t.Type == html.StartTagToken
			}
			out.WriteByte(' ')
		case html.TextToken:
			if !hidden {
				out.Write(tokens.Text())
			}
		}
	}
}
