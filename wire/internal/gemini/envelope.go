package gemini

import "github.com/toolmend/toolmend/wire/internal/codec"

// answerEnvelope is the way from a chunk of an answer to its calls.
var answerEnvelope = codec.Envelope{{Key: "error"}, {Key: "candidates", In: codec.Envelope{{Key: "index"}, {Key: "finishReason", Other: "finish_reason"},
	{Key: "content", In: codec.Envelope{{Key: "role"}, {Key: "parts", In: partEnvelope}}}}}}

var partEnvelope = codec.Envelope{{Key: "text"}, {Key: "functionCall", Other: "function_call", In: codec.Envelope{
	{Key: "id"}, {Key: "name"}, {Key: "args"}, {Key: "willContinue", Other: "will_continue"},
	{Key: "partialArgs", Other: "partial_args", In: codec.Envelope{
		{Key: "jsonPath", Other: "json_path"}, {Key: "willContinue", Other: "will_continue"}, {Key: "stringValue", Other: "string_value"},
		{Key: "numberValue", Other: "number_value"}, {Key: "boolValue", Other: "bool_value"}, {Key: "nullValue", Other: "null_value"}}}}}}
