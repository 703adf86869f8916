package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"assay"
)

// shell runs command lines in a directory of its own.
type shell struct {
	t   *testing.T
	dir string
	env map[string]string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	t.Chdir(t.TempDir())
	return &shell{t: t, dir: ".", env: map[string]string{}}
}

// result is what a command line did.
type result struct {
	out, errOut string
	code        int
}

func (s *shell) run(args ...string) result { return s.runWith("", args...) }

func (s *shell) runWith(stdin string, args ...string) result {
	s.t.Helper()
	var out, errOut bytes.Buffer
	root := newRoot(&env{stdin: strings.NewReader(stdin), stdout: &out, stderr: &errOut, getenv: func(name string) string { return s.env[name] }})
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errOut)
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	code := exitCode(root.ExecuteContext(ctx), &errOut)
	return result{out.String(), errOut.String(), code}
}

// ok runs a command line that must succeed and returns its output.
func (s *shell) ok(args ...string) string {
	s.t.Helper()
	r := s.run(args...)
	if r.code != exitOK {
		s.t.Fatalf("assay %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.errOut)
	}
	return r.out
}

func (s *shell) write(name, text string) {
	s.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shell) docs() {
	s.write("docs/keys.md", "---\nlang: en\n---\n# Rotate a signing key\n\nCreate the new key. Promote it with an overlap of 24 hours. Retire the old key.\n")
	s.write("docs/refunds.md", "# Refund policy\n\nA refund is returned within 5 business days of approval.\n")
}

// wide returns the first line that is wider than the page.
func wide(text string) string {
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > pageWidth {
			return line
		}
	}
	return ""
}

