// Package wire reads and writes the formats of model providers. A codec
// decodes a request or a response into a [middleware.Request] or a
// [middleware.Response]. Any middleware can change it. The codec encodes the
// result without losing anything.
//
//	req, err := wire.OpenAIChat().DecodeRequest(body)
//	…
//	body, err = wire.OpenAIChat().EncodeRequest(req.With(turn...))
//
// In a request, everything that was not changed is written with the same bytes:
// key order, white space, the spelling of numbers, reasoning, signatures, cache
// marks and members that this package does not know. A change is an edit of the
// decoded body, in every place that has a copy of the changed value.
//
// A response passes with the same bytes if no word for tool calls occurs in it
// and nothing was changed. Any other response is written from what was decoded:
// in it each member occurs once, and all clients read the same calls. Members
// that this package does not know are kept unless a word for calls occurs in
// them. Signatures, encrypted reasoning and usage are always kept.
//
// If the format has no place for a change, the error is [ErrUnencodable]; a
// change is never dropped.
//
// A message or a request that was not decoded is written as a new one.
// [Codec.Model] returns a model call over HTTP that needs no SDK. To put a
// middleware into an existing client, see package transport.
package wire

import (
	"bytes"
	"net/http"
	"unicode/utf8"
	"unsafe"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/anthropic"
	"github.com/toolmend/toolmend/wire/internal/chat"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/gemini"
	"github.com/toolmend/toolmend/wire/internal/lens"
	"github.com/toolmend/toolmend/wire/internal/ollama"
	"github.com/toolmend/toolmend/wire/internal/responses"
)

var (
	// ErrShape means that the input of a decoder is not in its format, or is
	// larger than the decoder's limits. A proxy can pass such bytes on.
	ErrShape = codec.ErrShape

	// ErrUnencodable means that the format has no place for a change. The text
	// of the error names the change.
	ErrUnencodable = codec.ErrUnencodable

	// ErrIncomplete means that an answer ended early. It wraps
	// io.ErrUnexpectedEOF, so package retry retries the model call.
	ErrIncomplete = codec.ErrIncomplete
)

// OpenAIChat returns the codec of OpenAI Chat Completions, and of the many servers
// that copy it.
func OpenAIChat() Codec { return format{chat.Format{}} }

// OpenAIResponses returns the codec of OpenAI Responses.
func OpenAIResponses() Codec { return format{responses.Format{}} }

// Anthropic returns the codec of Anthropic Messages, also on Bedrock and Vertex.
func Anthropic() Codec { return format{anthropic.Format{}} }

// Gemini returns the codec of Gemini generateContent, also on Vertex.
func Gemini() Codec { return format{gemini.Format{}} }

// Ollama returns the codec of Ollama's own chat format.
func Ollama() Codec { return format{ollama.Format{}} }

// Codecs returns the codecs of all formats. The caller owns the slice.
func Codecs() []Codec {
	return []Codec{OpenAIChat(), Anthropic(), OpenAIResponses(), Gemini(), Ollama()}
}

