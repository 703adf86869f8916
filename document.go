package assay

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Document is one page, article or record as the reader sees it: normalised text with its origin.
// Text is valid UTF-8 with "\n" line endings; headings, lists, tables and code are written as
// Markdown, whatever the format of the source was.
type Document struct {
	ID       string    `json:"id"`               // stable across runs; see package ingest for how it is derived
	URI      string    `json:"uri"`              // where the source is: a file path, a URL, "path#record"
	Title    string    `json:"title,omitempty"`  // from the source's own title, first heading or file name
	Format   string    `json:"format,omitempty"` // "markdown", "html", "text", "jsonl"
	Language string    `json:"language,omitempty"`
	Version  string    `json:"version,omitempty"`  // as the source states it
	Modified time.Time `json:"modified,omitzero"`  // of the source, where known
	Hash     string    `json:"hash"`               // SHA-256 of the source bytes, hexadecimal
	Metadata Metadata  `json:"metadata,omitempty"` // front matter and the like
	Text     string    `json:"text,omitempty"`     // what is chunked and cited
}

// Span is a half-open range of bytes in a document's Text.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Len is the number of bytes in the span.
func (s Span) Len() int { return s.End - s.Start }

// Chunk is a passage of a document: the unit that is indexed, retrieved, sent and cited.
// Text is exactly Document.Text[Span.Start:Span.End].
type Chunk struct {
	ID       string   `json:"id"`
	DocID    string   `json:"doc_id"`
	Ordinal  int      `json:"ordinal"` // 0-based place among the document's chunks
	Span     Span     `json:"span"`
	Headings []string `json:"headings,omitempty"` // path of section headings above it, outermost first
	Tokens   int      `json:"tokens"`             // of Text, in the chunker's encoding
	Text     string   `json:"text,omitempty"`
}

// ChunkID derives a chunk's ID from its document's ID, its place and its content, so that the same
// passage keeps its ID over runs and machines and a changed one gets another.
func ChunkID(docID string, span Span, text string) string {
	h := sha256.New()
	for _, part := range []string{docID, strconv.Itoa(span.Start), text} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return "c_" + hex.EncodeToString(h.Sum(nil)[:10])
}

// HashText is the content hash used for texts everywhere: SHA-256, hexadecimal.
func HashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// HeadingPath writes a chunk's headings the way people read them: "Keys > Rotation".
func HeadingPath(headings []string) string { return strings.Join(headings, " > ") }

// Place says where a passage stands: its document's title and the path of headings above it, which
// often begins with the title and then says it alone.
func Place(title, heading string) string {
	switch {
	case heading == "":
		return title
	case title == "" || title == heading || strings.HasPrefix(heading, title+" > "):
		return heading
	}
	return title + " > " + heading
}

// Model is the identity of a model: it goes into keys, headers, manifests and stored fingerprints.
type Model struct {
	Name       string `json:"name"`
	Dimensions int    `json:"dimensions,omitempty"` // embedding models only
}
