// Command anthropic is anthropic-sdk-go with one option more: Messages, whole or
// with -stream.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/transport"
)

func main() {
	stream := flag.Bool("stream", false, "stream the answer")
	flag.Parse()
	baseURL, key := "https://api.anthropic.com", os.Getenv("ANTHROPIC_API_KEY")
	if key == "" {
		baseURL, key = fake.Demo(fake.Anthropic, os.Stderr), "none" // a model that needs to be told
	}
	if err := run(context.Background(), os.Stdout, baseURL, key, *stream, argsvalidate.Options{}); err != nil {
		log.Fatal(cause(err))
	}
}

// region: cause

// cause returns the error of the chain behind an error of the SDK, such as
// argsvalidate.ErrExhausted.
func cause(err error) error {
	var failed *anthropic.Error
	if errors.As(err, &failed) {
		return cmp.Or(transport.Cause(failed.Response), err)
	}
	return err
}

// endregion

func run(ctx context.Context, out io.Writer, baseURL, key string, stream bool, o argsvalidate.Options) error {
	client := anthropic.NewClient(
		option.WithBaseURL(baseURL), option.WithAPIKey(key), option.WithMaxRetries(0), // retries are retry.New's
		option.WithMiddleware(transport.Hook(argsvalidate.New(o), retry.New(retry.Options{}))), // the one option; o is argsvalidate.Options{}
	)
	params := anthropic.MessageNewParams{
		Model:     anthropic.ModelClaudeHaiku4_5,
		MaxTokens: 1024,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("How is the weather in Oslo?"))},
		Tools:     []anthropic.ToolUnionParam{tool},
	}
	var message *anthropic.Message
	var err error
	if stream {
		message, err = streamed(client.Messages.NewStreaming(ctx, params), out)
	} else {
		message, err = client.Messages.New(ctx, params)
	}
	if err != nil {
		return err
	}
	for _, block := range message.Content {
		switch block := block.AsAny().(type) {
		case anthropic.TextBlock:
			if !stream { // else it has been written
				fmt.Fprintln(out, block.Text)
			}
		case anthropic.ToolUseBlock:
			fmt.Fprintf(out, "%s(%s) %s\n", block.Name, block.Input, block.ID)
		}
	}
	return nil
}

// streamed writes the text of a stream as it comes, and returns the whole message.
func streamed(stream *ssestream.Stream[anthropic.MessageStreamEventUnion], out io.Writer) (*anthropic.Message, error) {
	defer stream.Close()
	var message anthropic.Message
	for stream.Next() {
		event := stream.Current()
		if err := message.Accumulate(event); err != nil {
			return nil, err
		}
		fmt.Fprint(out, event.Delta.Text)
	}
	fmt.Fprintln(out)
	return &message, stream.Err()
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
