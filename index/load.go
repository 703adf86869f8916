package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"assay"
	"assay/index/bm25"
	"assay/index/hnsw"
)

// load makes the state that the store is in: it reads documents, chunks and vectors into memory and
// brings the lexical index up to them. The writer's lock is held.
func (ix *Index) load(ctx context.Context) (*state, error) {
	s := &state{}
	var storeID string
	err := ix.view(func(tx *bbolt.Tx) error {
		storeID = string(tx.Bucket(metaBucket).Get(storeKey))
		s.generation = number(tx.Bucket(metaBucket).Get(generationKey))
		ix.storeID = storeID
		file := ix.openGraph(storeID)
		err := ix.loadTable(ctx, tx, s, file)
		if errors.Is(err, errForeignGraph) {
			ix.lg.Warn("the file of the graph cannot be used and is made anew from the store", "path", ix.graphPath(), "reason", err)
			ix.removeGraph(graphFile)
			err = ix.loadTable(ctx, tx, s, nil)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	analyzer := ix.analyzer
	if s.fingerprint != nil && len(s.table.documents) > 0 && s.fingerprint.Analyzer != analyzer {
		if !ix.o.AllowMismatch {
			asked := *s.fingerprint
			asked.Analyzer = analyzer
			return nil, s.fingerprint.compare(ix.dir, asked)
		}
		analyzer = s.fingerprint.Analyzer
	}
	if s.analyzer, err = bm25.NewAnalyzer(analyzer); err != nil {
		return nil, fmt.Errorf("open index %s: %w", ix.dir, err)
	}
	s.corpus = s.table.corpus()
	if err := ix.openLexical(storeID, analyzer); err != nil {
		return nil, err
	}
	s.reader, err = ix.catchUp(ctx, s)
	return s, err
}

// loadTable reads all live documents in the order of their numbers. Vectors that are in the file of a
// graph, which may be nil, are compared and not read into memory.
func (ix *Index) loadTable(ctx context.Context, tx *bbolt.Tx, s *state, file *hnsw.File) (err error) {
	if s.fingerprint, err = storedFingerprint(tx); err != nil {
		return &CorruptError{What: "fingerprint", Where: ix.storePath(), Err: err}
	}
	ix.epoch++
	s.table = newTable(ix.epoch)
	if s.fingerprint == nil {
		return nil
	}
	l, err := ix.newLoader(tx, s, file)
	if err != nil {
		return err
	}
	hidden := hiddenDocuments(tx)
	cursor := tx.Bucket(documentsBucket).Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		if hidden[string(k)] {
			continue
		}
		if err := l.document(ctx, tx, k, v); err != nil {
			if errors.Is(err, errForeignGraph) || ctx.Err() != nil {
				return err
			}
			return &CorruptError{What: "a document cannot be read", Where: fmt.Sprintf("%s, document number %d", ix.storePath(), binary.BigEndian.Uint32(k)), Err: err}
		}
	}
	return l.finish()
}

// openLexical opens bleve's index afresh.
func (ix *Index) openLexical(storeID, analyzer string) error {
	if ix.lexical != nil {
		if err := ix.lexical.Close(); err != nil {
			ix.lg.Warn("close of the lexical index, which is opened anew", "error", err)
		}
		ix.lexical = nil
	}
	lexical, replaced, err := bm25.Open(filepath.Join(ix.dir, bm25Folder), storeID, analyzer)
	if err != nil {
		return fmt.Errorf("open index %s: %w", ix.dir, err)
	}
	if replaced != "" {
		ix.lg.Warn("the lexical index cannot be used and is rebuilt from the store", "reason", replaced)
	}
	ix.lexical = lexical
	return nil
}

// catchUpRows is how many chunks are added to the lexical index at once while it catches up.
const catchUpRows = 1000

// catchUp brings the lexical index to the state's generation and returns a reader of it. What a row
// holds never changes, so comparing the sets of rows is enough, whatever was lost between.
func (ix *Index) catchUp(ctx context.Context, s *state) (*bm25.Reader, error) {
	reader, err := ix.lexical.Reader()
	if err != nil {
		return nil, err
	}
	reached, err := reader.Generation()
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	present, err := reader.Rows()
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	var missing, surplus []uint32
	for slot := range s.table.live.EachSet() {
		row := s.table.rows[slot]
		if !present.Test(uint(row)) {
			missing = append(missing, row)
		}
		present.Clear(uint(row))
	}
	for row := range present.EachSet() {
		surplus = append(surplus, uint32(row))
	}
	if reached == s.generation && len(missing)+len(surplus) == 0 {
		return reader, nil
	}
	if err := reader.Close(); err != nil {
		return nil, err
	}
	if s.generation > 0 {
		ix.lg.Info("the lexical index catches up with the store", "from_generation", reached, "to_generation", s.generation,
			"chunks_to_add", len(missing), "chunks_to_remove", len(surplus))
	}
	start := time.Now()
	for len(missing) > catchUpRows {
		// The generation is recorded with the last portion only: until then it is not reached.
		if err := ix.addRows(ctx, s, missing[:catchUpRows], surplus, 0); err != nil {
			return nil, err
		}
		missing, surplus = missing[catchUpRows:], nil
	}
	if err := ix.addRows(ctx, s, missing, surplus, s.generation); err != nil {
		return nil, err
	}
	if s.generation > 0 {
		ix.lg.Info("the lexical index has caught up", "generation", s.generation, "duration", time.Since(start).Round(time.Millisecond))
	}
	return ix.lexical.Reader()
}

func (ix *Index) addRows(ctx context.Context, s *state, rows, surplus []uint32, generation uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var docs []bm25.Doc
	memo := newFieldMemo(s.analyzer)
	err := ix.view(func(tx *bbolt.Tx) error {
		for _, row := range rows {
			chunk, document, err := readChunk(tx, s.table, row)
			if err != nil {
				return &CorruptError{What: "a chunk cannot be read", Where: fmt.Sprintf("%s, row %d", ix.storePath(), row), Err: err}
			}
			docs = append(docs, bm25.Doc{Row: row, Fields: memo.fields(document.Title, chunk.Headings, chunk.Text)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return ix.lexical.Apply(docs, surplus, generation)
}

// readChunk reads a row with its text, which is copied out of the transaction, and its document
// without text.
func readChunk(tx *bbolt.Tx, t *table, row uint32) (assay.Chunk, *assay.Document, error) {
	r, err := decodeChunk(tx.Bucket(chunksBucket).Get(be32(row)))
	if err != nil {
		return assay.Chunk{}, nil, err
	}
	position, ok := t.numbered(r.owner)
	if !ok {
		return assay.Chunk{}, nil, fmt.Errorf("its document, number %d, is missing", r.owner)
	}
	text := tx.Bucket(textsBucket).Get(be32(r.owner))
	if r.chunk.Span.Start < 0 || r.chunk.Span.End < r.chunk.Span.Start || r.chunk.Span.End > len(text) {
		return assay.Chunk{}, nil, errors.New("its span is outside its document's text")
	}
	document := t.documents[position].document
	r.chunk.DocID = document.ID
	r.chunk.Text = string(text[r.chunk.Span.Start:r.chunk.Span.End])
	return r.chunk, &document, nil
}
