package assemble

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"assay"
)

func TestTheBestPassageIsCutWhenNoneFits(t *testing.T) {
	long := candidate("c1", "a", "Rotate the key. Then retire the old one. Tell the desk about it.")
	long.Span = assay.Span{Start: 100, End: 100 + len(long.Text)}
	long.Tokens = len(strings.Fields(long.Text))
	for _, tt := range []struct {
		name string
		list []assay.Candidate
		room int
		want string
		sent string
	}{
		{"two sentences fit", []assay.Candidate{long}, 10, "c1 kept", "Rotate the key. Then retire the old one."},
		{"one does", []assay.Candidate{long}, 7, "c1 kept", "Rotate the key."},
		{"none does", []assay.Candidate{long}, 3, "c1 over_budget", ""},
		{"another passage fits whole", []assay.Candidate{long, candidate("c2", "b", "It is free.")}, 10, "c1 over_budget, c2 kept", "It is free."},
		{"the best of several is cut", []assay.Candidate{long, candidate("c2", "b", long.Text+" Or not, as we said once before.")}, 10, "c1 kept, c2 over_budget", "Rotate the key. Then retire the old one."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Select(tt.list, rules(5, tt.room))
			if got := fates(s); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			sent := ""
			for _, c := range s.Context {
				sent += c.Text
				if c.ChunkID == "c1" && (c.Span != assay.Span{Start: 100, End: 100 + len(c.Text)} || s.Tokens != len(strings.Fields(sent))) {
					t.Errorf("span %+v, %d tokens", c.Span, s.Tokens)
				}
			}
			if sent != tt.sent || s.Candidates[0].Span != long.Span {
				t.Errorf("sent %q, want %q; the candidate's span is %+v", sent, tt.sent, s.Candidates[0].Span)
			}
		})
	}
}

// Whatever the text and the room: what is sent fits, and is the beginning of the passage up to an
// end of a sentence.
func TestACutFitsAndEndsWithASentence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"key", ".", "? ", " ", "\n\n", "Old", "返金。", "3.5", "```", "e.g. "}), 1, 40).Draw(t, "text"), "")
		r := rules(3, rapid.IntRange(0, 12).Draw(t, "room"))
		s := Select([]assay.Candidate{candidate("c1", "a", text)}, r)
		for _, c := range s.Context {
			if r.Cost(c, 1) > r.Room || !strings.HasPrefix(text, c.Text) || c.Text == "" && text != "" && strings.TrimSpace(text) != "" {
				t.Fatalf("%q of %q was sent into a room of %d", c.Text, text, r.Room)
			}
			if rest := text[len(c.Text):]; rest != "" {
				ends := sentenceEnds(text)
				found := false
				for _, end := range ends {
					found = found || end == len(c.Text)
				}
				if !found {
					t.Fatalf("%q is no end of a sentence of %q", c.Text, text)
				}
			}
		}
	})
}
