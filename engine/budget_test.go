package engine

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"assay"
	"assay/assemble"
	"assay/chunker"
	"assay/generate"
)

// chatServer answers like a chat endpoint and hands the contents of each request's messages to see.
func chatServer(t *testing.T, text string, see func(contents []string)) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Messages []struct{ Content string } }
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(data, &body)
		}
		if err != nil {
			t.Error(err)
		}
		var contents []string
		for _, m := range body.Messages {
			contents = append(contents, m.Content)
		}
		see(contents)
		delta, _ := json.Marshal(text) // a string can always be written
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%s},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", delta)
	}))
	t.Cleanup(srv.Close)
	return srv
}

func newChat(t *testing.T, url string, count func(string) int) *generate.Endpoint {
	t.Helper()
	e, err := generate.NewEndpoint(nil, generate.EndpointOptions{URL: url, Model: "m", Count: count})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The prompt that goes out is counted as the service gets it, over documents, questions, histories
// and budgets of many kinds.
func TestThePromptNeverExceedsTheBudget(t *testing.T) {
	chunks, err := chunker.New(chunker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	count := chunks.Tokenizer().Count
	rng := rand.New(rand.NewPCG(1, 2))
	parts := []string{"key ", "rotate ", "The signing key is old. ", "\n\n", "\n- item ", "返金は五日。", "[1] ", "</source> ", "```\n", "| a | b |\n", "0123456789 ",
		"ÄÖÜß ", "🙂", "don't ", "https://example.com/a?b=c ", "    ", "\t", "x", "AbCdEf", "..."}
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		return b.String()
	}
	docs := fstest.MapFS{}
	for i := range 30 {
		docs[fmt.Sprintf("d%d.md", i)] = &fstest.MapFile{Data: []byte(fmt.Sprintf("# Key %d %s\n\nThe key. %s\n", i, strings.ReplaceAll(text(3), "\n", " "), text(10+rng.IntN(400))))}
	}
	sent := 0
	srv := chatServer(t, "Yes.", func(contents []string) {
		sent = 0
		for _, c := range contents {
			sent += count(c) + 4 // what the chat format adds to a message
		}
	})
	dir := t.TempDir()
	used, cut := 0, 0
	for i, budget := range []int{300, 500, 800, 1000, 1500, 2500, 4000} {
		for _, g := range []Generator{newChat(t, srv.URL, count), generate.NewExtractive(nil, generate.ExtractiveOptions{Count: count})} {
			order := []assemble.Order{assemble.BestFirst, assemble.Edges}[i%2]
			t.Run(fmt.Sprint(budget, " ", g.Model()), func(t *testing.T) {
				w := newWorld(t, setup{dir: dir, generator: g, options: Options{Rewrite: RewriteRule, Assemble: assemble.Options{Budget: budget, Order: order}}})
				w.ingest(t, docs, IngestOptions{})
				for n := range 4 {
					q := assay.Query{Text: "how do I rotate the signing key " + text(1+n*5), Keep: 1 + rng.IntN(20)}
					for turn := range n {
						q.History = append(q.History, assay.Message{Role: []string{"user", "assistant"}[turn%2], Content: text(1 + rng.IntN(60))})
					}
					sent = 0
					answer, err := w.Answer(t.Context(), q, nil)
					if err != nil {
						t.Fatal(err)
					}
					m := answer.Manifest
					if sent > budget || m.Prompt.Tokens > budget {
						t.Errorf("a prompt of %d tokens, by our own count %d, is over the budget of %d", sent, m.Prompt.Tokens, budget)
					}
					used = max(used, 100*m.Prompt.Tokens/budget)
					matched := make(map[string]assay.Span)
					for _, c := range m.Candidates {
						matched[c.ChunkID] = c.Span
					}
					for _, p := range m.Context.Passages {
						if p.Span != matched[p.ChunkID] {
							cut++
						}
					}
				}
			})
		}
	}
	if used < 80 || cut == 0 {
		t.Errorf("the fullest prompt takes %d%% of its budget and %d passages were cut: the test does not reach the bounds", used, cut)
	}
}
