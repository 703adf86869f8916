package index

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// view reads from the store. A closed one is ErrClosed. bbolt panics on pages that cannot be, which is
// a CorruptError; its own transaction has ended by then.
func (ix *Index) view(read func(*bbolt.Tx) error) (err error) {
	defer ix.storePanic(&err)
	return closedError(ix.db.View(read))
}

// update writes to the store, whole or not at all. Errors are as with view.
func (ix *Index) update(write func(*bbolt.Tx) error) (err error) {
	defer ix.storePanic(&err)
	return closedError(ix.db.Update(write))
}

func (ix *Index) storePanic(err *error) {
	if p := recover(); p != nil {
		*err = &CorruptError{What: fmt.Sprintf("a transaction panicked: %v", p), Where: ix.storePath()}
	}
}

func closedError(err error) error {
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}
