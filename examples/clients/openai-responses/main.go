// Command openai-responses is openai-go with one option more: Responses.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/transport"
)

func main() {
	baseURL, key := "https://api.openai.com/v1", os.Getenv("OPENAI_API_KEY")
	if key == "" {
		baseURL, key = fake.Demo(fake.Responses, os.Stderr), "none" // a model that needs to be told
	}
	if err := run(context.Background(), os.Stdout, baseURL, key, argsvalidate.Options{}); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, baseURL, key string, o argsvalidate.Options) error {
	client := openai.NewClient(
		option.WithBaseURL(baseURL), option.WithAPIKey(key), option.WithMaxRetries(0), // retries are retry.New's
		option.WithMiddleware(transport.Hook(argsvalidate.New(o), retry.New(retry.Options{}))), // the one option
	)
	response, err := client.Responses.New(ctx, responses.ResponseNewParams{
		Model: openai.ChatModelGPT5_5,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("How is the weather in Oslo?")},
		Tools: []responses.ToolUnionParam{tool},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, response.OutputText())
	for _, item := range response.Output {
		if item.Type == "function_call" {
			call := item.AsFunctionCall()
			fmt.Fprintf(out, "%s(%s) %s\n", call.Name, call.Arguments, call.CallID)
		}
	}
	return nil
}

var tool = responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{
	Name:        "get_weather",
	Description: openai.String("the weather of the coming days"),
	Strict:      openai.Bool(false),
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
