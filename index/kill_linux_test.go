package index_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// limitFiles lets writes past a size fail, as they do on a full disk.
func limitFiles(size uint64) error {
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: size})
}

// makeReadOnly takes the right to write from everybody; root needs a mount for that.
func makeReadOnly(folder string) (undo func(), err error) {
	if os.Geteuid() != 0 {
		return func() { _ = os.Chmod(folder, 0o700) }, os.Chmod(folder, 0o500)
	}
	if err := syscall.Mount(folder, folder, "", syscall.MS_BIND, ""); err != nil {
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	undo = func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) }
	if err := syscall.Mount("", folder, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		undo()
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return undo, nil
}

// The disk is full at every point of a short script: at each size from the first page on, in steps,
// files stop growing. The writer says so and ends by itself; what it had acknowledged is there, and
// with room the directory goes on.
func TestAFullDiskLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	const script = 4
	refused, failed, passed := 0, 0, 0
	for step := range 50 {
		size := uint64(float64(2<<10) * math.Pow(1.5, float64(step/2)))
		dir := t.TempDir()
		args := []string{"-write-limit", strconv.FormatUint(size, 10), "-write-count", strconv.Itoa(script)}
		if step%2 == 1 {
			args = append(args, "-write-late")
		}
		process, said := writer(t, dir, args...)
		timer := time.AfterFunc(30*time.Second, func() { _ = process.Process.Kill() })
		acknowledged, opened, failure := lastStored(said, 0)
		err := process.Wait()
		if !timer.Stop() {
			t.Fatalf("files of at most %d bytes: the writer hangs", size)
		}
		switch {
		case failure == "" && (err != nil || acknowledged < script):
			t.Errorf("files of at most %d bytes: the writer ended without an error that it could report: %v", size, err)
		case !opened:
			refused++
		case failure != "":
			failed++
		default:
			passed++
		}
		verify(t, dir, acknowledged)
	}
	if refused == 0 || failed == 0 || passed == 0 {
		t.Errorf("the sizes do not reach from the open to the end: %d refused, %d failed later, %d passed", refused, failed, passed)
	}
}

var everyOperation = flag.Bool("every-operation", false, "let every file operation of a short script fail in turn, not only some")

// One file operation of a short script fails, and each does in turn: the writer says so or copes with
// it, what it had acknowledged is there, and the directory goes on. The operations are made to fail
// by strace, which counts them by thread.
func TestAFailingFileOperationLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace, which lets system calls fail, is not installed")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const calls = "write,pwrite64,fsync,fdatasync,ftruncate,fallocate,openat,renameat,renameat2,linkat,unlinkat,fchmodat,mkdirat"
	step := 1
	if !*everyOperation {
		step = 23
	}
	runs, reported, missed := 0, 0, 0
	for n := 1; missed == 0 && n < 2000; n += step {
		for _, fault := range []string{"EIO", "ENOSPC"} {
			dir, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
			process := exec.CommandContext(t.Context(), strace, "-f", "-qq", "-o", log, "-e", "trace="+calls,
				"-e", fmt.Sprintf("inject=%s:error=%s:when=%d", calls, fault, n), program, "-write-to", dir, "-write-count", "3")
			process.Env = append(os.Environ(), "GOMAXPROCS=1") // fewer threads to count by
			out, err := process.Output()
			if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			trace, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(trace, []byte("INJECTED")) {
				if len(trace) == 0 {
					t.Skip("strace cannot trace here")
				}
				missed++
				continue
			}
			acknowledged, _, failure := lastStored(bufio.NewScanner(bytes.NewReader(out)), 0)
			if failure != "" {
				reported++
			}
			runs++
			if bytes.Contains(out, []byte("panic")) || bytes.Contains(out, []byte("goroutine ")) {
				t.Errorf("operation %d fails with %s: %s", n, fault, out)
			}
			verify(t, dir, acknowledged)
			if t.Failed() {
				t.Fatalf("operation %d fails with %s", n, fault)
			}
		}
	}
	if runs == 0 {
		t.Error("no operation was made to fail")
	}
	t.Logf("%d runs with one failing operation each, %d of which reported an error; nothing acknowledged is lost", runs, reported)
}
