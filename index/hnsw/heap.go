package hnsw

// Neighbour is a node and its similarity to what was searched for.
type Neighbour struct {
	ID         uint32
	Similarity float32
}

// nearer is the one order of neighbours: by similarity, ties by id, so that no result depends on
// the order in which nodes were met.
func nearer(a, b Neighbour) bool {
	return a.Similarity > b.Similarity || a.Similarity == b.Similarity && a.ID < b.ID
}

// compare is nearer for sorting: nearest first.
func compare(a, b Neighbour) int {
	switch {
	case nearer(a, b):
		return -1
	case nearer(b, a):
		return 1
	}
	return 0
}

// nearestFirst is a heap with the nearest on top: what is to be visited next.
type nearestFirst []Neighbour

func (h *nearestFirst) push(n Neighbour) {
	s := append(*h, n)
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !nearer(n, s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = n
	*h = s
}

func (h *nearestFirst) pop() Neighbour {
	s := *h
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && nearer(s[child+1], s[child]) {
			child++
		}
		if !nearer(s[child], last) {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = last
	return top
}

// farthestFirst is a heap with the farthest on top: the best that were found, of which the worst
// gives way.
type farthestFirst []Neighbour

func (h *farthestFirst) push(n Neighbour) {
	s := append(*h, n)
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !nearer(s[parent], n) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = n
	*h = s
}

// replace puts n in the place of the farthest.
func (h farthestFirst) replace(n Neighbour) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && nearer(h[child], h[child+1]) {
			child++
		}
		if !nearer(n, h[child]) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = n
}
