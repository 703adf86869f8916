package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"assay/control"
	"assay/index"
)

// job is a command's work on a corpus, as data: so it runs in this process, or in the server that holds
// the directory, and prints the same.
type job interface {
	name() string   // by which newJob makes it
	mode() openMode // what it needs of the data directory
	run(ctx context.Context, e *env, a *app) error
}

// newJob returns an empty job of that name.
func newJob(name string) (job, error) {
	for _, j := range []job{&ingestJob{}, &deleteJob{}, &askJob{}, &searchJob{}, &manifestJob{}, &statsJob{}, &checkJob{}, &backupJob{}, &reindexJob{}} {
		if j.name() == name {
			return j, nil
		}
	}
	return nil, &usageError{fmt.Errorf("the server that holds the data directory does not know `assay %s`; use the same release of assay, or end the server first", name)}
}

// do runs a job on the data directory, or hands it over to the server that holds it.
func (e *env) do(ctx context.Context, cfg Config, level slog.Level, j job) error {
	folder := filepath.Join(e.dataDir, cfg.Collection)
	conn, err := control.Dial(ctx, folder)
	if errors.Is(err, control.ErrNobody) {
		a, openErr := e.open(ctx, cfg, e.logger(level), j.mode())
		if openErr == nil {
			defer a.close()
			return j.run(ctx, e, a)
		}
		var locked *index.LockedError
		if !errors.As(openErr, &locked) {
			return openErr
		}
		// The holder may be a server that has begun to listen meanwhile.
		if conn, err = control.Dial(ctx, folder); errors.Is(err, control.ErrNobody) {
			return openErr
		}
	}
	if err != nil {
		return err
	}
	arguments, err := json.Marshal(j)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	settings, err := asked(cfg, e.sets)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	result, err := control.Run(ctx, conn,
		control.Request{Command: j.name(), Arguments: arguments, Settings: settings, JSON: e.jsonOut, Terminal: e.isTerminal()},
		control.Streams{In: e.stdin, Out: e.stdout, Err: e.stderr})
	if err != nil {
		return fmt.Errorf("%s: %w", j.name(), err)
	}
	if result.Code != exitOK {
		return &handedError{result}
	}
	return nil
}

// handedError is how a command ended that was handed over.
type handedError struct{ control.Result }

func (e *handedError) Error() string { return e.Message }
