package eval

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Run is a system's rankings: for each query ID its results. In runs read from files, DocID is the
// name that the file gives, and ranks are what Compare makes of the scores.
type Run struct {
	Name  string
	Lists map[string][]Ranked
}

// Qrels are judgments: for each query ID the grades of documents. A grade of 0 means judged and not
// relevant, a negative one pooled and not judged.
type Qrels map[string]map[string]int

// ReadRun reads a run in the TREC format: query, Q0, document, rank, score, name. The rank column is
// ignored, as trec_eval does, and so is everything after the sixth column. A document that a query
// has twice is refused. The file's name serves only in errors.
func ReadRun(file string, r io.Reader) (*Run, error) {
	run := &Run{Lists: map[string][]Ranked{}}
	seen := map[[2]string]int{}
	for l, err := range trecLines(file, r) {
		if err != nil {
			return nil, err
		}
		fields := strings.Fields(string(l.data))
		if len(fields) < 6 {
			return nil, &LineError{file, l.no, fmt.Errorf("%d columns; a run has 6: query Q0 document rank score name", len(fields))}
		}
		query, doc := fields[0], fields[2]
		score, err := strconv.ParseFloat(fields[4], 64)
		if err != nil || math.IsNaN(score) || math.IsInf(score, 0) {
			return nil, &LineError{file, l.no, fmt.Errorf("score %q is not a finite number", fields[4])}
		}
		if first := seen[[2]string{query, doc}]; first > 0 {
			return nil, &LineError{file, l.no, fmt.Errorf("document %q is ranked twice for query %q, first on line %d", doc, query, first)}
		}
		seen[[2]string{query, doc}] = l.no
		if run.Name == "" {
			run.Name = fields[5]
		}
		run.Lists[query] = append(run.Lists[query], Ranked{DocID: doc, Score: score})
	}
	for _, list := range run.Lists {
		slices.SortFunc(list, Compare)
	}
	return run, nil
}

// WriteRun writes a run in the TREC format, queries by ID, results by Compare. Scores are written so
// that reading gives the same numbers. Where chunks are ranked, their IDs are written.
func WriteRun(w io.Writer, run *Run) error {
	out := bufio.NewWriter(w)
	name := strings.Join(strings.Fields(run.Name), "_")
	if name == "" {
		name = "run"
	}
	for _, query := range slices.Sorted(maps.Keys(run.Lists)) {
		for i, r := range ordered(run.Lists[query], 0) {
			id := r.DocID
			if r.ChunkID != "" {
				id = r.ChunkID
			}
			for _, field := range []string{query, id} {
				if err := trecField(field); err != nil {
					return fmt.Errorf("write run %s: query %q: %w", name, query, err)
				}
			}
			fmt.Fprintf(out, "%s Q0 %s %d %s %s\n", query, id, i+1, strconv.FormatFloat(r.Score, 'g', -1, 64), name)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write run %s: %w", name, err)
	}
	return nil
}

// ReadQrels reads judgments, in either of two forms that it tells apart by the first line: TREC's four
// columns (query, iteration, document, grade), or BEIR's three separated by tabs (query-id,
// corpus-id, score), with or without their header. A document that a query has twice with different
// grades is refused.
func ReadQrels(file string, r io.Reader) (Qrels, error) {
	qrels := Qrels{}
	form := ""
	for l, err := range trecLines(file, r) {
		if err != nil {
			return nil, err
		}
		text := strings.TrimRight(string(l.data), "\r\n")
		fields := strings.Split(text, "\t")
		if form == "" {
			form = "trec"
			if len(fields) == 3 {
				form = "beir"
				if isHeader(fields) {
					continue
				}
			}
		}
		if form == "trec" {
			if fields = strings.Fields(text); len(fields) != 4 {
				return nil, &LineError{file, l.no, fmt.Errorf("%d columns; judgments have 4: query iteration document grade (or 3 separated by tabs: query-id corpus-id score)", len(fields))}
			}
			fields = []string{fields[0], fields[2], fields[3]}
		}
		if err := qrels.add(fields); err != nil {
			return nil, &LineError{file, l.no, err}
		}
	}
	return qrels, nil
}

// isHeader recognises BEIR's header line; it names columns where judgments have a number.
func isHeader(fields []string) bool {
	_, err := strconv.Atoi(strings.TrimSpace(fields[2]))
	return err != nil && strings.Contains(strings.ToLower(fields[0]), "query")
}

// maxGrade bounds grades: gains are sums of them, and real scales have a handful of levels.
const maxGrade = 1_000_000

func (q Qrels) add(fields []string) error {
	if len(fields) != 3 {
		return fmt.Errorf("%d columns; judgments of this file have 3, separated by tabs: query-id corpus-id score", len(fields))
	}
	query, doc := strings.TrimSpace(fields[0]), strings.TrimSpace(fields[1])
	if query == "" || doc == "" {
		return errors.New("query or document is empty")
	}
	grade, err := strconv.Atoi(strings.TrimSpace(fields[2]))
	if err != nil || grade > maxGrade || grade < -maxGrade {
		return fmt.Errorf("grade %q is not a whole number from %d to %d", fields[2], -maxGrade, maxGrade)
	}
	if old, ok := q[query][doc]; ok && old != grade {
		return fmt.Errorf("document %q has grade %d for query %q here and %d above", doc, grade, query, old)
	}
	if q[query] == nil {
		q[query] = map[string]int{}
	}
	q[query][doc] = grade
	return nil
}

// WriteQrels writes judgments in TREC's form, by query and document.
func WriteQrels(w io.Writer, qrels Qrels) error {
	out := bufio.NewWriter(w)
	for _, query := range slices.Sorted(maps.Keys(qrels)) {
		for _, doc := range slices.Sorted(maps.Keys(qrels[query])) {
			for _, field := range []string{query, doc} {
				if err := trecField(field); err != nil {
					return fmt.Errorf("write judgments: query %q: %w", query, err)
				}
			}
			fmt.Fprintf(out, "%s 0 %s %d\n", query, doc, qrels[query][doc])
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write judgments: %w", err)
	}
	return nil
}

// trecLines are the lines of a TREC or BEIR file; those that begin with # are comments.
func trecLines(file string, r io.Reader) func(func(line, error) bool) {
	return func(yield func(line, error) bool) {
		for l, err := range lines(file, r) {
			if err == nil && bytes.HasPrefix(l.data, []byte("#")) {
				continue
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

// trecField refuses names that a TREC file cannot hold.
func trecField(s string) error {
	if s == "" || strings.HasPrefix(s, "#") || len(strings.Fields(s)) != 1 || strings.Fields(s)[0] != s {
		return fmt.Errorf("ID %q cannot stand in a TREC file: empty, with white space, or beginning with #", s)
	}
	return nil
}
