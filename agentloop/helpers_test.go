package agentloop_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type trip struct {
	City string `json:"city"`
	Days int    `json:"days,omitempty" jsonschema:"minimum=1"`
}

const (
	oslo = `{"city":"Oslo"}`
	bad  = `{"days":1}`
)

var errBoom = errors.New("boom")

// weather is a tool over trip that says sunny in the city.
func weather() agentloop.Tool {
	return agentloop.NewTool("weather", "Says how the weather is.", func(_ context.Context, in trip) (agentloop.Result, error) {
		return agentloop.Text("sunny in " + in.City), nil
	})
}

// rawTool is a tool without a schema that returns what f does.
func rawTool(name string, f agentloop.ToolFunc) agentloop.Tool {
	return agentloop.RawTool(name, "", nil, f)
}

// says is a tool that returns text.
func says(name, text string) agentloop.Tool {
	return rawTool(name, func(context.Context, middleware.ToolCall) (agentloop.Result, error) { return agentloop.Text(text), nil })
}

// fails is a tool that returns err.
func fails(name string, err error) agentloop.Tool {
	return rawTool(name, func(context.Context, middleware.ToolCall) (agentloop.Result, error) { return agentloop.Result{}, err })
}

func tools(ts ...agentloop.Tool) agentloop.Options { return agentloop.Options{Tools: ts} }

func newAgent(t testing.TB, call middleware.ModelCall, o agentloop.Options) *agentloop.Agent {
	t.Helper()
	approval := slices.ContainsFunc(o.Tools, func(t agentloop.Tool) bool { return t.Approval })
	if o.Validator == nil && (approval || o.Source != nil) {
		o.Validator = argsvalidate.NewValidator(argsvalidate.Options{})
	}
	a, err := agentloop.New(call, o)
	require.NoError(t, err)
	return a
}

func goState() *agentloop.State { return agentloop.NewState(middleware.User("go")) }

// once is a stop condition that ends a run after its first step.
func once(*agentloop.State) bool { return true }

// run takes a fresh state through turns, all of which must be used up.
func run(t *testing.T, o agentloop.Options, turns ...middlewaretest.Turn) (*agentloop.State, error) {
	t.Helper()
	s := goState()
	err := newAgent(t, middlewaretest.NewModel(t, turns...).Call, o).Run(t.Context(), s)
	return s, err
}

// answer is a turn with these calls, ids as they are.
func answer(calls ...middleware.ToolCall) middlewaretest.Turn {
	return middlewaretest.Reply(&middleware.Response{Message: middleware.Assistant("", calls...), FinishReason: middleware.FinishToolCalls})
}

func call(id, name, args string) middleware.ToolCall {
	return middleware.ToolCall{ID: id, Name: name, Arguments: args}
}

// replies are the texts of the tool messages.
func replies(s *agentloop.State) []string {
	var all []string
	for _, m := range s.Messages {
		if m.Role == middleware.RoleTool {
			all = append(all, m.Text())
		}
	}
	return all
}

func last(s *agentloop.State) middleware.Message { return s.Messages[len(s.Messages)-1] }

// stored is s after a while in a database.
func stored(t testing.TB, s *agentloop.State) *agentloop.State {
	t.Helper()
	b, err := json.Marshal(s)
	require.NoError(t, err)
	var back agentloop.State
	require.NoError(t, json.Unmarshal(b, &back))
	again, err := json.Marshal(&back)
	require.NoError(t, err)
	require.Equal(t, string(b), string(again), "the JSON of a state is stable")
	return &back
}

// modelOf plays turns.
func modelOf(t testing.TB, turns ...middlewaretest.Turn) middleware.ModelCall {
	return middlewaretest.NewModel(t, turns...).Call
}
