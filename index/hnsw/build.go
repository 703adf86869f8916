package hnsw

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// builder links nodes batch by batch. Within a batch the graph is only read while links are chosen,
// and each link list is written by one goroutine, so that goroutines neither wait for each other nor
// change the result.
type builder struct {
	g       *Graph
	workers []worker
	chosen  [][]layerLinks // for each node of the batch
	back    []backLink
}

// worker is what one goroutine needs.
type worker struct {
	s       scratch
	peers   []Neighbour
	pool    []Neighbour
	rejects []Neighbour
}

// layerLinks are the links that were chosen for a node on a layer.
type layerLinks struct {
	layer int
	to    []Neighbour
}

// backLink is a link that a node chose, seen from the other side.
type backLink struct {
	layer    int
	to, from uint32
	sim      float32
}

// add links a batch of nodes.
func (b *builder) add(batch []uint32) {
	b.chosen = make([][]layerLinks, len(batch))
	b.parallel(len(batch), func(w *worker, i int) { b.chosen[i] = b.choose(w, batch, batch[i]) })
	b.back = b.back[:0]
	for i, layers := range b.chosen {
		from := batch[i]
		for _, l := range layers {
			list := b.g.links(from, l.layer)
			for j, n := range l.to {
				list[j] = n.ID
				b.back = append(b.back, backLink{l.layer, n.ID, from, n.Similarity})
			}
		}
	}
	b.linkBack()
	for _, id := range batch {
		if layers := b.g.layers(id); layers > b.g.top {
			b.g.top, b.g.entry = layers, id
		}
	}
}

// choose finds the links of a node: among the nodes that are in the graph, and among those of its own
// batch.
func (b *builder) choose(w *worker, batch []uint32, id uint32) []layerLinks {
	g := b.g
	v := g.Vector(id)
	w.peers = w.peers[:0]
	for _, peer := range batch {
		if peer != id {
			w.peers = append(w.peers, Neighbour{peer, similarity(v, g.Vector(peer))})
		}
	}
	own := g.layers(id)
	out := make([]layerLinks, 0, own+1)
	var at Neighbour
	if g.top >= 0 {
		at = g.descend(v, Neighbour{g.entry, similarity(v, g.Vector(g.entry))}, g.top, own+1)
	}
	for layer := own; layer >= 0; layer-- {
		w.pool = w.pool[:0]
		full, worst := false, Neighbour{}
		if layer <= g.top {
			found, _ := g.searchLayer(context.Background(), &w.s, v, at, g.p.EfConstruction, layer, nil) // one search ends soon
			full, worst = len(found) >= g.p.EfConstruction, found[0]
			w.pool = append(w.pool, found...)
			at = slices.MinFunc(w.pool, compare)
		}
		for _, peer := range w.peers {
			if g.layers(peer.ID) >= layer && (!full || nearer(peer, worst)) {
				w.pool = append(w.pool, peer)
			}
		}
		slices.SortFunc(w.pool, compare)
		w.pool = w.pool[:min(len(w.pool), g.p.EfConstruction)]
		out = append(out, layerLinks{layer, slices.Clone(b.diverse(w, w.pool, g.p.M))})
	}
	return out
}

// diverse picks at most m of the candidates, which are sorted nearest first: one that is nearer to a
// node that is picked already than to the centre is reached through that one, and gives its place to
// another direction. Free places go to the nearest of those that gave way.
func (b *builder) diverse(w *worker, candidates []Neighbour, m int) []Neighbour {
	if len(candidates) <= m {
		return candidates
	}
	w.rejects = w.rejects[:0]
	picked := candidates[:0:0]
	for _, c := range candidates {
		if len(picked) == m {
			break
		}
		v := b.g.Vector(c.ID)
		if slices.ContainsFunc(picked, func(p Neighbour) bool { return similarity(v, b.g.Vector(p.ID)) > c.Similarity }) {
			w.rejects = append(w.rejects, c)
			continue
		}
		picked = append(picked, c)
	}
	return append(picked, w.rejects[:min(m-len(picked), len(w.rejects))]...)
}

// linkBack adds the batch's links to the lists of the nodes that were linked to.
func (b *builder) linkBack() {
	slices.SortFunc(b.back, func(x, y backLink) int {
		return cmp.Or(cmp.Compare(x.layer, y.layer), cmp.Compare(x.to, y.to), cmp.Compare(x.from, y.from))
	})
	var groups [][]backLink // of one list each
	for i := 0; i < len(b.back); {
		j := i + 1
		for j < len(b.back) && b.back[j].layer == b.back[i].layer && b.back[j].to == b.back[i].to {
			j++
		}
		groups = append(groups, b.back[i:j])
		i = j
	}
	b.parallel(len(groups), func(w *worker, i int) { b.extend(w, groups[i]) })
}

// extend adds links to one node's list; where it has no room, the most diverse ones stay.
func (b *builder) extend(w *worker, links []backLink) {
	g := b.g
	to := links[0].to
	list := g.links(to, links[0].layer)
	degree := slices.Index(list, none)
	if degree < 0 {
		degree = len(list)
	}
	fresh := w.peers[:0]
	for _, l := range links {
		if !slices.Contains(list[:degree], l.from) {
			fresh = append(fresh, Neighbour{l.from, l.sim})
		}
	}
	w.peers = fresh
	if degree+len(fresh) <= len(list) {
		for i, n := range fresh {
			list[degree+i] = n.ID
		}
		return
	}
	v := g.Vector(to)
	w.pool = append(w.pool[:0], fresh...)
	for _, id := range list[:degree] {
		w.pool = append(w.pool, Neighbour{id, similarity(v, g.Vector(id))})
	}
	slices.SortFunc(w.pool, compare)
	for i, n := range b.diverse(w, w.pool, len(list)) {
		list[i] = n.ID
	}
}

// parallel calls do for 0 to n-1, from as many goroutines as there are workers.
func (b *builder) parallel(n int, do func(w *worker, i int)) {
	if n < 8 || len(b.workers) == 1 {
		for i := range n {
			do(&b.workers[0], i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for i := range b.workers {
		wg.Go(func() {
			for {
				const step = 4
				first := int(next.Add(step)) - step
				if first >= n {
					return
				}
				for j := first; j < min(first+step, n); j++ {
					do(&b.workers[i], j)
				}
			}
		})
	}
	wg.Wait()
}
