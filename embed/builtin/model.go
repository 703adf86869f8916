// Package builtin is the embedding model inside the binary: static token vectors, averaged.
//
// A text is cut into word pieces, the vectors of its pieces are added up, and the sum is scaled to
// unit length. There is no network and no matrix product in it, so a text costs microseconds. The
// vectors were fitted beforehand, by tools/distil, to what a sentence transformer makes of the same
// texts.
//
// Sums are taken in whole numbers, so that a text has the same vector, bit for bit, on every
// processor and in whatever order its words are added.
package builtin

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// maxTokens bounds how much of a text counts, so that no sum overflows: a product of a value and a
// scale has 23 bits, a weight of a repetition at most 16. It is far beyond any chunk.
const maxTokens = 1 << 20

// Model is the embedding model. It does not change after Load, and several goroutines may use it.
type Model struct {
	name    string
	dims    int
	vocab   *vocabulary
	scales  []uint16  // of each row, in a unit that all share: only directions matter
	rows    []byte    // dims values for each piece, each an int8; a part of the embedded file
	weights []float32 // the length of each row, as a share of the longest
	scratch sync.Pool
}

// scratch is what one call of Embed needs, kept for the next.
type scratch struct {
	ids []int32
	buf buffers
	sum []int64
}

// Name identifies the model. Vectors of models with different names can't be compared.
func (m *Model) Name() string { return m.name }

// Dimensions is the length of every vector.
func (m *Model) Dimensions() int { return m.dims }

// Embed writes the unit vector of text to dst, which has Dimensions values.
//
// A text of which no token is known (it is empty, or in a script that the vocabulary lacks) gives
// false and the vector of the unknown token: a fixed unit vector that points away from the mean of
// real texts, so that such a text ranks last and nothing divides by zero.
func (m *Model) Embed(dst []float32, text string) bool {
	if len(dst) != m.dims {
		panic(fmt.Sprintf("builtin: %d values for a vector of %d dimensions", len(dst), m.dims))
	}
	s, _ := m.scratch.Get().(*scratch)
	if s == nil {
		s = &scratch{sum: make([]int64, m.dims)}
	}
	defer m.scratch.Put(s)
	s.ids = m.vocab.appendIDs(s.ids[:0], &s.buf, text)
	clear(s.sum)
	known := m.addAll(s.sum, s.ids)
	if !known {
		m.addRow(s.sum, m.vocab.unknown, 1)
	}
	unit(dst, s.sum)
	return known
}

// titleWeight is what a title counts beside the text that has it. Measured on collections with
// titles: 0.25 to 0.75 are alike, 0 is worse by 0.01 to 0.08 nDCG@10 (tools/distil/README.md).
const titleWeight = 0.5

// EmbedTitled embeds a text together with what stands above it, its title and headings: the mean
// of the vectors of both together and of title alone, the latter with less weight. In a mean of all
// words, the few of a title would hardly count. Without a title it is Embed.
func (m *Model) EmbedTitled(dst []float32, title, text string) bool {
	if strings.TrimSpace(title) == "" {
		return m.Embed(dst, text)
	}
	known := m.Embed(dst, title+"\n"+text)
	above := make([]float32, m.dims)
	if !m.Embed(above, title) {
		return known
	}
	var squares float64
	for d := range dst {
		dst[d] += titleWeight * above[d]
		squares += float64(float64(dst[d]) * float64(dst[d]))
	}
	scale := 1 / math.Sqrt(squares) // squares is 0.25 or more, even where the two are opposite
	for d := range dst {
		dst[d] = float32(float64(dst[d]) * scale)
	}
	return known
}

// addAll adds the rows of ids, which it sorts, and says whether the sum has a direction.
func (m *Model) addAll(sum []int64, ids []int32) bool {
	if len(ids) > maxTokens {
		ids = ids[:maxTokens]
	}
	slices.Sort(ids)
	for i := 0; i < len(ids); {
		id, n := ids[i], 1
		for i++; i < len(ids) && ids[i] == id; i++ {
			n++
		}
		if id != m.vocab.unknown {
			m.addRow(sum, id, n)
		}
	}
	return slices.ContainsFunc(sum, func(x int64) bool { return x != 0 })
}

// addRow adds n times the row of id.
func (m *Model) addRow(sum []int64, id int32, n int) {
	row := m.row(id)
	scale := int64(m.scales[id]) * int64(n)
	sum = sum[:len(row)]
	for d, x := range row {
		sum[d] += scale * int64(int8(x))
	}
}

func (m *Model) row(id int32) []byte {
	return m.rows[int(id)*m.dims : (int(id)+1)*m.dims]
}

// length returns the length of v. The conversions keep a compiler from fusing a product and a sum,
// which would round differently from processor to processor.
func length(v []int64) float64 {
	var squares float64
	for _, x := range v {
		squares += float64(float64(x) * float64(x))
	}
	return math.Sqrt(squares)
}

// unit writes v, scaled to length 1, to dst.
func unit(dst []float32, v []int64) {
	scale := 1 / length(v)
	for d, x := range v {
		dst[d] = float32(float64(x) * scale)
	}
}

// EmbedBatch embeds each text as Embed does, on all cores. The vectors have the order of texts.
// Its only error is ctx's.
func (m *Model) EmbedBatch(ctx context.Context, texts []string) ([][]float32, error) {
	const piece = 16 // texts between two looks at ctx
	vectors := make([][]float32, len(texts))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < len(texts); from += piece {
		g.Go(func() error {
			for i := from; i < min(from+piece, len(texts)); i++ {
				vectors[i] = make([]float32, m.dims)
				m.Embed(vectors[i], texts[i])
			}
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return vectors, nil
}

// Tokens returns the ids of text's pieces, in order, without unknown ones.
func (m *Model) Tokens(text string) []int32 {
	ids := m.vocab.appendIDs(nil, &buffers{}, text)
	return slices.DeleteFunc(ids, func(id int32) bool { return id == m.vocab.unknown })
}

// TokenVector writes the unit vector of one token to dst, which has Dimensions values, and returns
// how much the token counts in a text: the length of its row as a share of the longest row. Frequent
// words count little. An id that Tokens can't return panics.
func (m *Model) TokenVector(dst []float32, id int32) (weight float32) {
	row := m.row(id)
	scale := 1 / max(rowLength(row), 1) // a row of zeros stays one
	for d, x := range row {
		dst[d] = float32(float64(int8(x)) * scale)
	}
	return m.weights[id]
}

// rowLength returns the length of a row, without its scale.
func rowLength(row []byte) float64 {
	squares := 0
	for _, x := range row {
		squares += int(int8(x)) * int(int8(x))
	}
	return math.Sqrt(float64(squares))
}

// weigh fills in weights.
func (m *Model) weigh() {
	m.weights = make([]float32, len(m.scales))
	longest := 0.0
	for id, scale := range m.scales {
		longest = max(longest, float64(scale)*rowLength(m.row(int32(id))))
	}
	for id, scale := range m.scales {
		m.weights[id] = float32(float64(scale) * rowLength(m.row(int32(id))) / max(longest, 1))
	}
}
