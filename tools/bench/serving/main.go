// Command serving measures what an ingest costs those who search meanwhile: the latency of POST
// /v1/search over loopback, first of an idle server and then while `assay ingest` hands documents over
// to it, in one run.
//
//	go build -o assay ./cmd/assay && go run ./tools/bench/serving -assay ./assay
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	program := flag.String("assay", "assay", "the binary to measure")
	base := flag.Int("base", 5000, "documents in the corpus before")
	documents := flag.Int("documents", 20_000, "documents to ingest while it is searched")
	idle := flag.Duration("idle", 15*time.Second, "how long the idle server is measured")
	pause := flag.Duration("pause", 20*time.Millisecond, "between two searches")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *program, *base, *documents, *idle, *pause)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "serving:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program string, base, documents int, idle, pause time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "assay-serving-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	first, second := filepath.Join(dir, "base.jsonl"), filepath.Join(dir, "more.jsonl")
	if err := errors.Join(corpus(first, "base", base), corpus(second, "more", documents)); err != nil {
		return err
	}
	assay := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, program, append([]string{"--data", filepath.Join(dir, "data")}, args...)...)
		c.Dir, c.Stderr = dir, os.Stderr
		return c
	}
	if out, err := assay("ingest", first).Output(); err != nil {
		return fmt.Errorf("ingest of the base: %w\n%s", err, out)
	}
	server := assay("serve", "--listen", "127.0.0.1:0")
	server.Stderr = io.Discard
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		return err
	}
	defer func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait() // it was interrupted
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	url := regexp.MustCompile(`http://[0-9.:]+`).FindString(line) + "/v1/search"

	warm, stopWarm := context.WithTimeout(ctx, 3*time.Second)
	_, err = search(warm, url, pause)
	stopWarm()
	if err != nil {
		return err
	}
	quiet, stopQuiet := context.WithTimeout(ctx, idle)
	before, err := search(quiet, url, pause)
	stopQuiet()
	if err != nil {
		return err
	}
	busy, stopBusy := context.WithCancel(ctx)
	ingest := assay("ingest", "--json", second)
	var ingested []byte
	ended := make(chan error, 1)
	start := time.Now()
	go func() {
		defer stopBusy()
		var err error
		ingested, err = ingest.Output()
		ended <- err
	}()
	during, err := search(busy, url, pause)
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	took := time.Since(start)
	var summary struct{ Added, Chunks int }
	if err := json.Unmarshal(ingested, &summary); err != nil || summary.Added != documents {
		return fmt.Errorf("ingest: %d of %d documents were added (%w)", summary.Added, documents, err)
	}
	fmt.Printf("%d cores, %s; corpus %d documents, then %d more through the socket in %.1f s (%.0f documents/s, %d chunks)\n\n",
		runtime.NumCPU(), runtime.Version(), base, documents, took.Seconds(), float64(documents)/took.Seconds(), summary.Chunks)
	fmt.Println("| /v1/search | searches | p50 ms | p95 ms | p99 ms | max ms |\n|---|---|---|---|---|---|")
	for _, row := range []struct {
		name string
		all  []time.Duration
	}{{"idle", before}, {"during the ingest", during}} {
		fmt.Printf("| %s | %d | %.1f | %.1f | %.1f | %.1f |\n", row.name, len(row.all),
			quantile(row.all, 0.5), quantile(row.all, 0.95), quantile(row.all, 0.99), quantile(row.all, 1))
	}
	fmt.Printf("\np95 during the ingest over p95 idle: %.2f\n", quantile(during, 0.95)/quantile(before, 0.95))
	return nil
}

// words have the skewed frequencies of a language.
func words(r *rand.Rand, n int) string {
	zipf := rand.NewZipf(r, 1.1, 4, 30_000)
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "w%d ", zipf.Uint64())
	}
	return b.String()
}

func corpus(path, name string, n int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	r := rand.New(rand.NewPCG(uint64(n), 7))
	for i := range n {
		fmt.Fprintf(w, "{\"_id\":\"%s-%d\",\"title\":\"%s\",\"text\":\"%s\"}\n", name, i, strings.TrimSpace(words(r, 4)), strings.TrimSpace(words(r, 100)))
	}
	return errors.Join(w.Flush(), f.Close())
}

// search asks one question after another until ctx ends, and returns how long each took.
func search(ctx context.Context, url string, pause time.Duration) ([]time.Duration, error) {
	r := rand.New(rand.NewPCG(1, 2))
	var took []time.Duration
	for {
		body := fmt.Sprintf(`{"question":%q}`, words(r, 7))
		start := time.Now()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewBufferString(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			err = errors.Join(err, response.Body.Close())
		}
		switch {
		case ctx.Err() != nil:
			return took, nil
		case err != nil:
			return nil, err
		case response.StatusCode != http.StatusOK:
			return nil, fmt.Errorf("search: %s", response.Status)
		}
		took = append(took, time.Since(start))
		select {
		case <-ctx.Done():
			return took, nil
		case <-time.After(pause):
		}
	}
}

// quantile is in milliseconds.
func quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return float64(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Microseconds()) / 1000
}
