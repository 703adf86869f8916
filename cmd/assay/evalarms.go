package main

import (
	"context"
	"errors"
	"time"

	"assay"
	"assay/eval"
	"assay/index"
	"assay/retriever"
)

// evalTimeout bounds one retrieval of an evaluation: nobody waits for a single one, and a slow
// machine is no reason to fail.
const evalTimeout = time.Minute

// channelArms are the fusion as configured, and each channel alone.
func (a *app) channelArms() ([]eval.Arm, error) {
	c := a.cfg.Retriever
	var arms []eval.Arm
	for _, arm := range []struct {
		name           string
		dense, lexical float64
	}{{"hybrid", c.DenseWeight, c.LexicalWeight}, {"dense", 1, 0}, {"bm25", 0, 1}} {
		r, err := retriever.New(a.lg, a.models.embedder, retriever.Options{
			Fusion: retriever.Fusion(c.Fusion), RRFK: c.RRFK, DenseWeight: arm.dense, LexicalWeight: arm.lexical, Timeout: evalTimeout, OnFailure: retriever.Fail,
		})
		if err != nil {
			return nil, err
		}
		arms = append(arms, eval.Arm{Name: arm.name, Searcher: searcher{r, a.index}})
	}
	return arms, nil
}

// searcher is a retriever over an index, as package eval sees it.
type searcher struct {
	r  *retriever.Retriever
	ix *index.Index
}

// Search implements eval.Searcher.
func (s searcher) Search(ctx context.Context, query string, k int) ([]eval.Ranked, error) {
	snap := s.ix.Snapshot()
	defer snap.Close()
	quiet := func(ctx context.Context, _ assay.StageName) (context.Context, func(assay.Stage)) {
		return ctx, func(assay.Stage) {}
	}
	found, err := s.r.Retrieve(ctx, snap, assay.Query{Text: query, Depth: min(k, retriever.MaxDepth)}, quiet)
	if err != nil {
		return nil, err
	}
	out := make([]eval.Ranked, len(found.Candidates))
	for i, c := range found.Candidates {
		out[i] = eval.Ranked{DocID: c.DocID, ChunkID: c.ChunkID, Score: c.Fused.Score}
	}
	return out, nil
}

// corpus is a snapshot, as package eval looks labels up in it.
type corpus struct{ snap *index.Snapshot }

var _ eval.Corpus = corpus{}

// Document implements eval.Corpus.
func (c corpus) Document(_ context.Context, ref string) (assay.Document, bool, error) {
	doc, err := c.snap.Document(ref)
	if errors.Is(err, assay.ErrNotFound) {
		return assay.Document{}, false, nil
	}
	if err != nil {
		return assay.Document{}, false, err
	}
	return *doc, true, nil
}

// Chunks implements eval.Corpus.
func (c corpus) Chunks(_ context.Context, docID string) ([]assay.Chunk, error) {
	return c.snap.ChunksOf(docID)
}

// Chunk implements eval.Corpus.
func (c corpus) Chunk(_ context.Context, id string) (assay.Chunk, bool, error) {
	chunk, _, err := c.snap.ChunkByID(id)
	if errors.Is(err, assay.ErrNotFound) {
		return assay.Chunk{}, false, nil
	}
	return chunk, err == nil, err
}
