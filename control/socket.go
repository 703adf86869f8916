package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// socketFile is the socket's name in the directory.
const socketFile = "assay.sock"

// maxSocketPath is how long a socket's path may be: some systems take 103 bytes, others 107.
const maxSocketPath = 100

// Listen listens in a directory that the caller holds, so that a socket which is there was left behind
// and is replaced. Only the user that runs the server can connect.
func Listen(folder string) (net.Listener, error) {
	private, err := os.MkdirTemp(folder, ".sock-") // nobody else can enter it before the mode is set
	if err != nil {
		return nil, fmt.Errorf("listen in %s: %w", folder, err)
	}
	defer os.RemoveAll(private)
	var l *net.UnixListener
	err = shortened(private, func(short string) error {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, "s"), Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen in %s: %w", folder, err)
	}
	l.SetUnlinkOnClose(false) // it gets another name
	path := filepath.Join(folder, socketFile)
	bound := filepath.Join(private, "s")
	if err := errors.Join(os.Chmod(bound, 0o600), os.Rename(bound, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("listen in %s: %w", folder, err), l.Close())
	}
	return &listener{l, path}, nil
}

// listener removes its socket when it is closed.
type listener struct {
	*net.UnixListener
	path string
}

func (l *listener) Close() error {
	err := os.Remove(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(l.UnixListener.Close(), err)
}

// Dial connects to the server that listens in a directory. ErrNobody means that none does, also when a
// killed one has left its socket there.
func Dial(ctx context.Context, folder string) (net.Conn, error) {
	if _, err := os.Lstat(filepath.Join(folder, socketFile)); err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNobody, err)
	}
	var c net.Conn
	err := shortened(folder, func(short string) (err error) {
		var d net.Dialer
		c, err = d.DialContext(ctx, "unix", filepath.Join(short, socketFile))
		return err
	})
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (%w)", ErrNobody, err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the server in %s: %w", folder, err)
	}
	return c, nil
}

// shortened calls do with a path of the folder that is short enough for a socket in it: its own, or
// that of a link in the folder for temporary files, which is gone afterwards.
func shortened(folder string, do func(short string) error) error {
	if len(filepath.Join(folder, socketFile)) <= maxSocketPath {
		return do(folder)
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "assay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	link := filepath.Join(dir, "d")
	if err := os.Symlink(absolute, link); err != nil {
		return err
	}
	if n := len(filepath.Join(link, socketFile)); n > maxSocketPath {
		return fmt.Errorf("the path of a socket would have %d bytes, also below %s; at most %d are possible: use a shorter --data directory or TMPDIR", n, os.TempDir(), maxSocketPath)
	}
	return do(link)
}
