package index_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay"
	"assay/index"
)

// The tests below start this test binary again, as a process that writes to a directory and says what
// was acknowledged, and end it in unfriendly ways.
var (
	kills      = flag.Int("kills", 20, "how often the writing process is killed")
	writeTo    = flag.String("write-to", "", "be the writing process on this directory")
	writeLimit = flag.Uint64("write-limit", 0, "in the writing process, the size past which no file can grow")
	writeLate  = flag.Bool("write-late", false, "in the writing process, the limit holds only when the directory is open")
	reindexing = flag.Bool("write-reindex", false, "in the writing process, the corpus is made anew again and again")
	writeCount = flag.Int("write-count", 1<<30, "in the writing process, how many batches are written")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *writeTo != "" {
		if err := writing(*writeTo, *writeLimit, *writeCount); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// batchOf is the change that leads to a generation: it replaces some of thirty documents, makes or
// changes others, and removes one.
func batchOf(generation int) index.Batch {
	var b index.Batch
	put := map[string]bool{}
	for i := range 3 {
		id := fmt.Sprintf("d%02d", (generation*7+i*11)%30)
		put[id] = true
		lines := make([]string, 1+generation%5)
		for j := range lines {
			lines[j] = fmt.Sprintf("key of generation %d document %d line %d", generation, i, j)
		}
		b.Put = append(b.Put, plain(id, "Title", lines...))
	}
	if gone := fmt.Sprintf("d%02d", generation*5%30); !put[gone] {
		b.Delete = []string{gone}
	}
	return b
}

// firstBatch has so many chunks that a graph is made over their vectors.
func firstBatch() index.Batch {
	var b index.Batch
	for d := range 20 {
		lines := make([]string, 100)
		for i := range lines {
			lines[i] = fmt.Sprintf("key of base document %d line %d", d, i)
		}
		b.Put = append(b.Put, plain(fmt.Sprintf("base%02d", d), "Base", lines...))
	}
	return b
}

// writing writes one batch after another and prints the generation of each when it is acknowledged.
func writing(dir string, limit uint64, count int) error {
	if limit > 0 && !*writeLate {
		if err := limitFiles(limit); err != nil {
			return err
		}
	}
	ix, err := index.Open(slog.New(slog.DiscardHandler), dir, index.Options{})
	if err != nil {
		return err
	}
	s := ix.Snapshot()
	generation := int(s.Generation())
	if err := s.Close(); err != nil {
		return err
	}
	fmt.Println("open", generation)
	if limit > 0 && *writeLate {
		if err := limitFiles(limit); err != nil {
			return errors.Join(err, ix.Close())
		}
	}
	for range count {
		generation++
		if *reindexing && generation > 1 {
			if err := remake(ix); err != nil {
				return errors.Join(err, ix.Close())
			}
			fmt.Println("stored", generation)
			continue
		}
		b := batchOf(generation)
		if generation == 1 {
			b = firstBatch()
		}
		if _, err := ix.Apply(context.Background(), testFingerprint, b); err != nil {
			return errors.Join(err, ix.Close())
		}
		fmt.Println("stored", generation)
	}
	return ix.Close()
}

// stateAt is what the corpus must hold at a generation: the text of each document.
func stateAt(generation int) map[string]string {
	out := map[string]string{}
	for g := 1; g <= generation; g++ {
		b := batchOf(g)
		if g == 1 {
			b = firstBatch()
		}
		for _, id := range b.Delete {
			delete(out, id)
		}
		for _, e := range b.Put {
			out[e.Document.ID] = e.Document.Text
		}
	}
	return out
}

// verify opens a directory, checks everything in it, and compares it with what was acknowledged: all
// of that must be there, a batch beyond it whole or not at all. It returns the generation.
func verify(t *testing.T, dir string, acknowledged int) int {
	t.Helper()
	ix, err := index.Open(slog.New(slog.DiscardHandler), dir, index.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer checkAndClose(t, ix)
	s := ix.Snapshot()
	defer s.Close()
	generation := int(s.Generation())
	if generation != acknowledged && generation != acknowledged+1 {
		t.Fatalf("generation %d was acknowledged, the directory holds generation %d", acknowledged, generation)
	}
	want := stateAt(generation)
	for d := range s.AllDocuments() {
		got, err := s.Document(d.ID)
		if err != nil || got.Text != want[d.ID] {
			t.Fatalf("generation %d, document %s: %q, want %q, %v", generation, d.ID, got.Text, want[d.ID], err)
		}
		delete(want, d.ID)
	}
	if len(want) > 0 {
		t.Fatalf("generation %d: %d documents are missing", generation, len(want))
	}
	lexical, err1 := s.Lexical(t.Context(), "key", 1<<20, assay.Filter{})
	dense, err2 := s.Dense(t.Context(), vectorOf(1, testDimensions), 1<<20, assay.Filter{})
	if err := errors.Join(err1, err2); err != nil || len(lexical) != s.Chunks() || len(dense) != s.Chunks() {
		t.Fatalf("generation %d: %d chunks, %d lexical and %d dense hits, %v", generation, s.Chunks(), len(lexical), len(dense), err)
	}
	return generation
}

// writer starts the writing process.
func writer(t *testing.T, dir string, args ...string) (process *exec.Cmd, said *bufio.Scanner) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process = exec.CommandContext(t.Context(), program, append([]string{"-write-to", dir}, args...)...)
	out, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return process, bufio.NewScanner(out)
}

// lastStored reads what a writer says until it ends.
func lastStored(said *bufio.Scanner, before int) (generation int, opened bool, failure string) {
	generation = before
	for said.Scan() {
		word, rest, _ := strings.Cut(said.Text(), " ")
		switch word {
		case "open":
			opened = true
		case "stored":
			generation, _ = strconv.Atoi(rest) // a number that this program wrote
		case "error":
			failure = rest
		}
	}
	return generation, opened, failure
}

// A writer is killed again and again: while it opens, while it writes, while it makes the search indexes
// anew that were taken away before. Nothing acknowledged is ever lost, and nothing is half there.
func TestAKilledWriterLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	var opening, rebuilding, beyond, generation int
	for kill := range *kills {
		rebuild := kill > 0 && r.IntN(4) == 0
		if rebuild { // so that Open makes them anew, under which the process is killed
			if err := errors.Join(os.RemoveAll(lexicalFolder(dir)), os.RemoveAll(filepath.Join(dir, "default", "dense.graph"))); err != nil {
				t.Fatal(err)
			}
		}
		process, said := writer(t, dir)
		// Up to half a second, most often early: an open takes some 50 ms, a batch some 5.
		timer := time.AfterFunc(time.Duration(float64(500*time.Millisecond)*r.Float64()*r.Float64()), func() { _ = process.Process.Kill() })
		acknowledged, opened, failure := lastStored(said, generation)
		if err := process.Wait(); err == nil || failure != "" {
			t.Fatalf("kill %d, seed %d: the writer ended by itself: %s", kill, seed, failure)
		}
		timer.Stop()
		if !opened {
			opening++
			if rebuild {
				rebuilding++
			}
		}
		if generation = verify(t, dir, acknowledged); generation > acknowledged {
			beyond++
		}
		if t.Failed() {
			t.Fatalf("kill %d, seed %d", kill, seed)
		}
	}
	t.Logf("%d kills: %d while the directory was being opened, %d of those while a search index was made anew; %d batches acknowledged or found whole, %d of them stored and not yet acknowledged; nothing lost, nothing half there",
		*kills, opening, rebuilding, generation, beyond)
}

// Two processes on one directory: the second is told who holds it, in bounded time.
func TestASecondProcessIsToldWhoHoldsTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	process, said := writer(t, dir)
	for said.Scan() && !strings.HasPrefix(said.Text(), "stored") {
	}
	start := time.Now()
	_, err := index.Open(slog.New(slog.DiscardHandler), dir, index.Options{LockTimeout: 100 * time.Millisecond})
	var locked *index.LockedError
	if !errors.As(err, &locked) || locked.PID != process.Process.Pid || time.Since(start) > 10*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
	_ = process.Process.Kill()
	generation, _, _ := lastStored(said, 1)
	_ = process.Wait() // it was killed
	verify(t, dir, generation)
}

