// Package batch handles an assistant message of which some tool calls are invalid.
// None of its calls is executed. Providers require one reply for every call: an
// invalid call gets an error, and its valid siblings get a notice that they were not
// executed.
//
// Package argsvalidate does this in each step (Options.Batch). A loop of your own that
// validates calls itself uses the functions: [Turn] for the messages of the re-ask, then
// [Lost] or [Splice] for the next message of the model, depending on the [Policy].
//
// None of the functions modifies its arguments.
package batch

import (
	"slices"

	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Policy selects the calls that the model is asked to send again. 0 means
// ReissueAll.
type Policy uint8

// The policies.
const (
	// ReissueAll asks for all calls of the message. The next message replaces
	// it. Lost returns the calls that are then missing.
	ReissueAll Policy = iota + 1
	// KeepValid asks for the invalid calls only. The message is kept with its valid
	// calls, and Splice writes the corrected calls into it. Package argsvalidate uses
	// ReissueAll for requests that allow one call in a message.
	KeepValid
)

// Known reports whether p is 0 or one of the policies above.
func (p Policy) Known() bool { return p <= KeepValid }

var policyWords = text.Words{"", "reissue-all", "keep-valid"}

// String returns the word of the constant, such as "keep-valid", and "default" for 0.
func (p Policy) String() string { return policyWords.Of(uint8(p)) }

// MarshalText returns the text of String.
func (p Policy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText sets p to the constant with this word: reissue-all or keep-valid.
func (p *Policy) UnmarshalText(word []byte) error { return policyWords.Parse(word, (*uint8)(p)) }

// The notices to calls that are valid and were not executed.
const (
	reissueNotice = "This call was not executed, because another tool call in the same batch failed argument validation. " +
		"Re-issue all tool calls of the batch together, with the arguments of the failed ones corrected."
	keepNotice = "This call is valid and was not executed yet: it is held until the failed calls of the same batch are corrected. " +
		"Send only the failed calls again, not this one."
	tooManyNotice = "This call was not executed, because its message holds too many tool calls."
)

// Turn returns the messages that a re-ask appends to a request: m in a form that
// providers accept, then the [Replies] to its calls. verdicts has one verdict for each
// call of m, in order. Calls of m without a reply are left out.
//
// Providers refuse arguments that are not one JSON object, so such arguments become the
// longest run of complete top-level members that they begin with, or {}. Names of
// tools that are not in tools lose the characters that providers refuse. Arguments and
// texts are cut at fixed limits.
func Turn(m middleware.Message, tools []middleware.Tool, verdicts []middleware.Verdict, p Policy,
	render func(middleware.Verdict) string) []middleware.Message {
	replies := Replies(verdicts, p, render)
	m.ToolCalls = m.ToolCalls[:min(len(m.ToolCalls), len(replies))]
	echo := history.Echo(m, tools)
	turn := append([]middleware.Message{echo}, replies...)
	for i, c := range echo.ToolCalls {
		turn[i+1].ToolCallID, turn[i+1].ToolName = c.ID, c.Name
	}
	return turn
}

// Replies returns one tool message for each verdict, in call order. An invalid
// call gets an error with the text that render returns. A valid call gets a notice
// that it was not executed, and what to do, by the policy.
//
// A verdict with the issue too_many_calls is the verdict on the first call past a
// limit. This call and all later calls get no reply. The text that render returns
// for it is appended to the last reply, and the notice asks for no call again. Nor does the
// notice beside a call with the issue parallel_calls.
func Replies(verdicts []middleware.Verdict, p Policy, render func(middleware.Verdict) string) []middleware.Message {
	notice := reissueNotice
	if p == KeepValid {
		notice = keepNotice
	}
	answered := withinLimit(verdicts)
	if len(answered) < len(verdicts) || slices.ContainsFunc(verdicts, func(v middleware.Verdict) bool { return hasCode(v, codeParallel) }) {
		notice = tooManyNotice
	}
	replies := make([]middleware.Message, len(answered))
	for i, v := range answered {
		content := notice
		if !v.OK() {
			content = render(v)
		}
		replies[i] = middleware.ToolReply(v.Call, content)
		replies[i].IsError = !v.OK()
	}
	if len(answered) < len(verdicts) && len(replies) > 0 {
		last := &replies[len(replies)-1]
		last.Parts[0].Text += "\n\n" + render(verdicts[len(answered)])
	}
	return replies
}

// withinLimit returns the verdicts on the calls that get a reply.
func withinLimit(verdicts []middleware.Verdict) []middleware.Verdict {
	i := slices.IndexFunc(verdicts, func(v middleware.Verdict) bool { return !v.OK() && v.Issues[0].Code == codeTooMany })
	if i < 0 {
		return verdicts
	}
	return verdicts[:i]
}

// Valid returns the valid calls of a message, in order.
func Valid(verdicts []middleware.Verdict) []middleware.ToolCall {
	var valid []middleware.ToolCall
	for _, v := range verdicts {
		if v.OK() {
			valid = append(valid, v.Call)
		}
	}
	return valid
}
