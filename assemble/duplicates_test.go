package assemble

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"assay"
)

const guarantee = "Ferrywire delivers every accepted event at least once. Accepted means that the publish call came back " +
	"with status 202 and an event id; anything else means that you do not know, and you should publish again with the same key. " +
	"A consumer must be able to see the same event id twice and do nothing the second time. Keep the ids for at least 48 hours."

func TestNearDuplicatesCollapseToTheBest(t *testing.T) {
	quoted := "> " + strings.ReplaceAll(guarantee, ". ", ".\n>\n> ")
	tests := []struct {
		name  string
		texts []string
		want  string
	}{
		{"a quotation with a line above it", []string{guarantee, "Learn these rules by heart.\n\n" + quoted}, "c1 kept, c2 duplicate of c1"},
		{"two pages that quote a third", []string{"Read this first.\n\n" + quoted, "The rules of the cloud.\n\n" + quoted}, "c1 kept, c2 duplicate of c1"},
		{"other case and markup", []string{guarantee, "**" + strings.ToUpper(guarantee) + "**"}, "c1 kept, c2 duplicate of c1"},
		{"a part of a better passage", []string{guarantee, guarantee[:180]}, "c1 kept, c2 duplicate of c1"},
		{"a passage that says more than a better one", []string{guarantee[:180], guarantee}, "c1 kept, c2 kept"},
		{"another number", []string{guarantee, strings.Replace(guarantee, "48", "72", 1)}, "c1 kept, c2 kept"},
		{"another currency", []string{"It costs $5. " + guarantee, "It costs €5. " + guarantee}, "c1 kept, c2 kept"},
		{"the opposite", []string{guarantee, strings.Replace(guarantee, "you should publish", "you should not publish", 1)}, "c1 kept, c2 kept"},
		{"the same subject", []string{guarantee, "Ferrywire keeps order inside one ordering key. Events elsewhere may overtake each other."}, "c1 kept, c2 kept"},
		{"short texts", []string{"See above.", "See above", "See below."}, "c1 kept, c2 duplicate of c1, c3 kept"},
		{"texts without words", []string{"---", "***", "---"}, "c1 kept, c2 kept, c3 duplicate of c1"},
		{"signs without spaces", []string{"返金は承認から五営業日以内に行われます。", "返金は、承認から五営業日以内に行われます", "返金は行われません。"}, "c1 kept, c2 duplicate of c1, c3 kept"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var list []assay.Candidate
			for i, text := range tt.texts {
				list = append(list, candidate(fmt.Sprint("c", i+1), fmt.Sprint("d", i), text))
			}
			r := rules(10, 10000)
			r.NearDuplicates = Options{}.WithDefaults().NearDuplicates
			if got := fates(Select(list, r)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestDuplicatesAreKeptOnRequestAndNearOnesWithoutAShare(t *testing.T) {
	list := []assay.Candidate{candidate("c1", "a", guarantee), candidate("c2", "b", guarantee), candidate("c3", "c", "> "+guarantee)}
	r := rules(10, 10000)
	if got, want := fates(Select(list, r)), "c1 kept, c2 duplicate of c1, c3 kept"; got != want {
		t.Errorf("equal texts alone: %s", got)
	}
	r.NearDuplicates, r.KeepDuplicates = 0.8, true
	if got, want := fates(Select(list, r)), "c1 kept, c2 kept, c3 kept"; got != want {
		t.Errorf("all on request: %s", got)
	}
}

func TestAPartOfAPassageThatDoesNotFitIsNoDuplicateOfIt(t *testing.T) {
	r := rules(10, 40)
	r.NearDuplicates = 0.8
	list := []assay.Candidate{candidate("c1", "a", guarantee), candidate("c2", "b", guarantee[:180])}
	if got, want := fates(Select(list, r)), "c1 over_budget, c2 kept"; got != want {
		t.Errorf("got %s", got)
	}
}

// What is dropped as a duplicate shares as many shingles with the passage that it is a duplicate of
// as was asked for, and that passage ranks before it.
func TestDuplicatesHoldTheirShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []assay.Candidate
		byID := make(map[string]int)
		for i := range rapid.IntRange(0, 20).Draw(t, "n") {
			words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "not", "7"}), 0, 12).Draw(t, "words")
			list = append(list, candidate(fmt.Sprint("c", i), "d", strings.Join(words, " ")))
			byID[list[i].ChunkID] = i
		}
		r := rules(rapid.IntRange(1, 20).Draw(t, "keep"), 1000)
		r.NearDuplicates = rapid.Float64Range(minShare, 1).Draw(t, "share")
		for i, c := range Select(list, r).Candidates {
			if c.Reason != assay.DropDuplicate {
				continue
			}
			of := byID[c.Of]
			mine, better := shingles(comparable(c.Text)), shingles(comparable(list[of].Text))
			shared := 0
			for s := range mine {
				if better[s] {
					shared++
				}
			}
			if of >= i || float64(shared) < r.NearDuplicates*float64(len(mine)) {
				t.Fatalf("%q is dropped for %q: %d of %d are shared", c.Text, list[of].Text, shared, len(mine))
			}
		}
	})
}

// A thousand passages that share much of their text are the worst case.
func BenchmarkSelectThousand(b *testing.B) {
	var list []assay.Candidate
	for i := range 1000 {
		text := guarantee
		for j := range 100 {
			text += fmt.Sprintf(" word%d%c", i, 'a'+j%26)
		}
		list = append(list, candidate(fmt.Sprint("c", i), "d", text))
	}
	r := rules(1000, 1<<30)
	r.NearDuplicates = 0.8
	for b.Loop() {
		Select(list, r)
	}
}
