//go:build !linux

package index_test

import (
	"errors"
	"os"
)

// limitFiles is needed by a test for Linux alone.
func limitFiles(uint64) error { return errors.ErrUnsupported }

// makeReadOnly takes the right to write from everybody.
func makeReadOnly(folder string) (undo func(), err error) {
	if os.Geteuid() == 0 {
		return nil, errors.ErrUnsupported
	}
	return func() { _ = os.Chmod(folder, 0o700) }, os.Chmod(folder, 0o500)
}
