// Package history writes messages of the model in the form in which a later request
// sends them back: with unique call ids, and with arguments and texts that providers
// accept. Its functions never modify their arguments.
package history

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Bounds of Echo, in bytes.
const (
	maxPartial = 8 << 10  // of the arguments of one call that are not one JSON object
	maxWhole   = 1 << 20  // of the arguments of one message that are JSON objects
	maxText    = 64 << 10 // of the text of one message
)

// Echo returns m in a form that providers accept in the history of a request.
// Anthropic, Gemini and most servers reject arguments that are not one JSON
// object, so Echo replaces such arguments by the longest run of complete
// top-level members that they begin with: byte for byte, and at most 8 KiB. A
// member is complete if the comma or brace after its value arrived. The run
// ends before a duplicate key. Without a complete member the arguments become
// {}.
//
// Arguments that are objects stay as they are, up to 1 MiB for all calls of m
// together. An object that exceeds the rest of this limit is cut in the same
// way. Names of undeclared tools lose the characters that providers reject.
// Only calls of kind KindFunction are changed. Text is cut at 64 KiB.
func Echo(m middleware.Message, tools []middleware.Tool) middleware.Message {
	m = m.Clone()
	declared := make(map[string]bool, len(tools))
	for i := range tools {
		declared[tools[i].Name] = true
	}
	clipText(&m)
	left := maxWhole
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		if c.Kind != middleware.KindFunction {
			continue
		}
		sent := c.Arguments
		if c.Arguments = rawjson.WholeMembers(sent, max(left, maxPartial), maxPartial); c.Arguments == sent {
			left -= len(sent)
		}
		if !declared[c.Name] {
			c.Name = plainName(c.Name)
		}
	}
	return m
}

// maxName is the length of the longest function name that OpenAI accepts. A name has
// letters, digits, "_" and "-" (API reference,
// messages[].tool_calls[].function.name).
const maxName = 64

// plainName returns name with characters and a length that providers accept.
func plainName(name string) string {
	b := []byte(name)
	b = b[:min(len(b), maxName)]
	for i, c := range b {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return "unnamed"
	}
	return string(b)
}

// Recent returns the last of the failed turns of a step, so that a request stays bounded.
// Together they have at most limit bytes of text, names and arguments. The last turn is
// always included.
func Recent(turns [][]middleware.Message, limit int) [][]middleware.Message {
	size := 0
	for n := len(turns) - 1; n >= 0; n-- {
		if size += sizeOf(turns[n]); size > limit && n < len(turns)-1 {
			return turns[n+1:]
		}
	}
	return turns
}

// sizeOf returns the bytes of text, data, names and arguments in a turn.
func sizeOf(turn []middleware.Message) int {
	size := 0
	for _, m := range turn {
		for _, p := range m.Parts {
			size += len(p.Text) + len(p.Data)
		}
		for _, c := range m.ToolCalls {
			size += len(c.Name) + len(c.Arguments)
		}
	}
	return size
}

// clipText cuts the text of m to maxText bytes. Reasoning stays complete, because providers
// sign it.
func clipText(m *middleware.Message) {
	left := maxText
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != middleware.PartText {
			continue
		}
		p.Text = text.Clip(p.Text, max(left, len("…"))) // providers refuse an empty text
		left = max(left-len(p.Text), 0)
	}
}

// Text returns an assistant message with a text. A blank text becomes "(empty)": many
// servers refuse an empty message, and also two consecutive messages of the user, so
// that the message cannot be left out.
func Text(text string) middleware.Message {
	if isBlank(text) {
		text = "(empty)"
	}
	return middleware.Assistant(text)
}
