package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// row is what was measured of an index with a setting.
type row struct {
	result
	search map[int]result // by k
}

// table prints results of any number of files as Markdown, those of an index and setting in one line.
func table(w io.Writer, files []string) error {
	var order []string
	rows := map[string]*row{}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var r result
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			key := fmt.Sprint(r.N, r.Dim, r.Index, r.Setting)
			if rows[key] == nil {
				rows[key] = &row{result: r, search: map[int]result{}}
				order = append(order, key)
			}
			rows[key].merge(r)
		}
		if err := lines.Err(); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "| n x dimensions | index | setting | build, µs a vector | bytes a vector over the vectors | open, ms | recall@10 | p50, k=10, µs | recall@50 | p50, k=50, µs | p95, k=50, µs | searches a second, 1 and 2 readers |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, key := range order {
		r := rows[key]
		bytes := r.BytesPerVector
		if r.WithVectors {
			bytes -= float64(4 * r.Dim)
		}
		readers := ""
		if r.OneReader > 0 {
			readers = fmt.Sprintf("%.0f and %.0f (x %.2f; x %.2f by processor time)", r.OneReader, r.TwoReaders, r.TwoReaders/r.OneReader, 2*r.TwoCPU/r.OneCPU)
		}
		cells := []string{fmt.Sprintf("%d x %d", r.N, r.Dim), r.Index, r.Setting, number("%.0f", r.BuildPerVector), number("%.0f", bytes), number("%.0f", r.OpenMillis),
			number("%.4f", r.search[10].Recall), number("%.0f", r.search[10].P50),
			number("%.4f", r.search[50].Recall), number("%.0f", r.search[50].P50), number("%.0f", r.search[50].P95), readers}
		fmt.Fprintln(out, "| "+strings.Join(cells, " | ")+" |")
	}
	return out.Flush()
}

// merge adds what another line says.
func (r *row) merge(other result) {
	if other.K > 0 {
		r.search[other.K] = other
	}
	set(&r.BuildPerVector, other.BuildPerVector)
	set(&r.BytesPerVector, other.BytesPerVector)
	set(&r.OpenMillis, other.OpenMillis)
	set(&r.OneReader, other.OneReader)
	set(&r.TwoReaders, other.TwoReaders)
	set(&r.OneCPU, other.OneCPU)
	set(&r.TwoCPU, other.TwoCPU)
	r.WithVectors = r.WithVectors || other.WithVectors
}

func set(field *float64, value float64) {
	if value != 0 {
		*field = value
	}
}

// number is empty for what was not measured.
func number(format string, x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf(format, x)
}
