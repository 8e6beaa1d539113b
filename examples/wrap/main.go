// Command wrap is the smallest use: a model client that exists already, here a
// function that plays one, gets validation, re-asking and retries.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/middleware"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	req := &middleware.Request{
		Messages: []middleware.Message{middleware.User("How is the weather in Oslo?")},
		Tools: []middleware.Tool{{
			Name:       "get_weather",
			Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		}},
	}
	myModel := client()

	// region: wrap
	// myModel is toolmend.OpenAI(toolmend.Endpoint{Model: "gpt-5", Key: key}), or Anthropic,
	// Gemini, Ollama, Compatible, or your own client as a func(ctx, request) (response, error).
	call := toolmend.Stack(toolmend.Options{})(myModel)

	resp, err := call(ctx, req)
	if err != nil {
		return err // such as argsvalidate.ErrExhausted: a call is invalid after three attempts
	}
	for _, c := range resp.Message.ToolCalls { // only valid calls
		fmt.Fprintln(out, c.Name, c.Arguments)
	}
	// endregion

	fmt.Fprintln(out, resp.Report.Status, "after", len(resp.Report.Attempts), "attempts")
	return nil
}

// client plays a model that names a key wrongly, and corrects itself when it
// is told.
func client() middleware.ModelCall {
	return func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		arguments := `{"town":"Oslo"}`
		if len(req.Messages) > 1 {
			arguments = `{"city":"Oslo"}`
		}
		c := middleware.ToolCall{ID: fmt.Sprint("call_", len(req.Messages)), Name: "get_weather", Arguments: arguments}
		return &middleware.Response{Message: middleware.Assistant("", c), FinishReason: middleware.FinishToolCalls}, nil
	}
}
