package eval

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// TableWidth is how wide tables for the terminal are at most, in columns.
const TableWidth = 100

// maxProblems is how many problems of labels of an arm are listed; the JSON has all.
const maxProblems = 10

// The widest names and the digits of a value; measures that don't fit beside each other go into
// a further block.
const (
	nameWidth  = 26
	valueWidth = 7
)

// WriteTable writes the report for a terminal: what was judged, the arms with their means, the
// differences to the first arm with their intervals, the cohorts.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	d := r.Dataset
	fmt.Fprintf(&b, "%s: %d queries, %d judged", snip(d.Name, 50), d.Queries, d.Judged)
	for _, c := range []struct {
		n    int
		what string
	}{{d.Unjudged, "unjudged"}, {d.Unanswerable, "unanswerable"}, {d.Unresolved, "with labels that resolve to nothing"}} {
		if c.n > 0 {
			fmt.Fprintf(&b, ", %d %s", c.n, c.what)
		}
	}
	b.WriteString("\n")
	names := 0
	for _, arm := range r.Arms {
		names = max(names, text.StringWidth(snip(arm.Name, nameWidth)))
	}
	for _, block := range blocks(r.Measures, names) {
		b.WriteString(r.means(block))
	}
	for _, arm := range r.Arms {
		if arm.Missing > 0 {
			fmt.Fprintf(&b, "%s lacks %d judged queries\n", snip(arm.Name, 60), arm.Missing)
		}
	}
	b.WriteString(r.undefined())
	for _, arm := range r.Arms {
		for i, p := range arm.Problems {
			if i == maxProblems {
				fmt.Fprintf(&b, "%s: and %d more\n", snip(arm.Name, nameWidth), len(arm.Problems)-i)
				break
			}
			b.WriteString(snip(snip(arm.Name, nameWidth)+": "+p.String(), TableWidth) + "\n")
		}
	}
	if len(r.Differences) > 0 {
		b.WriteString(r.differences())
	}
	for _, arm := range r.Arms {
		for _, c := range arm.Cohorts {
			b.WriteString(c.lines(arm.Name))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// blocks cuts the measures into groups that fit beside names of the given width.
func blocks(measures []string, names int) [][]string {
	var out [][]string
	width := TableWidth
	for _, m := range measures {
		need := max(valueWidth, text.StringWidth(shown(m))) + 2
		if width+need > TableWidth {
			out = append(out, nil)
			width = names + 2
		}
		width += need
		out[len(out)-1] = append(out[len(out)-1], m)
	}
	return out
}

// shown is a measure's name as a column's head.
func shown(measure string) string { return snip(measure, 40) }

func (r *Report) means(measures []string) string {
	t := newTable()
	head := table.Row{"arm"}
	for _, m := range measures {
		head = append(head, shown(m))
	}
	t.AppendHeader(head)
	for _, arm := range r.Arms {
		row := table.Row{snip(arm.Name, nameWidth)}
		for _, m := range measures {
			row = append(row, figure(arm.Means[m]))
		}
		t.AppendRow(row)
	}
	alignRight(t, len(head))
	return t.Render() + "\n"
}

// undefined says for how many judged queries a measure has no value.
func (r *Report) undefined() string {
	var b strings.Builder
	for _, arm := range r.Arms {
		byCount := map[int][]string{}
		for _, m := range r.Measures {
			if n := arm.Means[m].Undefined; n > 0 {
				byCount[n] = append(byCount[n], m)
			}
		}
		for _, n := range slices.Sorted(maps.Keys(byCount)) {
			fmt.Fprintln(&b, snip(fmt.Sprintf("%s: undefined for %d judged queries: %s", snip(arm.Name, nameWidth), n, strings.Join(byCount[n], ", ")), TableWidth))
		}
	}
	return b.String()
}

func (r *Report) differences() string {
	t := newTable()
	first := r.Differences[0]
	t.AppendHeader(table.Row{"minus " + snip(first.Baseline, nameWidth), "measure", "difference", fmt.Sprintf("%g %% interval", first.Interval.Level*100), "n"})
	last, marked := "", ""
	for _, d := range r.Differences {
		arm := snip(d.Arm, nameWidth)
		if d.Arm == last {
			arm = ""
		}
		last = d.Arm
		mark := ""
		if d.Interval.Excludes(0) {
			mark, marked = " *", "* the interval excludes 0\n"
		}
		t.AppendRow(table.Row{arm, snip(d.Measure, 24), fmt.Sprintf("%+.4f", d.Interval.Mean), fmt.Sprintf("%+.4f to %+.4f%-2s", d.Interval.Low, d.Interval.High, mark), d.Interval.N})
	}
	alignRight(t, 5)
	return t.Render() + "\n" + marked
}

// lines writes a cohort for people.
func (c *CohortReport) lines(arm string) string {
	var b strings.Builder
	rate := "no rate"
	if c.Rate != nil {
		rate = fmt.Sprintf("rate %.4f", *c.Rate)
	}
	fmt.Fprintf(&b, "%s, %s: %d of %d queries flagged, %s\n", snip(arm, nameWidth), snip(c.Flag.Name, nameWidth), len(c.Flagged), c.Queries, rate)
	if n := len(c.Unreachable); n > 0 {
		fmt.Fprintf(&b, "  %d more unreachable by construction\n", n)
	}
	if c.MeanUnits != nil {
		fmt.Fprintf(&b, "  %.1f evidence units each on average\n", *c.MeanUnits)
	}
	if c.Undecided > 0 {
		fmt.Fprintf(&b, "  %d undecided, for want of a metric\n", c.Undecided)
	}
	for _, warning := range c.Warnings {
		for l := range strings.SplitSeq(text.WrapSoft(warning, TableWidth-2), "\n") {
			fmt.Fprintln(&b, "  "+strings.TrimRight(l, " "))
		}
	}
	return b.String()
}

func figure(s Summary) string {
	v, ok := s.Get()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.4f", v)
}

func newTable() table.Writer {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.Style().Options.SeparateColumns = false
	t.Style().Options.DrawBorder = false
	return t
}

func alignRight(t table.Writer, columns int) {
	var configs []table.ColumnConfig
	for i := 2; i <= columns; i++ {
		configs = append(configs, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
}

// snip makes a name one line of at most so many columns, so that it cannot break a table.
func snip(s string, width int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	return text.Snip(s, width, "…")
}
