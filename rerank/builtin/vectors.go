package builtin

import (
	"math"

	"github.com/viterin/vek/vek32"
)

// Vectors are static token vectors: of the same token, always the same. The built-in embedding model
// has them.
type Vectors interface {
	Dimensions() int
	// Tokens returns the tokens of a text, in order.
	Tokens(text string) []int32
	// TokenVector writes the unit vector of a token to dst and returns how much the token counts in a
	// text, between 0 and 1; frequent words count little.
	TokenVector(dst []float32, id int32) (weight float32)
}

const maxQueryTokens = 64

// meaning compares tokens by their vectors. It keeps what it has computed of a token for the other
// texts of the request.
type meaning struct {
	v       Vectors
	dims    int
	query   []float32 // the vectors of the question's distinct tokens, one after the other
	weight  []float64 // of each
	sum     float64   // of the weights
	ids     map[int32]int
	qids    map[int32]bool
	mean    []float32 // the question's unit vector
	tokens  []token
	vectors []float32 // of tokens, one after the other, times their weight
	sims    []float32 // of each token with each of the question's
	one     []float32
}

type token struct {
	weight float64
	query  float64 // cosine with the question's vector
}

func newMeaning(v Vectors, query string) *meaning {
	m := &meaning{v: v, dims: v.Dimensions(), ids: map[int32]int{}, qids: map[int32]bool{}}
	m.one = make([]float32, m.dims)
	m.mean = make([]float32, m.dims)
	for _, id := range v.Tokens(query) {
		w := v.TokenVector(m.one, id)
		axpy(m.mean, m.one, w)
		if !m.qids[id] && len(m.weight) < maxQueryTokens {
			m.qids[id] = true
			m.query = append(m.query, m.one...)
			m.weight = append(m.weight, float64(w))
			m.sum += float64(w)
		}
	}
	normalise(m.mean)
	return m
}

// token returns the place of a token in m.
func (m *meaning) token(id int32) int {
	if i, ok := m.ids[id]; ok {
		return i
	}
	i := len(m.tokens)
	m.ids[id] = i
	w := m.v.TokenVector(m.one, id)
	m.tokens = append(m.tokens, token{float64(w), float64(vek32.Dot(m.mean, m.one))})
	for j := range m.weight {
		m.sims = append(m.sims, vek32.Dot(m.query[j*m.dims:(j+1)*m.dims], m.one))
	}
	at := len(m.vectors)
	m.vectors = append(m.vectors, m.one...)
	vek32.MulNumber_Inplace(m.vectors[at:], w)
	return i
}

func (m *meaning) vector(i int) []float32 { return m.vectors[i*m.dims : (i+1)*m.dims] }

func axpy(dst, x []float32, a float32) {
	for i := range dst {
		dst[i] += a * x[i]
	}
}

func normalise(v []float32) {
	if n := vek32.Dot(v, v); n > 0 {
		vek32.MulNumber_Inplace(v, float32(1/math.Sqrt(float64(n))))
	}
}

// meant is what a passage means.
type meant struct {
	vector []float32 // unit
}

// meaningFeatures compare the vectors of a passage's tokens with those of the question's.
func (r *reading) meaningFeatures(p *passage, out []float64) ([]float64, meant) {
	m := r.m
	nq := len(m.weight)
	most := make([]float32, nq) // the greatest similarity of each of the question's tokens
	second := make([]float32, nq)
	soft := make([]float64, nq)
	bins := make([]float64, 5)
	total := make([]float32, m.dims)
	part := make([]float32, m.dims)
	sentence := make([]float32, nq)
	var reverse, weights float64
	seen := map[int]bool{}
	add := func(text string) {
		clear(part)
		clear(sentence)
		for _, id := range m.v.Tokens(text) {
			i := m.token(id)
			vek32.Add_Inplace(part, m.vector(i))
			sims := m.sims[i*nq : (i+1)*nq]
			top := float32(0)
			for j, s := range sims {
				sentence[j] = max(sentence[j], s)
				top = max(top, s)
			}
			if seen[i] {
				continue
			}
			seen[i] = true
			reverse += float64(top) * m.tokens[i].weight
			weights += m.tokens[i].weight
			for j, s := range sims {
				switch {
				case s > most[j]:
					second[j] = most[j]
					most[j] = s
				case s > second[j]:
					second[j] = s
				}
				if s > 0.3 && s < 0.999 {
					soft[j] += float64(s-0.3) * float64(s-0.3)
				}
				switch w := m.weight[j]; {
				case s >= 0.999:
					bins[0] += w
				case s > 0.7:
					bins[1] += w
				case s > 0.5:
					bins[2] += w
				case s > 0.35:
					bins[3] += w
				case s > 0.2:
					bins[4] += w
				}
			}
		}
		vek32.Add_Inplace(total, part)
	}
	cosine := func(v []float32) float64 {
		n := float64(vek32.Dot(v, v))
		if n <= 0 {
			return 0
		}
		return float64(vek32.Dot(m.mean, v)) / math.Sqrt(n)
	}
	covered := func(sims []float32) float64 {
		if m.sum <= 0 {
			return 0
		}
		s := 0.0
		for j, x := range sims {
			s += m.weight[j] * float64(x)
		}
		return s / m.sum
	}
	head := 0.0
	headCover := 0.0
	if p.headText != "" {
		add(p.headText)
		head = cosine(part)
		headCover = covered(sentence)
	}
	var best, next, third, bestCover, pairBest float64
	before := make([]float32, m.dims)
	for k, text := range p.sentences {
		add(text)
		c := cosine(part)
		switch {
		case c > best:
			best, next, third = c, best, next
		case c > next:
			next, third = c, next
		case c > third:
			third = c
		}
		bestCover = max(bestCover, covered(sentence))
		vek32.Add_Inplace(before, part)
		if k > 0 {
			pairBest = max(pairBest, cosine(before))
		}
		copy(before, part)
	}
	var soften, unmatched, unmatchedW, softSum, secondSum, worst float64
	worst = 1
	for j, w := range m.weight {
		soften += w * float64(most[j])
		secondSum += w * float64(second[j])
		softSum += w * math.Log1p(soft[j])
		if most[j] < 0.999 {
			unmatched += w * float64(most[j])
			unmatchedW += w
		}
		if w > 0.3 {
			worst = min(worst, float64(most[j]))
		}
	}
	whole := cosine(total)
	titled := whole
	if p.headText != "" {
		titled = (whole + 0.5*head) / 1.5
	}
	per := func(a, b float64) float64 {
		if b <= 0 {
			return 0
		}
		return a / b
	}
	out = append(out, per(soften, m.sum), per(unmatched, unmatchedW), per(unmatchedW, m.sum), per(softSum, m.sum), per(secondSum, m.sum), worst,
		whole, titled, head, headCover, best, (best+next+third)/3, pairBest, bestCover, per(reverse, weights))
	for _, b := range bins {
		out = append(out, math.Log1p(per(b, m.sum)))
	}
	normalise(total)
	return out, meant{total}
}

var meaningNames = []string{
	"maxsim", "maxsim_unmatched", "unmatched", "soft", "maxsim_second", "maxsim_worst",
	"cosine", "cosine_titled", "cosine_head", "maxsim_head", "cosine_sentence", "cosine_three", "cosine_pair", "maxsim_sentence", "reverse",
	"bin_exact", "bin_70", "bin_50", "bin_35", "bin_20",
}
