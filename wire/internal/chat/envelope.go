package chat

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// The way from an answer, or a chunk of one, to its calls.
var (
	callEnvelope = codec.Envelope{{Key: "id"}, {Key: "type"}, {Key: "index"},
		{Key: "function", In: functionEnvelope}, {Key: "custom", In: codec.Envelope{{Key: "name"}, {Key: "input"}}}}
	functionEnvelope = codec.Envelope{{Key: "name"}, {Key: "arguments"}}
	messageEnvelope  = codec.Envelope{{Key: "role"}, {Key: "content"}, {Key: "tool_calls", In: callEnvelope}, {Key: "function_call", In: functionEnvelope}}
	answerEnvelope   = codec.Envelope{{Key: "error"}, {Key: "id"}, {Key: "object"}, {Key: "choices", In: codec.Envelope{{Key: "index"}, {Key: "finish_reason"},
		{Key: "message", In: messageEnvelope}, {Key: "delta", In: messageEnvelope}}}}
)

// parseAnswer parses an answer, or a chunk of one.
func parseAnswer(text string) (rawjson.Value, error) {
	v, err := codec.ParseObject(text)
	if err != nil {
		return v, err
	}
	return v, answerEnvelope.Check(v)
}
