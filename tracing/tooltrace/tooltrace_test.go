package tooltrace_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/tracing"
	"github.com/toolmend/toolmend/tracing/tooltrace"
)

// Each tool that runs has one span, and a tool that suspends itself is not an error.
func TestNew(t *testing.T) {
	t.Parallel()
	tool := func(name string, err error) agentloop.Tool {
		return agentloop.RawTool(name, "The "+name+".", nil, func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
			return agentloop.Text("sun"), err
		})
	}
	spans := tracetest.NewInMemoryExporter()
	model := middlewaretest.NewModel(t, middlewaretest.Calls("weather", "{}", "fails", "{}", "waits", "{}"))
	agent, err := agentloop.New(model.Call, agentloop.Options{
		Tools:    []agentloop.Tool{tool("weather", nil), tool("fails", errors.New("boom")), tool("waits", agentloop.Suspend("later"))},
		Parallel: 1,
		ToolMiddleware: tooltrace.New(tracing.Options{
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
		}),
	})
	require.NoError(t, err)
	require.ErrorIs(t, agent.Run(t.Context(), agentloop.NewState(middleware.User("go"))), agentloop.ErrPending)
	var names []string
	var status []codes.Code
	for _, s := range spans.GetSpans() {
		names, status = append(names, s.Name), append(status, s.Status.Code)
		require.Contains(t, s.Attributes, attribute.String("gen_ai.tool.description", "The "+strings.TrimPrefix(s.Name, "execute_tool ")+"."))
	}
	require.Equal(t, []string{"execute_tool weather", "execute_tool fails", "execute_tool waits"}, names)
	require.Equal(t, []codes.Code{codes.Unset, codes.Error, codes.Unset}, status)
}
