package embed

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// exchange is one HTTP request and its answer. It stands between the API client and net/http, since
// the client shows neither the body of an answer that it cannot decode nor the headers of a failure,
// and reads bodies without a bound.
type exchange struct {
	client   *http.Client
	headers  map[string]string
	query    string // of the base address; the API client would put it into the middle of the URL
	maxBytes int64

	answered bool // a status line has come back
	whole    bool // the body has come back up to its end
	code     int
	header   http.Header
	body     []byte
}

// tooLargeError says that an answer's body is over the limit.
type tooLargeError struct{ limit int64 }

func (e tooLargeError) Error() string {
	return fmt.Sprintf("the answer is larger than %d bytes", e.limit)
}

// Do sends the request and reads the whole answer, so that a connection that breaks in the middle of
// a body is told from a body that is broken.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	for name, value := range x.headers {
		req.Header.Set(name, value)
	}
	req.URL.RawQuery = x.query
	res, err := x.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	x.answered, x.code, x.header = true, res.StatusCode, res.Header
	x.body, err = io.ReadAll(io.LimitReader(res.Body, x.maxBytes+1))
	if int64(len(x.body)) > x.maxBytes {
		x.body, err = x.body[:x.maxBytes], tooLargeError{x.maxBytes}
	}
	x.whole = err == nil
	if err != nil && x.ok() { // the status of a failure says more than that its body broke off
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(x.body))
	return res, nil
}

// ok reports whether the answer has a status of success. Redirects are none: they are not followed,
// so that texts and keys go only where they were meant to go.
func (x *exchange) ok() bool { return x.answered && x.code >= 200 && x.code < 300 }
