package embed

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTooLongTextsAreCutAndCounted(t *testing.T) {
	f := newFakeServer(t)
	f.broken = answerWithoutUsage
	words := func(text string) int { return len(strings.Fields(text)) }
	cut := func(text string, max int) string { return strings.Join(strings.Fields(text)[:max], " ") }
	for _, c := range []struct {
		name   string
		change func(*EndpointOptions)
		text   string
		want   string
	}{
		{"by the given tokenizer", func(o *EndpointOptions) { o.Count, o.Truncate, o.MaxInputTokens = words, cut, 3 }, "a b c d e", "p: a b"},
		{"by bytes", func(o *EndpointOptions) { o.MaxInputTokens = 4 }, "abcdefgh", "p: abcde"},
		{"between two characters", func(o *EndpointOptions) { o.MaxInputTokens = 4 }, "abcdéfgh", "p: abcd"},
		{"not at all", func(o *EndpointOptions) { o.MaxInputTokens = 4 }, "abcde", "p: abcde"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newTestEndpoint(t, f, c.change, func(o *EndpointOptions) { o.DocumentPrefix = "p: " })
			if _, err := e.EmbedDocuments(t.Context(), []string{c.text}); err != nil {
				t.Fatal(err)
			}
			sent := f.sent()
			if got := sent[len(sent)-1].Input; !slices.Equal(got, []string{c.want}) {
				t.Errorf("sent %q, want %q", got, c.want)
			}
			if got, want := e.Stats().Tokens, int64(e.o.MaxInputTokens); got != want {
				t.Errorf("%d tokens are counted, want %d", got, want)
			}
			want := int64(1)
			if c.name == "not at all" {
				want = 0
			}
			if got := e.Stats().Truncated; got != want {
				t.Errorf("%d truncated, want %d", got, want)
			}
		})
	}
}

func TestTokensAreCountedWhereTheServerDoesNotReportThem(t *testing.T) {
	f := newFakeServer(t)
	f.broken = answerWithoutUsage
	e := newTestEndpoint(t, f)
	if _, err := e.EmbedDocuments(t.Context(), []string{"12345678", "1234"}); err != nil {
		t.Fatal(err)
	}
	if got := e.Stats().Tokens; got != 6 {
		t.Errorf("%d tokens, want 6", got)
	}
}

// The third batch fails at once, while the others take a second: those before it are awaited, and
// none after it is sent.
func TestAFailedBatchLeavesTheVectorsBeforeIt(t *testing.T) {
	for _, concurrency := range []int{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			e, err := NewEndpoint(quiet(), EndpointOptions{
				BaseURL: "http://embed.test", Model: "m", BatchSize: 10, Concurrency: concurrency,
				Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						return nil, err
					}
					if strings.Contains(string(body), "text number 25") {
						return respond(400)(r)
					}
					r.Body = io.NopCloser(bytes.NewReader(body))
					<-time.After(time.Second)
					return well(r)
				}),
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.EmbedDocuments(t.Context(), numbered(1000))
			if err == nil || !strings.Contains(err.Error(), "400 Bad Request: busy") {
				t.Fatalf("error is %v", err)
			}
			checkVectors(t, got, numbered(20), 4)
			// With two at once the fourth may be under way before the third has failed.
			if n := e.Stats().Requests; n < 3 || n > 4 || n > 3 && concurrency != 2 {
				t.Errorf("%d batches were sent though the third failed", n)
			}
		})
	}
}

func TestBatchesAreWithinTheirBoundsAndLeaveNothingOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.SliceOfN(rapid.IntRange(0, 50), 0, 200).Draw(t, "tokens")
		e := &Endpoint{o: EndpointOptions{
			BatchSize:   rapid.IntRange(1, 20).Draw(t, "size"),
			BatchTokens: rapid.IntRange(1, 100).Draw(t, "limit"),
		}}
		next := 0
		for i, b := range e.batches(tokens) {
			if b.start != next || b.end <= b.start {
				t.Fatalf("batch %d is %v, want it to start at %d", i, b, next)
			}
			sum := 0
			for _, n := range tokens[b.start:b.end] {
				sum += n
			}
			if b.end-b.start > e.o.BatchSize || sum > e.o.BatchTokens && b.end-b.start > 1 {
				t.Fatalf("batch %v holds %d tokens", b, sum)
			}
			next = b.end
		}
		if next != len(tokens) {
			t.Fatalf("%d of %d texts are in a batch", next, len(tokens))
		}
	})
}

func FuzzTruncate(f *testing.F) {
	f.Add("über alles", 3)
	f.Add("\xff\x80\x80", 1)
	f.Add("日本語", 1<<62)
	f.Fuzz(func(t *testing.T, text string, max int) {
		if max < 1 {
			return
		}
		got := truncateBytes(text, max)
		if !strings.HasPrefix(text, got) || countBytes(got) > max {
			t.Errorf("%q cut to %d tokens is %q", text, max, got)
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%q was cut inside a character: %q", text, got)
		}
		if countBytes(text) <= max && got != text {
			t.Errorf("%q was cut though it has no more than %d tokens", text, max)
		}
	})
}

func BenchmarkEmbedDocuments(b *testing.B) {
	for _, n := range []int{64, 1024} {
		b.Run(fmt.Sprintf("texts=%d", n), func(b *testing.B) {
			e, err := NewEndpoint(quiet(), EndpointOptions{BaseURL: "http://embed.test", Model: "m", Transport: roundTrip(well)})
			if err != nil {
				b.Fatal(err)
			}
			texts := numbered(n)
			for b.Loop() {
				if _, err := e.EmbedDocuments(b.Context(), texts); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "texts/s")
		})
	}
}