// A directory that cannot be written is refused with a reason, and stays as it was.
func TestAReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	process, said := writer(t, dir, "-write-count", "2")
	generation, _, failure := lastStored(said, 0)
	if err := process.Wait(); err != nil || generation != 2 {
		t.Fatalf("%v, %s", err, failure)
	}
	folder := filepath.Join(dir, "default")
	undo, err := makeReadOnly(folder)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the test runs as root, to which no directory is read-only, and cannot mount one that is: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = index.Open(slog.New(slog.DiscardHandler), dir, index.Options{})
	undo()
	if err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("%v", err)
	}
	verify(t, dir, generation)
}

// twoFingerprints are what a corpus is made with in turn.
var twoFingerprints = []index.Fingerprint{testFingerprint, {Embedder: assay.Model{Name: "other", Dimensions: 4}, Chunker: "other"}}

// remake makes the corpus anew with the settings that it was not made with, a few documents at a time.
func remake(ix *index.Index) error {
	ctx := context.Background()
	f := twoFingerprints[0]
	if ix.CheckFingerprint(f) == nil {
		f = twoFingerprints[1]
	}
	ids, _, err := ix.Unstaged(ctx, f)
	if err != nil {
		return err
	}
	s := ix.Snapshot()
	defer s.Close()
	for ; len(ids) > 0; ids = ids[1:] {
		d, err := s.Document(ids[0])
		if err != nil {
			return err
		}
		span := assay.Span{End: len(d.Text)}
		e := index.Entry{
			Document: *d, Vectors: [][]float32{vectorOf(len(d.Text), f.Embedder.Dimensions)},
			Chunks: []assay.Chunk{{ID: assay.ChunkID(d.ID, span, d.Text), DocID: d.ID, Span: span, Tokens: 1, Text: d.Text}},
		}
		if err := ix.Stage(ctx, f, s, []index.Entry{e}); err != nil {
			return err
		}
	}
	_, err = ix.Promote(ctx, f)
	return err
}

