package responses

import "github.com/toolmend/toolmend/wire/internal/codec"

// The way from an answer, or an event of one, to its calls.
var (
	itemEnvelope = codec.Envelope{{Key: "type"}, {Key: "id"}, {Key: "call_id"}, {Key: "name"}, {Key: "namespace"}, {Key: "arguments"}, {Key: "input"},
		{Key: "action"}, {Key: "actions"}, {Key: "operation"}, {Key: "execution"}, {Key: "status"}, {Key: "role"}, {Key: "content"}}
	answerEnvelope = codec.Envelope{{Key: "type"}, {Key: "error"}, {Key: "status"}, {Key: "output", In: itemEnvelope},
		{Key: "item", In: itemEnvelope}, {Key: "response", In: codec.Envelope{{Key: "error"}, {Key: "status"}, {Key: "output", In: itemEnvelope}}},
		{Key: "output_index"}, {Key: "item_id"}, {Key: "call_id"}, {Key: "delta"}, {Key: "arguments"}, {Key: "input"}, {Key: "name"}}
)
