// Package codec is shared by the wire formats. Two rules hold for all of them. A request is
// kept as it was received, and a change becomes an edit of it. An answer that may hold a call
// is written from its decoded values. A change without a place is [ErrUnencodable].
//
// A format is a package next to this one with the files FORMAT.go, request.go, message.go,
// tools.go, stream.go, answer.go and errors.go. It provides
//   - a [Format]: paths, URL and keep-alives. [Defaults] has the usual ones, which it embeds.
//   - readers and projections of requests, messages, parts, calls and tools. What
//     SameRequest and SameMessage (neutral.go) find unequal is projected; package lens
//     compares the projections, and edits the recorded JSON.
//   - a stream, which embeds a [Splitter]. Release tells when a unit may go to the client
//     (at once, with the previous unit, after text, or never by itself), Read decodes a
//     unit, Snapshot notes the part that the client has, and Response returns the answer.
//   - an answer, which writes itself as one object (Whole) and as the rest of a stream
//     (Stream) after a snapshot.
//   - a [Tree] of the members that it knows, and the [Figures] of its usage.
//
// This package does the rest: it cuts a body into units (events.go) and decides which of
// them pass unchanged, are written or wait (splitter.go), keeps the part that a client has
// (cursor.go), keeps what was read of a request and of an answer, completes a stream (written.go),
// writes known members in one spelling and finds words for calls (tree.go),
// writes answers for other requests and counts tokens (answer.go), reads finish words
// (finish.go), compares neutral values and pairs results with calls (neutral.go), edits JSON
// (json.go), and reads errors (errors.go).
//
// Unknown members of a request pass as they came. To add one that middlewares may change,
// give middleware.Request a field, and its Clone and SameRequest a line; in request.go of
// each format read it, project it, and write it into fresh requests. To add a member of an
// answer, name it in the Tree of its object, read it in stream.go, and write it in answer.go.
package codec

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
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

// Format is one wire format. A Format holds no state and is safe for concurrent use. Package
// wire describes its methods.
type Format interface {
	Dialect() string
	Match(path string, body []byte) bool
	MatchPath(path string) bool
	WantsStream(path string, body []byte) bool
	DecodeRequest(body []byte) (*middleware.Request, error)
	EncodeRequest(req *middleware.Request) ([]byte, error)
	EncodeResponse(resp *middleware.Response) ([]byte, error)
	EncodeAnswer(path string, body []byte, resp *middleware.Response) (answer []byte, contentType string, err error)
	NewStream(req *middleware.Request, sink middleware.Sink) Stream
	DecodeError(status int, header http.Header, body []byte) *middleware.ModelError
	EncodeError(status int, code, message string) []byte
	MayHoldCall(body []byte) bool

	// ReadRequest reads the body of a request. The result has no Native of its own (see Request),
	// and holds no parsed text. The error wraps ErrShape.
	ReadRequest(in *Input) (*middleware.Request, error)
	// ReadFailure reads the error in the root of a body with an error status. It is false for a
	// body that holds none of the format.
	ReadFailure(root rawjson.Value) (Failure, bool)

	RenamePrevious(body []byte, rename func(id string) string) []byte
	UnavailableStatus(status int) int

	// EndsWith reports whether an event is the mark at which clients stop reading, other than
	// OpenAI's [DONE]. It is given the name and the data of the event, or a line as data.
	EndsWith(name, data string) bool
	// Opening returns the end of the event that opens the streamed answer text, if
	// a client needs that event before a keep-alive: it holds no word of the
	// model's. It is 0 if that event has not come or none is needed.
	Opening(text string) int
	// KeepAlive returns the bytes that tell a client, between two events, that the answer
	// continues. numbered reports whether they are an event with a number. text is the answer as
	// received, sent the number of its bytes that the client has, and n the number of numbered
	// keep-alives before. alive is "" for a format without keep-alives, and for an answer that is
	// not a stream.
	KeepAlive(text string, sent, n int) (alive string, numbered bool)
	// Renumber returns events with the numbers that they have after n numbered keep-alives.
	Renumber(events string, n int) (string, error)

	// URL returns where requests to model go: below base, or below the
	// provider's own address if base is "".
	URL(base, model string, stream bool) string
	// Authorize puts the key and what else the provider demands into h.
	Authorize(h http.Header, key string)
}

