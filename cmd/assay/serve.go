package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"assay/server"
)

func newServe(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Answer over HTTP",
		Long: `Answer over HTTP until interrupted. Answers that are under way are finished first.

  POST /v1/answer           {"question": "...", "filter": {}, "k": 5, "messages": []}
                            answers with {"answer", "citations", "manifest"}, or with server-sent
                            events when the request says "stream": true or accepts text/event-stream
  POST /v1/search           the same request; retrieval only
  GET  /v1/manifests/{id}   what went into an answer
  GET  /v1/chunks/{id}      the passage behind a citation
  GET  /healthz, /readyz    whether the process lives, and whether it can answer`,
		Example: `  assay serve
  assay serve --listen 127.0.0.1:9000
  curl -s http://127.0.0.1:8080/v1/answer -H 'Content-Type: application/json' \
       -d '{"question": "how long does a refund take?"}'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, _, err := e.config(changed(c, map[string]string{"listen": "server.listen", "allow-remote": "server.allow_remote"})...)
			if err != nil {
				return err
			}
			a, err := e.open(c.Context(), cfg, e.logger(slog.LevelInfo), openRead)
			if err != nil {
				return err
			}
			defer a.close()
			listener, err := listen(cfg.Server)
			if err != nil {
				return err
			}
			return e.serve(c.Context(), a, listener)
		},
	}
	c.Flags().String("listen", "", "address and port (default: server.listen)")
	c.Flags().Bool("allow-remote", false, "listen also on addresses that other machines can reach")
	return c
}

// listen opens the port.
func listen(s ServerConfig) (net.Listener, error) {
	listener, err := net.Listen("tcp", s.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: another program listens there; end it, or choose another port with --listen", s.Listen)
	case err != nil:
		return nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil
}

// threadsPerCore was measured with tools/bench/serving on two cores: the 95th percentile of searches
// during an ingest was 35 ms with 1 and 20 ms with 3.
const threadsPerCore = 3

// serve answers over HTTP on listener, which it closes, until ctx is done.
func (e *env) serve(ctx context.Context, a *app, listener net.Listener) error {
	s := a.cfg.Server
	l := newLive(a)
	defer l.close()
	srv, err := server.New(a.lg, l, a.traces.TracerProvider(), server.Options{
		MaxBody:         int64(s.MaxBody),
		MaxConcurrent:   s.MaxConcurrent,
		ShutdownTimeout: s.ShutdownTimeout.std(),
		Version:         version(),
	})
	if err != nil {
		return &usageError{err}
	}
	snap := a.index.Snapshot()
	fmt.Fprintf(e.stdout, "Serving %d documents (%d chunks) on http://%s until interrupted.\n", snap.Documents(), snap.Chunks(), listener.Addr())
	snap.Close()
	// A request is seen at once only where something is idle, and an ingest or a graph in the making keeps
	// all but one core busy. With more threads than cores the system shares them out, finer than Go.
	cores := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(threadsPerCore * cores)
	defer runtime.GOMAXPROCS(cores)
	commands, end := context.WithCancel(ctx)
	wait := e.listen(commands, l)
	stopping := context.AfterFunc(ctx, func() {
		fmt.Fprintf(e.stderr, "Stopping: answers under way have %s to finish; interrupt again to end at once.\n", s.ShutdownTimeout)
	})
	defer stopping()
	err = srv.Serve(ctx, listener)
	end()
	wait()
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "Stopped: every answer that was under way is finished.")
	return nil
}

// checkListen refuses addresses that other machines can reach, unless that was asked for: the API
// has no authentication.
func checkListen(s ServerConfig) error {
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil || port == "" {
		return fmt.Errorf("server.listen is %q; write it as address:port, such as 127.0.0.1:8080", s.Listen)
	}
	if s.AllowRemote || host == "localhost" {
		return nil
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("server.listen is %q, which other machines can reach, and the API has no authentication; put a proxy in front that has, and set server.allow_remote: true (--allow-remote), or listen on 127.0.0.1", s.Listen)
}
