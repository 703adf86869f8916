package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"assay"
	"assay/index/dense"
	"assay/index/topk"
)

// Snapshot is one generation of the corpus, whole and unchanging over both channels, for as long as
// it is open. It is safe for concurrent use and never waits for a writer. Close it.
type Snapshot struct {
	ix     *Index
	s      *state
	closed atomic.Bool
}

// Hit is a chunk in the ranking of one channel.
type Hit struct {
	Row   Row
	Rank  int     // 1-based
	Score float64 // BM25F, or the cosine
}

// DocumentStats are what a document has come to in the index.
type DocumentStats struct {
	Chunks int
	Tokens int
}

// Snapshot returns the current generation. After the index is closed, so is the snapshot.
func (ix *Index) Snapshot() *Snapshot {
	for {
		s := ix.current.Load()
		if s.acquire() {
			return &Snapshot{ix: ix, s: s}
		}
		if s == ix.current.Load() { // nothing follows it: the index is closed
			out := &Snapshot{ix: ix, s: s}
			out.closed.Store(true)
			return out
		}
	}
}

// Close gives the snapshot back. Searches under way end undisturbed. Closing twice does nothing.
func (s *Snapshot) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	return s.s.release()
}

// Generation is the number of the commit that the snapshot shows.
func (s *Snapshot) Generation() uint64 { return s.s.generation }

// Documents is the number of documents.
func (s *Snapshot) Documents() int { return int(s.s.table.liveDocuments.Count()) }

// Chunks is the number of chunks.
func (s *Snapshot) Chunks() int { return s.s.table.chunks }

// Tokens is the sum of the chunks' tokens as the chunker counted them.
func (s *Snapshot) Tokens() int { return s.s.table.tokens }

// use counts a call as a user of the state, so that Close can come at any time.
func (s *Snapshot) use() (done func(), err error) {
	if s.closed.Load() || !s.s.acquire() {
		return nil, ErrClosed
	}
	return func() {
		if err := s.s.release(); err != nil {
			s.ix.lg.Warn("release of a state of the lexical index", "error", err)
		}
	}, nil
}

// Lexical returns at most k chunks that hold a term of the text and whose document passes the
// filter, best BM25F score first, equal scores by chunk ID. There are k where k match. The text is
// analysed as the documents were and never read as query syntax; one without terms has no hits.
func (s *Snapshot) Lexical(ctx context.Context, text string, k int, f assay.Filter) ([]Hit, error) {
	done, err := s.use()
	if err != nil {
		return nil, err
	}
	defer done()
	allowed, err := s.s.allowed(f)
	if err != nil {
		return nil, err
	}
	if k = min(k, int(allowed.Count())); k < 1 {
		return nil, ctx.Err()
	}
	items, err := s.s.reader.Search(ctx, s.s.analyzer.Terms(text), k, s.ix.o.params(), s.s.corpus, allowed, s.s.table.tie)
	if err != nil {
		return nil, fmt.Errorf("lexical search: %w", err)
	}
	return s.hits(items), nil
}

// Dense returns the k chunks nearest to the vector whose document passes the filter, greatest cosine
// first, equal ones by chunk ID. There are k where k pass.
func (s *Snapshot) Dense(ctx context.Context, vector []float32, k int, f assay.Filter) ([]Hit, error) {
	done, err := s.use()
	if err != nil {
		return nil, err
	}
	defer done()
	vectors := s.s.vectors()
	if vectors == nil {
		return nil, ctx.Err()
	}
	query, err := dense.Normalised(vector, s.s.fingerprint.Embedder.Dimensions)
	if err != nil {
		return nil, fmt.Errorf("%w: dense search: query vector: %w", ErrInvalid, err)
	}
	allowed, err := s.s.allowed(f)
	if err != nil {
		return nil, err
	}
	if k = min(k, int(allowed.Count())); k < 1 {
		return nil, ctx.Err()
	}
	items, err := vectors.Search(ctx, query, k, allowed, s.s.table.tie)
	if err != nil {
		return nil, fmt.Errorf("dense search: %w", err)
	}
	return s.hits(items), nil
}

func (s *Snapshot) hits(items []topk.Item) []Hit {
	out := make([]Hit, len(items))
	for i, item := range items {
		out[i] = Hit{Row: Row(s.s.table.rows[item.Slot]), Rank: i + 1, Score: item.Score}
	}
	return out
}

// Chunk returns a chunk with its text, and its document without text.
func (s *Snapshot) Chunk(row Row) (chunk assay.Chunk, document *assay.Document, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		if !s.s.table.isLive(uint32(row)) {
			return fmt.Errorf("row %d: %w", row, ErrNotFound)
		}
		chunk, document, err = readChunk(tx, s.s.table, uint32(row))
		if err != nil {
			return &CorruptError{What: "a chunk cannot be read", Where: fmt.Sprintf("%s, row %d", s.ix.storePath(), row), Err: err}
		}
		return nil
	})
	return chunk, document, err
}

// ChunkByID returns a chunk with its text, and its document without text.
func (s *Snapshot) ChunkByID(id string) (chunk assay.Chunk, document *assay.Document, err error) {
	var row uint32
	found := false
	err = s.view(func(tx *bbolt.Tx) error {
		prefix := append([]byte(id), 0)
		cursor := tx.Bucket(chunkIDsBucket).Cursor()
		for k, _ := cursor.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix) && len(k) == len(prefix)+4; k, _ = cursor.Next() {
			// A passage that came back has a row for each time; this snapshot sees one of them.
			if row = binary.BigEndian.Uint32(k[len(prefix):]); s.s.table.isLive(row) {
				found = true
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return chunk, nil, err
	}
	if !found {
		return chunk, nil, fmt.Errorf("chunk %q: %w", id, ErrNotFound)
	}
	return s.Chunk(Row(row))
}

// Document returns a document with its text.
func (s *Snapshot) Document(id string) (*assay.Document, error) {
	position, ok := s.s.table.byID(id)
	if !ok {
		return nil, fmt.Errorf("document %q: %w", id, ErrNotFound)
	}
	e := s.s.table.documents[position]
	out := e.document
	err := s.view(func(tx *bbolt.Tx) error {
		text := tx.Bucket(textsBucket).Get(be32(e.number))
		if text == nil {
			return &CorruptError{What: fmt.Sprintf("the text of document %q is missing", id), Where: s.ix.storePath()}
		}
		out.Text = string(text)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

// view reads from the store, in which everything that the snapshot saw still is.
func (s *Snapshot) view(read func(*bbolt.Tx) error) error {
	done, err := s.use()
	if err != nil {
		return err
	}
	defer done()
	return s.ix.view(read)
}

// AllDocuments yields every document, without text, in the order in which they were stored.
func (s *Snapshot) AllDocuments() iter.Seq2[*assay.Document, DocumentStats] {
	return func(yield func(*assay.Document, DocumentStats) bool) {
		for position := range s.s.table.liveDocuments.EachSet() {
			e := s.s.table.documents[position]
			document := e.document
			if !yield(&document, DocumentStats{Chunks: e.rows, Tokens: e.tokens}) {
				return
			}
		}
	}
}

// ByURI finds the document that is stored under a URI.
func (ix *Index) ByURI(uri string) (id, hash string, ok bool) {
	t := ix.current.Load().table
	position, ok := t.byURI(uri)
	if !ok {
		return "", "", false
	}
	d := t.documents[position].document
	return d.ID, d.Hash, true
}

// Taken reports whether a document with that ID is stored.
func (ix *Index) Taken(id string) bool {
	_, ok := ix.current.Load().table.byID(id)
	return ok
}
