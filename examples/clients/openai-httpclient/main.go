// Command openai-httpclient is openai-go with an http.Client of the program's
// own, as where a proxy or a tracer has put one: the stack is its transport.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/transport"
)

func main() {
	baseURL, key := "https://api.openai.com/v1", os.Getenv("OPENAI_API_KEY")
	if key == "" {
		baseURL, key = fake.Demo(fake.Chat, os.Stderr), "none" // a model that needs to be told
	}
	if err := run(context.Background(), os.Stdout, baseURL, key, argsvalidate.Options{}); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, baseURL, key string, o argsvalidate.Options) error {
	client := openai.NewClient(
		option.WithBaseURL(baseURL), option.WithAPIKey(key), option.WithMaxRetries(0), // retries are retry.New's
		option.WithHTTPClient(&http.Client{ // the one option
			Transport: transport.RoundTripper(nil, argsvalidate.New(o), retry.New(retry.Options{})),
		}),
	)
	completion, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
		Model:    openai.ChatModelGPT5_5,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("How is the weather in Oslo?")},
		Tools:    []openai.ChatCompletionToolUnionParam{tool},
	})
	if err != nil {
		return err
	}
	message := completion.Choices[0].Message
	fmt.Fprintln(out, message.Content)
	for _, call := range message.ToolCalls {
		fmt.Fprintf(out, "%s(%s) %s\n", call.Function.Name, call.Function.Arguments, call.ID)
	}
	return nil
}

var tool = openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
	Name:        "get_weather",
	Description: openai.String("the weather of the coming days"),
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
})
