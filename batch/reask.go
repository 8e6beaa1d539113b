// Package reask writes the messages of a re-ask: the echo of an invalid turn,
// the replies to its calls, and the message that corrections are written into.
package batch

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// The notices for the valid siblings of an invalid call.
const (
	reissueNotice = "This call was not executed, because another tool call in the same batch failed argument validation. " +
		"Re-issue all tool calls of the batch together, with the arguments of the failed ones corrected."
	keepNotice = "This call is valid and was not executed yet: it is held until the failed calls of the same batch are corrected. " +
		"Send only the failed calls again, not this one."
	tooManyNotice = "This call was not executed, because its message holds too many tool calls."
)

// Replies returns one tool message for each verdict, in call order. An invalid
// call gets an error with the text that render returns; a valid call gets a
// notice.
//
// A verdict with the issue too_many_calls belongs to the first call past a
// limit. That call and those after it get no reply. The text that render
// returns for it is appended to the last reply, and no call is held.
func Replies(verdicts []middleware.Verdict, p Policy, render func(middleware.Verdict) string) []middleware.Message {
	notice := reissueNotice
	if p == KeepValid {
		notice = keepNotice
	}
	within := within(verdicts)
	if len(within) < len(verdicts) {
		notice = tooManyNotice
	}
	replies := replies(within, notice, render)
	if len(within) < len(verdicts) && len(replies) > 0 {
		last := &replies[len(replies)-1]
		last.Parts[0].Text += "\n\n" + render(verdicts[len(within)])
	}
	return replies
}

// within returns the verdicts on the calls within the limit.
func within(verdicts []middleware.Verdict) []middleware.Verdict {
	i := slices.IndexFunc(verdicts, func(v middleware.Verdict) bool { return !v.OK() && v.Issues[0].Code == codeTooMany })
	if i < 0 {
		return verdicts
	}
	return verdicts[:i]
}

func replies(verdicts []middleware.Verdict, notice string, render func(middleware.Verdict) string) []middleware.Message {
	replies := make([]middleware.Message, len(verdicts))
	for i, v := range verdicts {
		if v.OK() {
			replies[i] = middleware.ToolReply(v.Call, notice)
			continue
		}
		replies[i] = middleware.ToolReply(v.Call, render(v))
		replies[i].IsError = true
	}
	return replies
}

// maxEcho is the most of the arguments of one call that is echoed if they are
// not one JSON object, in bytes.
const maxEcho = 8 << 10

// maxEchoed is the most of the arguments of one message that is echoed if they
// are JSON objects, in bytes.
const maxEchoed = 1 << 20

// maxSaid is the most of the text of one message that is echoed, in bytes.
const maxSaid = 64 << 10

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
	shorten(&m)
	left := maxEchoed
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		if c.Kind != middleware.KindFunction {
			continue
		}
		sent := c.Arguments
		if c.Arguments = rawjson.WholeMembers(sent, max(left, maxEcho), maxEcho); c.Arguments == sent {
			left -= len(sent)
		}
		if !declared[c.Name] {
			c.Name = plainName(c.Name)
		}
	}
	return m
}

// maxName is the length of the longest function name that OpenAI accepts. The
// name may hold letters, digits, "_" and "-" (API reference,
// messages[].tool_calls[].function.name).
const maxName = 64

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

// Turn returns the messages that a re-ask appends to a request: the echo of m,
// then the replies to its calls. verdicts are those on m's calls, in order.
// The replies have the ids and names of the echo, not of the verdicts.
// Calls of m without a reply are left out of the echo.
func Turn(m middleware.Message, tools []middleware.Tool, verdicts []middleware.Verdict, p Policy,
	render func(middleware.Verdict) string) []middleware.Message {
	replies := Replies(verdicts, p, render)
	m.ToolCalls = m.ToolCalls[:min(len(m.ToolCalls), len(replies))]
	echo := Echo(m, tools)
	turn := append([]middleware.Message{echo}, replies...)
	for i, c := range echo.ToolCalls {
		turn[i+1].ToolCallID, turn[i+1].ToolName = c.ID, c.Name
	}
	return turn
}
