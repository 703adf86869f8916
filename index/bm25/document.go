package bm25

import (
	"encoding/binary"

	"github.com/blevesearch/bleve/v2/document"
	index "github.com/blevesearch/bleve_index_api"
)

// The fields of a chunk.
const (
	Title = iota
	Heading
	Body
	Fields // how many there are
)

var fieldNames = [Fields]string{"title", "heading", "body"}

// Lengths are the lengths in tokens of a chunk's fields.
type Lengths [Fields]uint32

// Doc is a chunk ready to be indexed.
type Doc struct {
	Row    uint32
	Fields [Fields]Field
}

// Lengths returns the lengths of the chunk's fields.
func (d *Doc) Lengths() Lengths {
	var out Lengths
	for i, f := range d.Fields {
		out[i] = f.Length
	}
	return out
}

// rowID is a row as bleve's external document ID.
func rowID(row uint32) string {
	return string(binary.BigEndian.AppendUint32(nil, row))
}

func (d *Doc) bleve() *document.Document {
	out := document.NewDocument(rowID(d.Row))
	for i, f := range d.Fields {
		if f.Length > 0 {
			out.AddField(&analysed{fieldNames[i], f})
		}
	}
	return out
}

// analysed is a field for bleve that has been analysed already, since the lengths have to be known
// before the chunk is stored and nothing should be analysed twice. It is lean: indexed with
// frequencies, but not stored, without doc values and without term vectors.
type analysed struct {
	name  string
	field Field
}

var _ document.Field = (*analysed)(nil)

func (a *analysed) Name() string                                     { return a.name }
func (a *analysed) Value() []byte                                    { return nil }
func (a *analysed) ArrayPositions() []uint64                         { return nil }
func (a *analysed) EncodedFieldType() byte                           { return 't' }
func (a *analysed) Analyze()                                         {}
func (a *analysed) Options() index.FieldIndexingOptions              { return index.IndexField }
func (a *analysed) AnalyzedLength() int                              { return int(a.field.Length) }
func (a *analysed) AnalyzedTokenFrequencies() index.TokenFrequencies { return a.field.freqs }
func (a *analysed) NumPlainTextBytes() uint64                        { return 0 }
func (a *analysed) Size() int                                        { return 64 * len(a.field.freqs) }
