package argsvalidate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/internal/test/ratio"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/tracing"
)

// The whole stack on a valid call of five fields, beside json.Valid on the
// same bytes and beside the bare model call. The ratios are those of one run:
//
//	go test -run '^$' -bench Stack ./argsvalidate
func BenchmarkStack(b *testing.B) {
	tools := []middleware.Tool{{Name: "get_weather", Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"},
		"days":{"type":"integer","minimum":1},"unit":{"enum":["celsius","fahrenheit"]},"latitude":{"type":"number"},"detailed":{"type":"boolean"}},
		"required":["city","days"],"additionalProperties":false}`)}}
	arguments := `{"city":"Oslo, Norway","days":3,"unit":"celsius","latitude":59.9139,"detailed":true}`
	message := middleware.Assistant("", middleware.ToolCall{ID: "call_1", Name: "get_weather", Arguments: arguments})
	bare := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: message, FinishReason: middleware.FinishToolCalls}, nil
	}
	req := &middleware.Request{Messages: []middleware.Message{middleware.User("How is the weather?")}, Tools: tools}

	validator := argsvalidate.NewValidator(argsvalidate.Options{})
	call := message.ToolCalls[0]
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"bare model call", func() error { _, err := bare(b.Context(), req); return err }},
		{"Validator.Validate", func() error { _, err := validator.Validate(b.Context(), tools, call); return err }},
		{"argsvalidate", stepOf(b, req, argsvalidate.New(argsvalidate.Options{})(bare))},
		{"whole stack", stepOf(b, req, middleware.Chain(
			tracing.New(tracing.Options{}),
			argsvalidate.New(argsvalidate.Options{}),
			retry.New(retry.Options{}),
			budget.New(),
			tracing.NewAttempt(tracing.Options{}),
		)(bare))},
	} {
		b.Run(c.name, func(b *testing.B) {
			ratio.Run(b, arguments, func() {
				if err := c.run(); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// An invalid call through the public Validate: all its issues, the search for a
// repair, and the reply, beside json.Valid on the same bytes. In the second call
// one issue can be repaired.
func BenchmarkInvalid(b *testing.B) {
	tools := []middleware.Tool{{Name: "get_weather", Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string","minLength":1},
		"days":{"type":"integer","minimum":1,"maximum":14},"units":{"type":"string","enum":["metric","imperial"]},"hourly":{"type":"boolean"},
		"lang":{"type":"string"}},"required":["city","days"],"additionalProperties":false}`)}}
	validator := argsvalidate.NewValidator(argsvalidate.Options{})
	for name, arguments := range map[string]string{
		"2 values": `{"city": "Springfield, IL", "days": "seven", "units": "metrics", "hourly": true, "lang": "en"}`,
		"1 repair": `{"city": "Springfield, IL", "days": "7", "unit": "metric", "hourly": true, "lang": "en-US"}`,
		"6 issues": `{"city": "", "days": 70, "unit": "metrics", "hourly": "yes", "lang": 5, "units": "metrik"}`,
	} {
		call := middleware.ToolCall{ID: "call_1", Name: "get_weather", Arguments: arguments}
		b.Run(name, func(b *testing.B) {
			ratio.Run(b, arguments, func() {
				if _, err := validator.Validate(b.Context(), tools, call); err == nil {
					b.Fatal("valid")
				}
			})
		})
	}
}

func stepOf(b *testing.B, req *middleware.Request, call middleware.ModelCall) func() error {
	return func() error {
		_, err := call(b.Context(), req)
		return err
	}
}

// TestAllocations holds what a valid call costs at most, with room for other
// versions of Go. Not parallel: AllocsPerRun counts what other tests allocate.
func TestAllocations(t *testing.T) {
	tools := []middleware.Tool{{Name: "f", Parameters: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}}
	call := middleware.ToolCall{ID: "call_1", Name: "f", Arguments: `{"n":1}`}
	validator := argsvalidate.NewValidator(argsvalidate.Options{})
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = validator.Validate(t.Context(), tools, call) }), 10.0)
	req := &middleware.Request{Tools: tools}
	step := validator.Middleware()(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant("", call)}, nil
	})
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = step(t.Context(), req) }), 14.0)
}
