package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"assay/index/dense"
	"assay/index/hnsw"
)

// graphFile is the graph over the vectors as it was last kept. It is derived from the store: its label
// is the store's ID, its keys are rows, and when it is opened its vectors are compared with the store's.
const graphFile = "dense.graph"

func (ix *Index) graphPath() string { return filepath.Join(ix.dir, graphFile) }

// openGraph opens the graph's file; nil when there is none that can be used. What cannot be used is
// removed.
func (ix *Index) openGraph(storeID string) *hnsw.File {
	ix.removeUnfinished()
	if dense.Engine(ix.o.Engine) != dense.EngineHNSW {
		ix.removeGraph(graphFile)
		return nil
	}
	file, err := hnsw.Open(ix.graphPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && file.Label != storeID {
		err = fmt.Errorf("it belongs to another store, %q", file.Label)
	}
	if err != nil {
		ix.lg.Warn("the graph over the vectors is made anew", "path", ix.graphPath(), "reason", err)
		ix.removeGraph(graphFile)
		return nil
	}
	return file
}

// removeGraph removes a file that is of no use any more. One that stays does no harm: it is not used.
func (ix *Index) removeGraph(name string) {
	if err := os.Remove(filepath.Join(ix.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		ix.lg.Warn("a file of the graph that is of no use could not be removed", "error", err)
	}
}

// removeUnfinished removes what a process left behind that was killed while it wrote a graph.
func (ix *Index) removeUnfinished() {
	entries, err := os.ReadDir(ix.dir)
	if err != nil {
		ix.lg.Warn("unfinished files of a graph are not looked for", "error", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), graphFile+".") && strings.HasSuffix(e.Name(), ".tmp") {
			ix.removeGraph(e.Name())
		}
	}
}

// keepGraph writes the graph to its file and goes on with the file, mapped, in the place of the memory
// that the graph was made in.
func (ix *Index) keepGraph() error {
	view, ok := ix.current.Load().vectors().(*dense.Graphed)
	if !ok {
		return nil
	}
	file, ok := view.File(ix.storeID)
	if !ok {
		return nil
	}
	if err := file.Save(ix.graphPath()); err != nil {
		return err
	}
	opened, err := hnsw.Open(ix.graphPath())
	if err != nil {
		return err
	}
	ix.writer.Lock()
	defer ix.writer.Unlock()
	s := ix.current.Load()
	if view, ok := s.vectors().(*dense.Graphed); ok {
		if next, ok := view.Swap(file, opened); ok {
			s.setVectors(next)
		}
	}
	return nil
}

// graph checks that the dense channel holds each live row once, and the graph's file.
func (c *checker) graph(context.Context) error {
	if view, ok := c.s.vectors().(*dense.Graphed); ok {
		if err := view.Check(c.s.table.live, func(slot uint32) uint32 { return c.s.table.rows[slot] }); err != nil {
			c.badly("dense index: %w", err)
		}
	}
	file, err := hnsw.Open(c.ix.graphPath())
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		c.badly("dense index: %w", err)
	case file.Label != c.ix.storeID:
		c.badly("dense index: the graph's file belongs to another store, %q", file.Label)
	}
	return nil
}
