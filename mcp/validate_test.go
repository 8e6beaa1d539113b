package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/mcp"
	"github.com/toolmend/toolmend/middleware"
)

type lookup struct {
	IDs   []int  `json:"ids"`
	Limit int    `json:"limit,omitempty"`
	Sort  string `json:"sort,omitempty"`
}

type found struct {
	Count int `json:"count"`
}

// validating returns a client of a server with the middleware. Its tool lookup
// returns its arguments, and raw does no validation of its own.
func validating(t testing.TB, o argsvalidate.Options, around ...middleware.Middleware) (*sdk.Server, *sdk.ClientSession) {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "library", Version: "1"}, &sdk.ServerOptions{PageSize: 2})
	sdk.AddTool(server, &sdk.Tool{Name: "lookup"}, func(_ context.Context, r *sdk.CallToolRequest, _ lookup) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil, nil
	})
	raw := func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "raw " + string(r.Params.Arguments)}}, StructuredContent: map[string]any{"count": "3"}}, nil
	}
	server.AddTool(&sdk.Tool{Name: "raw", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array"}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"count":{"type":"integer"}}}`)}, raw)
	server.AddTool(&sdk.Tool{Name: "zebra", InputSchema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}`)}, raw)
	server.AddReceivingMiddleware(mcp.Validate(o, around...))
	theirs, ours := sdk.NewInMemoryTransports()
	_, err := server.Connect(t.Context(), theirs, nil)
	require.NoError(t, err)
	client, err := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(), ours, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return server, client
}

// ask calls a tool and returns the text of its result.
func ask(t testing.TB, client *sdk.ClientSession, tool, args string) (text string, isError bool) {
	t.Helper()
	p := &sdk.CallToolParams{Name: tool}
	if args != "" {
		p.Arguments = json.RawMessage(args)
	}
	res, err := client.CallTool(t.Context(), p)
	require.NoError(t, err)
	require.Len(t, res.Content, 1)
	return res.Content[0].(*sdk.TextContent).Text, res.IsError
}

func TestValidateRepairsAndRefuses(t *testing.T) {
	t.Parallel()
	_, client := validating(t, argsvalidate.Options{})
	for name, c := range map[string]struct{ tool, args, want string }{
		"valid":              {"lookup", `{"ids":[1]}`, `{"ids":[1]}`},
		"an empty optional":  {"raw", `{"b":[]}`, `raw {"b":[]}`},
		"no arguments":       {"raw", ``, `raw {}`},
		"a string of JSON":   {"lookup", `{"ids":"[1,2]"}`, `{"ids":[1,2]}`},
		"numbers as text":    {"lookup", `{"ids":["1","2"],"limit":"5"}`, `{"ids":[1,2],"limit":5}`},
		"letter case":        {"lookup", `{"IDs":[1]}`, `{"ids":[1]}`},
		"a tool's case":      {"Lookup", `{"ids":[1]}`, `{"ids":[1]}`},
		"a server's laxness": {"raw", `{"a":"3"}`, `raw {"a":3}`},
		"a page behind":      {"zebra", `{"x":"3"}`, `raw {"x":3}`},
	} {
		got, isError := ask(t, client, c.tool, c.args)
		require.Equal(t, c.want, got, name)
		require.False(t, isError, name)
	}
	text, isError := ask(t, client, "lookup", `{"idz":[1]}`)
	require.True(t, isError)
	require.Contains(t, text, `[idz] unknown property; did you mean "ids"?`)
	text, isError = ask(t, client, "zebra", `{}`)
	require.True(t, isError, "a tool that does not validate is protected")
	require.Contains(t, text, "[x] required")
	_, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "nothing"})
	require.ErrorContains(t, err, "unknown tool", "the server's own error")
}

// The schema of a tool that changes counts from the change on.
func TestValidateFollowsTheServer(t *testing.T) {
	t.Parallel()
	server, client := validating(t, argsvalidate.Options{})
	text, _ := ask(t, client, "zebra", `{"x":"1"}`)
	require.Equal(t, `raw {"x":1}`, text)
	server.AddTool(&sdk.Tool{Name: "zebra", InputSchema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
		})
	text, _ = ask(t, client, "zebra", `{"x":"1"}`)
	require.Equal(t, `{"x":"1"}`, text)
}

// A middleware around sees a step for each call, with the run of the tool in it.
func TestValidateReports(t *testing.T) {
	t.Parallel()
	var reports []middleware.Report
	_, client := validating(t, argsvalidate.Options{}, func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			resp, err := next(ctx, req)
			require.NoError(t, err)
			reports = append(reports, resp.Report)
			return resp, err
		}
	})
	ask(t, client, "raw", `{"a":"3"}`)
	ask(t, client, "lookup", `{}`)
	require.Equal(t, middleware.Valid, reports[0].Status)
	require.Equal(t, "mend.coerce", reports[0].Attempts[0].Verdicts[0].Changes[0].By)
	require.Equal(t, []string{"tool raw: the result violates its outputSchema in 1 places: /count (type)"}, reports[0].Notes)
	require.Negative(t, reports[0].Attempts[0].Duration, "no model was called")
	require.Equal(t, middleware.Invalid, reports[1].Status)
	require.Empty(t, reports[1].Notes)
}

// A rule that cannot decide is not the model's mistake.
func TestValidateRules(t *testing.T) {
	t.Parallel()
	_, client := validating(t, argsvalidate.Options{Rules: []argsvalidate.Rule{argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) {
		return nil, errors.New("down")
	})}})
	_, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "zebra", Arguments: json.RawMessage(`{"x":1}`)})
	require.Error(t, err)
}

func TestValidatePanicsAtWrongOptions(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { mcp.Validate(argsvalidate.Options{MaxAttempts: -1}) })
}

// A model sends an array as a string, and misspells a name. The first call runs
// as it was meant. The second one does not reach the tool, and the model is told
// what to change.
func ExampleValidate() {
	ctx := context.Background()
	server := sdk.NewServer(&sdk.Implementation{Name: "library", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "lookup"}, func(_ context.Context, _ *sdk.CallToolRequest, in lookup) (*sdk.CallToolResult, found, error) {
		return nil, found{len(in.IDs)}, nil
	})
	server.AddReceivingMiddleware(mcp.Validate(argsvalidate.Options{}))

	theirs, ours := sdk.NewInMemoryTransports()
	_, _ = server.Connect(ctx, theirs, nil)
	client, _ := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil).Connect(ctx, ours, nil)
	defer client.Close()
	for _, args := range []string{`{"ids": "[1, 2]"}`, `{"idz": [1, 2]}`} {
		res, _ := client.CallTool(ctx, &sdk.CallToolParams{Name: "lookup", Arguments: json.RawMessage(args)})
		fmt.Println(res.IsError, res.Content[0].(*sdk.TextContent).Text)
	}
	// Output:
	// false {"count":2}
	// true Tool 'lookup' argument validation failed. Fix the following errors and retry:
	//   • [ids] required property is missing; wanted: null or array
	//   • [idz] unknown property; did you mean "ids"?
	// Accepted properties: required ids; optional limit, sort.
	// If an optional property is not needed, omit it entirely.
}
