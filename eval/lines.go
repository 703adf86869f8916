package eval

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"
)

// MaxLine is the longest line, in bytes, that is read from any file: far above every document of
// the public collections, and low enough that a file that is no text cannot exhaust memory.
const MaxLine = 16 << 20

// LineError says where a file could not be understood.
type LineError struct {
	File string
	Line int // 1-based
	Err  error
}

// Error writes file, line and reason.
func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the reason.
func (e *LineError) Unwrap() error { return e.Err }

// line is one line of a file, without its end. Data is valid until the next one is asked for.
type line struct {
	data []byte
	no   int
}

// lines reads a file line by line, without blank ones. It ends at the first error, which carries its place.
func lines(file string, r io.Reader) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		scanner := bufio.NewScanner(r)
		scanner.Buffer(make([]byte, 0, 64<<10), MaxLine)
		no := 0
		for scanner.Scan() {
			no++
			data := scanner.Bytes()
			if no == 1 {
				data = bytes.TrimPrefix(data, []byte("\ufeff"))
			}
			if len(bytes.TrimSpace(data)) == 0 {
				continue
			}
			if !utf8.Valid(data) {
				yield(line{}, &LineError{file, no, errors.New("not valid UTF-8; convert the file")})
				return
			}
			if !yield(line{data, no}, nil) {
				return
			}
		}
		err := scanner.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("line longer than %d bytes", MaxLine)
		}
		if err != nil {
			yield(line{}, &LineError{file, no + 1, err})
		}
	}
}