// Stream reads one answer in one format. Package wire has the contract of what
// is exported there; a Cursor around it keeps what the client was given.
type Stream interface {
	Write(p []byte) (int, error)
	Safe() int
	Close() (*middleware.Response, error)

	// Output returns the text for the client, as far as it is known, and how many bytes of it the
	// client may get now. rest is the received text that Output has not written yet.
	Output() (text string, releasable int, rest string)
	// Text returns all bytes that were written.
	Text() string
	// Open returns how many bytes at the end of the text belong to an event that is not complete.
	Open() int
	// BrokeOff notes that the end of a stream may be missing.
	BrokeOff()
	// Last returns the last event that has data.
	Last() Event
	// Rest returns what has to follow the first sent bytes. sent is a value that
	// Safe had.
	Rest(sent int, resp *middleware.Response) ([]byte, error)
	Fail(sent, status int, code, message string) []byte
	Comment(text string) []byte
	// Renamed returns the ids under which a client with the first sent bytes, and the provider,
	// know the answer.
	Renamed(sent int, resp *middleware.Response) (clientID, providerID string)
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

// Borrow is ParseBody for an object that is needed only during use, such as one event of many.
// Its memory is used again; the texts of its values stay valid. The error is the one of use,
// or wraps ErrShape.
func Borrow(text string, use func(object rawjson.Value) error) error {
	return borrow(text, func(doc *rawjson.Doc) error { return asObject(doc, use) })
}

// asObject calls use with the root of doc, which must be an object.
func asObject(doc *rawjson.Doc, use func(object rawjson.Value) error) error {
	if k := doc.Root().Kind(); k != rawjson.Object {
		return Shapef("%s where an object should be", k)
	}
	return use(doc.Root())
}

// borrow is Borrow for any value.
func borrow(text string, use func(doc *rawjson.Doc) error) (err error) {
	if e := rawjson.Borrow(text, limits, func(doc *rawjson.Doc) { err = use(doc) }); e != nil {
		err = fmt.Errorf("%w: %w", ErrShape, e)
	}
	return err
}

// errNoText is made once: a part of an answer that is optional is often empty.
var _, errNoText = Parse("")

// ParseObject is ParseBody for a caller that needs no more than the object.
func ParseObject(text string) (rawjson.Value, error) {
	if text == "" {
		return rawjson.Value{}, errNoText
	}
	doc, err := ParseBody(text)
	if err != nil {
		return rawjson.Value{}, err
	}
	return doc.Root(), nil
}

// Shapef returns an error that wraps ErrShape. Its text must not contain content of the body.
func Shapef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrShape, fmt.Sprintf(format, args...))
}

// Unencodablef returns an error that wraps ErrUnencodable. Its text must not contain content
// of the body.
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

// Decode reads a whole answer through s, also one whose call the provider could not read: it
// may have been stored.
func Decode(s Stream, body []byte) (*middleware.Response, error) {
	if _, err := s.Write(body); err != nil {
		return nil, err
	}
	resp, err := s.Close()
	if e, ok := errors.AsType[*middleware.ModelError](err); ok && e.Response != nil {
		return e.Response, nil
	}
	return resp, err
}

// WantsStream reports whether a request asks for a streamed answer: by the
// member "stream" of its body, else by the last segment of its path, as in
// Gemini's format and on Vertex, else if the format streams by default. Like
// the servers that are written in Go it reads the key in any case.
func WantsStream(path string, body []byte, byDefault bool) bool {
	if wants, ok := streamMember(body); ok {
		return wants
	}
	path, _, _ = strings.Cut(path, "?")
	last := path[strings.LastIndexAny(path, "/:")+1:]
	return byDefault || strings.Contains(strings.ToLower(last), "stream")
}

