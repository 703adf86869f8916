package eval

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestMalformedLinesAreRefusedByFileAndLine(t *testing.T) {
	readers := map[string]func(string) error{
		"run":     func(s string) error { _, err := ReadRun("f", strings.NewReader(s)); return err },
		"qrels":   func(s string) error { _, err := ReadQrels("f", strings.NewReader(s)); return err },
		"dataset": func(s string) error { _, err := ReadDataset("f", strings.NewReader(s)); return err },
	}
	for _, c := range []struct {
		reader, text string
		line         int
		says         string
	}{
		{"run", "q Q0 d 1 0.5 r\nq Q0 e 2 0.4\n", 2, "5 columns"},
		{"run", "q Q0 d 1 NaN r\n", 1, "not a finite number"},
		{"run", "q Q0 d 1 1e999 r\n", 1, "not a finite number"},
		{"run", "q Q0 d 1 0.5 r\n\n# note\nq Q0 d 2 0.4 r\n", 4, "ranked twice"},
		{"run", "q Q0 d 1 0.5 \xff\n", 1, "UTF-8"},
		{"run", "q Q0 d 1 0.5 r\n" + strings.Repeat("x", MaxLine+1), 2, "longer than"},
		{"qrels", "q 0 d 1\nq 0 d\n", 2, "3 columns"},
		{"qrels", "q 0 d 1.5\n", 1, "whole number"},
		{"qrels", "q 0 d 1\nq 0 d 2\n", 2, "grade 2"},
		{"qrels", "query-id\tcorpus-id\tscore\nq\td\t1\nq\td e\n", 3, "2 columns"},
		{"qrels", "query-id\tcorpus-id\tscore\nq\t\t1\n", 2, "empty"},
		{"qrels", "q\td\tx\n", 1, "whole number"},
		{"qrels", "q 0 d 99999999999999999999\n", 1, "whole number"},
		{"dataset", `{"id":"a","text":"t"}` + "\n" + `{"id":"a","text":"t"}`, 2, "already on line 1"},
		{"dataset", `{"id":"a","text":"t","evidnce":[]}`, 1, "evidnce"},
		{"dataset", `{"id":"a","text":"t"} {}`, 1, "more than one"},
		{"dataset", `{"id":"","text":" "}`, 1, "text is empty"},
		{"dataset", `{"id":"a","text":"t","evidence":[{"doc":"d","quote":"x","start":1,"end":2}]}`, 1, "not both"},
		{"dataset", `{"id":"a","text":"t","evidence":[{"doc":"d","start":1}]}`, 1, "start and end"},
		{"dataset", `{"id":"a","text":"t","evidence":[{"doc":"d","start":5,"end":5}]}`, 1, "empty or negative"},
		{"dataset", `{"id":"a","text":"t","evidence":[{"doc":"d","quote":" \n"}]}`, 1, "blank"},
		{"dataset", `{"id":"a","text":"t","evidence":[{}]}`, 1, "doc or chunk"},
		{"dataset", `{"id":"a","text":"t","evidence":[{"chunk":"c","doc":"d"}]}`, 1, "stands alone"},
		{"dataset", `{"id":"a","text":"t","evidence":[{"chunk":"c","grade":0}]}`, 1, "grade 0"},
		{"dataset", `{"id":"a","text":"t","unanswerable":true,"evidence":[{"doc":"d"}]}`, 1, "unanswerable"},
		{"dataset", `{"id":"a","text":`, 1, "unexpected EOF"},
	} {
		err := readers[c.reader](c.text)
		var at *LineError
		if !errors.As(err, &at) || at.File != "f" || at.Line != c.line || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %q: %v, want line %d and %q", c.reader, clip(c.text, 60), err, c.line, c.says)
		}
	}
}

