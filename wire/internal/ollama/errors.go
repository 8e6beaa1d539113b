package ollama

import (
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// These are messages of the server about a tool call of its model that it cannot parse.
// Version 0.11.3 wrote the first half as a key. Sources: ollama/ollama issues 11704, 11781,
// 12064 and 17638.
const (
	unparsed  = "error parsing tool call"
	unparsedX = "XML syntax error" // of the models whose calls are XML
)

// failureOf reads the error in an answer or in a line of a stream; false without one.
func failureOf(root rawjson.Value) (f codec.Failure, ok bool) {
	if root.Get(unparsed).Exists() {
		return codec.Failure{Refused: true}, true
	}
	switch e := root.Get("error"); e.Kind() {
	case rawjson.Invalid, rawjson.Null:
		return f, false
	case rawjson.Object: // as gateways have it
		f = codec.Failure{Code: codec.FirstText(e.Get("code"), e.Get("type")), Message: e.Get("message").Str()}
	default:
		f.Message = codec.Text(e)
	}
	if f.Output, f.Refused = codec.Unparsed(f.Message); !f.Refused {
		f.Refused = strings.Contains(f.Message, unparsedX)
	}
	return f, true
}

// DecodeError reads the body of an answer with an error status. The body of an error is
// {"error": text}.
func (Format) DecodeError(status int, header http.Header, body []byte) *middleware.ModelError {
	return codec.DecodeError(status, header, body, failureOf)
}

// Fail returns the events that end a stream as a failure. Source: ollama/ollama v0.17.4,
// api/client.go: a line with a member error ends the stream with its text.
func (s *stream) Fail(sent, status int, code, message string) []byte {
	return s.Buf.Frame(sent, "", string(Format{}.EncodeError(status, code, message)))
}

// EncodeError writes an error as the provider does. This format has no codes.
func (Format) EncodeError(_ int, _, message string) []byte {
	return []byte(codec.Object(codec.Member{Key: "error", Raw: rawjson.Quote(message)}))
}
