// Package wire reads and writes the providers' formats: a request or an answer
// as bytes becomes a [middleware.Request] or a [middleware.Response], goes
// through any middleware, and becomes bytes again with nothing lost.
//
//	req, err := wire.OpenAIChat().DecodeRequest(body)
//	…
//	body, err = wire.OpenAIChat().EncodeRequest(req.With(turn...))
//
// What was not changed comes out byte for byte: key order, white space, the
// spelling of numbers, reasoning, signatures, cache marks and members that this
// package has never heard of. A change is an edit of the recorded body, made in
// every place that holds a copy of the changed value. A change that the format
// has no place for is [ErrUnencodable], never dropped.
//
// What was not decoded from the wire is written afresh: a message put together
// by hand, a whole request. [Codec.Model] is a model call over plain HTTP that
// needs no SDK. To put a middleware into a client that exists already, see
// package transport.
package wire

import (
	"bytes"
	"net/http"
	"unicode/utf8"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/anthropic"
	"github.com/toolmend/toolmend/wire/internal/chat"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/gemini"
	"github.com/toolmend/toolmend/wire/internal/ollama"
	"github.com/toolmend/toolmend/wire/internal/responses"
)

var (
	// ErrShape is wrapped by the error of a decoder whose input is not of its
	// format, or past its bounds: whoever proxies it passes the bytes on.
	ErrShape = codec.ErrShape

	// ErrUnencodable is wrapped by the error of an encoder that found no place
	// for a change. Its text says for which.
	ErrUnencodable = codec.ErrUnencodable

	// ErrIncomplete is the error of an answer that ended early. It wraps
	// io.ErrUnexpectedEOF, so package retry asks again.
	ErrIncomplete = codec.ErrIncomplete
)

// OpenAIChat is OpenAI Chat Completions, and the many servers that copy it.
func OpenAIChat() Codec { return format{chat.Format{}} }

// OpenAIResponses is OpenAI Responses.
func OpenAIResponses() Codec { return format{responses.Format{}} }

// Anthropic is Anthropic Messages, on Bedrock and Vertex too.
func Anthropic() Codec { return format{anthropic.Format{}} }

// Gemini is Gemini generateContent, on Vertex too.
func Gemini() Codec { return format{gemini.Format{}} }

// Ollama is Ollama's own chat format.
func Ollama() Codec { return format{ollama.Format{}} }

// Codecs returns all formats. The slice is the caller's.
func Codecs() []Codec {
	return []Codec{OpenAIChat(), Anthropic(), OpenAIResponses(), Gemini(), Ollama()}
}

// Codec is one wire format. A Codec holds no state and is safe for concurrent
// use. No method changes what it is given, and what it returns is the caller's.
// Only this package implements Codec, so that later versions can add methods.
//
// A body may have up to 64 MiB, one event of a stream 16 MiB.
type Codec interface {
	// Dialect returns the name of the format, as it stands in Native.
	Dialect() string

	// Match reports whether a request to path with that body is of the format.
	// path may have a prefix in front, as gateways add one. It looks at little
	// of the body: DecodeRequest may still say ErrShape.
	Match(path string, body []byte) bool

	// MatchPath reports whether requests to path may be of the format: Match
	// without a body. Paths that servers take for the same are the same: case,
	// empty and "." segments, and spaces at the end make no difference.
	MatchPath(path string) bool

	// MayOfferTools reports whether body, a request that DecodeRequest cannot
	// read, may offer tools. A no is certain.
	MayOfferTools(body []byte) bool

	// WantsStream reports whether a request to path with that body asks for a
	// streamed answer. The body's "stream" member counts, else the last segment of
	// the path, else the format's default.
	WantsStream(path string, body []byte) bool

	// RenamePrevious returns the body of a request that goes on from an earlier
	// answer with that answer's id replaced by what rename makes of it; body itself
	// if the request does not, or rename returns the same id.
	RenamePrevious(body []byte, rename func(id string) string) []byte

	// DecodeRequest reads the body of a request. Everything that it holds has a
	// Native. Where the format can do without ids, a tool call that has none gets
	// one by its place in the conversation, which is never written back;
	// elsewhere a blank id stays blank. The error wraps ErrShape.
	DecodeRequest(body []byte) (*middleware.Request, error)

	// EncodeRequest writes the body of a request: as an edit of what was
	// decoded, or afresh where req has no Native of this dialect. A fresh
	// request asks for a stream if req.Sink is set. The error wraps
	// ErrUnencodable.
	EncodeRequest(req *middleware.Request) ([]byte, error)

	// DecodeResponse reads a whole answer to req, streamed or not. The error
	// wraps ErrShape, or ErrIncomplete, or is the *middleware.ModelError that
	// the provider sent in an answer with a good status; one in which it refused
	// the model's own tool call wraps middleware.ErrInvalidToolCall.
	DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error)

	// EncodeResponse writes the body of an answer, framed as it was received.
	// Changed text and calls are written, and Usage where the body has figures
	// of it. The error wraps ErrUnencodable; a response that was not decoded
	// from this format is one.
	EncodeResponse(resp *middleware.Response) ([]byte, error)

	// EncodeAnswer writes a response that answers a request without having been
	// the answer to it: a middleware wrote it, or it comes from a cache, of
	// whatever format. path, with its query, and body are the request's; they say
	// whether the answer is streamed. contentType goes with it. The answer has
	// what the provider's SDKs demand: a new id, the time, the model (resp's, else
	// the request's), a finish reason, and Usage as far as the format has places.
	// Reasoning of another format is left out where the provider would refuse it
	// in the next request. A response of this format keeps all that it has, and
	// its bytes if they are framed as the client expects. The error wraps
	// ErrUnencodable.
	EncodeAnswer(path string, body []byte, resp *middleware.Response) (answer []byte, contentType string, err error)

	// NewStream returns a reader for one answer to req, streamed or not. Text
	// and reasoning go to sink, if it is not nil, as soon as they are read.
	NewStream(req *middleware.Request, sink middleware.Sink) Stream

	// DecodeError reads the body of an answer with a status that is no success.
	// The result is never nil. Its text has the provider's message, cut at 300
	// bytes, but for the refusal of a tool call, which quotes the arguments:
	// Output has what the model wrote.
	DecodeError(status int, header http.Header, body []byte) *middleware.ModelError

	// EncodeError writes an error as the provider would. code is in it where the
	// format has a place for one; without a code the status says what it is.
	EncodeError(status int, code, message string) []byte

	// MayHoldCall reports whether body may hold a tool call: whether one of the
	// format's words for calls occurs in it, in any spelling that a JSON reader
	// takes for the word. It is for bodies that the codec cannot read; a no is
	// certain.
	MayHoldCall(body []byte) bool

	// Model returns a model call over HTTP. It streams requests with a Sink. An
	// error status is a *middleware.ModelError, an answer that ends early wraps
	// ErrIncomplete. The key is in the text of neither; of the provider's message
	// see DecodeError. A redirect is not followed: it is an error status. It is safe for
	// concurrent use. Model panics with the error of e.Validate.
	Model(e Endpoint) middleware.ModelCall

	sealed()
}

