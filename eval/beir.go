package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"assay"
)

// Collection is a folder in the BEIR layout: corpus.jsonl, queries.jsonl and judgments.
type Collection struct {
	Dir   string
	qrels string
}

// OpenCollection finds the parts of a collection. Judgments are the file given, which may be in any
// form that ReadQrels knows, or else qrels.tsv or qrels/test.tsv in the folder.
func OpenCollection(dir, qrels string) (*Collection, error) {
	c := &Collection{Dir: dir, qrels: qrels}
	candidates := []string{qrels}
	if qrels == "" {
		candidates = []string{filepath.Join(dir, "qrels.tsv"), filepath.Join(dir, "qrels", "test.tsv")}
	}
	for _, path := range candidates {
		_, err := os.Stat(path)
		if err == nil {
			c.qrels = path
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || qrels != "" {
			return nil, fmt.Errorf("open collection %s: %w", dir, err)
		}
	}
	if c.qrels == "" {
		return nil, fmt.Errorf("open collection %s: neither qrels.tsv nor qrels/test.tsv is there; name the judgments' file", dir)
	}
	for _, name := range []string{"corpus.jsonl", "queries.jsonl"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("open collection %s: %w", dir, err)
		}
	}
	return c, nil
}

// beirLine is a line of corpus.jsonl or queries.jsonl.
type beirLine struct {
	ID       string         `json:"_id"`
	Title    string         `json:"title"`
	Text     string         `json:"text"`
	Metadata assay.Metadata `json:"metadata"`
}

// Documents streams the corpus. ID and URI are the collection's own; Text is the text without the title.
func (c *Collection) Documents() iter.Seq2[assay.Document, error] {
	return func(yield func(assay.Document, error) bool) {
		for l, err := range beirLines(filepath.Join(c.Dir, "corpus.jsonl")) {
			doc := assay.Document{ID: l.ID, URI: l.ID, Title: l.Title, Format: "text", Metadata: l.Metadata,
				Hash: assay.HashText(l.Title + "\x00" + l.Text), Text: l.Text}
			if !yield(doc, err) || err != nil {
				return
			}
		}
	}
}

// Dataset reads the queries with their judgments. A judged query that queries.jsonl lacks is an error.
func (c *Collection) Dataset() (*Dataset, error) {
	f, err := os.Open(c.qrels)
	if err != nil {
		return nil, fmt.Errorf("open judgments: %w", err)
	}
	defer f.Close()
	qrels, err := ReadQrels(c.qrels, f)
	if err != nil {
		return nil, err
	}
	ds := &Dataset{Name: filepath.Base(c.Dir)}
	for l, err := range beirLines(filepath.Join(c.Dir, "queries.jsonl")) {
		if err != nil {
			return nil, err
		}
		ds.Queries = append(ds.Queries, Query{ID: l.ID, Text: l.Text, Evidence: evidenceOf(qrels[l.ID]), Metadata: l.Metadata})
		delete(qrels, l.ID)
	}
	if len(qrels) > 0 {
		lost := slices.Sorted(maps.Keys(qrels))
		return nil, fmt.Errorf("%s judges %d queries that queries.jsonl lacks, first %q", c.qrels, len(lost), lost[0])
	}
	return ds, nil
}

// beirLines streams a file of records with an ID each.
func beirLines(path string) iter.Seq2[beirLine, error] {
	return func(yield func(beirLine, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(beirLine{}, fmt.Errorf("open collection: %w", err))
			return
		}
		defer f.Close()
		seen := map[string]int{}
		for l, err := range lines(path, f) {
			var record beirLine
			if err == nil {
				record, err = parseBEIR(l, seen)
				if err != nil {
					err = &LineError{path, l.no, err}
				}
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

func parseBEIR(l line, seen map[string]int) (beirLine, error) {
	var record beirLine
	if err := json.Unmarshal(l.data, &record); err != nil {
		return beirLine{}, err
	}
	if record.ID == "" {
		return beirLine{}, errors.New("_id is missing or empty")
	}
	if first := seen[record.ID]; first > 0 {
		return beirLine{}, fmt.Errorf("_id %q is already on line %d", record.ID, first)
	}
	seen[record.ID] = l.no
	return record, nil
}
