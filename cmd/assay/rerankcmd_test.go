package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// command runs one command line with a key in the environment.
func command(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	root := newRoot(&env{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(name string) string {
		return map[string]string{"ASSAY_RERANK_API_KEY": "sk-secret-key"}[name]
	}})
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	code = exitCode(root.ExecuteContext(context.Background()), &errs)
	return out.String(), errs.String(), code
}

// reranker answers in Infinity's dialect; it prefers texts with a word.
func reranker(t *testing.T, word string) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Documents []string `json:"documents"`
			RawScores *bool    `json:"raw_scores"`
		}
		if r.Header.Get("Authorization") != "Bearer sk-secret-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if json.NewDecoder(r.Body).Decode(&body) != nil || r.URL.Path != "/rerank" || body.RawScores == nil || body.Documents == nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"detail":[{"msg":"Field required","loc":["body","raw_scores"]}]}`)
			return
		}
		var items []string
		for i, d := range body.Documents {
			score := 0.125
			if strings.Contains(d, word) {
				score = 0.875
			}
			items = append(items, fmt.Sprintf(`{"index":%d,"relevance_score":%v}`, i, score))
		}
		fmt.Fprintf(w, `{"object":"rerank","results":[%s]}`, strings.Join(items, ","))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestRerankCheckSaysWhichDialectAnswers(t *testing.T) {
	url := reranker(t, "business days")
	out, errs, code := command("rerank", "check", "--url", url, "--candidates", "4,40", "--runs", "2")
	if code != exitOK || errs != "" {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	for _, want := range []string{"tei       http_error", "Field required", "dialect   infinity at " + url + "/rerank", "scale     sigmoid", "0.875 for the text that answers, 0.125",
		"right text ranks first", "set rerank.dialect: infinity", "latency = ", "for each candidate (R2 ", "retriever.depth is 50"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}

	out, _, code = command("rerank", "check", "--url", url, "--dialect", "infinity", "--candidates", "4,40", "--runs", "2", "--json")
	var got rerankChecked
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	if got.Dialect != "infinity" || len(got.Trials) != 1 || !got.RelevantFirst || got.Cost == nil || got.Cost.Outcomes != 4 || len(got.Cost.Points) != 2 || got.Cost.ChunkTokens != 256 {
		t.Errorf("%s", out)
	}
}

func TestRerankCheckFailsWhereTheRerankerDoes(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	wrong := reranker(t, "parking")
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "no access with "+r.Header.Get("Authorization"))
	}))
	defer refusing.Close()
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{nil, exitUsage, "--url http://"},
		{[]string{"--url", gone.URL}, exitFailed, "check that it runs"},
		{[]string{"--url", wrong}, exitFailed, "does not answer the question ranks first"},
		{[]string{"--url", refusing.URL}, exitFailed, "check the reranker's API key"},
		{[]string{"--url", wrong, "--dialect", "klingon"}, exitUsage, "must be one of cohere, infinity, jina, llamacpp, tei, vllm"},
		{[]string{"--url", wrong, "--dialect", "jina"}, exitUsage, "rerank.model"},
		{[]string{"--url", wrong, "--candidates", "10"}, exitUsage, "two numbers or more"},
		{[]string{"--url", wrong, "--candidates", "1,100000", "--runs", "0", "--timeout", "-1s"}, exitUsage, "--runs"},
	} {
		out, errs, code := command(append([]string{"rerank", "check"}, tc.args...)...)
		if code != tc.code || !strings.Contains(errs, tc.says) {
			t.Errorf("%v: exit code %d: %s%s", tc.args, code, out, errs)
		}
		if strings.Contains(out+errs, "sk-secret") {
			t.Errorf("%v: the key is shown: %s%s", tc.args, out, errs)
		}
	}
}

func TestDeadlinesMustHoldTheirStages(t *testing.T) {
	for _, tc := range []struct {
		sets []string
		says string // "" when they do
	}{
		{nil, ""},
		{[]string{"server.request_timeout=3s"}, ""},
		{[]string{"server.request_timeout=3s", "rerank.url=http://h"}, "retriever.timeout 2s + rerank.timeout 1s = 3s"},
		{[]string{"rerank.url=http://h", "rerank.timeout=88s"}, "server.request_timeout (1m30s)"},
		{[]string{"generate.url=http://h", "generate.model=m", "generate.timeout=89s"}, "generate.timeout 1m29s"},
		{[]string{"rerank.timeout=0s"}, "rerank.timeout is 0s"},
	} {
		_, _, err := loadConfig("", tc.sets)
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%v: %v", tc.sets, err)
		}
	}
}
