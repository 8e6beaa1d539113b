package agentloop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// A message with too many calls is a failed turn: the calls within the limit are
// in the history, each with its reply, and the model is told how many it may send.
func TestTooManyCalls(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{MaxAttempts: 1, Limits: argsvalidate.Limits{Calls: 2}}
	raise := o
	raise.OnExhausted = middleware.Raise
	for name, o := range map[string]argsvalidate.Options{"bare": o, "pass": o, "raise": raise} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool, ran := counted()
			first := calls("weather", oslo, "weather", bad, "weather", oslo, "weather", oslo)
			model := middlewaretest.NewModel(t, first, calls("weather", oslo), text("done"))
			own := tools(tool)
			own.Validator = argsvalidate.NewValidator(o)
			layer := own.Validator.Middleware()
			if name == "bare" {
				layer = middleware.Chain()
			}
			s := goState()
			require.NoError(t, newAgent(t, layer(model.Call), own).Run(t.Context(), s))
			require.Equal(t, 1, *ran)
			require.Len(t, s.Messages[1].ToolCalls, 2)
			require.Contains(t, replies(s)[0], "too many tool calls")
			require.Contains(t, replies(s)[1], "Tool 'weather' argument validation failed")
			require.Contains(t, replies(s)[1], "4 tool calls")
			require.Equal(t, "sunny in Oslo", replies(s)[2])
		})
	}
}
