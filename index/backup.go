package index

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"
)

// Backup writes the store to a new file, as it is at one instant, while reads and writes go on. The
// search indexes are not in it: they are made anew from the store. The file appears under its name
// when it is complete and on disk; one that is there already is not touched.
func (ix *Index) Backup(ctx context.Context, path string) (size int64, err error) {
	if _, err := os.Lstat(path); err == nil {
		return 0, fmt.Errorf("backup %s: %w: choose another name", path, fs.ErrExist)
	}
	ix.manifests.drain()
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp") // readable by its owner alone
	if err != nil {
		return 0, fmt.Errorf("backup: %w; choose a folder that exists and can be written", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("backup %s: %w", path, err), os.Remove(f.Name()))
		}
	}()
	err = ix.view(func(tx *bbolt.Tx) error {
		size, err = tx.WriteTo(interruptibleWriter{ctx, f})
		return errors.Join(ctx.Err(), err) // bbolt keeps only the text of an error
	})
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	return size, errors.Join(appear(f.Name(), path), syncFolder(filepath.Dir(path)))
}

// interruptibleWriter ends a long copy when the caller has gone.
type interruptibleWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w interruptibleWriter) Write(data []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(data)
}

// appear gives a file its name, unless another has it by now. File systems without hard links can only
// look before.
func appear(from, to string) error {
	err := os.Link(from, to)
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if err == nil {
		return os.Remove(from)
	}
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// syncFolder makes names durable. Where folders cannot be synced there is nothing to be done.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// Restore makes a collection of a backup, in a data directory that does not have it yet. It opens the
// copy and checks it before it gives it its name; a backup that is damaged changes nothing.
func Restore(ctx context.Context, lg *slog.Logger, backup, dir string, o Options) (Stats, error) {
	if err := o.Validate(); err != nil {
		return Stats{}, err
	}
	o = o.WithDefaults()
	o.AllowMismatch = true
	target := filepath.Join(dir, o.Collection)
	entries, err := os.ReadDir(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Stats{}, fmt.Errorf("restore: %w", err)
	}
	if len(entries) > 0 {
		return Stats{}, fmt.Errorf("restore %s: %w: it holds a collection already; restore into another --data directory, or move it away", target, fs.ErrExist)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Stats{}, fmt.Errorf("restore: %w; choose another --data directory or make it writable", err)
	}
	folder, err := os.MkdirTemp(dir, "."+o.Collection+".restoring-")
	if err != nil {
		return Stats{}, fmt.Errorf("restore: %w", err)
	}
	defer os.RemoveAll(folder) // gone when it has got its name
	stats, err := restoreInto(ctx, lg, backup, folder, o)
	if err != nil {
		return Stats{}, fmt.Errorf("restore %s: %w", backup, err)
	}
	if err := errors.Join(os.Rename(folder, target), syncFolder(dir)); err != nil {
		return Stats{}, fmt.Errorf("restore: %w", err)
	}
	return stats, nil
}

func restoreInto(ctx context.Context, lg *slog.Logger, backup, folder string, o Options) (stats Stats, err error) {
	if err := copyFile(ctx, backup, filepath.Join(folder, storeFile)); err != nil {
		return stats, err
	}
	// The copy goes ways of its own from here on, so nothing that was derived from the other one is to
	// be taken for its own.
	db, err := openStore(folder, o.LockTimeout)
	if err != nil {
		return stats, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(metaBucket)
		if meta == nil || number(meta.Get(formatKey)) == 0 {
			return &CorruptError{What: "it is not a backup that this program wrote", Where: backup}
		}
		return meta.Put(storeKey, []byte(uuid.NewString()))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return stats, err
	}
	ix, err := openFolder(lg, folder, o)
	if err != nil {
		return stats, err
	}
	err = ix.Check(ctx)
	stats = ix.Stats()
	return stats, errors.Join(err, ix.Close())
}

func copyFile(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is not a file; name what `assay backup` wrote", from))
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(interruptibleWriter{ctx, out}, in)
	return errors.Join(err, out.Sync(), out.Close())
}
