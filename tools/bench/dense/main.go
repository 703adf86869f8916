// Command dense measures the dense engines beside each other and beside C++ ones: it writes vectors
// with their true neighbours, runs the engines over them, and makes a table of all results, also those
// of dense.mjs.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"assay/embed/builtin"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const usage = `usage:
  dense data  -dir DIR [-n N] [-dim N] [-queries N] [-texts FOLDER]  write base.f32, query.f32 and truth.i32
  dense run   -dir DIR [-dim N] [-engines LIST]                    print one JSON object for each result
  dense dimensions                                                 print those of the built-in model
  dense table FILE...                                              print the results in a table`

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s", usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	dir := flags.String("dir", "", "folder of the data")
	n := flags.Int("n", 100_000, "vectors")
	dim := flags.Int("dim", 384, "dimensions")
	queries := flags.Int("queries", 500, "queries")
	texts := flags.String("texts", "", "folder with HTML and text files, whose passages are embedded with the built-in model")
	engines := flags.String("engines", "exact,hnsw,graph,codes,filters,deletes,coder,chromem", "what to run")
	profile := flags.String("profile", "", "file for a CPU profile")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "data":
		if *texts != "" {
			d, err := embedded(*texts, *n, *queries)
			if err != nil {
				return err
			}
			return d.write(*dir)
		}
		return clustered(*n, *queries, *dim, 1).write(*dir)
	case "run":
		d, err := readDataset(*dir, *dim)
		if err != nil {
			return err
		}
		return measureAll(d, *dir, strings.Split(*engines, ","), *profile)
	case "dimensions":
		m, err := builtin.Load()
		if err != nil {
			return err
		}
		fmt.Println(m.Dimensions())
		return nil
	case "table":
		return table(os.Stdout, flags.Args())
	}
	return fmt.Errorf("%s", usage)
}
