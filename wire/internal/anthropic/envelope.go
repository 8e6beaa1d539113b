package anthropic

import "github.com/toolmend/toolmend/wire/internal/codec"

// The way from an answer, or an event of one, to its calls.
var (
	blockEnvelope  = codec.Envelope{{Key: "type"}, {Key: "id"}, {Key: "name"}, {Key: "input"}, {Key: "text"}}
	answerEnvelope = codec.Envelope{{Key: "type"}, {Key: "error"}, {Key: "index"}, {Key: "role"}, {Key: "stop_reason"},
		{Key: "content", In: blockEnvelope}, {Key: "content_block", In: blockEnvelope},
		{Key: "message", In: codec.Envelope{{Key: "role"}, {Key: "content", In: blockEnvelope}, {Key: "stop_reason"}}},
		{Key: "delta", In: codec.Envelope{{Key: "type"}, {Key: "text"}, {Key: "partial_json"}, {Key: "stop_reason"}}}}
)
