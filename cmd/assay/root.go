package main

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// env is what a command sees of the world, so that tests can give it another one.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string

	dataDir    string
	configPath string
	sets       []string
	verbose    bool
	jsonOut    bool
	terminal   bool  // standard error is one, though it is no file of this process
	live       *live // of the server that runs a command for another process; otherwise nil
}

// isTerminal reports whether what is written to standard error can be drawn over.
func (e *env) isTerminal() bool {
	f, ok := e.stderr.(*os.File)
	return e.terminal || ok && term.IsTerminal(int(f.Fd()))
}

func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "assay",
		Short: "Answer questions from your documents, with citations and a manifest for every answer",
		Long: `Assay is a retrieval-augmented generation engine in one binary: it ingests documents, answers
questions from them, and hands out with every answer the manifest of what went into it.

Exit status: 0 done; 1 failed; 2 wrong flags, arguments or configuration; 3 done, but some documents
could not be read or were not there (they are named).

While a server holds the data directory, the commands that work on it are handed over to it.`,
		Example: `  assay demo                              # the sample corpus, three questions, then a server
  assay ingest docs/                      # a folder of Markdown, HTML and text
  assay ask "how do I rotate a key?"      # an answer with citations and its manifest
  assay serve                             # the same over HTTP, on 127.0.0.1:8080`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSuchCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&e.dataDir, "data", "./assay-data", "directory that holds the corpus")
	flags.StringVar(&e.configPath, "config", "", "configuration file (default ./"+configFile+", if it exists)")
	flags.StringArrayVar(&e.sets, "set", nil, "set one configuration key, such as rerank.timeout=300ms; may be repeated")
	flags.BoolVarP(&e.verbose, "verbose", "v", false, "log what happens to standard error")
	_ = root.MarkPersistentFlagDirname("data")                   // fails only for a flag that does not exist
	_ = root.MarkPersistentFlagFilename("config", "yaml", "yml") // likewise
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(
		newIngest(e), newAsk(e), newSearch(e), newServe(e), newManifest(e),
		newDelete(e), newReindex(e), newStats(e), newCheck(e), newBackup(e), newRestore(e),
		newDemo(e), newEval(e), newRerank(e), newConfig(e), newVersion(e),
	)
	usageArgs(root)
	return root
}

// noSuchCommand refuses arguments where a command's name is meant, and names those that are near.
func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2 // a swap of two letters
	known := c.SuggestionsFor(args[0])
	if len(known) == 0 {
		return fmt.Errorf("unknown command %q; `%s --help` lists them", args[0], c.CommandPath())
	}
	return fmt.Errorf("unknown command %q; did you mean %s?", args[0], strings.Join(known, " or "))
}

// atLeastOne demands an argument.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s: %s; `%[1]s --help` has examples", c.CommandPath(), what)
		}
		return nil
	}
}

// usageArgs makes wrong arguments of a command and those below it usage errors.
func usageArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &usageError{err}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		usageArgs(sub)
	}
}

// addJSON adds the flag that every command has which prints results.
func (e *env) addJSON(c *cobra.Command) {
	c.Flags().BoolVar(&e.jsonOut, "json", false, "print the result as JSON")
}

// logger writes what an operator wants to know to standard error: warnings, and with --verbose more.
func (e *env) logger(level slog.Level) *slog.Logger {
	if e.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: level}))
}

// config loads the configuration with --config and --set, and then what the command's own flags say.
func (e *env) config(flags ...string) (Config, string, error) {
	cfg, path, err := loadConfig(e.configPath, append(append([]string{}, e.sets...), flags...))
	if err != nil {
		err = &usageError{err}
	}
	return cfg, path, err
}

// changed lists the flags of a command that were given, as settings: flag name to key.
func changed(c *cobra.Command, keys map[string]string) []string {
	var sets []string
	for _, flag := range slices.Sorted(maps.Keys(keys)) {
		if f := c.Flags().Lookup(flag); f != nil && f.Changed {
			sets = append(sets, keys[flag]+"="+strings.TrimSpace(f.Value.String()))
		}
	}
	return sets
}
