package chunker

// maxScan is the longest piece, in bytes, that is merged by scanning for the lowest rank each time:
// quadratic, but without allocation and the fastest for what words are. Longer ones use a heap.
const maxScan = 96

// countPiece returns the number of tokens of the piece s[a:b].
func (v *vocab) countPiece(s string, a, b int) int {
	if b-a == 1 || v.rank(s, a, b) != noRank {
		return 1
	}
	if b-a <= maxScan {
		var starts [maxScan + 1]uint8
		return v.mergeScan(s, a, b, &starts)
	}
	n := 0
	next := v.mergeHeap(s[a:b])
	for i := 0; i < b-a; i = int(next[i]) {
		n++
	}
	return n
}

// appendEnds appends the end of each token of the piece s[a:b], as offsets in s.
func (v *vocab) appendEnds(dst []int, s string, a, b int) []int {
	if b-a == 1 || v.rank(s, a, b) != noRank {
		return append(dst, b)
	}
	if b-a <= maxScan {
		var starts [maxScan + 1]uint8
		n := v.mergeScan(s, a, b, &starts)
		for _, start := range starts[1 : n+1] {
			dst = append(dst, a+int(start))
		}
		return dst
	}
	next := v.mergeHeap(s[a:b])
	for i := 0; i < b-a; {
		i = int(next[i])
		dst = append(dst, a+i)
	}
	return dst
}

// mergeScan merges the bytes of s[a:b] pair by pair, lowest rank first and leftmost among equals, and
// returns the number of tokens left; starts holds where each begins, then the length of the piece.
func (v *vocab) mergeScan(s string, a, b int, starts *[maxScan + 1]uint8) int {
	var ranks [maxScan + 1]uint32 // of the pair that begins at the part
	n := b - a
	for i := range n {
		starts[i] = uint8(i)
		ranks[i] = noRank
		if i+1 < n {
			ranks[i] = v.pairs[int(s[a+i])<<8|int(s[a+i+1])]
		}
	}
	starts[n] = uint8(n)
	for n > 1 {
		lowest, at := uint32(noRank), 0
		for i, rank := range ranks[:n-1] {
			if rank < lowest {
				lowest, at = rank, i
			}
		}
		if lowest == noRank {
			break
		}
		copy(starts[at+1:n], starts[at+2:n+1])
		copy(ranks[at+1:n-1], ranks[at+2:n])
		n--
		ranks[at] = noRank
		if at+1 < n {
			ranks[at] = v.rank(s, a+int(starts[at]), a+int(starts[at+2]))
		}
		if at > 0 {
			ranks[at-1] = v.rank(s, a+int(starts[at-1]), a+int(starts[at+1]))
		}
	}
	return n
}

// mergeHeap does the same for long pieces in O(n log n): a linked list of parts and a heap of pairs in
// which outdated entries stay until they surface. In the result, next[i] is the end of the token that
// begins at i.
func (v *vocab) mergeHeap(s string) (next []int32) {
	n := len(s)
	next, prev, ranks := make([]int32, n+1), make([]int32, n+1), make([]uint32, n+1)
	heap := make(pairHeap, 0, n)
	for i := range n {
		next[i], prev[i], ranks[i] = int32(i+1), int32(i-1), noRank
		if i+1 < n {
			if ranks[i] = v.pairs[int(s[i])<<8|int(s[i+1])]; ranks[i] != noRank {
				heap = append(heap, pairAt(ranks[i], i))
			}
		}
	}
	next[n] = int32(n)
	heap.init()
	rerank := func(i int) {
		ranks[i] = noRank
		if j := int(next[i]); j < n {
			if ranks[i] = v.rank(s, i, int(next[j])); ranks[i] != noRank {
				heap.push(pairAt(ranks[i], i))
			}
		}
	}
	for len(heap) > 0 {
		rank, i := heap.pop()
		if ranks[i] != rank {
			continue // merged meanwhile, or part of another pair now
		}
		j := int(next[i])
		next[i], ranks[j] = next[j], noRank
		prev[next[j]] = int32(i)
		rerank(i)
		if i > 0 {
			rerank(int(prev[i]))
		}
	}
	return next
}

// pairHeap is a binary heap of pairs, each with its rank above its position in one number, so that the
// lowest rank comes first and the leftmost among equals.
type pairHeap []uint64

func pairAt(rank uint32, i int) uint64 { return uint64(rank)<<32 | uint64(uint32(i)) }

func (h pairHeap) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *pairHeap) push(pair uint64) {
	*h = append(*h, pair)
	q := *h
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if q[up] <= pair {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = pair
}

func (h *pairHeap) pop() (rank uint32, i int) {
	q := *h
	top, last := q[0], len(q)-1
	q[0] = q[last]
	*h = q[:last]
	h.down(0)
	return uint32(top >> 32), int(uint32(top))
}

func (h pairHeap) down(i int) {
	if i >= len(h) {
		return
	}
	pair := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[child] >= pair {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = pair
}