// A reindexing is killed again and again: the corpus is the old one or the new one, whole.
func TestAKilledReindexLeavesOneCorpusOrTheOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	process, said := writer(t, dir, "-write-count", "1")
	generation, _, failure := lastStored(said, 0)
	if err := process.Wait(); err != nil {
		t.Fatal(err, failure)
	}
	want := stateAt(1)
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	resumed := 0
	for kill := range max(5, *kills/4) {
		process, said := writer(t, dir, "-write-reindex")
		timer := time.AfterFunc(time.Duration(float64(500*time.Millisecond)*r.Float64()), func() { _ = process.Process.Kill() })
		acknowledged, _, failure := lastStored(said, generation)
		if err := process.Wait(); err == nil || failure != "" {
			t.Fatalf("kill %d: the writer ended by itself: %s", kill, failure)
		}
		timer.Stop()
		ix, err := index.Open(slog.New(slog.DiscardHandler), dir, index.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := ix.Snapshot()
		generation = int(s.Generation())
		if generation != acknowledged && generation != acknowledged+1 || s.Documents() != len(want) {
			t.Errorf("kill %d: generation %d was acknowledged, there is %d with %d documents", kill, acknowledged, generation, s.Documents())
		}
		for id, text := range want {
			if d, err := s.Document(id); err != nil || d.Text != text {
				t.Errorf("kill %d: document %s: %v", kill, id, err)
			}
		}
		if made := ix.CheckFingerprint(twoFingerprints[0]) == nil; made == (ix.CheckFingerprint(twoFingerprints[1]) == nil) {
			t.Errorf("kill %d: made with both settings or with neither", kill)
		}
		if ix.Stats().Staged > 0 {
			resumed++
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		checkAndClose(t, ix)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d kills, %d of them with a part staged; %d corpora made", max(5, *kills/4), resumed, generation)
}
