// Package server speaks HTTP: answers, searches and manifests as JSON, answers also as a stream of
// server-sent events. It sees the engine through an interface of its own.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"assay"
)

// Engine is what the handlers need: the read path and the record of what it did.
type Engine interface {
	Answer(ctx context.Context, q assay.Query, on func(assay.Event) error) (*assay.Answer, error)
	Search(ctx context.Context, q assay.Query) (*assay.Retrieval, error)
	Manifest(ctx context.Context, id string) (*assay.Manifest, error)
	Chunk(ctx context.Context, id string) (assay.Chunk, *assay.Document, error)
	// Ready reports what keeps the engine from answering; nothing, when it is ready.
	Ready(ctx context.Context) []assay.NotReady
}

// Options configure a Server. The zero value of a field means its default.
type Options struct {
	MaxBody         int64         // bytes of a request body; default 1 MiB
	MaxConcurrent   int           // answers and searches at once, beyond which callers get 429; default 64
	ShutdownTimeout time.Duration // for answers that are under way when the server ends; default 30 s
	Version         string        // shown by /healthz
}

func (o Options) withDefaults() Options {
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = 64
	}
	if o.ShutdownTimeout == 0 {
		o.ShutdownTimeout = 30 * time.Second
	}
	return o
}

// Validate reports every setting that cannot be used.
func (o Options) Validate() error {
	var errs []error
	if o.MaxBody < 0 {
		errs = append(errs, fmt.Errorf("server.max_body is %d; it must not be negative", o.MaxBody))
	}
	if o.MaxConcurrent < 0 {
		errs = append(errs, fmt.Errorf("server.max_concurrent is %d; it must not be negative", o.MaxConcurrent))
	}
	if o.ShutdownTimeout < 0 {
		errs = append(errs, fmt.Errorf("server.shutdown_timeout is %s; it must not be negative", o.ShutdownTimeout))
	}
	return errors.Join(errs...)
}

// Server is the HTTP API over an engine. It is an http.Handler.
type Server struct {
	lg      *slog.Logger
	engine  Engine
	o       Options
	handler http.Handler
	slots   chan struct{} // one for each request that is under way
}

var _ http.Handler = (*Server)(nil)

// New returns a Server over e. Spans are made with tp.
func New(lg *slog.Logger, e Engine, tp trace.TracerProvider, o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := &Server{lg: lg, engine: e, o: o, slots: make(chan struct{}, o.MaxConcurrent)}

	work := http.NewServeMux()
	work.HandleFunc("POST /v1/answer", s.asked(s.answer))
	work.HandleFunc("POST /v1/search", s.asked(s.search))
	work.HandleFunc("GET /v1/manifests/{id}", s.manifest)
	work.HandleFunc("GET /v1/chunks/{id}", s.chunk)
	traced := otelhttp.NewHandler(work, "http",
		otelhttp.WithTracerProvider(tp),
		otelhttp.WithPropagators(propagation.TraceContext{}), // a caller's trace is continued
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method + " " + r.URL.Path }))

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("/v1/answer", only(http.MethodPost, traced))
	mux.Handle("/v1/search", only(http.MethodPost, traced))
	mux.Handle("/v1/manifests/{id}", only(http.MethodGet, traced))
	mux.Handle("/v1/chunks/{id}", only(http.MethodGet, traced))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, problem{Status: http.StatusNotFound, Type: "not-found", Detail: "there is nothing at " + printable(r.URL.Path) + "; see /v1/answer, /v1/search, /v1/manifests/{id}, /v1/chunks/{id}, /healthz and /readyz"})
	})
	s.handler = s.guard(mux)
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Serve answers on l until ctx is done. Then it takes no more requests, lets those under way finish
// within the shutdown timeout, and returns nil; whatever is still under way then is cut off, and
// the error says so.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	base, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	srv := &http.Server{
		Handler:           s,
		ErrorLog:          slog.NewLogLogger(s.lg.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	shutdown, cancel := context.WithTimeout(base, s.o.ShutdownTimeout)
	defer cancel()
	if err := srv.Shutdown(shutdown); err != nil {
		cutOff()
		_ = srv.Close() // the listener is closed already; what is left are the connections
		return fmt.Errorf("shut down: requests were still under way after %s and were cut off", s.o.ShutdownTimeout)
	}
	return nil
}

// guard turns a panic of a handler into a 500 and a log line, and sets what every response carries.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.lg.Error("a handler panicked", "method", r.Method, "path", printable(r.URL.Path), "panic", v, "stack", stack())
			s.fail(w, problem{Status: http.StatusInternalServerError, Type: "internal", Detail: "an internal error happened; the log of the server has the details"})
		}()
		next.ServeHTTP(w, r)
	})
}

// only refuses other methods with 405.
func only(method string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			w.Header().Set("Allow", method)
			writeProblem(w, problem{Status: http.StatusMethodNotAllowed, Type: "method-not-allowed", Detail: "use " + method + " here"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// asked reads the request and then lets a bounded number of them do work at once: a caller that is slow
// to send holds nobody up.
func (s *Server) asked(next func(http.ResponseWriter, *http.Request, ask, assay.Query)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, q, p := s.readAsk(w, r)
		if p != nil {
			s.fail(w, *p)
			return
		}
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
			next(w, r, a, q)
		default:
			w.Header().Set("Retry-After", "1")
			s.fail(w, problem{Status: http.StatusTooManyRequests, Type: "too-many-requests",
				Detail: fmt.Sprintf("%d requests are under way, which is server.max_concurrent; try again in a moment", s.o.MaxConcurrent)})
		}
	}
}