// streamMember returns the member "stream" of a body; false without one. The last of several
// members counts. A value of another kind is ignored.
func streamMember(body []byte) (wants, ok bool) {
	if len(body) == 0 {
		return false, false
	}
	err := Borrow(string(body), func(object rawjson.Value) error {
		wants, ok = streamIn(object)
		return nil
	})
	return wants, ok && err == nil
}

// streamIn is streamMember for the object that a body is.
func streamIn(object rawjson.Value) (wants, ok bool) {
	odd := false
	for m := range object.Each() {
		if !strings.EqualFold(m.Key(), "stream") {
			continue
		}
		switch m.Kind() {
		case rawjson.Bool:
			wants, ok = m.Raw() == "true", true
		case rawjson.Null:
			ok = false
		default:
			odd = true
		}
	}
	return wants, ok && !odd
}

// Path returns the path of a request in the spelling that is used for comparisons: without a
// query, in lower case, with slashes instead of backslashes, without empty and "." segments,
// and in each segment without parameters after ";" and trailing spaces. Servers accept such
// spellings for the same path.
func Path(path string) string {
	if isPlain(path) {
		return path
	}
	path, _, _ = strings.Cut(path, "?")
	path = strings.ReplaceAll(strings.ToLower(path), `\`, "/")
	var b strings.Builder
	for seg := range strings.SplitSeq(path, "/") {
		seg, _, _ = strings.Cut(seg, ";")
		if seg = strings.TrimRight(seg, " \t"); seg != "" && seg != "." {
			b.WriteString("/" + seg)
		}
	}
	return b.String()
}

// isPlain reports whether Path would return path itself, as for the paths that
// SDKs use. False is not certain.
func isPlain(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.HasSuffix(path, "/") && !strings.Contains(path, "//") && !strings.Contains(path, "/.") &&
		!strings.ContainsAny(path, "?\\; \t") && strings.ToLower(path) == path
}

// PathEnds reports whether the Path of path ends with one of ends, which are in
// lower case.
func PathEnds(path string, ends ...string) bool {
	path = Path(path)
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(path, end) })
}

// Defaults has the methods of a Format F that most formats share. F embeds
// it and declares those in which it differs.
type Defaults[F Format] struct{}

// DecodeRequest reads the body of a request.
func (Defaults[F]) DecodeRequest(body []byte) (*middleware.Request, error) {
	var f F
	return Request(f, &Input{Raw: string(body)})
}

// EncodeResponse writes an answer in the framing in which it came.
func (Defaults[F]) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	var f F
	a, err := Reread[Written](f, resp.Native)
	if err != nil {
		return nil, err
	}
	return encode(f, a, resp)
}

// WantsStream reports whether a request asks for a streamed answer. The default is no.
func (Defaults[F]) WantsStream(path string, body []byte) bool { return WantsStream(path, body, false) }

// DecodeError reads the body of an answer with an error status.
func (Defaults[F]) DecodeError(status int, header http.Header, body []byte) *middleware.ModelError {
	var f F
	return DecodeError(status, header, body, f.ReadFailure)
}

// RenamePrevious returns body: requests do not continue from an earlier answer.
func (Defaults[F]) RenamePrevious(body []byte, _ func(id string) string) []byte { return body }

// UnavailableStatus returns status: clients do not repeat requests too often.
func (Defaults[F]) UnavailableStatus(status int) int { return status }

// EndsWith returns false: streams end with [DONE].
func (Defaults[F]) EndsWith(_, _ string) bool { return false }

// Opening returns 0: a client understands a keep-alive before the first event.
func (Defaults[F]) Opening(string) int { return 0 }

// Renumber returns the events as they are: they have no numbers.
func (Defaults[F]) Renumber(events string, _ int) (string, error) { return events, nil }

// Authorize sets the key: the key is a bearer token. A server of one's own
// needs none.
func (Defaults[F]) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// MayHoldCall reports whether a word for calls of any format occurs in a body.
func (Defaults[F]) MayHoldCall(body []byte) bool { return MayHoldCall(body) }
