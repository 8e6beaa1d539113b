package argsvalidate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/test/ratio"
	"github.com/toolmend/toolmend/middleware"
)

// enumOf returns a schema of one string among values of so many bytes in all, and no required
// property.
func enumOf(bytes int) string {
	var values []string
	for i := range bytes / 20 {
		values = append(values, fmt.Sprintf(`"value_of_an_%06d"`, i))
	}
	return `{"type": "object", "properties": {"kind": {"type": "string", "enum": [` + strings.Join(values, ",") + `]}}}`
}

// manyCalls returns a step of three attempts, in which the model calls a tool 128 times with a value
// that is not in an enum of so many bytes.
func manyCalls(enum int, value func(int) string) func(context.Context) {
	calls := make([]middleware.ToolCall, 128)
	for i := range calls {
		calls[i] = call(fmt.Sprint("call_", i), "pick", fmt.Sprintf(`{"kind": %q}`, value(i)))
	}
	req := request(tool("pick", enumOf(enum)))
	step := argsvalidate.New(argsvalidate.Options{OnExhausted: middleware.Pass})(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant("", calls...), FinishReason: middleware.FinishToolCalls}, nil
	})
	return func(ctx context.Context) { _, _ = step(ctx, req) }
}

// notListed are values that enumOf does not list.
var notListed = map[string]func(int) string{
	"equal":     func(int) string { return "value_of_an_07x" },
	"different": func(i int) string { return fmt.Sprintf("value_of_an_%03dx", i) },
	"far":       func(i int) string { return fmt.Sprintf("%s%03dx", strings.Repeat("qwer", 20), i) },
}

// BenchmarkManyCalls has an enum of 200 KB.
func BenchmarkManyCalls(b *testing.B) {
	for name, value := range notListed {
		b.Run(name, func(b *testing.B) {
			step := manyCalls(200_000, value)
			step(b.Context()) // compiles the schema
			start, n := ratio.ProcessorTime(), 0
			for b.Loop() {
				step(b.Context())
				n++
			}
			b.ReportMetric(float64((ratio.ProcessorTime()-start).Milliseconds())/float64(n), "cpu-ms/step")
		})
	}
}

// TestManyCallsGrowth: what 128 invalid calls cost hardly grows with the enum that refuses them. It
// is not parallel, because other tests would be measured too.
func TestManyCallsGrowth(t *testing.T) {
	for name, value := range notListed {
		fastest := func(enum int) time.Duration {
			step := manyCalls(enum, value)
			step(t.Context()) // compiles the schema
			best := time.Hour
			for range 5 {
				start := time.Now()
				step(t.Context())
				best = min(best, time.Since(start))
			}
			return best
		}
		small, large := fastest(8_000), fastest(512_000)
		t.Logf("%s: %v, %v", name, small, large)
		require.Less(t, large, 16*small, "%s: 64 times as many values", name)
	}
}