// Codec reads and writes one wire format. A Codec has no state and is safe
// for concurrent use. Its methods do not change their arguments, and the
// caller owns their results. Only this package implements Codec, so later
// versions can add methods.
//
// A body may have up to 64 MiB, and one event of a stream up to 16 MiB.
type Codec interface {
	// Dialect returns the name of the format, as in middleware.Native.
	Dialect() string

	// Match reports whether a request with this path and body is in the
	// format. The path may have a prefix, as gateways add one. Match reads
	// only a part of the body, so DecodeRequest may still return ErrShape.
	Match(path string, body []byte) bool

	// MatchPath reports whether requests with this path may be in the
	// format. Differences that servers ignore make no difference: letter
	// case, empty and "." segments, and spaces at the end.
	MatchPath(path string) bool

	// MayOfferTools reports whether body may offer tools. It is for requests
	// that DecodeRequest cannot read. False is certain.
	MayOfferTools(body []byte) bool

	// WantsStream reports whether a request asks for a streamed answer. The
	// "stream" member of the body decides, else the last segment of the
	// path, else the default of the format.
	WantsStream(path string, body []byte) bool

	// RenamePrevious replaces the id of the earlier answer that a request
	// continues from: rename returns the new id for the old one. It returns
	// body itself if the request does not continue from an answer, or if rename
	// returns the same id.
	RenamePrevious(body []byte, rename func(id string) string) []byte

	// DecodeRequest reads the body of a request. Each item of the result has
	// a Native. In a format that works without ids, a tool call without an
	// id gets one by its place in the conversation; it is never written
	// back. In other formats a blank id stays blank. The error wraps
	// ErrShape.
	DecodeRequest(body []byte) (*middleware.Request, error)

	// EncodeRequest writes the body of a request. It edits the decoded body,
	// or writes a new one if req has no Native of this dialect. A new body
	// asks for a stream if req.Sink is set. The error wraps ErrUnencodable.
	EncodeRequest(req *middleware.Request) ([]byte, error)

	// DecodeResponse reads a whole answer to req, streamed or not. The error
	// wraps ErrShape or ErrIncomplete. If the provider sent an error with a
	// good status, it is a *middleware.ModelError. That error wraps
	// middleware.ErrInvalidToolCall if the provider refused the tool call
	// that the model wrote, or reports by its finish reason that it could
	// not read one; then ModelError.Response is the answer.
	DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error)

	// EncodeResponse writes the body of an answer, with the framing in which
	// it was received. It writes changed text and calls, and Usage if the
	// body has token counts. The error wraps ErrUnencodable. A response that
	// was not decoded from this format is such an error.
	EncodeResponse(resp *middleware.Response) ([]byte, error)

	// EncodeAnswer writes a response that is not the answer of the provider
	// to this request: a middleware wrote it, or it comes from a cache, in
	// any format. path, with its query, and body belong to the request.
	// They decide whether the answer is streamed. contentType is the header
	// for the answer.
	//
	// The answer has what the provider's SDKs require: a new id, the time,
	// the model of resp or else of the request, a finish reason, and Usage
	// as far as the format has places for it. Reasoning of another format is
	// left out if the provider would refuse it in the next request. A
	// response of this format keeps everything, and its bytes if they have
	// the framing that the client expects. The error wraps ErrUnencodable.
	EncodeAnswer(path string, body []byte, resp *middleware.Response) (answer []byte, contentType string, err error)

	// NewStream returns a reader for one answer to req, streamed or not. If
	// sink is not nil, it gets text and reasoning as soon as they are read.
	NewStream(req *middleware.Request, sink middleware.Sink) Stream

	// DecodeError reads the body of an answer with an error status. The
	// result is never nil. Its text contains the provider's message, cut at
	// 300 bytes. The message of a refused tool call quotes the arguments, so
	// it is not in the text; Output has what the model wrote.
	DecodeError(status int, header http.Header, body []byte) *middleware.ModelError

	// EncodeError writes an error as the provider would. The body contains
	// code if the format has a place for it. If code is "", the format's own
	// code for the status is used.
	EncodeError(status int, code, message string) []byte

	// UnavailableStatus returns the status with which a proxy says that it
	// cannot connect to the provider: status, or another one if clients of
	// the format repeat such requests too often. Codex repeats a 5xx thirty
	// times.
	UnavailableStatus(status int) int

	// MayHoldCall reports whether body may contain a tool call: whether one
	// of the format's words for calls occurs in it, in any spelling that a
	// JSON reader accepts for the word. It is for bodies that the codec
	// cannot read. False is certain.
	MayHoldCall(body []byte) bool

	// Model returns a model call over HTTP. It streams a request that has a
	// Sink. An error status is a *middleware.ModelError. The error of an
	// answer that ends early wraps ErrIncomplete. No error contains the key;
	// see DecodeError for the provider's message. A redirect is not followed
	// and counts as an error status. The model call is safe for concurrent
	// use. Model panics with the error of e.Validate.
	Model(e Endpoint) middleware.ModelCall

	sealed()
}

// Stream reads one answer and has a cursor. The bytes before the cursor were
// taken for the client. A Stream serves one goroutine. Only KeepAlive, Take
// and Taken may be called concurrently with the other methods. Only this
// package implements Stream.
type Stream interface {
	// Write adds the next bytes, in pieces of any size. The error is the one of the sink, or
	// wraps ErrShape. After an error the stream accepts no more bytes.
	Write(p []byte) (int, error)

	// Text returns all bytes that were written.
	Text() string

	// Safe returns the number of bytes at the beginning that the client may
	// get already. They contain no tool call, no error and no end. Safe
	// never decreases. It is 0 for an answer that is not streamed.
	Safe() int

	// Take returns the bytes from the cursor to Safe, and moves the cursor to Safe. It returns
	// nil without such bytes.
	Take() []byte

	// KeepAlive returns bytes that only tell the client that the answer continues. They follow
	// the bytes that were taken. If nothing was taken, they begin with the event that opens the
	// answer. KeepAlive returns nil if the answer is not a stream, or if that event has not been
	// read yet.
	KeepAlive() []byte

	// Taken returns the position of the cursor: the number of bytes that
	// were taken.
	Taken() int

	// Sent returns the bytes that were taken.
	Sent() string

	// Pending returns the received bytes after them.
	Pending() string

	// IsStream reports whether the bytes are a stream: server-sent events,
	// or one JSON text on each line.
	IsStream() bool

	// Ended reports whether the bytes end with the mark at which SDKs stop
	// reading. A server may keep the connection open after it.
	Ended() bool

	// Close ends the input and returns the answer. It has the errors of DecodeResponse.
	Close() (*middleware.Response, error)

	// Rest returns the bytes that must follow those that were taken, so that
	// the client reads one answer, which is resp. resp is the answer of this
	// stream, or a later one after a re-ask. The caller must call Close
	// first. The error wraps ErrUnencodable.
	Rest(resp *middleware.Response) ([]byte, error)

	// Fail returns the events that must follow those that were taken, so
	// that the answer ends as a failure. It returns nil for an answer that
	// is not streamed. SDKs and agents do not retry a failure with status
	// 400. Any other status is written as the provider would write it. The
	// events contain code if the format has a place for it.
	Fail(status int, code, message string) []byte

	// Failure returns the event in which the provider sent the error that Close returned, with
	// the same bytes. It returns nil for an answer without such an event.
	Failure() []byte

	// Passed returns the form in which written bytes must follow those that
	// were taken, for an answer that is passed on unread. Events with
	// numbers are numbered anew if keep-alives were sent before them.
	Passed(written []byte) []byte

	// Comment returns text as a comment of the stream. It returns nil if the
	// stream, or an official client of the format, does not accept comments.
	Comment(text string) []byte

	// Renamed returns the id under which a client knows the answer that Rest
	// wrote, and the id under which the provider stores resp. Both are "" if
	// they are equal, if the provider does not store the answer, and in
	// formats whose requests do not continue from an earlier answer.
	Renamed(resp *middleware.Response) (clientID, providerID string)

	sealed()
}

