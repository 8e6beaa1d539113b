// Command go-openai is sashabaranov/go-openai with one option more.
package main

import (
	"context"
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
	baseURL, key := "https://api.openai.com/v1", os.Getenv("OPENAI_API_KEY")
	if key == "" {
		baseURL, key = fake.Demo(fake.Chat, os.Stderr), "none" // a model that needs to be told
	}
	if err := run(context.Background(), os.Stdout, baseURL, key, argsvalidate.Options{}); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, baseURL, key string, o argsvalidate.Options) error {
	config := openai.DefaultConfig(key)
	config.BaseURL = baseURL
	config.HTTPClient = &http.Client{ // the one option
		Transport: transport.RoundTripper(nil, argsvalidate.New(o), retry.New(retry.Options{})),
	}
	client := openai.NewClientWithConfig(config)
	response, err := client.CreateChatCompletion(ctx, openai.ChatCompletionRequest{
		Model:    openai.GPT4oMini,
		Messages: []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: "How is the weather in Oslo?"}},
		Tools:    []openai.Tool{tool},
	})
	if err != nil {
		return err
	}
	message := response.Choices[0].Message
	fmt.Fprintln(out, message.Content)
	for _, call := range message.ToolCalls {
		fmt.Fprintf(out, "%s(%s) %s\n", call.Function.Name, call.Function.Arguments, call.ID)
	}
	return nil
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
