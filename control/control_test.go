package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"assay/control"
)

// serving serves commands in a folder until the test ends.
func serving(t *testing.T, folder string, handle control.Handler) {
	t.Helper()
	l, err := control.Listen(folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- control.Serve(ctx, slog.New(slog.DiscardHandler), l, handle) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := control.Dial(context.Background(), folder); !errors.Is(err, control.ErrNobody) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// call hands a command over.
func call(t *testing.T, folder, command, in string) (out, errOut string, result control.Result, err error) {
	t.Helper()
	c, err := control.Dial(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	result, err = control.Run(t.Context(), c, control.Request{Command: command, Arguments: json.RawMessage(`{"a":1}`)},
		control.Streams{In: strings.NewReader(in), Out: &stdout, Err: &stderr})
	return stdout.String(), stderr.String(), result, err
}

func echo(_ context.Context, r control.Request, s control.Streams) control.Result {
	switch r.Command {
	case "echo":
		n, err := io.Copy(s.Out, s.In)
		fmt.Fprintf(s.Err, "%d bytes, %v, %s", n, err, r.Arguments)
		return control.Result{Code: 3, Message: "done"}
	case "panic":
		panic("no")
	}
	return control.Result{}
}

func TestStreamsAndResultsPassThrough(t *testing.T) {
	folder := t.TempDir()
	serving(t, folder, echo)
	for _, in := range []string{"", "a\xff\x00b\n", strings.Repeat("longer than a piece ", 50_000)} {
		out, errOut, result, err := call(t, folder, "echo", in)
		if want := fmt.Sprintf(`%d bytes, <nil>, {"a":1}`, len(in)); err != nil || out != in || errOut != want || result != (control.Result{Code: 3, Message: "done"}) {
			t.Errorf("%d bytes out, %q, %+v, %v", len(out), errOut, result, err)
		}
	}
	if _, _, result, err := call(t, folder, "panic", ""); err != nil || result.Code != 1 || !strings.Contains(result.Message, "log") {
		t.Errorf("a panic: %+v, %v", result, err)
	}
	if _, _, result, err := call(t, folder, "nothing", ""); err != nil || result != (control.Result{}) {
		t.Errorf("a server that had a panic: %+v, %v", result, err)
	}
}

// A path that is too long for a socket works all the same, from any working directory.
func TestFoldersWithLongPaths(t *testing.T) {
	folder := filepath.Join(t.TempDir(), strings.Repeat("long", 40), strings.Repeat("path", 40))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	serving(t, folder, echo)
	if out, _, _, err := call(t, folder, "echo", "x"); err != nil || out != "x" {
		t.Errorf("%q, %v", out, err)
	}
	t.Chdir(filepath.Dir(folder))
	if out, _, _, err := call(t, filepath.Base(folder), "echo", "x"); err != nil || out != "x" {
		t.Errorf("by a relative path: %q, %v", out, err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the socket: %v, %v", entries, err)
	}
	if info, err := os.Stat(filepath.Join(folder, "assay.sock")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// A caller that cancels still gets what the command has to say; one that goes away ends it too.
func TestCallersEndTheirCommands(t *testing.T) {
	folder := t.TempDir()
	started, ended := make(chan struct{}), make(chan struct{}, 1)
	serving(t, folder, func(ctx context.Context, _ control.Request, s control.Streams) control.Result {
		started <- struct{}{}
		<-ctx.Done()
		fmt.Fprint(s.Out, "half of it")
		ended <- struct{}{}
		return control.Result{Code: 1, Message: "cancelled"}
	})
	c, err := control.Dial(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	var out bytes.Buffer
	result, err := control.Run(ctx, c, control.Request{}, control.Streams{In: strings.NewReader(""), Out: &out, Err: io.Discard})
	if err != nil || out.String() != "half of it" || result.Message != "cancelled" {
		t.Errorf("%q, %+v, %v", out.String(), result, err)
	}
	<-ended
	if c, err = control.Dial(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, `{"protocol":%d}`+"\n", control.Protocol); err != nil {
		t.Fatal(err)
	}
	<-started
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// What is no request is refused or dropped, and the server goes on.
func TestHostileCallers(t *testing.T) {
	folder := t.TempDir()
	serving(t, folder, echo)
	for name, sent := range map[string]string{
		"another protocol": `{"protocol":99,"command":"echo"}` + "\n",
		"no JSON":          "GET / HTTP/1.1\r\n\r\n",
		"half a line":      `{"protocol"`,
		"nothing":          "",
		"an unasked frame": fmt.Sprintf(`{"protocol":%d,"command":"echo"}`+"\n"+`{"in":"eA=="}`+"\n"+`{"in":"eA=="}`+"\n"+`{"in":"eA=="}`+"\n"+"junk\n", control.Protocol),
	} {
		c, err := control.Dial(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.UnixConn).CloseWrite()
		answer, _ := io.ReadAll(c) // the server may have closed it
		_ = c.Close()
		if name == "another protocol" && !strings.Contains(string(answer), "version 99") {
			t.Errorf("%s: %s", name, answer)
		}
	}
	if out, _, _, err := call(t, folder, "echo", "x"); err != nil || out != "x" {
		t.Errorf("afterwards: %q, %v", out, err)
	}
}

func TestAServerThatGoesAwayIsReported(t *testing.T) {
	folder := t.TempDir()
	l, err := control.Listen(folder)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = c.Read(make([]byte, 10))
			_ = c.Close()
		}
	}()
	_, _, _, err = call(t, folder, "echo", "")
	if err == nil || !strings.Contains(err.Error(), "server") {
		t.Errorf("%v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := control.Dial(t.Context(), folder); !errors.Is(err, control.ErrNobody) {
		t.Errorf("%v", err)
	}
}

// A connection on which nothing comes does not stay for ever.
func TestSilentCallersAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- control.Serve(ctx, slog.New(slog.DiscardHandler), &once{c: far, ctx: ctx}, echo) }()
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // after a while of synctest's time
			t.Errorf("%v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// once is a listener with one connection.
type once struct {
	c   net.Conn
	ctx context.Context
}

func (o *once) Accept() (net.Conn, error) {
	if c := o.c; c != nil {
		o.c = nil
		return c, nil
	}
	<-o.ctx.Done()
	return nil, net.ErrClosed
}
func (*once) Close() error   { return nil }
func (*once) Addr() net.Addr { return &net.UnixAddr{} }
