package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"assay/control"
)

// serving runs `assay serve` on the data directory until the test ends, and returns its address.
func (s *shell) serving(args ...string) (url string) {
	s.t.Helper()
	read, write := io.Pipe()
	root := newRoot(&env{stdin: strings.NewReader(""), stdout: write, stderr: io.Discard, getenv: func(name string) string { return s.env[name] }})
	root.SetArgs(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- root.ExecuteContext(ctx)
		_ = write.Close()
	}()
	lines := bufio.NewScanner(read)
	if !lines.Scan() {
		s.t.Fatal(<-ended)
	}
	url = regexp.MustCompile(`http://[0-9.:]+`).FindString(lines.Text())
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, read)
	}()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
		<-drained
	})
	return url
}

// changing is what differs from run to run: times, speeds and IDs of answers.
var changing = regexp.MustCompile(`m_[0-9a-f-]+|[0-9a-f]{32}|[0-9.]+(µs|ms|s)\b|\([0-9]+ documents/s.*\)|[0-9.]+ ms|\d+\.\d+|"(created_at|duration_ms|latency_ms|seconds|id|trace_id)": .*|\.[0-9]+\.tmp|generation.{0,4} \d+|of 0|─+`)

// Every command prints the same and ends the same, whether a server holds the directory or not.
func TestCommandsPrintTheSameThroughAServer(t *testing.T) {
	s := newShell(t)
	s.docs()
	s.write("more/plans.md", "# Plans\n\nThe Barque plan allows 50 requests per second.\n")
	s.write("more/broken.jsonl", "{\"_id\":\"x\",\"text\":\"fine\"}\nhalf\n")
	script := []struct {
		stdin string
		args  []string
	}{
		{"", []string{"ingest", "docs"}},
		{"", []string{"ingest", "--dry-run", "more"}},
		{"", []string{"ingest", "more"}},
		{"", []string{"ingest", "--json", "--include", "*.md", "more"}},
		{"{\"_id\":\"a\",\"text\":\"From standard input.\"}\n", []string{"ingest", "-"}},
		{"", []string{"ingest", "nowhere"}},
		{"", []string{"ask", "--show-context", "how long does a refund take?"}},
		{"how long does a refund take?", []string{"ask", "--json", "-"}},
		{"", []string{"ask", "--filter", `{"lang":"xx"}`, "refund"}},
		{"", []string{"ask", "--filter", `{"lang":{"like":"x"}}`, "refund"}},
		{"", []string{"ask", "  "}},
		{"", []string{"search", "--depth", "3", "-k", "1", "refund"}},
		{"", []string{"search", "--json", "--filter", `{"lang":"en"}`, "signing key"}},
		{"", []string{"manifest", "m_nothing"}},
		{"", []string{"delete", "keys.md", "more/plans.md", "nothing"}},
		{"", []string{"delete", "--json", "keys.md"}},
		{"", []string{"check"}},
		{"", []string{"check", "--json"}},
		{"", []string{"reindex"}},
		{"", []string{"backup", "x/no/folder"}},
	}
	runAll := func(data string) (out []result) {
		for _, c := range script {
			out = append(out, s.runWith(c.stdin, append([]string{"--data", data}, c.args...)...))
		}
		return out
	}
	s.write("empty.jsonl", "{\"_id\":\"first\",\"text\":\"A first document.\"}\n")
	s.ok("ingest", "--data", "alone", "empty.jsonl")
	s.ok("ingest", "--data", "served", "empty.jsonl")
	want := runAll("alone")
	s.serving("--data", "served")
	got := runAll("served")
	mask := func(text string) string { return changing.ReplaceAllString(text, "#") }
	for i, c := range script {
		if mask(got[i].out) != mask(want[i].out) || mask(got[i].errOut) != mask(want[i].errOut) || got[i].code != want[i].code {
			t.Errorf("assay %s\nalone:  exit %d\n%s%s\nserved: exit %d\n%s%s", strings.Join(c.args, " "),
				want[i].code, want[i].out, want[i].errOut, got[i].code, got[i].out, got[i].errOut)
		}
	}
}

