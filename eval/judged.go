package eval

import (
	"maps"
	"slices"
)

// What a document's grade is when it has none, as trec_eval tells them apart.
const (
	gradeNotPooled = -1 // nobody looked at it
	gradeUnjudged  = -2 // listed in the judgments with a negative grade: pooled, and not judged
)

// Judged is one query's ranking seen against its judgments: all that a Measure reads.
type Judged struct {
	grades  []int     // by rank: the grade that counts there
	hits    []bool    // by rank: whether the result is relevant
	fresh   []bool    // by rank: whether it covers something that no better one did
	covered []float64 // by rank: how many evidence units are covered up to there
	ideal   []int     // the grades of all that is judged, highest first

	units      int // evidence units: relevant documents, or places in documents
	nonRel     int // judged not relevant
	relevant   int // results that could be relevant: documents, or chunks that cover a unit
	ceilingFor func(k int) int
}

// Judge sees a ranking of documents against graded judgments. Grades of at least level are relevant.
// The ranking is put in the order of Compare; where a document occurs several times, because chunks
// of it were ranked, its best rank stands for it. A depth of 0 or less keeps everything.
func Judge(ranking []Ranked, grades map[string]int, level, depth int) *Judged {
	j := &Judged{}
	for _, grade := range grades {
		switch {
		case grade >= level:
			j.units++
		case grade >= 0:
			j.nonRel++
		}
		if grade >= 0 {
			j.ideal = append(j.ideal, grade)
		}
	}
	j.relevant = j.units
	j.ceilingFor = func(k int) int { return min(k, j.units) }
	j.sortIdeal()
	for _, r := range BestPerDocument(ranking, depth) {
		grade, pooled := grades[r.DocID]
		switch {
		case !pooled:
			grade = gradeNotPooled
		case grade < 0:
			grade = gradeUnjudged
		}
		rel := grade >= level
		j.append(grade, rel, rel, b2f(rel))
	}
	return j
}

// judgeUnits sees a ranking of chunks against evidence units. A chunk is relevant when it covers a
// unit; its grade is the highest among the units that no better chunk has covered, so that the same
// place found twice counts once.
func judgeUnits(ranking []Ranked, q *QueryLabels, depth int) *Judged {
	j := &Judged{units: len(q.Units), relevant: len(q.chunks), ceilingFor: q.ceiling}
	for i := range q.Units {
		j.ideal = append(j.ideal, q.Units[i].Grade)
	}
	j.sortIdeal()
	seen := make([]bool, len(q.Units))
	for _, r := range ordered(ranking, depth) {
		covers, grade, added := q.chunks[r.ChunkID], gradeNotPooled, 0
		for _, u := range covers {
			if !seen[u] {
				seen[u] = true
				added++
				grade = max(grade, q.Units[u].Grade)
			}
		}
		if len(covers) > 0 && added == 0 {
			grade = 0
		}
		j.append(grade, len(covers) > 0, added > 0, float64(added))
	}
	return j
}

func (j *Judged) append(grade int, hit, fresh bool, added float64) {
	if n := len(j.covered); n > 0 {
		added += j.covered[n-1]
	}
	j.grades = append(j.grades, grade)
	j.hits = append(j.hits, hit)
	j.fresh = append(j.fresh, fresh)
	j.covered = append(j.covered, added)
}

func (j *Judged) sortIdeal() {
	slices.Sort(j.ideal)
	slices.Reverse(j.ideal)
}

// coveredAt is the number of units that the first k results cover.
func (j *Judged) coveredAt(k int) float64 {
	if k = min(k, len(j.covered)); k <= 0 {
		return 0
	}
	return j.covered[k-1]
}

// count is the number of true flags among the first k.
func count(flags []bool, k int) float64 {
	n := 0
	for _, flag := range flags[:max(0, min(k, len(flags)))] {
		if flag {
			n++
		}
	}
	return float64(n)
}

// ceilingAt is the share of the units that the best k results could cover.
func (j *Judged) ceilingAt(k int) (float64, bool) {
	if j.units == 0 {
		return 0, false
	}
	return float64(j.ceilingFor(k)) / float64(j.units), true
}

// ordered returns the ranking in the order of Compare, cut at depth where that is positive.
func ordered(ranking []Ranked, depth int) []Ranked {
	out := slices.Clone(ranking)
	slices.SortFunc(out, Compare)
	if depth > 0 && len(out) > depth {
		out = out[:depth]
	}
	return out
}

// BestPerDocument turns a ranking of chunks into one of documents: in the order of Compare, each
// document once, at the rank of its best chunk. A positive depth cuts it there.
func BestPerDocument(ranking []Ranked, depth int) []Ranked {
	out := ordered(ranking, 0)
	seen := make(map[string]bool, len(out))
	kept := out[:0]
	for _, r := range out {
		if depth > 0 && len(kept) == depth {
			break
		}
		if !seen[r.DocID] {
			seen[r.DocID] = true
			kept = append(kept, r)
		}
	}
	return kept
}

// FuseRuns combines runs by reciprocal rank fusion: a document's score is the sum of 1/(k+rank) over
// the runs that have it, ranks from 1. It answers what fusing the arms would have given, from their
// runs alone. k is 60 where it is 0, the value of the method's paper.
func FuseRuns(name string, k float64, runs ...*Run) *Run {
	if k == 0 {
		k = 60
	}
	out := &Run{Name: name, Lists: map[string][]Ranked{}}
	sums := map[string]map[string]*exactSum{}
	for _, run := range runs {
		for query, list := range run.Lists {
			if sums[query] == nil {
				sums[query] = map[string]*exactSum{}
			}
			for i, r := range BestPerDocument(list, 0) {
				if sums[query][r.DocID] == nil {
					sums[query][r.DocID] = &exactSum{}
				}
				sums[query][r.DocID].add(1 / (k + float64(i+1)))
			}
		}
	}
	for query, docs := range sums {
		for _, doc := range slices.Sorted(maps.Keys(docs)) {
			out.Lists[query] = append(out.Lists[query], Ranked{DocID: doc, Score: docs[doc].value()})
		}
		slices.SortFunc(out.Lists[query], Compare)
	}
	return out
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
