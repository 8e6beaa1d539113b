// Package batch has the policies for an assistant message of which some tool
// calls are invalid. Providers require one reply for every call of a message.
// An invalid call gets an error. Its valid siblings did not run either, so they
// get a notice, which [Policy] selects (Options.Batch of package argsvalidate).
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
	// it.
	ReissueAll Policy = iota + 1
	// KeepValid asks for the invalid calls only. The valid calls are held, and
	// the corrected arguments are written into the message that holds them.
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

// Turn returns the messages that a re-ask appends to a request: the echo of m,
// then the replies to its calls. verdicts are those on m's calls, in order.
// The replies have the ids and names of the echo, not of the verdicts.
// Calls of m without a reply are left out of the echo.
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
