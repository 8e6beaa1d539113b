package agentloop

import (
	"github.com/toolmend/toolmend/middleware"
)

const interrupted = "This call was interrupted: whether it ran is not known. Call the tool again if its result is still needed."

// Repair returns a history in which calls and results match, as every
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
// valid. If there is nothing to repair, Repair returns msgs itself. The same
// history always has the same result, and a second Repair changes nothing.
func Repair(msgs []middleware.Message) []middleware.Message {
	if sound(msgs) {
		return msgs
	}
	out := make([]middleware.Message, 0, len(msgs))
	for i, m := range msgs {
		if m.Role == middleware.RoleTool || hollow(m) {
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
	found := map[string][]middleware.Message{}
	for _, m := range rest {
		if len(m.ToolCalls) > 0 {
			break
		}
		if m.Role == middleware.RoleTool {
			found[m.ToolCallID] = append(found[m.ToolCallID], m)
		}
	}
	replies := make([]middleware.Message, len(calls))
	for n, c := range calls {
		if of := found[c.ID]; len(of) > 0 {
			replies[n], found[c.ID] = of[0], of[1:]
			continue
		}
		replies[n] = middleware.ToolReply(c, interrupted)
		replies[n].IsError = true
	}
	return replies
}

// hollow reports whether m is an assistant message that holds nothing.
func hollow(m middleware.Message) bool {
	return m.Role == middleware.RoleAssistant && len(m.ToolCalls) == 0 && len(m.Parts) == 0 && m.Native == nil
}

// sound reports whether nothing needs repair.
func sound(msgs []middleware.Message) bool {
	for i := 0; i < len(msgs); i++ {
		if msgs[i].Role == middleware.RoleTool || hollow(msgs[i]) {
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
