package argsvalidate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// LoopCode is the code of the issue with which NoLoops rejects a call.
const LoopCode = "loop"

// NoLoops returns a rule against a model that makes the same failing call again and again. A
// call is rejected if the last after calls of the conversation have its name and its
// arguments, and all of their results were the same error. White space and the order of keys
// make no difference. after 0 means 3; NoLoops panics if it is negative.
//
// The call is re-asked once, with a reply that says so. If the model makes it again in a
// re-ask, it passes; so MaxAttempts must be at least 2. It is rejected again only after twice as many calls, then after four times as many, and
// so on. The rule keeps no state: the history is in the request. A result is an error if it says so
// (Message.IsError) or, in formats without that mark, if its text begins with a word for one.
//
// Calls of the tools named polling are never rejected: they are meant to be made again.
//
// Source of the need: anthropics/claude-code issue 30150.
func NoLoops(after int, polling ...string) Rule {
	if after < 0 {
		panic(fmt.Errorf("argsvalidate: NoLoops: after must not be negative, got %d", after))
	}
	if after == 0 {
		after = 3
	}
	return Named("no-loops", RuleFunc(func(_ context.Context, c *Call) ([]middleware.Issue, error) {
		if c.again || slices.Contains(polling, c.Name) {
			return nil, nil
		}
		n := failures(c.Request.Messages, c.ToolCall)
		if n < after || n%after != 0 || n/after&(n/after-1) != 0 {
			return nil, nil
		}
		return []middleware.Issue{{Code: LoopCode, Message: fmt.Sprintf("the same call has failed %d times in a row with the same error; do something else, or say what is missing", n)}}, nil
	}))
}

// failures returns how many of the last calls of a conversation are equal to c and failed
// with the same error.
func failures(messages []middleware.Message, c middleware.ToolCall) (n int) {
	arguments, result := rawjson.Canonical(c.Arguments), ""
	results := map[string]middleware.Message{}
	for _, m := range slices.Backward(messages) {
		switch {
		case m.Role == middleware.RoleTool:
			results[m.ToolCallID] = m
			continue
		case m.Role != middleware.RoleAssistant:
			continue
		}
		for _, call := range slices.Backward(m.ToolCalls) {
			reply, answered := results[call.ID]
			switch text := reply.Text(); {
			case !answered, call.Name != c.Name, rawjson.Canonical(call.Arguments) != arguments:
				return n
			case !isError(reply), n > 0 && text != result:
				return n
			default:
				result = text
				n++
			}
		}
		clear(results)
	}
	return n
}

// isError reports whether a result says that its call failed.
func isError(m middleware.Message) bool {
	if m.IsError {
		return true
	}
	text := strings.ToLower(strings.TrimLeft(m.Text(), " \t\r\n\"'[{<(*#"))
	for _, word := range []string{"error", "failed", "failure", "exception", "traceback"} {
		if strings.HasPrefix(text, word) {
			return true
		}
	}
	return false
}
