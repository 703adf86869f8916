package eval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"assay"
)

// Dataset is a frozen set of queries with their labels.
type Dataset struct {
	Name    string
	Queries []Query
}

// Query is one line of a dataset.
type Query struct {
	ID           string         `json:"id"`
	Text         string         `json:"text"`
	Reference    string         `json:"reference,omitempty"` // a right answer
	Evidence     []Evidence     `json:"evidence,omitempty"`  // none: unjudged
	Grade        int            `json:"grade,omitempty"`     // of its evidence; 0 means 1
	Slices       []string       `json:"slices,omitempty"`
	Unanswerable bool           `json:"unanswerable,omitempty"` // nothing in the corpus answers it
	Metadata     assay.Metadata `json:"metadata,omitempty"`
}

// Evidence names a place in the corpus. Exactly one form is used: a quote in a document, a half-open
// span of bytes of its text, the whole document, or a chunk by ID. Quotes, spans and documents
// survive re-chunking; chunk IDs don't.
type Evidence struct {
	Doc   string `json:"doc,omitempty"` // ID or URI of the document, "path#record" for a record
	Quote string `json:"quote,omitempty"`
	Start *int   `json:"start,omitempty"`
	End   *int   `json:"end,omitempty"`
	Chunk string `json:"chunk,omitempty"`
	Grade *int   `json:"grade,omitempty"` // instead of the query's; below 1 a document is judged not relevant
}

// String names the evidence in messages.
func (e Evidence) String() string {
	switch {
	case e.Chunk != "":
		return "chunk " + e.Chunk
	case e.Quote != "":
		return fmt.Sprintf("quote %q in %s", clip(e.Quote, 60), e.Doc)
	case e.Start != nil && e.End != nil:
		return fmt.Sprintf("span %d to %d of %s", *e.Start, *e.End, e.Doc)
	}
	return "document " + e.Doc
}

// key tells labels apart: two with the same key name the same place.
func (e Evidence) key() string {
	span := ""
	if e.Start != nil && e.End != nil {
		span = fmt.Sprintf("%d-%d", *e.Start, *e.End)
	}
	return strings.Join([]string{e.Doc, string(normalise(e.Quote).text), span, e.Chunk}, "\x00")
}

// whole reports whether the evidence is a whole document.
func (e Evidence) whole() bool { return e.Doc != "" && e.Quote == "" && e.Start == nil }

// grade is what the evidence is worth.
func (q *Query) grade(e Evidence) int {
	switch {
	case e.Grade != nil:
		return *e.Grade
	case q.Grade != 0:
		return q.Grade
	}
	return 1
}

// validate says everything that is wrong with the line.
func (q *Query) validate() error {
	var errs []error
	if q.ID == "" {
		errs = append(errs, errors.New("id is empty"))
	}
	if strings.TrimSpace(q.Text) == "" {
		errs = append(errs, errors.New("text is empty"))
	}
	if q.Grade < 0 || q.Grade > maxGrade {
		errs = append(errs, fmt.Errorf("grade %d is not within 1 to %d", q.Grade, maxGrade))
	}
	if q.Unanswerable && len(q.Evidence) > 0 {
		errs = append(errs, errors.New("unanswerable, and yet with evidence"))
	}
	for i, e := range q.Evidence {
		if err := q.validateEvidence(e); err != nil {
			errs = append(errs, fmt.Errorf("evidence %d: %w", i+1, err))
		}
	}
	return errors.Join(errs...)
}

func (q *Query) validateEvidence(e Evidence) error {
	span := e.Start != nil || e.End != nil
	switch {
	case e.Chunk != "" && (e.Doc != "" || e.Quote != "" || span):
		return errors.New("chunk stands alone, without doc, quote or span")
	case e.Chunk == "" && e.Doc == "":
		return errors.New("doc or chunk is needed")
	case e.Quote != "" && span:
		return errors.New("either a quote or a span, not both")
	case e.Quote != "" && len(normalise(e.Quote).text) == 0:
		return errors.New("quote is blank")
	case span && (e.Start == nil || e.End == nil):
		return errors.New("a span needs start and end")
	case span && (*e.Start < 0 || *e.End <= *e.Start):
		return fmt.Errorf("span %d to %d is empty or negative", *e.Start, *e.End)
	}
	if g := q.grade(e); g > maxGrade || g < -maxGrade || (g < 1 && !e.whole()) {
		return fmt.Errorf("grade %d is not within 1 to %d", g, maxGrade)
	}
	return nil
}

// ReadDataset reads a dataset in JSON Lines, one query a line. Unknown fields are refused, since a
// misspelt one would make a judged query unjudged without a word; so is a query ID that occurs twice.
// The name is the dataset's in reports and the file's in errors.
func ReadDataset(name string, r io.Reader) (*Dataset, error) {
	ds := &Dataset{Name: name}
	seen := map[string]int{}
	for l, err := range lines(name, r) {
		if err != nil {
			return nil, err
		}
		var q Query
		dec := json.NewDecoder(bytes.NewReader(l.data))
		dec.DisallowUnknownFields()
		err = dec.Decode(&q)
		if err == nil && dec.More() {
			err = errors.New("more than one value on the line")
		}
		if err == nil {
			err = q.validate()
		}
		if err == nil && seen[q.ID] > 0 {
			err = fmt.Errorf("id %q is already on line %d", q.ID, seen[q.ID])
		}
		if err != nil {
			return nil, &LineError{name, l.no, err}
		}
		seen[q.ID] = l.no
		ds.Queries = append(ds.Queries, q)
	}
	return ds, nil
}

// WriteDataset writes the dataset in the form that ReadDataset reads.
func WriteDataset(w io.Writer, ds *Dataset) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range ds.Queries {
		if err := enc.Encode(&ds.Queries[i]); err != nil {
			return fmt.Errorf("write dataset %s: %w", ds.Name, err)
		}
	}
	return nil
}

// Hash identifies the queries and their labels: SHA-256 over them in order of ID, whatever the order
// of the lines and the name of the file.
func (ds *Dataset) Hash() string {
	h := sha256.New()
	byID := &Dataset{Queries: slices.Clone(ds.Queries)}
	slices.SortFunc(byID.Queries, func(a, b Query) int { return strings.Compare(a.ID, b.ID) })
	_ = WriteDataset(h, byID) // a hash takes every byte, and a query is plain data
	return hex.EncodeToString(h.Sum(nil))
}

// FromQrels makes a dataset of judgments alone, for scoring runs whose queries are not at hand: the
// ID stands for the text.
func FromQrels(name string, qrels Qrels) *Dataset {
	ds := &Dataset{Name: name}
	for _, id := range slices.Sorted(maps.Keys(qrels)) {
		ds.Queries = append(ds.Queries, Query{ID: id, Text: id, Evidence: evidenceOf(qrels[id])})
	}
	return ds
}

func evidenceOf(grades map[string]int) []Evidence {
	var out []Evidence
	for _, doc := range slices.Sorted(maps.Keys(grades)) {
		grade := grades[doc]
		out = append(out, Evidence{Doc: doc, Grade: &grade})
	}
	return out
}

// clip shortens a text for a message.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
