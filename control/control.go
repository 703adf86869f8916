// Package control carries a command to the process that holds a data directory, and its output back.
//
// A directory has one writer. While a server is that writer, another command on the same directory
// cannot open it; instead it hands its work over through a Unix socket in the directory and prints
// what comes back. The package knows nothing of what the commands do: a request is a name and JSON,
// a result an exit status and a message, and between them go standard input, output and error.
//
// On the wire are JSON objects, one a line. The caller sends a Request; the server answers with output
// as it comes, asks for standard input when the command reads it, and ends with the Result. The caller
// can cancel; a connection that breaks cancels too.
package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// Protocol is the version of what goes over the socket. Both sides must have the same.
const Protocol = 1

// Request is a command that is handed over.
type Request struct {
	Protocol  int               `json:"protocol"` // set by Run
	Command   string            `json:"command"`
	Arguments json.RawMessage   `json:"arguments"`
	Settings  map[string]string `json:"settings,omitempty"` // what the caller's configuration asks for
	JSON      bool              `json:"json,omitempty"`     // results as JSON
	Terminal  bool              `json:"terminal,omitempty"` // the caller's standard error is a terminal
}

// Result is how a command ended.
type Result struct {
	Code    int    `json:"code"`    // the exit status; 0 for success
	Message string `json:"message"` // the error; "" for none
}

// frame is what goes over the socket after the request; one of its fields is set.
type frame struct {
	// From the server.
	Out    []byte  `json:"out,omitempty"`
	Err    []byte  `json:"err,omitempty"`
	Want   bool    `json:"want,omitempty"` // a piece of standard input
	Result *Result `json:"result,omitempty"`
	// From the caller.
	In     []byte `json:"in,omitempty"`
	End    bool   `json:"end,omitempty"` // of standard input
	Broken string `json:"broken,omitempty"`
	Cancel bool   `json:"cancel,omitempty"`
}

// Bounds of what goes over the socket.
const (
	maxFrame = 16 << 20 // bytes of a line, which holds any question with its filter
	maxPiece = 64 << 10 // bytes of input or output in one
)

// Bounds of how long one side waits for the other.
const (
	greetingTimeout = 10 * time.Second // for the request, after the connection
	writeTimeout    = 30 * time.Second // for a caller that does not read, such as a stopped one
	cancelPatience  = 30 * time.Second // for the result, after a command was cancelled
)

// ErrNobody is returned by Dial when no server listens in the directory.
var ErrNobody = errors.New("no server listens in the data directory")

// line writes one object as a line, whole or with an error.
func line(c net.Conn, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(data) >= maxFrame {
		return fmt.Errorf("%d bytes are too much to hand over; at most %d", len(data), maxFrame)
	}
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err = c.Write(append(data, '\n'))
	return err
}
