// Package codec is what the wire formats share: the contract that each of them
// fulfils, edits of recorded JSON, events of a stream, and the provider's
// errors in neutral form.
//
// Two rules hold for all formats. A request is kept as it was received, and a change
// becomes an edit of it. An answer that may hold a call is written from what was read of
// it. A change without a place is [ErrUnencodable].
package codec

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// ErrShape marks a body that is not of the format: pass its bytes on.
var ErrShape = errors.New("wire: not a body of this format")

// ErrUnencodable marks a change that the format has no place for.
var ErrUnencodable = middleware.ErrUnencodable

// ErrIncomplete marks an answer that ended before its end. It wraps
// io.ErrUnexpectedEOF.
var ErrIncomplete = fmt.Errorf("wire: the answer ended before it was whole: %w", io.ErrUnexpectedEOF)

// ErrShown is the ErrUnencodable of a change of what a client has got already.
var ErrShown = fmt.Errorf("%w: the client has got already what was changed; hold the whole answer to change it", ErrUnencodable)

// Bounds of what is read.
const (
	MaxBody   = 64 << 20 // bytes of a request or an answer, a whole stream included
	MaxEvent  = 16 << 20 // bytes of one event of a stream
	maxValues = 4 << 20  // JSON values of one text
)

// Format is one wire format. A Format holds no state and is safe for
// concurrent use; what it says of each method is in package wire. Two methods are
// optional, with a default for a format without them: EndsWith (cursor.go),
// RenamePrevious and UnavailableStatus (package wire).
type Format interface {
	Dialect() string
	Match(path string, body []byte) bool
	MatchPath(path string) bool
	WantsStream(path string, body []byte) bool
	DecodeRequest(body []byte) (*middleware.Request, error)
	EncodeRequest(req *middleware.Request) ([]byte, error)
	DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error)
	EncodeResponse(resp *middleware.Response) ([]byte, error)
	EncodeAnswer(path string, body []byte, resp *middleware.Response) (answer []byte, contentType string, err error)
	NewStream(req *middleware.Request, sink middleware.Sink) Stream
	DecodeError(status int, header http.Header, body []byte) *middleware.ModelError
	EncodeError(status int, code, message string) []byte
	MayHoldCall(body []byte) bool

	// Opening returns the end of the event that opens the streamed answer text, if
	// a client needs that event before a keep-alive: it holds no word of the
	// model's. It is 0 if that event has not come or none is needed.
	Opening(text string) int
	// KeepAlive returns what tells a client, between two events, that the answer
	// goes on, and whether that is one more event with a number. Of the answer,
	// text was received and its first sent bytes were taken, beside n such events.
	// It is "" where the format has none, and for an answer that is not a stream.
	KeepAlive(text string, sent, n int) (alive string, numbered bool)
	// Renumber returns events that stand behind n numbered keep-alives.
	Renumber(events string, n int) (string, error)

	// URL returns where requests to model go: below base, or below the
	// provider's own address if base is "".
	URL(base, model string, stream bool) string
	// Authorize puts the key and what else the provider demands into h.
	Authorize(h http.Header, key string)
}

// Stream reads one answer in one format. Package wire has the contract of what
// is exported there; a Cursor around it keeps what the client was given. Renamed
// (cursor.go) is optional.
type Stream interface {
	Write(p []byte) (int, error)
	Safe() int
	Close() (*middleware.Response, error)

	// Output returns what the client gets of what was written, or will get with what
	// follows, how much of that it may get already, and what stands behind it.
	Output() (text string, releasable int, rest string)
	// Text returns all bytes that were written.
	Text() string
	// Last returns the last event that has data.
	Last() Event
	// Rest returns what has to follow the first sent bytes. sent is a value that
	// Safe had.
	Rest(sent int, resp *middleware.Response) ([]byte, error)
	Fail(sent, status int, code, message string) []byte
	Comment(text string) []byte
}

var limits = rawjson.Limits{Bytes: MaxBody, Depth: -1, Values: maxValues, Number: -1, Exponent: -1, AnyBytes: true}

// Parse scans one JSON text of a body, nested to any depth. Strings may hold
// bytes that are not UTF-8, as clients replace those. The error wraps ErrShape.
func Parse(text string) (*rawjson.Doc, error) {
	doc, err := rawjson.Parse(text, limits)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrShape, err)
	}
	return doc, nil
}

// ParseBody is Parse for a text that holds an object, as every request and most
// answers do.
func ParseBody(text string) (*rawjson.Doc, error) {
	doc, err := Parse(text)
	if err != nil {
		return nil, err
	}
	if k := doc.Root().Kind(); k != rawjson.Object {
		return nil, Shapef("%s where an object should be", k)
	}
	return doc, nil
}

// Borrow is ParseBody for a caller that needs the object only in use, such as that
// of one event of many: its memory is used again. The texts of its values stay. The
// error is that of use, or wraps ErrShape.
func Borrow(text string, use func(object rawjson.Value) error) error {
	return borrow(text, func(doc *rawjson.Doc) error {
		if k := doc.Root().Kind(); k != rawjson.Object {
			return Shapef("%s where an object should be", k)
		}
		return use(doc.Root())
	})
}

// borrow is Borrow for any value.
func borrow(text string, use func(doc *rawjson.Doc) error) (err error) {
	if e := rawjson.Borrow(text, limits, func(doc *rawjson.Doc) { err = use(doc) }); e != nil {
		err = fmt.Errorf("%w: %w", ErrShape, e)
	}
	return err
}

// ParseObject is ParseBody for a caller that needs no more than the object.
func ParseObject(text string) (rawjson.Value, error) {
	doc, err := ParseBody(text)
	if err != nil {
		return rawjson.Value{}, err
	}
	return doc.Root(), nil
}

// Shapef returns an error that wraps ErrShape. What it says holds no content.
func Shapef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrShape, fmt.Sprintf(format, args...))
}

// Unencodablef returns an error that wraps ErrUnencodable. What it says holds
// no content.
func Unencodablef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnencodable, fmt.Sprintf(format, args...))
}

// Unencodable returns err as an error that wraps ErrUnencodable: what was stored, or was
// given to a client, does not read as what it was any more.
func Unencodable(err error) error {
	if errors.Is(err, ErrUnencodable) {
		return err
	}
	return Unencodablef("%v", err)
}

// Below returns the address of path below base. The query of base, where Azure
// has its version, stays at the end.
func Below(base, path string) string {
	base, query, found := strings.Cut(base, "?")
	to := strings.TrimRight(base, "/") + path
	if found {
		to += "?" + query
	}
	return to
}

// Decode reads a whole answer through s.
func Decode(s Stream, body []byte) (*middleware.Response, error) {
	if _, err := s.Write(body); err != nil {
		return nil, err
	}
	return s.Close()
}
