package ollama

import "github.com/toolmend/toolmend/wire/internal/codec"

// answerEnvelope is the way from a line of an answer to its calls.
var answerEnvelope = codec.Envelope{{Key: "error"}, {Key: "done"}, {Key: "message", In: codec.Envelope{{Key: "role"}, {Key: "content"}, {Key: "tool_calls",
	In: codec.Envelope{{Key: "id"}, {Key: "function", In: codec.Envelope{{Key: "index"}, {Key: "name"}, {Key: "arguments"}}}}}}}}
