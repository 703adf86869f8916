package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

func TestSecondRunFindsNothingNewAndParsesNothing(t *testing.T) {
	files := map[string]string{"a.md": "# A\n\none", "sub/b.html": "<h1>B</h1><p>two", "c.jsonl": `{"_id":"r1","text":"three"}`}
	dir := writeTree(t, files)
	s := newStore()
	first := ingestInto(t, s, Options{}, parseRoot(t, dir))
	for _, r := range first {
		if r.State != StateNew || r.Document == nil || r.Document.ID != r.ID || r.Bytes == 0 || r.Root != dir {
			t.Errorf("first run: %+v", r)
		}
	}
	for _, r := range ingestInto(t, s, Options{}, parseRoot(t, dir)) {
		if r.State != StateUnchanged || r.Document != nil || r.ID == "" {
			t.Errorf("second run: %+v", r)
		}
	}
	for _, r := range ingestInto(t, s, Options{Force: true}, parseRoot(t, dir)) {
		if r.State != StateChanged || r.Document == nil {
			t.Errorf("forced run: %+v", r)
		}
	}
}

func TestChangedContentKeepsTheID(t *testing.T) {
	s := newStore()
	ingestInto(t, s, Options{}, memRoot(map[string]string{"a.md": "one", "b.md": "two"}))
	results := ingestInto(t, s, Options{}, memRoot(map[string]string{"a.md": "one", "b.md": "two, revised"}))
	if results[0].State != StateUnchanged || results[1].State != StateChanged || results[1].ID != "b.md" {
		t.Errorf("%+v", results)
	}
}

func TestAnotherParserVersionReadsAgain(t *testing.T) {
	s := newStore()
	ingestInto(t, s, Options{}, memRoot(map[string]string{"a.md": "one"}))
	d := s.byURI["sample:/a.md"]
	if base, _, ok := strings.Cut(d.Hash, "-p"); !ok || len(base) != 64 {
		t.Fatalf("hash %q is not a SHA-256 and a version", d.Hash)
	} else {
		d.Hash = base + "-p0"
	}
	if r := ingestInto(t, s, Options{}, memRoot(map[string]string{"a.md": "one"})); r[0].State != StateChanged {
		t.Errorf("state %s, want changed", r[0].State)
	}
}

func TestOrderIsLexicalWhateverTheWorkers(t *testing.T) {
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("%02d/%02d.md", i%7, i)] = strings.Repeat("word ", (i*37)%1000+1)
		files[fmt.Sprintf("%02d/%02d.html", i%7, i)] = "<p>" + strings.Repeat("word ", (i*91)%1000+1)
	}
	want := slices.Sorted(func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	})
	for _, workers := range []int{1, 2, 16} {
		got := ids(readAll(t, Options{Workers: workers, MaxInFlight: 3000}, memRoot(files)))
		if !slices.Equal(got, want) {
			t.Errorf("%d workers: %v", workers, got)
		}
	}
}

func TestOverlappingRootsGiveOneDocument(t *testing.T) {
	dir := writeTree(t, map[string]string{"a.md": "one", "faq/b.md": "two"})
	results := readAll(t, Options{}, parseRoot(t, dir), parseRoot(t, filepath.Join(dir, "faq")), parseRoot(t, filepath.Join(dir, "faq", "b.md")))
	if got := ids(results); !reflect.DeepEqual(got, []string{"a.md", "faq/b.md"}) {
		t.Errorf("%v", got)
	}
}

func TestFileGivenByItselfUpdatesTheDocumentOfItsFolder(t *testing.T) {
	dir := writeTree(t, map[string]string{"faq/a.md": "one"})
	s := newStore()
	ingestInto(t, s, Options{}, parseRoot(t, dir))
	r := ingestInto(t, s, Options{Force: true}, parseRoot(t, filepath.Join(dir, "faq", "a.md")))
	if r[0].State != StateChanged || r[0].ID != "faq/a.md" {
		t.Errorf("%+v", r[0])
	}
}

func TestStoppingEarlyLeavesNothingRunning(t *testing.T) {
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprintf("%02d.md", i)] = "text"
	}
	synctest.Test(t, func(t *testing.T) {
		for range Read(t.Context(), slog.New(slog.DiscardHandler), []Root{memRoot(files)}, Options{Workers: 4}) {
			break
		}
	}) // fails if a goroutine of the bubble is left
}

func TestCancelledContextEndsAReadOfASilentStream(t *testing.T) {
	silent, writer := io.Pipe()
	defer writer.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int)
	go func() {
		n := 0
		for range Read(ctx, slog.New(slog.DiscardHandler), []Root{StdinRoot(silent)}, Options{}) {
			n++
		}
		done <- n
	}()
	cancel()
	if n := <-done; n != 0 {
		t.Errorf("%d results from a stream that said nothing", n)
	}
}

func TestFileLargerThanTheLimitIsSkippedAndTheLimitNamed(t *testing.T) {
	results := readAll(t, Options{MaxFileSize: 10}, memRoot(map[string]string{"a.md": "0123456789", "b.md": "0123456789a"}))
	if results[0].State != StateNew {
		t.Errorf("a file of the maximum size: %+v", results[0])
	}
	if r := results[1]; r.Reason != SkipTooLarge || !strings.Contains(r.Err.Error(), "10 bytes") || r.URI != "sample:/b.md" || !r.Reason.Failed() {
		t.Errorf("%+v", r)
	}
	stream := readAll(t, Options{MaxFileSize: 10}, StdinRoot(strings.NewReader("0123456789a")))
	if stream[0].Reason != SkipTooLarge {
		t.Errorf("stream: %+v", stream[0])
	}
}

func TestFailingStreamIsUnreadable(t *testing.T) {
	broken := errors.New("connection reset")
	r := readAll(t, Options{}, StdinRoot(io.MultiReader(strings.NewReader("some text"), failing{broken})))
	if len(r) != 1 || r[0].Reason != SkipUnreadable || !errors.Is(r[0].Err, broken) {
		t.Errorf("%+v", r)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestInvalidOptionsAreReportedAtOnce(t *testing.T) {
	o := Options{Include: []string{"[a"}, Exclude: []string{"{x"}, Workers: -1, MaxFileSize: -5}
	err := o.Validate()
	for _, want := range []string{"[a", "{x", "workers is -1", "max file size is -5"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not mention %q", err, want)
		}
	}
	results := readAll(t, o, memRoot(map[string]string{"a.md": "x"}))
	if len(results) != 1 || results[0].Reason != SkipBadOptions || results[0].Err == nil {
		t.Errorf("%+v", results)
	}
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("the zero options: %v", err)
	}
}

func TestStandardInputIsOneDocument(t *testing.T) {
	r := readAll(t, Options{}, StdinRoot(strings.NewReader("# Keys\n\nRotate them.")))[0]
	if r.ID != "stdin" || r.URI != "stdin" || r.Document.Format != "markdown" || r.Document.Title != "Keys" {
		t.Errorf("%+v", r)
	}
	named := readAll(t, Options{}, StreamRoot("guide.html", strings.NewReader("<p>Rotate them.")))[0]
	if named.ID != "guide.html" || named.Document.Format != "html" {
		t.Errorf("%+v", named)
	}
}