// Requests decodes requests faster if they repeat what earlier ones began with, as the requests of agents do. It
// keeps lists of tools, and sums of the texts of messages under a random key; it keeps no text of a message. It has a bounded size, and is
// safe for concurrent use. The zero Requests is ready to use.
type Requests struct{ known codec.Known }

// Decode returns the results of c.DecodeRequest(body) and c.WantsStream(path, body). The caller must not modify body
// afterwards. Only requests with the same client have their messages compared.
//
// With deferred, the messages may be read later: see middleware.Request.Loaded. Such a request shares its tools with other requests, so nothing in
// it may be modified. Clone returns a copy that may be.
func (r *Requests) Decode(c Codec, path string, body []byte, client string, deferred bool) (req *middleware.Request, stream bool, err error) {
	f, ok := c.(format)
	if !ok {
		if req, err = c.DecodeRequest(body); err == nil {
			stream = c.WantsStream(path, body)
		}
		return req, stream, err
	}
	in := &codec.Input{Raw: unsafe.String(unsafe.SliceData(body), len(body)), Known: &r.known, Client: client, Defer: deferred}
	if req, err = codec.Request(f.Format, in); err != nil || in.HasStream {
		return req, in.Stream, err
	}
	return req, c.WantsStream(path, nil), nil
}

// Counts returns how many lists of tools or messages began as an earlier one, how many did not, and
// how many sums are kept. Lists of less than a kilobyte are not counted.
func (r *Requests) Counts() (hits, misses int64, sums int) { return r.known.Counts() }

// FinishReason returns the neutral form of a finish word of any format, or the word itself if it has none. calls says
// whether the answer has tool calls. The error is middleware.ErrInvalidToolCall if the word means that the provider
// could not read a call of the model, and the answer has none.
func FinishReason(word string, calls bool) (middleware.FinishReason, error) {
	if !calls && codec.IsUnread(word) {
		return middleware.FinishReason(word), middleware.ErrInvalidToolCall
	}
	return codec.Finish(word, calls), nil
}

// Unchanged reports whether EncodeRequest would return the body from which req was decoded. False is not certain.
func Unchanged(req *middleware.Request) bool { return lens.Unchanged(req) }

// format is a codec without its HTTP.
type format struct{ codec.Format }

func (format) sealed() {}

// DecodeResponse reads a whole answer as a stream that comes in one piece.
func (f format) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	s := f.Format.NewStream(req, nil)
	if _, err := s.Write(body); err != nil {
		return nil, err
	}
	return s.Close()
}

// NewStream puts the cursor around the format's reader.
func (f format) NewStream(req *middleware.Request, sink middleware.Sink) Stream {
	return stream{codec.NewCursor(f.Format, f.Format.NewStream(req, sink))}
}

// stream is a Stream of any format.
type stream struct{ *codec.Cursor }

func (stream) sealed() {}

// EncodeRequest replaces the bytes of a changed request that are not UTF-8, as a
// provider may refuse it for them: the answer that it repeats may hold some.
func (f format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	if _, isChat := f.Format.(chat.Format); len(req.Output) > 0 && !isChat && f.Format != (ollama.Format{}) {
		return nil, codec.Unencodablef("a schema of the answer's text")
	}
	body, err := f.Format.EncodeRequest(req)
	if err != nil || utf8.Valid(body) || req.Native != nil && req.Native.Raw == string(body) {
		return body, err
	}
	return bytes.ToValidUTF8(body, []byte("\ufffd")), nil
}

// MayOfferTools looks for the members that hold tools; they have the same names
// in every format. At the top, one that is null or empty holds none.
func (f format) MayOfferTools(body []byte) bool {
	return codec.MayHold(codec.WithoutEmpty(body, "tools", "functions"), `"tools"`, `"functions"`)
}
