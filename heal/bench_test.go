package heal_test

import (
	"context"
	"testing"

	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/middleware"
)

// BenchmarkNotRefused is what a request costs that the provider does not refuse: beside the
// bare model call, with a history and tools that a refusal would make heal look at.
func BenchmarkNotRefused(b *testing.B) {
	resp := &middleware.Response{Message: middleware.Assistant("Hello.")}
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) { return resp, nil }
	req := &middleware.Request{Messages: []middleware.Message{middleware.User("Hi.")}}
	for range 50 {
		call := middleware.ToolCall{ID: "a", Name: "weather", Arguments: `{"city":"Oslo"}`}
		req.Messages = append(req.Messages, middleware.Assistant("", call))
		req.Tools = append(req.Tools, middleware.Tool{Name: "weather", Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string","pattern":"^(?=O)"}}}`)})
	}
	for name, call := range map[string]middleware.ModelCall{"bare": model, "heal": heal.New(heal.Options{})(model)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
