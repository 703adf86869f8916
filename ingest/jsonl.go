package ingest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"assay"

	"golang.org/x/text/transform"
)

// readRecords streams JSON Lines: one document a line, one line in memory. A bad line is a skipped
// result that names it, and the rest goes on.
func (rd reader) readRecords(ctx context.Context, s *source, in *bufio.Reader, head []byte, emit func(Result) bool) error {
	if w, rest := wideEncoding(head); w != nil {
		if _, err := in.Discard(len(head) - len(rest)); err != nil {
			return fmt.Errorf("ingest %s: read: %w", s.uri, err)
		}
		in = bufio.NewReaderSize(transform.NewReader(in, w.enc.NewDecoder()), headSize)
	}
	var buf []byte
	for number := 1; ctx.Err() == nil; number++ {
		line, size, err := readLine(in, buf, rd.o.MaxRecordSize)
		buf = line[:0]
		if err != nil && err != io.EOF {
			return fmt.Errorf("ingest %s: read line %d: %w", s.uri, number, err)
		}
		last := err == io.EOF
		line = bytes.TrimSpace(bytes.TrimPrefix(line, bomUTF8))
		if size > rd.o.MaxRecordSize || len(line) > 0 {
			r := rd.record(s, number, line, size)
			if !emit(r) {
				return nil
			}
		}
		if last {
			return nil
		}
	}
	return nil
}

// readLine reads up to the line end and keeps at most limit bytes; size is the line's true length.
func readLine(in *bufio.Reader, buf []byte, limit int64) (line []byte, size int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += int64(len(part))
		if size <= limit {
			buf = append(buf, part...)
		}
		if err != bufio.ErrBufferFull {
			return buf, size, err
		}
	}
}

// record is the result for one line.
func (rd reader) record(s *source, number int, line []byte, size int64) Result {
	at := fmt.Sprintf("ingest %s: line %d", s.uri, number)
	if size > rd.o.MaxRecordSize {
		return Result{State: StateSkipped, URI: s.uri, Bytes: size, Reason: SkipTooLarge,
			Err: fmt.Errorf("%s: longer than the maximum record size of %d bytes: raise it, or split the record", at, rd.o.MaxRecordSize)}
	}
	r := Result{State: StateSkipped, URI: s.uri, Bytes: int64(len(line))}
	if !utf8.Valid(line) {
		r.Reason, r.Err = SkipBadEncoding, fmt.Errorf("%s: not UTF-8: JSON Lines have to be", at)
		return r
	}
	var rec struct {
		ID       json.RawMessage `json:"_id"`
		PlainID  json.RawMessage `json:"id"`
		Title    *string         `json:"title"`
		Text     *string         `json:"text"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(line, &rec); err != nil {
		r.Reason, r.Err = SkipMalformed, fmt.Errorf("%s: no record of the form {\"_id\", \"title\", \"text\", \"metadata\"}: %w", at, err)
		return r
	}
	id, err := recordID(rec.ID, rec.PlainID)
	if err != nil {
		r.Reason, r.Err = SkipBadID, fmt.Errorf("%s: %w", at, err)
		return r
	}
	r = rd.compare(s.uri+"#"+id, id, line)
	r.record = true
	if r.State == StateUnchanged {
		return r
	}
	doc, reason, err := parseRecord(rec.Title, rec.Text, rec.Metadata)
	if err != nil {
		r.State, r.Reason, r.Err = StateSkipped, reason, fmt.Errorf("%s (ID %q): %w", at, id, err)
		return r
	}
	doc.ID, doc.URI, doc.Hash = r.ID, r.URI, r.hash
	r.Document = doc
	return r
}

func parseRecord(title, text *string, metadata json.RawMessage) (*assay.Document, SkipReason, error) {
	if text == nil {
		return nil, SkipMalformed, errors.New(`no "text"`)
	}
	doc := &assay.Document{Format: string(formatJSONL), Text: normalise(*text)}
	if strings.TrimSpace(doc.Text) == "" {
		return nil, SkipEmpty, errors.New(`"text" is empty`)
	}
	meta, err := recordMetadata(metadata)
	if err != nil {
		return nil, SkipMalformed, err
	}
	describe(doc, meta)
	if title != nil && strings.TrimSpace(*title) != "" {
		doc.Title = oneLine(normalise(*title))
	}
	return doc, "", nil
}

// recordID takes _id before id, and numbers as they are written.
func recordID(candidates ...json.RawMessage) (string, error) {
	for _, raw := range candidates {
		var id string
		switch {
		case len(raw) == 0 || string(raw) == "null":
			continue
		case raw[0] == '"':
			if err := json.Unmarshal(raw, &id); err != nil {
				return "", err
			}
		case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
			id = string(raw)
		default:
			return "", errors.New("the ID is neither a string nor a number")
		}
		return id, checkID(id)
	}
	return "", errors.New(`no "_id" or "id"`)
}

// recordMetadata keeps the written form of numbers.
func recordMetadata(raw json.RawMessage) (assay.Metadata, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf(`"metadata" is not an object: %w`, err)
	}
	if len(m) == 0 {
		return nil, nil
	}
	return assay.MetadataFrom(m), nil
}
