package agentloop

import (
	"github.com/toolmend/toolmend/middleware"
)

const interrupted = "This call was interrupted: whether it ran is not known. Call the tool again if its result is still needed."

// CloseCalls returns a history in which calls and results match, as every
// provider requires:
//
//   - A call without a result gets a result that says that it was
//     interrupted.
//   - A result without a call is removed, and so is a second result of a
//     call.
//   - Results follow their calls directly, in the order of the calls.
//   - An assistant message without any content is removed.
//
// All other messages stay the same, so a provider's prompt cache remains
// valid. If there is nothing to change, CloseCalls returns msgs itself. The same
// history always has the same result, and a second CloseCalls changes nothing.
func CloseCalls(msgs []middleware.Message) []middleware.Message {
	if isPaired(msgs) {
		return msgs
	}
	out := make([]middleware.Message, 0, len(msgs))
	for i, m := range msgs {
		if m.Role == middleware.RoleTool || isEmpty(m) {
			continue // replies are taken with their calls; the others are orphans
		}
		out = append(out, m)
		if len(m.ToolCalls) > 0 {
			out = append(out, repliesTo(m.ToolCalls, msgs[i+1:])...)
		}
	}
	return out
}

// repliesTo returns one reply for each call, from what follows up to the next
// message with calls. Two calls of one id take theirs in order.
func repliesTo(calls []middleware.ToolCall, rest []middleware.Message) []middleware.Message {
	results := map[string][]middleware.Message{}
	for _, m := range rest {
		if len(m.ToolCalls) > 0 {
			break
		}
		if m.Role == middleware.RoleTool {
			results[m.ToolCallID] = append(results[m.ToolCallID], m)
		}
	}
	replies := make([]middleware.Message, len(calls))
	for n, c := range calls {
		if of := results[c.ID]; len(of) > 0 {
			replies[n], results[c.ID] = of[0], of[1:]
			continue
		}
		replies[n] = middleware.ToolReply(c, interrupted)
		replies[n].IsError = true
	}
	return replies
}

// isEmpty reports whether m is an assistant message that holds nothing.
func isEmpty(m middleware.Message) bool {
	return m.Role == middleware.RoleAssistant && len(m.ToolCalls) == 0 && len(m.Parts) == 0 && m.Native == nil
}

// isPaired reports whether each call is followed by its result, and nothing is left over.
func isPaired(msgs []middleware.Message) bool {
	for i := 0; i < len(msgs); i++ {
		if msgs[i].Role == middleware.RoleTool || isEmpty(msgs[i]) {
			return false
		}
		for _, c := range msgs[i].ToolCalls {
			if i++; i >= len(msgs) || msgs[i].Role != middleware.RoleTool || msgs[i].ToolCallID != c.ID {
				return false
			}
		}
	}
	return true
}