func TestAServerAnswersFromWhatItWasHandedOver(t *testing.T) {
	s := newShell(t)
	s.docs()
	s.ok("ingest", "docs/keys.md")
	url := s.serving()
	if out := s.ok("ingest", "docs"); !strings.Contains(out, "1 added") {
		t.Errorf("ingest: %s", out)
	}
	search := func(question string) string {
		data, err := json.Marshal(map[string]any{"question": question})
		if err != nil {
			t.Fatal(err)
		}
		return post(t, url+"/v1/search", string(data))
	}
	if got := search("refund"); !strings.Contains(got, "5 business days") {
		t.Errorf("the server does not find what was ingested: %s", got)
	}
	// Another chunk size and another analyser, while it serves.
	s.write("assay.yaml", "chunker:\n  size: 64\nindex:\n  analyzer: de\n")
	s.check(t, s.run("ingest", "docs"), exitUsage, "chunker.size is 256, asked for 64", "index.analyzer", "assay reindex")
	if r := s.run("ask", "refund"); r.code != exitOK || !strings.Contains(r.errOut, "chunker.size is 256, asked for 64") {
		t.Errorf("ask with other settings: %d %s", r.code, r.errOut)
	}
	if out := s.ok("reindex"); !strings.Contains(out, "2 documents made anew") {
		t.Errorf("reindex: %s", out)
	}
	if got := search("refund"); !strings.Contains(got, "5 business days") {
		t.Errorf("after the reindexing: %s", got)
	}
	var stats struct{ Chunker, Analyzer string }
	if err := json.Unmarshal([]byte(s.ok("stats", "--json")), &stats); err != nil || !strings.Contains(stats.Chunker, "/64/") || stats.Analyzer != "de" {
		t.Errorf("%+v, %v", stats, err)
	}
	if out := s.ok("ingest", "docs"); !strings.Contains(out, "2 unchanged") {
		t.Errorf("ingest with the settings that are in force now: %s", out)
	}
	s.ok("backup", "copy.db")
	s.ok("delete", "docs/refunds.md")
	if got := search("refund"); strings.Contains(got, "5 business days") {
		t.Errorf("the server finds what was deleted: %s", got)
	}
	if out := s.ok("restore", "--data", "restored", "copy.db"); !strings.Contains(out, "2 documents") {
		t.Errorf("restore: %s", out)
	}
	s.check(t, s.run("restore", "copy.db"), exitFailed, "holds a collection already")
}

func TestReindexWithoutAServer(t *testing.T) {
	s := newShell(t)
	s.docs()
	s.ok("ingest", "docs")
	s.write("assay.yaml", "chunker:\n  size: 64\n  overlap: 8\n")
	s.check(t, s.run("ask", "refund"), exitFailed, "assay reindex")
	if out := s.ok("reindex"); !strings.Contains(out, "2 documents made anew") {
		t.Errorf("reindex: %s", out)
	}
	if out := s.ok("ask", "how long does a refund take?"); !strings.Contains(out, "5 business days") {
		t.Errorf("ask: %s", out)
	}
	if out := s.ok("reindex"); !strings.Contains(out, "Nothing to do") {
		t.Errorf("reindex again: %s", out)
	}
	s.ok("check")
}

// What a killed server leaves behind is neither used nor in the way.
func TestAStaleSocketIsReplaced(t *testing.T) {
	s := newShell(t)
	s.docs()
	s.ok("ingest", "docs")
	l, err := control.Listen(filepath.Join("assay-data", "default"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("assay-data", "default", "assay.sock")
	kept := path + ".kept"
	if err := os.Rename(path, kept); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(kept, path); err != nil {
		t.Fatal(err)
	}
	s.ok("ask", "how long does a refund take?")
	s.serving()
	s.ok("ask", "how long does a refund take?")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// A holder that does not listen is named, in bounded time.
func TestAHolderThatIsNoServerIsNamed(t *testing.T) {
	s := newShell(t)
	s.docs()
	s.ok("ingest", "docs")
	e := &env{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, getenv: os.Getenv, dataDir: "assay-data"}
	cfg, _, err := e.config()
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.open(t.Context(), cfg, e.logger(0), openStore)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for _, args := range [][]string{{"ingest", "docs"}, {"stats"}, {"ask", "x"}, {"serve", "--listen", "127.0.0.1:0"}} {
		s.check(t, s.run(append(args, "--set", "index.lock_timeout=50ms")...), exitFailed, "in use by process", "--data")
	}
}

// post sends a request to a server that a test runs.
func post(t *testing.T, url, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", url, response.StatusCode, data, err)
	}
	return string(data)
}

// While the corpus is made anew again and again, and written to, every search is answered, from one
// corpus or the other.
func TestAServerAnswersWhileItReindexes(t *testing.T) {
	s := newShell(t)
	s.docs()
	s.ok("ingest", "docs")
	url := s.serving()
	ctx, stop := context.WithCancel(t.Context())
	var searching sync.WaitGroup
	searching.Go(func() {
		for ctx.Err() == nil {
			if got := post(t, url+"/v1/search", `{"question":"refund"}`); !strings.Contains(got, "5 business days") {
				t.Errorf("not found: %s", got)
				return
			}
		}
	})
	for i, size := range []string{"64", "128", "32", "256"} {
		s.write(fmt.Sprintf("docs/more-%d.md", i), "# More\n\nA further page.\n")
		sets := []string{"--set", "chunker.size=" + size, "--set", "chunker.overlap=8"}
		if out := s.ok(append([]string{"reindex"}, sets...)...); !strings.Contains(out, "made anew") {
			t.Errorf("reindex: %s", out)
		}
		if out := s.ok("ingest", "docs"); !strings.Contains(out, "1 added") {
			t.Errorf("ingest: %s", out)
		}
	}
	stop()
	searching.Wait()
	s.ok("check")
}
