package chunker

import "math"

// noRank says that a byte string is no token.
const noRank = math.MaxUint32

// vocab maps byte strings to token ranks. Nearly all lookups are of strings under 16 bytes, so these
// sit in two open-addressing tables keyed by the bytes themselves: one multiplication and mostly one
// cache line a lookup, where a Go map hashes and compares strings.
type vocab struct {
	short  []shortToken // 1 to 7 bytes
	medium []mediumToken
	long   map[string]uint32 // 16 bytes and more
	pairs  []uint32          // rank of every string of two bytes, by its bytes
	maxLen int               // of a token, in bytes

	shortShift, mediumShift uint
}

// shortToken has its bytes in the low end of key and their number in the highest byte. No token is
// empty, so a zero key marks a free slot.
type shortToken struct {
	key  uint64
	rank uint32
}

type mediumToken struct {
	low, high uint64 // high carries the number of bytes in its highest byte
	rank      uint32
}

const (
	maxShortToken  = 7
	maxMediumToken = 15
	hashMultiplier = 0x9E3779B97F4A7C15 // 2^64 over the golden ratio: spreads neighbouring keys
)

func newVocab(ranks map[string]int) *vocab {
	var short, medium int
	for token := range ranks {
		switch {
		case len(token) <= maxShortToken:
			short++
		case len(token) <= maxMediumToken:
			medium++
		}
	}
	v := &vocab{long: make(map[string]uint32, len(ranks)-short-medium), pairs: make([]uint32, 1<<16)}
	shortBits, mediumBits := tableBits(short), tableBits(medium)
	v.short, v.shortShift = make([]shortToken, 1<<shortBits), 64-shortBits
	v.medium, v.mediumShift = make([]mediumToken, 1<<mediumBits), 64-mediumBits
	for i := range v.pairs {
		v.pairs[i] = noRank
	}
	for token, rank := range ranks {
		v.insert(token, uint32(rank))
	}
	return v
}

// tableBits sizes a table for n keys at a load of at most one half.
func tableBits(n int) uint {
	bits := uint(1)
	for 1<<bits < 2*n {
		bits++
	}
	return bits
}

func (v *vocab) insert(token string, rank uint32) {
	n := len(token)
	v.maxLen = max(v.maxLen, n)
	if n == 2 {
		v.pairs[int(token[0])<<8|int(token[1])] = rank
	}
	switch {
	case n <= maxShortToken:
		key := load(token, 0, n) | uint64(n)<<56
		i := int(key * hashMultiplier >> v.shortShift)
		for v.short[i].key != 0 {
			i = (i + 1) & (len(v.short) - 1)
		}
		v.short[i] = shortToken{key, rank}
	case n <= maxMediumToken:
		low, high := load(token, 0, 8), load(token, 8, n)|uint64(n)<<56
		i := int((low ^ high*hashMultiplier) * hashMultiplier >> v.mediumShift)
		for v.medium[i].high != 0 {
			i = (i + 1) & (len(v.medium) - 1)
		}
		v.medium[i] = mediumToken{low, high, rank}
	default:
		v.long[token] = rank
	}
}

// rank returns the rank of s[a:b], or noRank.
func (v *vocab) rank(s string, a, b int) uint32 {
	n := b - a
	switch {
	case n <= maxShortToken:
		key := load(s, a, b) | uint64(n)<<56
		i := int(key * hashMultiplier >> v.shortShift)
		for {
			e := &v.short[i]
			if e.key == key {
				return e.rank
			}
			if e.key == 0 {
				return noRank
			}
			i = (i + 1) & (len(v.short) - 1)
		}
	case n <= maxMediumToken:
		low, high := load(s, a, a+8), load(s, a+8, b)|uint64(n)<<56
		i := int((low ^ high*hashMultiplier) * hashMultiplier >> v.mediumShift)
		for {
			e := &v.medium[i]
			if e.high == high && e.low == low {
				return e.rank
			}
			if e.high == 0 {
				return noRank
			}
			i = (i + 1) & (len(v.medium) - 1)
		}
	case n <= v.maxLen:
		if rank, ok := v.long[s[a:b]]; ok {
			return rank
		}
	}
	return noRank
}

// load returns the at most eight bytes s[a:b] as a little-endian number.
func load(s string, a, b int) uint64 {
	if a+8 <= len(s) {
		w := s[a : a+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		return x & (math.MaxUint64 >> uint(64-8*(b-a)))
	}
	var x uint64
	for i := b - 1; i >= a; i-- {
		x = x<<8 | uint64(s[i])
	}
	return x
}
