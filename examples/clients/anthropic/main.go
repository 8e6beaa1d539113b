// Command anthropic is anthropic-sdk-go with one option more: Messages.
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
	message, err := client.Messages.New(ctx, anthropic.MessageNewParams{
		Model:     anthropic.ModelClaudeHaiku4_5,
		MaxTokens: 1024,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("How is the weather in Oslo?"))},
		Tools:     []anthropic.ToolUnionParam{tool},
	})
	if err != nil {
		return err
	}
	for _, block := range message.Content {
		switch block := block.AsAny().(type) {
		case anthropic.TextBlock:
			fmt.Fprintln(out, block.Text)
		case anthropic.ToolUseBlock:
			fmt.Fprintf(out, "%s(%s) %s\n", block.Name, block.Input, block.ID)
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