// Stream reads one answer and keeps a cursor: the bytes before it were taken for
// the client. It serves one goroutine, but for KeepAlive, Take and Taken, which
// may be called concurrently with the other methods. Like Codec it is
// implemented by this package only.
type Stream interface {
	// Write takes the next bytes, in pieces of any size. The error is the
	// sink's, or wraps ErrShape; after it the stream takes no more.
	Write(p []byte) (int, error)

	// Safe returns how many of the first bytes may be shown already: they hold
	// no tool call, no error and no end. It never falls, and is 0 for an answer
	// that is not streamed.
	Safe() int

	// Take returns the bytes between the cursor and Safe for the client, and
	// moves the cursor behind them. It returns nil if there are none.
	Take() []byte

	// KeepAlive returns bytes for the client, to follow those that were taken,
	// that say only that the answer goes on. If nothing was taken, the event that
	// opens the answer comes first. It returns nil if there is nothing to say:
	// the answer is no stream, or what opens it has not been read yet.
	KeepAlive() []byte

	// Taken returns the position of the cursor: how many of the bytes that were
	// written have been taken.
	Taken() int

	// IsStream reports whether the bytes that were written are a stream:
	// server-sent events, or JSON texts on lines of their own.
	IsStream() bool

	// Ended reports whether the bytes that were written end with the mark at which
	// SDKs stop reading the stream. A server may keep the connection open behind it.
	Ended() bool

	// Close says that there are no more bytes, and returns the answer. The
	// errors are DecodeResponse's.
	Close() (*middleware.Response, error)

	// Rest returns the bytes that have to follow those that were taken so that
	// the client reads one answer, and that answer is resp: this stream's own or,
	// after a re-ask, a later one. The caller must call Close first. The error
	// wraps ErrUnencodable.
	Rest(resp *middleware.Response) ([]byte, error)

	// Fail returns the events that end the answer as failed behind the bytes
	// that were taken. It returns nil for an answer that is not streamed. SDKs
	// and agents do not repeat a request that failed with status 400. Any other
	// status is written as the provider would write it. code is in the events
	// where the format has a place for it.
	Fail(status int, code, message string) []byte

	// Failure returns the event of a stream in which the provider sent the error
	// that Close returned, as it came. It returns nil if there is none.
	Failure() []byte

	// Passed returns bytes that were written, for an answer that goes on to the
	// client as it came, as they have to follow those that were taken: events that
	// are numbered count the keep-alives before them.
	Passed(written []byte) []byte

	// Comment returns text as a comment of the stream. It returns nil where the
	// stream, or one of the format's official clients, does not take comments.
	Comment(text string) []byte

	// Renamed returns the id under which a client knows the answer that Rest
	// wrote, and the id under which the provider keeps resp. Both are "" if the
	// two are the same, if the provider does not keep the answer, and in formats
	// whose requests do not go on from an earlier answer.
	Renamed(resp *middleware.Response) (given, kept string)

	sealed()
}

// format is a codec without its HTTP.
type format struct{ codec.Format }

func (format) sealed() {}

// RenamePrevious is part of Codec. A format whose requests go on from an earlier
// answer has the method.
func (f format) RenamePrevious(body []byte, rename func(id string) string) []byte {
	if r, ok := f.Format.(interface {
		RenamePrevious(body []byte, rename func(id string) string) []byte
	}); ok {
		return r.RenamePrevious(body, rename)
	}
	return body
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
	body, err := f.Format.EncodeRequest(req)
	if err != nil || utf8.Valid(body) || req.Native != nil && req.Native.Raw == string(body) {
		return body, err
	}
	return bytes.ToValidUTF8(body, []byte("\ufffd")), nil
}

// MayOfferTools looks for the members that hold tools; they have the same names
// in every format.
func (f format) MayOfferTools(body []byte) bool {
	return codec.MayHold(body, `"tools"`, `"functions"`)
}
