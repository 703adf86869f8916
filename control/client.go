package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Run hands a command over on a connection and passes its streams on until it ends. When ctx ends, the
// command is cancelled there, and Run waits for what it still has to say. Standard input is read
// only as the command asks for it. Run closes the connection.
func Run(ctx context.Context, c net.Conn, r Request, s Streams) (Result, error) {
	defer c.Close()
	r.Protocol = Protocol
	if err := line(c, r); err != nil {
		return Result{}, fmt.Errorf("hand over to the server: %w", err)
	}
	var writing sync.Mutex
	send := func(f frame) error {
		writing.Lock()
		defer writing.Unlock()
		return line(c, f)
	}
	stop := context.AfterFunc(ctx, func() {
		if send(frame{Cancel: true}) != nil || c.SetReadDeadline(time.Now().Add(cancelPatience)) != nil {
			_ = c.Close() // which cancels too
		}
	})
	defer stop()
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, maxFrame)
	for lines.Scan() {
		var f frame
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return Result{}, fmt.Errorf("answer of the server: %w", err)
		}
		if f.Result != nil {
			return *f.Result, nil
		}
		if f.Want {
			// Apart, since a terminal may take for ever and the result comes all the same.
			go func() { _ = send(piece(s.In)) }() // when it fails the connection has broken, which is seen below
			continue
		}
		_, err1 := s.Out.Write(f.Out)
		_, err2 := s.Err.Write(f.Err)
		if err := errors.Join(err1, err2); err != nil {
			return Result{}, err // such as a pipe whose reader has gone
		}
	}
	err := lines.Err()
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return Result{}, fmt.Errorf("the server ended before the command did (%w); what it had done until then is kept", err)
}

// piece reads some of an input.
func piece(r io.Reader) frame {
	buffer := make([]byte, maxPiece)
	n, err := r.Read(buffer)
	f := frame{In: buffer[:n]}
	switch {
	case errors.Is(err, io.EOF):
		f.End = true
	case err != nil:
		f.Broken = err.Error()
	}
	return f
}