func TestFromDocumentsToAnAnswer(t *testing.T) {
	s := newShell(t)
	s.docs()
	if out := s.ok("ingest", "docs"); !strings.Contains(out, "2 added, 0 changed, 0 unchanged, 0 removed, 0 skipped") {
		t.Errorf("ingest: %s", out)
	}
	out := s.ok("ask", "--manifest", "--show-context", "how long does a refund take?")
	for _, want := range []string{"5 business days", "Sources", "refunds.md", "Manifest m_", "reranker", "disabled", "Context:", "| A refund is returned"} {
		if !strings.Contains(out, want) {
			t.Errorf("the answer lacks %q:\n%s", want, out)
		}
	}
	if line := wide(out); line != "" {
		t.Errorf("wider than %d columns: %s", pageWidth, line)
	}
	var answer struct {
		Answer    string
		Citations []assay.Citation
		Manifest  assay.Manifest
		Context   []sentPassage
	}
	if err := json.Unmarshal([]byte(s.ok("ask", "--json", "--show-context", "how long does a refund take?")), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Answer == "" || len(answer.Citations) == 0 || len(answer.Context) != len(answer.Manifest.Context.Passages) {
		t.Errorf("JSON: %+v", answer)
	}
	if out := s.ok("manifest"); strings.Count(out, "\n") != 2 || !strings.Contains(out, answer.Manifest.ID) {
		t.Errorf("manifest: %s", out)
	}
	for _, id := range []string{answer.Manifest.ID, answer.Manifest.TraceID} {
		var m assay.Manifest
		if err := json.Unmarshal([]byte(s.ok("manifest", "--json", id)), &m); err != nil || m.ID != answer.Manifest.ID {
			t.Errorf("manifest %s: %v, %v", id, m.ID, err)
		}
	}
	if r := s.run("manifest", "m_nothing"); r.code != exitFailed || !strings.Contains(r.errOut, "not found") {
		t.Errorf("an unknown manifest: %d %s", r.code, r.errOut)
	}
}

func TestSearchShowsRanksAndHonoursFilters(t *testing.T) {
	s := newShell(t)
	s.docs()
	s.ok("ingest", "docs")
	if out := s.ok("search", "signing key"); !strings.Contains(out, "lexical 1") || !strings.Contains(out, "Rotate a signing key") {
		t.Errorf("search: %s", out)
	}
	var found struct{ Results []map[string]any }
	if err := json.Unmarshal([]byte(s.ok("search", "--json", "--filter", `{"lang":"en"}`, "refund")), &found); err != nil {
		t.Fatal(err)
	}
	for _, r := range found.Results {
		if r["doc_id"] != "keys.md" {
			t.Errorf("%v passed the filter", r["doc_id"])
		}
	}
	if out := s.ok("search", "--filter", `{"lang":"xx"}`, "refund"); !strings.Contains(out, "Nothing was found") {
		t.Errorf("a filter that nothing passes: %s", out)
	}
	if r := s.run("search", "--filter", `{"lang":{"like":"x"}}`, "refund"); r.code != exitUsage || !strings.Contains(r.errOut, "unknown operator") {
		t.Errorf("a bad filter: %d %s", r.code, r.errOut)
	}
}

func TestStandardInput(t *testing.T) {
	s := newShell(t)
	records := `{"_id":"a#1","title":"Refunds","text":"Refunds take five days.","metadata":{"lang":"en"}}
{"_id":"b","title":"Keys","text":"Keys are rotated twice a year."}
half a record
`
	r := s.runWith(records, "ingest", "-")
	if r.code != exitPartial || !strings.Contains(r.out, "2 added") || !strings.Contains(r.out, "malformed (1)") {
		t.Errorf("ingest: exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	if r := s.runWith("how long do refunds take?", "ask", "-"); r.code != exitOK || !strings.Contains(r.out, "five days") {
		t.Errorf("ask: exit %d\n%s%s", r.code, r.out, r.errOut)
	}
}

func TestMistakesSayWhatToDo(t *testing.T) {
	s := newShell(t)
	s.docs()
	s.write("bad.yaml", "rerank:\n  timout: 1s\nserver:\n  api_key: x\nretrieve: {}\n")
	s.write("secret.yaml", "embed:\n  api_key: sk-123\n")
	s.write("type.yaml", "chunker:\n  size: many\n")
	s.write("time.yaml", "rerank:\n  timeout: 5\n")
	s.write("deadline.yaml", "server:\n  request_timeout: 1s\n")
	s.write("list.yaml", "- a\n")
	long := strings.Repeat("why ", 300_000)
	tests := []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"no corpus", []string{"ask", "x"}, exitFailed, []string{"no corpus in ./assay-data", "assay ingest"}},
		{"missing folder", []string{"ingest", "nowhere"}, exitUsage, []string{"nowhere", "no such file or folder"}},
		{"no path", []string{"ingest"}, exitUsage, []string{"give the files and folders"}},
		{"unknown flag", []string{"ask", "--fast", "x"}, exitUsage, []string{"unknown flag: --fast"}},
		{"unknown command", []string{"aks"}, exitUsage, []string{"unknown command", "ask"}},
		{"unknown keys", []string{"config", "show", "--config", "bad.yaml"}, exitUsage, []string{"bad.yaml", "line 2", `"rerank.timout"`, `did you mean "rerank.timeout"`, `"server.api_key"`, `"retrieve"`, `did you mean "retriever"`}},
		{"a secret in the file", []string{"config", "show", "--config", "secret.yaml"}, exitUsage, []string{"ASSAY_EMBED_API_KEY"}},
		{"a wrong type", []string{"config", "show", "--config", "type.yaml"}, exitUsage, []string{"type.yaml", "line 2"}},
		{"a fraction", []string{"config", "show", "--set", "rerank.keep=1.5"}, exitUsage, []string{"rerank.keep must be a whole number"}},
		{"a scalar for a section", []string{"config", "show", "--set", "rerank=1"}, exitUsage, []string{"rerank must be a section"}},
		{"zero", []string{"config", "show", "--set", "rerank.keep=0"}, exitUsage, []string{"rerank.keep is 0"}},
		{"no channel", []string{"config", "show", "--set", "retriever.dense_weight=0", "--set", "retriever.lexical_weight=0"}, exitUsage, []string{"nothing would be searched"}},
		{"infinity", []string{"config", "show", "--set", "index.k1=.inf"}, exitUsage, []string{"index.k1 must be a number"}},
		{"a duration without unit", []string{"config", "show", "--config", "time.yaml"}, exitUsage, []string{"line 2", "write it like"}},
		{"a deadline that cannot hold", []string{"config", "show", "--config", "deadline.yaml"}, exitUsage, []string{"server.request_timeout (1s) cannot hold", "retriever.timeout"}},
		{"no mapping", []string{"config", "show", "--config", "list.yaml"}, exitUsage, []string{"must be a mapping"}},
		{"no such file", []string{"config", "show", "--config", "none.yaml"}, exitUsage, []string{"none.yaml"}},
		{"--set without value", []string{"config", "show", "--set", "rerank.keep"}, exitUsage, []string{"section.key=value"}},
		{"--set unknown", []string{"config", "show", "--set", "rerank.kep=3"}, exitUsage, []string{`did you mean "rerank.keep"`}},
		{"an open address", []string{"serve", "--listen", "0.0.0.0:0"}, exitUsage, []string{"no authentication", "--allow-remote"}},
		{"no address", []string{"serve", "--listen", "8080"}, exitUsage, []string{"address:port"}},
		{"endpoint without model", []string{"ingest", "docs", "--set", "embed.url=http://127.0.0.1:1/v1"}, exitUsage, []string{"embed.model"}},
		{"unknown analyser", []string{"ingest", "docs", "--set", "index.analyzer=klingon"}, exitUsage, []string{"klingon", "cjk"}},
		{"chunk size", []string{"ingest", "docs", "--set", "chunker.size=1"}, exitUsage, []string{"16"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { s.check(t, s.run(tt.args...), tt.code, tt.says...) })
	}
	s.ok("ingest", "docs")
	for name, question := range map[string]string{"empty": "  ", "long": long, "binary": "\xff\xfe\x00"} {
		t.Run("question "+name, func(t *testing.T) { s.check(t, s.run("ask", question), exitUsage, "the question") })
	}
	t.Run("a long question on standard input", func(t *testing.T) { s.check(t, s.runWith(long, "ask", "-"), exitUsage, "at most 8192") })
	t.Run("other settings", func(t *testing.T) {
		s.check(t, s.run("ask", "x", "--set", "chunker.size=64"), exitFailed, "made with other settings", "chunker", "--rebuild")
	})
	t.Run("rebuild", func(t *testing.T) {
		s.ok("ingest", "--rebuild", "docs", "--set", "chunker.size=64")
		s.ok("ask", "how long does a refund take?", "--set", "chunker.size=64")
	})
}

func (s *shell) check(t *testing.T, r result, code int, says ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit %d, want %d: %s", r.code, code, r.errOut)
	}
	for _, want := range says {
		if !strings.Contains(r.errOut, want) {
			t.Errorf("the error does not contain %q: %s", want, r.errOut)
		}
	}
}

func TestAnUnwritableDataDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		// Root writes everywhere; a file in the directory's place is refused for everybody.
		s := newShell(t)
		s.docs()
		s.write("data", "a file")
		s.check(t, s.run("ingest", "docs", "--data", "data"), exitFailed, "data")
		return
	}
	s := newShell(t)
	s.docs()
	if err := os.Mkdir("data", 0o500); err != nil {
		t.Fatal(err)
	}
	s.check(t, s.run("ingest", "docs", "--data", "data"), exitFailed, "data", "permission denied")
}

func TestSetTakesTextsAsTheyAre(t *testing.T) {
	s := newShell(t)
	out := s.ok("config", "show", "--set", "embed.query_prefix=query: ", "--set", "ingest.exclude=[a, b]", "--set", "rerank.model=")
	for _, want := range []string{`query_prefix: 'query: '`, "- a\n", "- b\n", `model: ""`} {
		if !strings.Contains(out, want) {
			t.Errorf("the settings lack %q:\n%s", want, out)
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	s := newShell(t)
	s.env["ASSAY_EMBED_API_KEY"] = "sk-very-secret"
	for _, args := range [][]string{{"config", "show"}, {"config", "show", "--json"}} {
		out := s.ok(args...)
		if strings.Contains(out, "sk-") || !strings.Contains(out, "set, ********") {
			t.Errorf("%v: %s", args, out)
		}
	}
}

func TestSecretsAreNotRepeated(t *testing.T) {
	s := newShell(t)
	for _, args := range [][]string{{"config", "show", "--set", "embed.api_key=sk-very-secret"}, {"config", "show", "--set", "rerank.url=http://u:sk-very-secret@127.0.0.1/"}} {
		if r := s.run(args...); strings.Contains(r.out+r.errOut, "sk-very") {
			t.Errorf("%v: %s%s", args, r.out, r.errOut)
		}
	}
}

func TestWhatConfigShowPrintsIsAConfiguration(t *testing.T) {
	s := newShell(t)
	first := s.ok("config", "show", "--set", "rerank.keep=7")
	s.write("assay.yaml", first)
	second := s.ok("config", "show")
	if !strings.Contains(second, "# in force: assay.yaml") || !strings.Contains(second, "keep: 7") {
		t.Errorf("read back: %s", second)
	}
	_, a, _ := strings.Cut(first, "collection:")
	_, b, _ := strings.Cut(second, "collection:")
	if a != b {
		t.Errorf("the settings changed:\n%s\n%s", a, b)
	}
}

// endpoint is an embeddings endpoint that misbehaves in one way.
func endpoint(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func TestEndpointsThatMisbehaveAreNamed(t *testing.T) {
	reply := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	tests := []struct {
		name   string
		handle http.HandlerFunc
		says   string
	}{
		{"401", reply(401, "application/json", `{"error":{"message":"bad key sk-very-secret"}}`), "401"},
		{"429", reply(429, "application/json", `{"error":{"message":"slow down"}}`), "429"},
		{"500", reply(500, "text/plain", "oops"), "500"},
		{"HTML", reply(200, "text/html", "<html><body>Welcome to the proxy</body></html>"), "Welcome"},
		{"half a JSON", reply(200, "application/json", `{"data":[{"index":0,"embedding":[0.1,`), "JSON"},
		{"too few vectors", reply(200, "application/json", `{"data":[]}`), "0"},
		{"NaN", reply(200, "application/json", `{"data":[{"index":0,"embedding":[1e999]},{"index":1,"embedding":[1]}]}`), ""},
		{"nothing", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // a server notices that its client has gone only after the body
			<-r.Context().Done()
		}, "deadline"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newShell(t)
			s.docs()
			s.env["ASSAY_EMBED_API_KEY"] = "sk-very-secret"
			url := endpoint(t, tt.handle)
			r := s.run("ingest", "docs", "--set", "embed.url="+url, "--set", "embed.model=m", "--set", "embed.max_attempts=1", "--set", "embed.timeout=300ms")
			s.check(t, r, exitFailed, url, "run the same command again", tt.says)
			if strings.Contains(r.errOut+r.out, "sk-very") {
				t.Errorf("the key is in the output: %s", r.errOut)
			}
		})
	}
}

func TestDemo(t *testing.T) {
	s := newShell(t)
	out := s.ok("demo", "--no-serve")
	for _, want := range append([]string{"100 added", "Manifest m_", "Sources", "0 skipped"}, demoQuestions...) {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not show %q", want)
		}
	}
	if line := wide(out); line != "" {
		t.Errorf("wider than %d columns: %s", pageWidth, line)
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
		t.Errorf("the demo left something behind: %v, %v", entries, err)
	}
}

func TestCommandsHaveExamples(t *testing.T) {
	s := newShell(t)
	for _, name := range []string{"ingest", "delete", "reindex", "stats", "check", "backup", "restore", "ask", "search", "serve", "manifest", "demo", "version", "eval retrieval", "config show"} {
		if out := s.ok(append(strings.Fields(name), "--help")...); !strings.Contains(out, "Examples:") {
			t.Errorf("assay %s --help has no example", name)
		}
	}
	if out := s.ok("completion", "bash"); !strings.Contains(out, "assay") {
		t.Error("there is no completion for bash")
	}
}

func TestEveryKeyIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	var settings map[string]any
	if err := json.Unmarshal([]byte(s.ok("config", "show", "--json")), &settings); err != nil {
		t.Fatal(err)
	}
	keys := 0
	for section, value := range settings {
		fields, ok := value.(map[string]any)
		if !ok || section == "secrets" {
			continue
		}
		for key := range fields {
			keys++
			if !bytes.Contains(page, []byte("`"+section+"."+key+"`")) {
				t.Errorf("docs/configuration.md does not explain %s.%s", section, key)
			}
		}
	}
	if keys < 40 {
		t.Errorf("only %d keys were found", keys)
	}
}
