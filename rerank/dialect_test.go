package rerank

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"assay"
)

// exchange is one file of testdata: what is sent to a service and what it answers.
type exchange struct {
	Dialect   Dialect         `json:"dialect"`
	Path      string          `json:"path"`
	Model     string          `json:"model"`
	MaxTokens int             `json:"max_tokens"`
	Request   json.RawMessage `json:"request"`
	Status    int             `json:"status"`
	Response  json.RawMessage `json:"response"`

	Outcome assay.RerankStatus `json:"outcome"`
	Scores  []float64          `json:"scores"`
	Says    string             `json:"says"` // part of the reason
}

func TestExchangesOfEachDialect(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no exchange in testdata: %v", err)
	}
	ranked := make(map[Dialect]bool)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var x exchange
			if err := json.Unmarshal(data, &x); err != nil {
				t.Fatal(err)
			}
			ranked[x.Dialect] = ranked[x.Dialect] || x.Outcome == assay.RerankOK
			x.play(t)
		})
	}
	for _, d := range Dialects() {
		if !ranked[d] {
			t.Errorf("there is no ranking of the dialect %s in testdata", d)
		}
	}
}

func (x exchange) play(t *testing.T) {
	var path, auth string
	var sent any
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, auth = r.URL.Path, r.Header.Get("Authorization")
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		w.WriteHeader(x.Status)
		_, _ = w.Write(x.Response)
	}))
	defer srv.Close()
	c, err := New(nil, Options{
		URL: srv.URL, Dialect: x.Dialect, Model: x.Model, APIKey: secret, Timeout: 10 * time.Second, MaxAttempts: 1,
		MaxTokens: x.MaxTokens, Truncate: func(s string, _ int) string { return s },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	o := c.Rerank(t.Context(), "how long does a refund take?",
		[]string{"Keys are rotated every year.", "A refund takes five days.", "Refunds are not given for add-ons."}, 1)
	var want any
	if err := json.Unmarshal(x.Request, &want); err != nil {
		t.Fatal(err)
	}
	if path != x.Path || auth != "Bearer "+secret || !reflect.DeepEqual(sent, want) {
		t.Errorf("sent to %s with %q: %v\nwant to %s: %v", path, auth, sent, x.Path, want)
	}
	if o.Status != x.Outcome || o.Status == assay.RerankOK && !reflect.DeepEqual(o.Scores, x.Scores) || !strings.Contains(o.Reason, x.Says) {
		t.Errorf("status %q, scores %v, reason %q", o.Status, o.Scores, o.Reason)
	}
}

// speaks returns a server that understands one dialect alone, and scores as that dialect does.
func speaks(t *testing.T, d Dialect, reverse bool) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known, _ := d.wire()
		data, _ := io.ReadAll(r.Body)
		var body map[string]any
		_ = json.Unmarshal(data, &body)
		var o Options
		o.Model, _ = body["model"].(string)
		texts := textsIn(body["texts"])
		if texts == nil {
			texts = textsIn(body["documents"])
		}
		query, _ := body["query"].(string)
		expect, _ := json.Marshal(known.body(&o, query, texts))
		if r.URL.Path != known.path || string(expect) != string(data) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		var items []string
		for i, text := range texts {
			score := 0.1
			if (text == checkRelevant) != reverse {
				score = 0.9
			}
			if known.scale == Logit {
				score = 20*score - 10
			}
			items = append(items, fmt.Sprintf(`{"index":%d,"relevance_score":%v}`, i, score))
		}
		fmt.Fprintf(w, `{"results":[%s]}`, strings.Join(items, ","))
	}))
	t.Cleanup(srv.Close)
	return srv
}

func textsIn(v any) (out []string) {
	list, _ := v.([]any)
	for _, e := range list {
		s, _ := e.(string)
		out = append(out, s)
	}
	return out
}

func TestCheckFindsTheDialectThatAnswers(t *testing.T) {
	for _, d := range Dialects() {
		for _, first := range []Dialect{"", d} {
			f, err := Check(t.Context(), nil, Options{URL: speaks(t, d, false).URL, Model: "ce", Dialect: first, Timeout: 10 * time.Second})
			if err != nil || f.Dialect != d || f.Scale != d.Scale() || !f.RelevantFirst || f.OffScale || f.LatencyMS <= 0 {
				t.Errorf("%s, %q first: %+v, %v", d, first, f, err)
			}
			if first == d && len(f.Trials) != 1 {
				t.Errorf("%s: the configured dialect was not tried first: %+v", d, f.Trials)
			}
		}
	}
}

func TestCheckSeesAServiceThatRanksTheWrongTextFirst(t *testing.T) {
	f, err := Check(t.Context(), nil, Options{URL: speaks(t, TEI, true).URL, Timeout: 10 * time.Second})
	if err != nil || f.Dialect != TEI || f.RelevantFirst {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestCheckPrefersTheDialectWhoseScaleHoldsTheScores(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `[{"index":0,"score":-4.5},{"index":1,"score":3}]`) // whatever it is asked
	}))
	defer srv.Close()
	f, err := Check(t.Context(), nil, Options{URL: srv.URL, Model: "ce"})
	if err != nil || f.Dialect != LlamaCPP || f.OffScale || !strings.Contains(f.Trials[0].Reason, "not on its scale") {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestCheckExplainsAServiceThatNoDialectReaches(t *testing.T) {
	tries := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tries++; w.WriteHeader(http.StatusUnauthorized) }))
	f, err := Check(t.Context(), nil, Options{URL: srv.URL})
	if err == nil || !strings.Contains(err.Error(), "API key") || f.Dialect != "" || len(f.Trials) != len(Dialects()) || tries != 4 {
		t.Errorf("refused: %+v, %v after %d calls", f, err, tries) // without a model, two dialects cannot be tried
	}
	srv.Close()
	f, err = Check(t.Context(), nil, Options{URL: srv.URL})
	if err == nil || !strings.Contains(err.Error(), "check that it runs") || len(f.Trials) != 1 {
		t.Errorf("gone: %+v, %v", f, err)
	}
}
