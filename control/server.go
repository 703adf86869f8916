package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"
)

// Streams are the caller's standard streams.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Handler runs a command. ctx ends when the caller cancels or goes away, or when the server ends.
type Handler func(ctx context.Context, r Request, s Streams) Result

// maxCommands bounds the commands at once; callers beyond it wait.
const maxCommands = 64

// Serve runs the commands that come in on l, each for itself, until ctx is done. Then it cancels those
// under way, waits for them to end, and returns nil. It closes l.
func Serve(ctx context.Context, lg *slog.Logger, l net.Listener, handle Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // Accept then fails, which is where it is seen
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel() // before the wait
	slots := make(chan struct{}, maxCommands)
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return errors.Join(fmt.Errorf("accept commands: %w", err), l.Close())
		}
		running.Go(func() {
			defer c.Close()
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-ctx.Done():
				return
			}
			if err := serve(ctx, lg, c, handle); err != nil {
				lg.Warn("a command that was handed over could not be answered", "error", err)
			}
		})
	}
}

// serve answers one connection.
func serve(ctx context.Context, lg *slog.Logger, c net.Conn, handle Handler) error {
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, maxFrame)
	if err := c.SetReadDeadline(time.Now().Add(greetingTimeout)); err != nil {
		return err
	}
	if !lines.Scan() {
		return lines.Err() // nil for somebody who only looked whether somebody listens
	}
	var r Request
	if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
		return errors.Join(err, line(c, frame{Result: &Result{1, "the server does not understand the request: " + err.Error()}}))
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if r.Protocol != Protocol {
		return line(c, frame{Result: &Result{1, fmt.Sprintf("the server that holds the data directory speaks version %d of the hand-over and this command version %d; use the same release of assay, or end the server first", Protocol, r.Protocol)}})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &peer{c: c, ctx: ctx, cancel: cancel, pieces: make(chan frame, 1)}
	var listening sync.WaitGroup
	listening.Go(func() { p.listen(lines) })
	result := guarded(lg, func() Result {
		return handle(ctx, r, Streams{In: p, Out: output{p, false}, Err: output{p, true}})
	})
	err := p.send(frame{Result: &result})
	_ = c.Close() // ends the listening
	listening.Wait()
	if p.gone {
		return nil // there is nobody to tell
	}
	return err
}

// guarded turns a panic of a command into its result.
func guarded(lg *slog.Logger, run func() Result) (result Result) {
	defer func() {
		if v := recover(); v != nil {
			lg.Error("a command that was handed over panicked", "panic", v, "stack", string(debug.Stack()))
			result = Result{1, "an internal error happened; the log of the server has the details"}
		}
	}()
	return run()
}

// peer is the caller as the command sees it. Its Read is the caller's standard input.
type peer struct {
	c      net.Conn
	ctx    context.Context
	cancel context.CancelFunc
	pieces chan frame // of standard input; one at most, since each is asked for
	gone   bool       // the connection broke before the result; read after the listening has ended

	rest []byte // of the last piece
	end  error

	mu       sync.Mutex // guards writing and what follows
	finished bool
}

// listen takes what the caller sends until the connection ends.
func (p *peer) listen(lines *bufio.Scanner) {
	defer p.cancel()
	for lines.Scan() {
		var f frame
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return
		}
		if f.Cancel {
			p.cancel()
			continue
		}
		select {
		case p.pieces <- f:
		default: // it was not asked for
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = !p.finished
}

func (p *peer) send(f frame) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = p.finished || f.Result != nil
	if err := line(p.c, f); err != nil {
		p.cancel() // nobody sees the output any more
		return err
	}
	return nil
}

// Read asks the caller for a piece of its standard input.
func (p *peer) Read(data []byte) (int, error) {
	if len(p.rest) == 0 && p.end == nil {
		if err := p.send(frame{Want: true}); err != nil {
			return 0, err
		}
		select {
		case f := <-p.pieces:
			p.rest = f.In
			switch {
			case f.Broken != "":
				p.end = fmt.Errorf("standard input of the command: %s", f.Broken)
			case f.End:
				p.end = io.EOF
			}
		case <-p.ctx.Done():
			return 0, context.Cause(p.ctx)
		}
	}
	if len(p.rest) == 0 {
		return 0, p.end
	}
	n := copy(data, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// output is the caller's standard output or error.
type output struct {
	p     *peer
	isErr bool
}

func (o output) Write(data []byte) (int, error) {
	for written := 0; written < len(data); written += maxPiece {
		piece := data[written:min(written+maxPiece, len(data))]
		f := frame{Out: piece}
		if o.isErr {
			f = frame{Err: piece}
		}
		if err := o.p.send(f); err != nil {
			return written, err
		}
	}
	return len(data), nil
}
