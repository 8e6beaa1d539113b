package ollama

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// These are messages of the server about a tool call of its model that it cannot parse.
// Version 0.11.3 wrote the first half as a key. Sources: ollama/ollama issues 11704, 11781,
// 12064 and 17638.
const (
	unparsed  = "error parsing tool call"
	unparsedX = "XML syntax error" // of the models whose calls are XML
)

// ReadFailure reads the error in a body or in a line of a stream, {"error": text}; false without one.
func (Format) ReadFailure(root rawjson.Value) (f codec.Failure, ok bool) {
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

// EncodeError writes an error as the provider does, in a stream too: for ollama/ollama v0.17.4
// (api/client.go), a line with a member error ends the stream with its text. This format has no codes.
func (Format) EncodeError(_ int, _, message string) []byte {
	return []byte(codec.Object(codec.Member{Key: "error", Raw: rawjson.Quote(message)}))
}
