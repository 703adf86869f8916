package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"assay/control"
)

// listen takes commands on the data directory while ctx lasts; the returned function waits for their
// end. A directory that cannot hold a socket only loses them, which is logged.
func (e *env) listen(ctx context.Context, l *live) (wait func()) {
	listener, err := control.Listen(filepath.Join(e.dataDir, l.app().cfg.Collection))
	if err != nil {
		l.lg.Warn("other commands cannot work on the data directory while the server runs", "error", err)
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := control.Serve(ctx, l.lg, listener, e.handler(l)); err != nil {
			l.lg.Error("no further commands are taken", "error", err)
		}
	}()
	return func() { <-done }
}

// handler runs a command that another process hands over.
func (e *env) handler(l *live) control.Handler {
	return func(ctx context.Context, r control.Request, s control.Streams) control.Result {
		start := time.Now()
		remote := &env{stdin: s.In, stdout: s.Out, stderr: s.Err, getenv: e.getenv, dataDir: e.dataDir, jsonOut: r.JSON, terminal: r.Terminal, live: l}
		err := remote.handed(ctx, l, r)
		lg := l.lg.With("command", r.Command, "duration", time.Since(start).Round(time.Millisecond))
		if err == nil {
			lg.Info("a command was run for another process")
			return control.Result{}
		}
		lg.Info("a command was run for another process and failed", "error", err)
		return control.Result{Code: codeOf(err), Message: err.Error()}
	}
}

func (e *env) handed(ctx context.Context, l *live, r control.Request) error {
	j, err := newJob(r.Command)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(r.Arguments, j); err != nil {
		return fmt.Errorf("the server does not understand the command: %w; use the same release of assay", err)
	}
	if err := e.compareSettings(l.app().cfg, j, r.Settings); err != nil {
		return err
	}
	if _, queries := j.(interface{ queries() }); queries {
		_, err := again(ctx, l, func(a *app) (struct{}, error) { return struct{}{}, j.run(ctx, e, a) })
		return err
	}
	return j.run(ctx, e, l.app())
}

// compareSettings compares what the caller's configuration asks for with the server's, which is the
// one in force. Where that would store documents otherwise than asked for, it is an error; where it
// answers otherwise, a note.
func (e *env) compareSettings(cfg Config, j job, settings map[string]string) error {
	here, err := flatten(cfg)
	if err != nil {
		return err
	}
	var differ, store []string
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if value, known := here[key]; !known || value != settings[key] {
			text := fmt.Sprintf("%s is %s, asked for %s", key, value, settings[key])
			differ = append(differ, text)
			if shapesStore(key) {
				store = append(store, text)
			}
		}
	}
	switch j.(type) {
	case *ingestJob:
		if len(store) > 0 {
			return &usageError{fmt.Errorf("a server holds the data directory, and its settings decide how documents are stored: %s; leave them out, or run `assay reindex` with them first", strings.Join(store, "; "))}
		}
	case *askJob, *searchJob:
		if len(differ) > 0 {
			fmt.Fprintf(e.stderr, "assay: the server that holds the data directory answers, with its own settings: %s\n", strings.Join(differ, "; "))
		}
	}
	return nil
}

// shapesStore reports whether a setting decides what is stored of a document.
func shapesStore(key string) bool {
	switch key {
	case "embed.url", "embed.model", "embed.dimensions", "embed.document_prefix", "embed.max_input_tokens", "index.analyzer":
		return true
	}
	return strings.HasPrefix(key, "chunker.")
}

// asked are the settings that a configuration asks for: those that differ from their default, and those
// that a --set names. Where documents are read from and where a server listens is nobody else's concern.
func asked(cfg Config, sets []string) (map[string]string, error) {
	all, err1 := flatten(cfg)
	defaults, err2 := flatten(defaultConfig())
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, set := range sets {
		key, _, _ := strings.Cut(set, "=")
		named[key] = true
	}
	out := map[string]string{}
	for key, value := range all {
		section, _, _ := strings.Cut(key, ".")
		if slices.Contains([]string{"ingest", "server", "traces", "collection"}, section) {
			continue
		}
		if named[key] || value != defaults[key] {
			out[key] = value
		}
	}
	return out, nil
}

// flatten writes a configuration as one text for each key.
func flatten(cfg Config) (map[string]string, error) {
	data, err := yaml.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	var sections map[string]any
	if err := yaml.Unmarshal(data, &sections); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for section, value := range sections {
		fields, ok := value.(map[string]any)
		if !ok {
			out[section] = fmt.Sprint(value)
			continue
		}
		for key, field := range fields {
			out[section+"."+key] = fmt.Sprint(field)
		}
	}
	return out, nil
}
