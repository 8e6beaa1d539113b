package codec

import (
	"bytes"
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// The comparisons find out what a middleware changed in what was decoded. They
// leave Native out. Strings that did not change share their memory, so that
// comparing them costs next to nothing.

// SameCall reports whether a and b differ in nothing that a codec writes.
func SameCall(a, b middleware.ToolCall) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Kind == b.Kind && a.Arguments == b.Arguments
}

// SamePart is SameCall for parts.
func SamePart(a, b middleware.Part) bool {
	return a.Kind == b.Kind && a.Text == b.Text && a.MediaType == b.MediaType && a.URL == b.URL && bytes.Equal(a.Data, b.Data)
}

// SameNative reports whether a and b stand for the same text of the provider,
// storage in between or not.
func SameNative(a, b *middleware.Native) bool {
	return a == b || a != nil && b != nil && a.Dialect == b.Dialect && a.Raw == b.Raw
}

// SameMessage is SameCall for messages: a part or a call that was put in the
// place of one with another Native counts as a change.
func SameMessage(a, b middleware.Message) bool {
	return a.Role == b.Role && a.ToolCallID == b.ToolCallID && a.ToolName == b.ToolName && a.IsError == b.IsError &&
		slices.EqualFunc(a.Parts, b.Parts, func(a, b middleware.Part) bool { return SameNative(a.Native, b.Native) && SamePart(a, b) }) &&
		slices.EqualFunc(a.ToolCalls, b.ToolCalls, func(a, b middleware.ToolCall) bool { return SameNative(a.Native, b.Native) && SameCall(a, b) })
}

// SameRequest reports whether a and b differ in nothing that a codec writes into
// the body that both came from.
func SameRequest(a, b *middleware.Request) bool {
	return a.Model == b.Model && a.ToolChoice == b.ToolChoice && a.MaxTokens == b.MaxTokens && bytes.Equal(a.Output, b.Output) &&
		SameFloat(a.Temperature, b.Temperature) && slices.Equal(a.Stop, b.Stop) && SameMessages(a.Messages, b.Messages) && SameTools(a.Tools, b.Tools)
}

// SameResponse is SameRequest for answers.
func SameResponse(a, b *middleware.Response) bool {
	return a.Model == b.Model && a.FinishReason == b.FinishReason && a.Usage == b.Usage &&
		SameMessage(a.Message, b.Message) && slices.EqualFunc(a.Choices, b.Choices, SameMessage)
}

// SameMessages is SameMessage for the messages of a request, each of which has a
// text of its own.
func SameMessages(a, b []middleware.Message) bool {
	return slices.EqualFunc(a, b, func(a, b middleware.Message) bool { return SameNative(a.Native, b.Native) && SameMessage(a, b) })
}

// SameTools is SameMessages for tools.
func SameTools(a, b []middleware.Tool) bool {
	return slices.EqualFunc(a, b, func(a, b middleware.Tool) bool { return SameNative(a.Native, b.Native) && SameTool(a, b) })
}

// SameTool is SameCall for tools.
func SameTool(a, b middleware.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && a.Strict == b.Strict && a.Kind == b.Kind &&
		bytes.Equal(a.Parameters, b.Parameters)
}

// SameFloat reports whether a and b are the same number, or both none.
func SameFloat(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// Calls returns how many tool calls messages hold.
func Calls(messages []middleware.Message) int {
	n := 0
	for _, m := range messages {
		n += len(m.ToolCalls)
	}
	return n
}
