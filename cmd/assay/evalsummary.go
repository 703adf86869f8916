package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"assay/eval"
)

// summaryReports is the JSON form of an evaluation over several datasets: the reports, and the means over
// the datasets by arm and measure.
type summaryReports struct {
	Reports []*eval.Report                `json:"reports"`
	Means   map[string]map[string]float64 `json:"means"` // by arm and measure; each dataset counts the same
}

func summarise(reports []*eval.Report) summaryReports {
	s := summaryReports{Reports: reports, Means: make(map[string]map[string]float64)}
	for _, arm := range reports[0].Arms {
		s.Means[arm.Name] = make(map[string]float64)
		for _, measure := range reports[0].Measures {
			sum, n := 0.0, 0
			for _, r := range reports {
				if v, ok := mean(r, arm.Name, measure); ok {
					sum += v
					n++
				}
			}
			if n > 0 {
				s.Means[arm.Name][measure] = sum / float64(n)
			}
		}
	}
	return s
}

// mean is an arm's value on one dataset; ok is false where it has none.
func mean(r *eval.Report, arm, measure string) (float64, bool) {
	for _, a := range r.Arms {
		if a.Name == arm && a.Means[measure].Value != nil {
			return *a.Means[measure].Value, true
		}
	}
	return 0, false
}

// writeTable prints one table a measure: a row a dataset, a column an arm, and the mean below.
func (s summaryReports) writeTable(w io.Writer) {
	for i, measure := range s.Reports[0].Measures {
		if i > 0 {
			fmt.Fprintln(w)
		}
		t := newTable(w)
		header, footer := table.Row{measure, "queries"}, table.Row{"mean", ""}
		var columns []table.ColumnConfig
		for n, arm := range s.Reports[0].Arms {
			header = append(header, arm.Name)
			footer = append(footer, value(s.Means[arm.Name], measure))
			columns = append(columns, table.ColumnConfig{Number: n + 3, Align: text.AlignRight, AlignHeader: text.AlignRight, AlignFooter: text.AlignRight})
		}
		t.SetColumnConfigs(append(columns, table.ColumnConfig{Number: 2, Align: text.AlignRight}))
		t.AppendHeader(header)
		for _, r := range s.Reports {
			row := table.Row{r.Dataset.Name, r.Dataset.Judged}
			for _, arm := range s.Reports[0].Arms {
				cell := "-"
				if v, ok := mean(r, arm.Name, measure); ok {
					cell = fmt.Sprintf("%.4f", v)
				}
				row = append(row, cell)
			}
			t.AppendRow(row)
		}
		t.AppendFooter(footer)
		t.Render()
	}
}

func value(means map[string]float64, measure string) string {
	if v, ok := means[measure]; ok {
		return fmt.Sprintf("%.4f", v)
	}
	return "-"
}

// printReports prints one report whole, and several as tables of means.
func (e *env) printReports(reports []*eval.Report) error {
	switch {
	case len(reports) == 1 && e.jsonOut:
		return reports[0].WriteJSON(e.stdout)
	case len(reports) == 1:
		return reports[0].WriteTable(e.stdout)
	case e.jsonOut:
		return writeJSON(e.stdout, summarise(reports))
	}
	summarise(reports).writeTable(e.stdout)
	return nil
}

// runFolder is where the rankings of one dataset are written: a folder of its own where there are
// several datasets.
func runFolder(folder, dataset string, several bool) string {
	if folder == "" || !several {
		return folder
	}
	return filepath.Join(folder, strings.ReplaceAll(filepath.Clean(dataset), string(filepath.Separator), "_"))
}
