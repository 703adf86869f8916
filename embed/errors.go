package embed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	openai "github.com/sashabaranov/go-openai"

	"assay"
)

// Error is a failure of an endpoint. It wraps assay.ErrUnavailable when the endpoint could not be
// reached, and context.DeadlineExceeded or context.Canceled when the time or the caller was gone.
// Neither it nor what it wraps holds a secret.
type Error struct {
	URL    string // of the endpoint, without credentials and query
	Model  string
	Code   int    // the HTTP status of the answer; 0 when there was none
	Reason string // what was wrong
	Hint   string // what to do about it; may be empty

	cause error // one of the sentinels above, or nil
	again bool  // whether another attempt may go better
}

// Error names the endpoint, the model, what was wrong and what to do.
func (e *Error) Error() string {
	text := fmt.Sprintf("embed: %s (model %s): %s", e.URL, e.Model, e.Reason)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Unwrap returns the class of the failure.
func (e *Error) Unwrap() error { return e.cause }

// StatusCode is the HTTP status of the answer, 0 when there was none.
func (e *Error) StatusCode() int { return e.Code }

const (
	excerptLength = 100     // how much of an answer that cannot be used is shown, in characters
	searchLength  = 1 << 16 // how much of it is read for that, in bytes
)

// failure describes an attempt that has failed. ctx is the attempt's own.
func (e *Endpoint) failure(ctx context.Context, x *exchange, err error) *Error {
	f := &Error{URL: e.shown, Model: e.o.Model, Code: x.code}
	var tooLarge tooLargeError
	switch {
	case x.answered && !x.ok():
		f.Reason = strings.TrimSpace(fmt.Sprintf("%d %s", x.code, http.StatusText(x.code))) + ": " + e.said(x, err)
		f.Hint = hint(x)
		f.again = x.code == http.StatusTooManyRequests || x.code >= 500 && x.code != http.StatusNotImplemented
	case errors.As(err, &tooLarge):
		f.Reason = tooLarge.Error()
		f.Hint = "lower embed.batch_size"
	case !x.whole && ctx.Err() != nil:
		f.cause = ctx.Err()
		f.Reason = "the request was cancelled"
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			f.Reason = "no answer in time: " + ctx.Err().Error()
			f.Hint = "see embed.timeout, or lower embed.batch_size"
		}
	case !x.whole:
		f.cause = assay.ErrUnavailable
		f.Reason = "unavailable: " + connectionReason(err)
		f.Hint = "is the server running, and is embed.url right?"
		f.again = worthRetrying(err)
	case len(strings.TrimSpace(string(x.body))) == 0:
		f.Reason = "the answer is empty"
	default:
		f.Reason = fmt.Sprintf("the answer is not the expected JSON (%v): %s", err, e.said(x, nil))
		f.Hint = "is embed.url the address of an OpenAI-compatible API?"
	}
	f.Reason = e.redact(f.Reason)
	return f
}

// said is what the endpoint had to say: its message where it is in OpenAI's form, else the beginning
// of the body.
func (e *Endpoint) said(x *exchange, err error) string {
	text := string(x.body)
	var api *openai.APIError
	if errors.As(err, &api) && api.Message != "" {
		text = api.Message
	}
	cut := len(text) > searchLength
	text = printable(text[:min(len(text), searchLength)])
	if cut { // without the last word: it may be a part of a secret
		text = text[:strings.LastIndexByte(text, ' ')+1]
	}
	text = e.redact(text) // before it is shortened, for the same reason
	if runes := []rune(text); len(runes) > excerptLength {
		text = string(runes[:excerptLength]) + "..."
	}
	if text == "" {
		return "(no text)"
	}
	return text
}

func hint(x *exchange) string {
	switch x.code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "check the key in ASSAY_EMBED_API_KEY"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return "check embed.url and embed.model"
	case http.StatusRequestEntityTooLarge:
		return "lower embed.batch_size or embed.batch_tokens"
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return "check embed.model, embed.max_input_tokens and embed.batch_size"
	case http.StatusTooManyRequests:
		return "lower embed.concurrency, or wait"
	}
	if x.code >= 300 && x.code < 400 {
		return "redirects are not followed; set embed.url to the final address"
	}
	return ""
}

// connectionReason leaves out the URL that net/http puts into its errors: it may hold credentials.
func connectionReason(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

// worthRetrying reports whether a connection may come about at the next attempt: a name that does not
// exist and a certificate that is not trusted stay as they are.
func worthRetrying(err error) bool {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	return !(errors.As(err, &dns) && dns.IsNotFound) && !errors.As(err, &cert)
}

// printable keeps the characters that can be shown and writes each run of spaces and line breaks as
// one space.
func printable(text string) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(kept), " ")
}
