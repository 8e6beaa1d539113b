package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/mcp"
	"github.com/toolmend/toolmend/middleware"
)

// What was validated is what the server gets, but for white space.
func TestArgumentsAreSentAsTheyAre(t *testing.T) {
	t.Parallel()
	var got json.RawMessage
	s := with(t, mcp.Options{}, tool("a", anyObject), func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		got = r.Params.Arguments
		return &sdk.CallToolResult{}, nil
	})
	for in, want := range map[string]string{
		`{"id":9007199254740993,"x":1.50e+2,"y":-0,"z":0.1000000000000000055}`: `{"id":9007199254740993,"x":1.50e+2,"y":-0,"z":0.1000000000000000055}`,
		`{"b":"<&>\u0041é ","a":[]}`:                                           `{"b":"<&>\u0041é ","a":[]}`,
		" { \"a\" : 1 } \n":                                                    `{"a":1}`,
		"":                                                                     `{}`,
		" null ":                                                               `{}`,
	} {
		_, err := run(t, s, in)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	for _, in := range []string{"[]", `"x"`, "{", `{"a":1}{}`, "1"} {
		got = nil
		_, err := run(t, s, in)
		require.EqualError(t, err, "the arguments are not one JSON object")
		require.Nil(t, got, "the server is not bothered")
	}
}

// The server is called by its own name for the tool.
func TestCallUsesTheServersName(t *testing.T) {
	t.Parallel()
	r, transport := newRaw(t, func(method string, _ json.RawMessage) (string, error) {
		if method == "tools/list" {
			return page("", listed("räd/it", anyObject)), nil
		}
		return `{"content":[]}`, nil
	})
	s := connect(t, transport, mcp.Options{Prefix: "p-"})
	_, err := run(t, s, "{}")
	require.NoError(t, err)
	require.Contains(t, r.asked("tools/call")[0], `"name":"räd/it"`)
}

// The ways in which a call fails, as the model is told of them.
func TestFailedCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result string
		err    error
		want   string
	}{
		"refused":           {err: &jsonrpc.Error{Code: -32602, Message: "no\x00 such\ttool"}, want: "the server refused the call: no such\ttool (code -32602)"},
		"refused at length": {err: &jsonrpc.Error{Code: 1, Message: strings.Repeat("x", 1<<20)}, want: "the server refused the call: " + strings.Repeat("x", 997) + "… (code 1)"},
		"unknown content":   {result: `{"content":[{"type":"smell"}]}`, want: "the call to the server failed"},
		"null content":      {result: `{"content":[null]}`, want: "the call to the server failed"},
		"no result":         {result: `[1]`, want: "the call to the server failed"},
		"too deep":          {result: `{"structuredContent":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, want: "the call to the server failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, transport := newRaw(t, func(method string, _ json.RawMessage) (string, error) {
				if method == "tools/list" {
					return page("", listed("a", anyObject)), nil
				}
				return c.result, c.err
			})
			_, err := run(t, connect(t, transport, mcp.Options{}), "{}")
			require.EqualError(t, err, c.want)
		})
	}
}

// An error of the tool is a result for the model, and the run goes on; so is a
// call that the server refuses.
func TestErrorsAreForTheModel(t *testing.T) {
	t.Parallel()
	s := with(t, mcp.Options{}, tool("a", anyObject), func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if strings.Contains(string(r.Params.Arguments), "refuse") {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "not this"}
		}
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "disk full"}}}, nil
	})
	answers := []middleware.Message{
		middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "a", Arguments: "{}"}, middleware.ToolCall{ID: "2", Name: "a", Arguments: `{"refuse":1}`}),
		middleware.Assistant("I see."),
	}
	agent, err := agentloop.New(play(answers...), agentloop.Options{Source: s.Tools})
	require.NoError(t, err)
	state := agentloop.NewState(middleware.User("go"))
	require.NoError(t, agent.Run(t.Context(), state))
	require.Equal(t, "disk full", state.Results[0].Text)
	require.True(t, state.Results[0].IsError)
	require.Equal(t, "the server refused the call: not this (code -32602)", state.Results[1].Text)
	require.True(t, state.Results[1].IsError)
}

// A call that never ends is given up, and the server is told.
func TestCallTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cancelled := make(chan struct{})
		s := with(t, mcp.Options{Timeout: 50 * time.Millisecond}, tool("a", anyObject), func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			<-ctx.Done()
			close(cancelled)
			return nil, ctx.Err()
		})
		agent, err := agentloop.New(play(middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "a", Arguments: "{}"}), middleware.Assistant("I see.")), agentloop.Options{Source: s.Tools})
		require.NoError(t, err)
		state := agentloop.NewState(middleware.User("go"))
		require.NoError(t, agent.Run(t.Context(), state))
		require.Equal(t, "The tool was not done within 50ms.", state.Results[0].Text)
		<-cancelled
	})
}

// The caller's end of a call is not a failure of the tool.
func TestCallIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := with(t, mcp.Options{Timeout: middleware.Unlimited}, tool("a", anyObject), func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	only := tools(t, s)[0]
	require.Zero(t, only.Timeout)
	_, err := only.Func(ctx, middleware.ToolCall{Arguments: "{}"})
	require.Equal(t, context.Canceled, err)
	require.NoError(t, s.Err())
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]mcp.Options{
		`mcp: Options.Prefix: want at most 32 letters, digits, _ or -, and no digit or - first, got "a."`: {Prefix: "a."},
		"mcp: Options.MaxTools: must not be negative, got -1":                                             {MaxTools: -1},
		"mcp: Options.MaxDescription: must not be negative, got -1":                                       {MaxDescription: -1},
		"mcp: Options.MaxSchema: must not be negative, got -1":                                            {MaxSchema: -1},
		"mcp: Options.MaxResult: must not be negative, got -1":                                            {MaxResult: -1},
		"mcp: Options.ListTimeout: must not be negative, got -1s":                                         {ListTimeout: -time.Second},
	} {
		require.PanicsWithError(t, want, func() { _, _ = mcp.Connect(t.Context(), nil, o) })
		require.PanicsWithError(t, want, func() { _, _ = mcp.New(t.Context(), nil, o) })
	}
	for _, p := range []string{"1a", "-", "a b", strings.Repeat("a", 33)} {
		require.Panics(t, func() { _, _ = mcp.Connect(t.Context(), nil, mcp.Options{Prefix: p}) }, p)
	}
}
