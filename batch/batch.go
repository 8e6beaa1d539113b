// Package batch answers an assistant message whose tool calls are partly
// invalid. It is a library, not a middleware: argsvalidate applies it.
//
// Providers demand one reply for every call of a turn, right after it. So a bad
// call gets an error, and its good siblings, which did not run either, get a
// notice. [Policy] says what the notice asks for.
package batch

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Policy says what a re-ask asks for.
type Policy uint8

// The policies.
const (
	// ReissueAll asks for the whole batch again. The next message stands alone.
	ReissueAll Policy = iota
	// KeepValid asks for the broken calls only. Valid siblings are held, and
	// Splice writes the corrected arguments into the message that holds them.
	KeepValid
)

// Known reports whether p is one of the policies above.
func (p Policy) Known() bool { return p <= KeepValid }

// What the good siblings of a bad call are told.
const (
	reissueNotice = "This call was not executed, because another tool call in the same batch failed argument validation. " +
		"Re-issue all tool calls of the batch together, with the arguments of the failed ones corrected."
	keepNotice = "This call is valid and was not executed yet: it is held until the failed calls of the same batch are corrected. " +
		"Send only the failed calls again, not this one."
	tooManyNotice = "This call was not executed, because its message holds too many tool calls."
)

// Replies returns one tool message for each verdict, in call order: an error
// with the text that render gives for an invalid call, a notice for a valid
// one.
//
// A verdict with the issue too_many_calls is that of the first call past a
// limit. It and the calls after it get no reply: what render says of it follows
// the text of the last reply, and nothing is held.
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

// within returns the verdicts on calls within the limit.
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

// maxEcho is the most that is kept of arguments that are not one JSON object,
// in bytes.
const maxEcho = 8 << 10

// maxEchoed is the most that is sent back of the arguments of one message that
// are JSON objects, in bytes.
const maxEchoed = 1 << 20

// maxSaid is the most that is sent back of the text of one message, in bytes.
const maxSaid = 64 << 10

// Echo returns m as it can stand in the history of a request. Arguments that
// are not one JSON object become one, because Anthropic, Gemini and most servers
// refuse the request otherwise: the longest run of whole top-level members that
// they begin with, byte for byte and at most 8 KiB of it. A member is whole if
// the comma or brace behind its value arrived; the run ends before a repeated
// key. Without such a member the arguments become {}. Objects stay whole, up to
// 1 MiB in all calls of m together; one that exceeds what is left is cut in the
// same way.
//
// The names of tools that are not declared lose the characters that providers
// refuse. Only the calls of kind Function are touched. Text past 64 KiB is cut.
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

// maxName is the longest function name that OpenAI takes, and letters, digits,
// "_" and "-" are all that it takes (API reference, messages[].tool_calls[].function.name).
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

// Turn returns what a re-ask appends to a request: the echo of m, then the
// replies to its calls. verdicts are those on m's calls, in order; the ids and
// the names of the replies are those of the echo, whatever the verdicts say.
// Calls of m without a reply are not echoed.
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
