package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	storeFile  = "store.db"
	holderFile = "holder.json"
	bm25Folder = "bm25"
)

// mapBytes is the address space that is reserved for the store, not memory: growing past it waits
// for readers, so it is generous.
const mapBytes = 1 << 30

// holder says who has the directory open. The lock is the store file's own; this file only explains
// it, so that one left behind by a killed process does no harm.
type holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// openStore opens the store file under its lock, in bounded time.
func openStore(dir string, timeout time.Duration) (db *bbolt.DB, err error) {
	path := filepath.Join(dir, storeFile)
	// A truncated file faults when it is read where it ends; better an error than the end of the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, &CorruptError{What: fmt.Sprint(p), Where: path}
		}
	}()
	if err := createStore(dir, path); err != nil {
		return nil, fmt.Errorf("open index %s: %w; check that the folder can be written and the disk is not full", path, err)
	}
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         timeout,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mapBytes,
	})
	switch {
	case err == nil:
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, lockedError(dir, timeout)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, &CorruptError{What: "it is not a store that this program wrote", Where: path, Err: err}
	default:
		return nil, fmt.Errorf("open index %s: %w; check that the folder exists and can be written", path, err)
	}
	if err := checkSize(db, path); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	removeUnborn(dir)
	if err := writeHolder(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("open index %s: %w", dir, err), db.Close())
	}
	return db, nil
}

// createStore makes an empty store where there is none. It gets its name when it is whole: a disk that
// is full, or a kill, would otherwise leave a file that looks like a damaged store.
func createStore(dir, path string) error {
	if _, err := os.Lstat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(dir, storeFile+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it has gone when it has got its name
	if err := f.Close(); err != nil {
		return err
	}
	db, err := bbolt.Open(f.Name(), 0o600, nil)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	if err := appear(f.Name(), path); err != nil {
		if _, made := os.Lstat(path); made == nil { // another process was quicker, and has it open by now
			return nil
		}
		return err
	}
	return syncFolder(dir)
}

// removeUnborn removes stores that a killed process did not come to name. One that another process is
// making is in vain too, since there is a store now.
func removeUnborn(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // they do no harm where they are
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), storeFile+".") && strings.HasSuffix(e.Name(), ".tmp") {
			_ = os.Remove(filepath.Join(dir, e.Name())) // likewise
		}
	}
}

// checkSize refuses a file that is shorter than its own header says.
func checkSize(db *bbolt.DB, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	return db.View(func(tx *bbolt.Tx) error {
		if info.Size() < tx.Size() {
			return &CorruptError{What: fmt.Sprintf("it has %d bytes and should have %d", info.Size(), tx.Size()), Where: path}
		}
		return nil
	})
}

func lockedError(dir string, waited time.Duration) error {
	locked := &LockedError{Dir: dir, Waited: waited}
	var h holder
	if data, err := os.ReadFile(filepath.Join(dir, holderFile)); err == nil && json.Unmarshal(data, &h) == nil {
		locked.PID, locked.Command, locked.Since = h.PID, h.Command, h.Since
	}
	return locked
}

// writeHolder replaces the file in one step, so that it is never read half written. The command is
// the program and its subcommand only: further arguments may hold what others should not read.
func writeHolder(dir string) error {
	command := filepath.Base(os.Args[0])
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		command += " " + os.Args[1]
	}
	data, err := json.Marshal(holder{os.Getpid(), command, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	path := filepath.Join(dir, holderFile)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
