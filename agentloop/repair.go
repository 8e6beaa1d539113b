package agentloop

import (
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

const interrupted = "This call was interrupted: whether it ran is not known. Call the tool again if its result is still needed."

// Repair returns a history that every provider accepts: a call without a
// result gets one that says it was interrupted, a result without a call, or a
// second one, goes, and results stand in call order. Messages that need no
// repair are the same values, so that a provider's prompt cache holds; msgs
// itself comes back if none does. The result is the same every time, and
// repairing twice changes nothing.
func Repair(msgs []middleware.Message) []middleware.Message {
	if sound(msgs) {
		return msgs
	}
	var out []middleware.Message
	for i := 0; i < len(msgs); {
		m := msgs[i]
		i++
		if m.Role == middleware.RoleTool {
			continue // an orphan: replies are taken with their calls
		}
		out = append(out, m)
		if len(m.ToolCalls) == 0 {
			continue
		}
		from := i
		for i < len(msgs) && msgs[i].Role == middleware.RoleTool {
			i++
		}
		replies := msgs[from:i]
		for _, c := range m.ToolCalls {
			n := slices.IndexFunc(replies, func(r middleware.Message) bool { return r.ToolCallID == c.ID })
			if n < 0 {
				r := middleware.ToolReply(c, interrupted)
				r.IsError = true
				out = append(out, r)
				continue
			}
			out = append(out, replies[n])
		}
	}
	return out
}

// sound reports whether each call has its one reply, in order, right after its
// message.
func sound(msgs []middleware.Message) bool {
	for i := 0; i < len(msgs); i++ {
		if msgs[i].Role == middleware.RoleTool {
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
