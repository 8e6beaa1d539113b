package agentloop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func TestNewTool(t *testing.T) {
	t.Parallel()
	var got trip
	tool := agentloop.NewTool("weather", "Says it.", func(_ context.Context, in trip) (agentloop.Result, error) {
		got = in
		return agentloop.Text("ok"), nil
	})
	require.Equal(t, "Says it.", tool.Def.Description)
	require.JSONEq(t, `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1}},
		"required":["city"],"additionalProperties":false}`, string(tool.Def.Parameters))
	_, err := run(t, tools(tool), middlewaretest.Calls("weather", `{"city":"Oslo","days":5.0}`), middlewaretest.Text("done"))
	require.NoError(t, err)
	require.Equal(t, trip{"Oslo", 5}, got, "5.0 is an integer")
}

// A number that the Go type cannot hold satisfies the schema, and is an issue at
// its place.
func TestNewToolRefusesWideNumbers(t *testing.T) {
	t.Parallel()
	tool := agentloop.NewTool("weather", "", func(context.Context, trip) (agentloop.Result, error) { return agentloop.Text("ok"), nil })
	var at interface{ Issues() []middleware.Issue }
	require.ErrorAs(t, tool.Def.Decode(`{"city":"Oslo","days":9223372036854775808}`), &at)
	require.Equal(t, "/days", at.Issues()[0].Pointer)
	s, err := run(t, tools(tool), middlewaretest.Calls("weather", `{"city":"Oslo","days":9223372036854775808}`), middlewaretest.Text("done"))
	require.NoError(t, err)
	require.Contains(t, replies(s)[0], "[days] wanted an integer from -9223372036854775808 to 9223372036854775807")
}

func TestNewToolPanics(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() {
		agentloop.NewTool("t", "", func(context.Context, string) (agentloop.Result, error) { return agentloop.Result{}, nil })
	})
	require.Panics(t, func() {
		agentloop.NewTool("t", "", func(context.Context, struct{ C chan int }) (agentloop.Result, error) { return agentloop.Result{}, nil })
	})
	require.PanicsWithValue(t, `agentloop: tool "t": parse and the function must not be nil`, func() { agentloop.NewTool[trip]("t", "", nil) })
	require.Panics(t, func() {
		agentloop.ParsedTool(middleware.Tool{Name: "t"}, nil, func(context.Context, int) (agentloop.Result, error) { return agentloop.Result{}, nil })
	})
}

// What parse refuses never reaches the tool, and the model is told why.
func TestParsedTool(t *testing.T) {
	t.Parallel()
	parse := func(arguments string) (time.Duration, error) {
		d, err := time.ParseDuration(strings.Trim(arguments, `{"for:} `))
		if err != nil || d <= 0 {
			return 0, errors.New("for must be a positive duration such as 5m")
		}
		return d, nil
	}
	var got []time.Duration
	tool := agentloop.ParsedTool(middleware.Tool{Name: "wait"}, parse, func(_ context.Context, d time.Duration) (agentloop.Result, error) {
		got = append(got, d)
		return agentloop.Text("waited"), nil
	})
	s, err := run(t, tools(tool), middlewaretest.Calls("wait", `{"for":"soon"}`), middlewaretest.Calls("wait", `{"for":"5m"}`), middlewaretest.Text("done"))
	require.NoError(t, err)
	require.Equal(t, []time.Duration{5 * time.Minute}, got)
	require.Contains(t, replies(s)[0], "for must be a positive duration such as 5m")
	require.Equal(t, "waited", replies(s)[1])
}

func TestRawToolFromParameters(t *testing.T) {
	t.Parallel()
	schema, err := agentloop.Parameters(agentloop.Param{Name: "city", Type: agentloop.StringParam, Required: true})
	require.NoError(t, err)
	tool := agentloop.RawTool("weather", "", schema, func(_ context.Context, c middleware.ToolCall) (agentloop.Result, error) {
		return agentloop.Text(c.Arguments), nil
	})
	s, err := run(t, tools(tool), middlewaretest.Calls("weather", bad), middlewaretest.Calls("weather", oslo), middlewaretest.Text("done"))
	require.NoError(t, err)
	require.Len(t, replies(s), 2)
	require.Equal(t, oslo, replies(s)[1])
	_, err = agentloop.Parameters(agentloop.Param{Name: "x", Type: "nonsense"})
	require.Error(t, err)
}
