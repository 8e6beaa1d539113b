package agentloop_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/tracing"
)

func TestTraceTools(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	o := tools(weather(), fails("fails", errBoom), fails("waits", agentloop.Suspend("later")))
	o.Parallel = 1
	o.ToolMiddleware = agentloop.TraceTools(tracing.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})
	_, err := run(t, o, calls("weather", oslo, "fails", "{}", "waits", "{}"))
	require.True(t, errors.Is(err, agentloop.ErrPending))
	var names []string
	var status []codes.Code
	for _, s := range spans.GetSpans() {
		names, status = append(names, s.Name), append(status, s.Status.Code)
	}
	require.Equal(t, []string{"execute_tool weather", "execute_tool fails", "execute_tool waits"}, names)
	require.Equal(t, []codes.Code{codes.Unset, codes.Error, codes.Unset}, status)
}
