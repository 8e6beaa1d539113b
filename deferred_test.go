package toolmend_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/middleware"
)

// The stack reads deferred messages only if it needs them, and then all of them.
func TestDeferredMessages(t *testing.T) {
	t.Parallel()
	tools := []middleware.Tool{{Name: "get", Parameters: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}}
	call := func(id, name, args string) *middleware.Response {
		return &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{ID: id, Name: name, Arguments: args}), FinishReason: middleware.FinishToolCalls}
	}
	for name, c := range map[string]struct {
		first *middleware.Response
		reads bool
		calls int // of the model
	}{
		"text":                 {&middleware.Response{Message: middleware.Assistant("hello"), FinishReason: middleware.FinishStop}, false, 1},
		"a valid call":         {call("call_2", "get", `{"n":1}`), false, 1},
		"a repaired call":      {call("call_2", "get", `{"n":"1"}`), false, 1},
		"an id of the history": {call("call_1", "get", `{"n":1}`), true, 1},
		"an invalid call":      {call("call_2", "get", `{"n":"many"}`), true, 2},
		"an unknown tool":      {call("call_2", "other", `{}`), true, 2},
		"an announced tool":    {call("call_2", "bash", `{}`), true, 1},
		"an empty answer":      {&middleware.Response{Message: middleware.Assistant(""), FinishReason: middleware.FinishStop}, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			history := []middleware.Message{middleware.System("You also have the tool `bash`."), middleware.User("hi"),
				middleware.Assistant("", middleware.ToolCall{ID: "call_1", Name: "get", Arguments: `{"n":1}`}), middleware.ToolReply(middleware.ToolCall{ID: "call_1"}, "ok"), middleware.User("and now?")}
			run := func(req *middleware.Request) (*middleware.Response, []*middleware.Request, error) {
				var asked []*middleware.Request
				resp, err := toolmend.Stack(toolmend.Options{})(func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
					if asked = append(asked, req); len(asked) > 1 {
						return call("call_3", "get", `{"n":2}`), nil
					}
					return c.first.Clone(), nil
				})(t.Context(), req)
				return resp, asked, err
			}
			reads := 0
			req := &middleware.Request{Tools: tools, Native: &middleware.Native{Raw: `{"messages":[{"id":"call_1"}]}`}}
			want, wantAsked, err := run(&middleware.Request{Tools: tools, Native: req.Native, Messages: history})
			require.NoError(t, err)
			req.Defer(-1, func() []middleware.Message {
				reads++
				return history
			})
			got, asked, err := run(req)
			require.NoError(t, err)
			require.Len(t, asked, c.calls)
			require.Equal(t, c.reads, reads > 0)
			require.LessOrEqual(t, reads, 1)
			require.Equal(t, want.Message, got.Message)
			for i := range asked {
				require.Equal(t, wantAsked[i].Messages, asked[i].Loaded().Messages)
			}
		})
	}
}
