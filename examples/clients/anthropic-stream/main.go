// Command anthropic-stream is anthropic-sdk-go with one option more: Messages,
// streamed.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/transport"
)

func main() {
	baseURL, key := "https://api.anthropic.com", os.Getenv("ANTHROPIC_API_KEY")
	if key == "" {
		baseURL, key = fake.Demo(fake.Anthropic, os.Stderr), "none" // a model that needs to be told
	}
	if err := run(context.Background(), os.Stdout, baseURL, key, argsvalidate.Options{}); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, baseURL, key string, o argsvalidate.Options) error {
	client := anthropic.NewClient(
		option.WithBaseURL(baseURL), option.WithAPIKey(key), option.WithMaxRetries(0), // retries are retry.New's
		option.WithMiddleware(transport.Hook(argsvalidate.New(o), retry.New(retry.Options{}))), // the one option
	)
	stream := client.Messages.NewStreaming(ctx, anthropic.MessageNewParams{
		Model:     anthropic.ModelClaudeHaiku4_5,
		MaxTokens: 1024,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("How is the weather in Oslo?"))},
		Tools:     []anthropic.ToolUnionParam{tool},
	})
	defer stream.Close()
	var message anthropic.Message
	for stream.Next() {
		event := stream.Current()
		if err := message.Accumulate(event); err != nil {
			return err
		}
		fmt.Fprint(out, event.Delta.Text)
	}
	if err := stream.Err(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, block := range message.Content {
		if call, ok := block.AsAny().(anthropic.ToolUseBlock); ok {
			fmt.Fprintf(out, "%s(%s) %s\n", call.Name, call.Input, call.ID)
		}
	}
	return nil
}

var tool = anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
	Name:        "get_weather",
	Description: anthropic.String("the weather of the coming days"),
	InputSchema: anthropic.ToolInputSchemaParam{
		Properties: map[string]any{
			"city":   map[string]any{"type": "string"},
			"days":   map[string]any{"type": "integer"},
			"unit":   map[string]any{"type": "string", "enum": []string{"celsius", "fahrenheit"}},
			"fields": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		},
		Required: []string{"city"},
	},
}}
