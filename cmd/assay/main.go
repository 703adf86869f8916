// Command assay ingests documents, answers questions from them with citations, and hands out with
// every answer the manifest of what went into it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(exitCode(err, os.Stderr))
}

// Exit codes, as documented in the help of the root command.
const (
	exitOK      = 0
	exitFailed  = 1 // the command failed
	exitUsage   = 2 // wrong flags, arguments or configuration
	exitPartial = 3 // the command worked, but some documents were left out
)

// partialError is returned when a command did what it could and something was left out.
type partialError struct{ msg string }

func (e *partialError) Error() string { return e.msg }

// usageError marks mistakes in flags, arguments or configuration.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// exitCode prints an error and chooses the exit code for it.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(stderr, "assay:", err)
	return codeOf(err)
}

// codeOf is the exit code for an error.
func codeOf(err error) int {
	var partial *partialError
	var usage *usageError
	var handed *handedError
	switch {
	case errors.As(err, &handed):
		return handed.Code
	case errors.As(err, &partial):
		return exitPartial
	case errors.As(err, &usage):
		return exitUsage
	}
	return exitFailed
}

// run executes one command line.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	root := newRoot(&env{stdin: stdin, stdout: stdout, stderr: stderr, getenv: os.Getenv})
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}