func TestReadersAcceptWhatPeopleHave(t *testing.T) {
	run, err := ReadRun("f", strings.NewReader("\ufeffq\tQ0\td\t7\t 0.5\tmine and junk\r\n# a comment\r\n\r\nq Q0 e 1 0.75 mine\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []Ranked{{DocID: "e", Score: .75}, {DocID: "d", Score: .5}}; run.Name != "mine" || !reflect.DeepEqual(run.Lists["q"], want) {
		t.Errorf("run %+v", run)
	}
	want := Qrels{"q 1": {"http://x/#a b": 2, "d": 0}}
	for _, text := range []string{"query-id\tcorpus-id\tscore\r\nq 1\thttp://x/#a b\t2\r\nq 1\td\t0\r\n", "q 1\td\t0\nq 1\td\t0\nq 1\thttp://x/#a b\t2"} {
		if got, err := ReadQrels("f", strings.NewReader(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got, err := ReadQrels("f", strings.NewReader("q\t0\td\t-1\nq 0  e 1\n")); err != nil || !reflect.DeepEqual(got, Qrels{"q": {"d": -1, "e": 1}}) {
		t.Errorf("TREC judgments: %v, %v", got, err)
	}
	if got, err := ReadQrels("f", strings.NewReader("")); err != nil || len(got) != 0 {
		t.Errorf("an empty file: %v, %v", got, err)
	}
}

func TestRunsSurviveWriting(t *testing.T) {
	run := &Run{Name: "my run", Lists: map[string][]Ranked{
		"q2": {{DocID: "a", Score: 1. / 3}, {DocID: "b", Score: 1. / 3}},
		"q1": {{DocID: "d", ChunkID: "c_1", Score: -1e-300}},
	}}
	var b bytes.Buffer
	if err := WriteRun(&b, run); err != nil {
		t.Fatal(err)
	}
	want := "q1 Q0 c_1 1 -1e-300 my_run\nq2 Q0 b 1 0.3333333333333333 my_run\nq2 Q0 a 2 0.3333333333333333 my_run\n"
	if b.String() != want {
		t.Errorf("wrote\n%swant\n%s", b.String(), want)
	}
	if err := WriteRun(&b, &Run{Lists: map[string][]Ranked{"q": {{DocID: "a b"}}}}); err == nil || !strings.Contains(err.Error(), `"a b"`) {
		t.Errorf("an ID with a space: %v", err)
	}
}

// writeCollection makes a BEIR folder.
func writeCollection(t *testing.T, corpus, queries, qrels string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels.tsv": qrels} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	smallCorpus  = `{"_id":"http://x/#a","title":"A","text":"first","metadata":{"year":2020}}` + "\n" + `{"_id":"b<::>1","title":"","text":""}` + "\n"
	smallQueries = `{"_id":"1","text":"one"}` + "\n" + `{"_id":"2","text":"two","extra":true}` + "\n"
	smallQrels   = "query-id\tcorpus-id\tscore\n1\thttp://x/#a\t2\n1\tb<::>1\t0\n"
)

func TestCollectionsInTheBEIRLayout(t *testing.T) {
	c, err := OpenCollection(writeCollection(t, smallCorpus, smallQueries, smallQrels), "")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for doc, err := range c.Documents() {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, doc.ID+"|"+doc.Title+"|"+doc.Text+"|"+doc.Metadata.Get("year"))
	}
	if got := strings.Join(ids, " "); got != "http://x/#a|A|first|2020 b<::>1|||" {
		t.Errorf("documents %s", got)
	}
	ds, err := c.Dataset()
	if err != nil {
		t.Fatal(err)
	}
	if len(ds.Queries) != 2 || len(ds.Queries[0].Evidence) != 2 || len(ds.Queries[1].Evidence) != 0 {
		t.Errorf("queries %+v", ds.Queries)
	}
}

func TestBrokenCollectionsAreRefused(t *testing.T) {
	for _, c := range []struct{ name, corpus, queries, qrels, says string }{
		{"query that nobody asks", smallCorpus, smallQueries, smallQrels + "3\tb<::>1\t1\n", `first "3"`},
		{"document twice", smallCorpus + smallCorpus, smallQueries, smallQrels, "corpus.jsonl:3"},
		{"no ID", `{"text":"x"}`, smallQueries, smallQrels, "corpus.jsonl:1"},
		{"no JSON", smallCorpus, smallQueries + "{", smallQrels, "queries.jsonl:3"},
	} {
		col, err := OpenCollection(writeCollection(t, c.corpus, c.queries, c.qrels), "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = col.Dataset()
		for _, docErr := range col.Documents() {
			err = errors.Join(err, docErr)
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.says)
		}
	}
	if _, err := OpenCollection(t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "qrels.tsv") {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestDatasetHashIgnoresTheOrderOfLines(t *testing.T) {
	read := func(text string) *Dataset {
		ds, err := ReadDataset("f", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	a, b := `{"id":"a","text":"t","evidence":[{"doc":"d"}]}`, `{"id":"b","text":"u"}`
	if read(a+"\n"+b).Hash() != read(b+"\n"+a).Hash() {
		t.Error("the order of lines changes the hash")
	}
	if read(a).Hash() == read(strings.Replace(a, `"d"`, `"e"`, 1)).Hash() {
		t.Error("another label has the same hash")
	}
}

func FuzzReadRun(f *testing.F) {
	f.Add("q Q0 d 1 0.5 r\nq Q0 e 2 0.4 r\n")
	f.Add("\ufeffq\tQ0\td\t1\t1e-5\tr junk\r\n# x\n")
	f.Fuzz(func(t *testing.T, text string) {
		run, err := ReadRun("f", strings.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteRun(&b, run); err != nil {
			if strings.Contains(err.Error(), "cannot stand") {
				return // a document may begin with #, since only lines are comments
			}
			t.Fatal(err)
		}
		again, err := ReadRun("f", &b)
		if err != nil || (len(run.Lists) > 0 && !reflect.DeepEqual(again.Lists, run.Lists)) {
			t.Fatalf("%q became %+v, then %+v, %v", text, run, again, err)
		}
	})
}

func FuzzReadQrels(f *testing.F) {
	f.Add("q 0 d 1\nq 0 e 0\n")
	f.Add("query-id\tcorpus-id\tscore\nq\td\t1\n")
	f.Fuzz(func(t *testing.T, text string) {
		qrels, err := ReadQrels("f", strings.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteQrels(&b, qrels); err != nil {
			return // BEIR's names may hold spaces
		}
		again, err := ReadQrels("f", &b)
		if err != nil || !reflect.DeepEqual(again, qrels) {
			t.Fatalf("%q became %v, then %v, %v", text, qrels, again, err)
		}
	})
}

func FuzzReadDataset(f *testing.F) {
	f.Add(`{"id":"q17","text":"how?","reference":"so","evidence":[{"doc":"a.md","quote":"Drain the node"},{"doc":"a.md","start":1840,"end":2011},{"chunk":"c_9f2e"},{"doc":"faq#12"}],"grade":2,"slices":["runbook"]}`)
	f.Add(`{"id":"a","text":"t","metadata":{"x":[1,{"y":null}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		ds, err := ReadDataset("f", strings.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteDataset(&b, ds); err != nil {
			t.Fatal(err)
		}
		again, err := ReadDataset("f", &b)
		if err != nil || again.Hash() != ds.Hash() {
			t.Fatalf("%q became %+v, then %+v, %v", text, ds, again, err)
		}
	})
}

func FuzzCorpusLine(f *testing.F) {
	f.Add(`{"_id":"a","title":"t","text":"x","metadata":{"k":"v"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		for l, err := range lines("f", strings.NewReader(text)) {
			if err != nil {
				return
			}
			if record, err := parseBEIR(l, map[string]int{}); err == nil && record.ID == "" {
				t.Fatalf("%q has no ID", l.data)
			}
		}
	})
}
