// Command go-openai is sashabaranov/go-openai with one option more, whole
// or with -stream.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	openai "github.com/sashabaranov/go-openai"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/transport"
)

func main() {
	stream := flag.Bool("stream", false, "stream the answer")
	flag.Parse()
	baseURL, key := "https://api.openai.com/v1", os.Getenv("OPENAI_API_KEY")
	if key == "" {
		baseURL, key = fake.Demo(fake.Chat, os.Stderr), "none" // a model that needs to be told
	}
	// region: watch
	ctx, call := transport.Watch(context.Background())
	err := run(ctx, os.Stdout, baseURL, key, *stream, argsvalidate.Options{})
	if err = cmp.Or(call.Err(), err); err != nil { // the error of the chain, which the client hides
		log.Fatal(err)
	}
	// endregion
}

func run(ctx context.Context, out io.Writer, baseURL, key string, stream bool, o argsvalidate.Options) error {
	config := openai.DefaultConfig(key)
	config.BaseURL = baseURL
	config.HTTPClient = &http.Client{ // the one option
		Transport: transport.RoundTripper(nil, argsvalidate.New(o), retry.New(retry.Options{})),
	}
	client := openai.NewClientWithConfig(config)
	request := openai.ChatCompletionRequest{
		Model:    openai.GPT4oMini,
		Messages: []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: "How is the weather in Oslo?"}},
		Tools:    []openai.Tool{tool},
	}
	answer := whole
	if stream {
		answer = streamed
	}
	calls, err := answer(ctx, out, client, request)
	if err != nil {
		return err
	}
	for _, call := range calls {
		fmt.Fprintf(out, "%s(%s) %s\n", call.Function.Name, call.Function.Arguments, call.ID)
	}
	return nil
}

// whole writes the text of an answer, and returns its calls.
func whole(ctx context.Context, out io.Writer, client *openai.Client, request openai.ChatCompletionRequest) ([]openai.ToolCall, error) {
	response, err := client.CreateChatCompletion(ctx, request)
	if err != nil {
		return nil, err
	}
	message := response.Choices[0].Message
	fmt.Fprintln(out, message.Content)
	return message.ToolCalls, nil
}

// streamed does the same with a stream, whose text it writes as it comes.
func streamed(ctx context.Context, out io.Writer, client *openai.Client, request openai.ChatCompletionRequest) ([]openai.ToolCall, error) {
	stream, err := client.CreateChatCompletionStream(ctx, request)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var calls []openai.ToolCall // by index; this client leaves the joining to its user
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, choice := range chunk.Choices {
			fmt.Fprint(out, choice.Delta.Content)
			for _, d := range choice.Delta.ToolCalls {
				for len(calls) <= *d.Index {
					calls = append(calls, openai.ToolCall{})
				}
				call := &calls[*d.Index]
				call.ID += d.ID
				call.Function.Name += d.Function.Name
				call.Function.Arguments += d.Function.Arguments
			}
		}
	}
	fmt.Fprintln(out)
	return calls, nil
}

var tool = openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
	Name:        "get_weather",
	Description: "the weather of the coming days",
	Parameters: map[string]any{
		"type": "object",
		"properties": map[string]any{
			"city":   map[string]any{"type": "string"},
			"days":   map[string]any{"type": "integer"},
			"unit":   map[string]any{"type": "string", "enum": []string{"celsius", "fahrenheit"}},
			"fields": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		},
		"required": []string{"city"},
	},
}}
