// Command openai is openai-go with one option more: Chat Completions, whole or
// with -stream, and with -responses Responses. With -http-client the option is an
// http.Client of the program's own, as where a proxy or a tracer has put one.
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

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/transport"
)

// how says which of the client's ways to use.
type how struct{ stream, responses, httpClient bool }

func main() {
	var h how
	flag.BoolVar(&h.stream, "stream", false, "stream the answer of Chat Completions")
	flag.BoolVar(&h.responses, "responses", false, "use Responses")
	flag.BoolVar(&h.httpClient, "http-client", false, "put the stack into an http.Client")
	flag.Parse()
	baseURL, key := "https://api.openai.com/v1", os.Getenv("OPENAI_API_KEY")
	if key == "" {
		service := fake.Chat
		if h.responses {
			service = fake.Responses
		}
		baseURL, key = fake.Demo(service, os.Stderr), "none" // a model that needs to be told
	}
	if err := run(context.Background(), os.Stdout, baseURL, key, h, argsvalidate.Options{}); err != nil {
		log.Fatal(cause(err))
	}
}

// region: cause

// cause returns the error of the chain behind an error of the SDK, such as
// argsvalidate.ErrExhausted.
func cause(err error) error {
	var failed *openai.Error
	if errors.As(err, &failed) {
		return cmp.Or(transport.Cause(failed.Response), err)
	}
	return err
}

// endregion

func run(ctx context.Context, out io.Writer, baseURL, key string, h how, o argsvalidate.Options) error {
	// region: client
	client := openai.NewClient(
		option.WithBaseURL(baseURL), option.WithAPIKey(key), option.WithMaxRetries(0), // retries are retry.New's
		option.WithMiddleware(transport.Hook(argsvalidate.New(o), retry.New(retry.Options{}))), // the one option; o is argsvalidate.Options{}
	)
	// endregion

	if h.httpClient {
		client = openai.NewClient(
			option.WithBaseURL(baseURL), option.WithAPIKey(key), option.WithMaxRetries(0),
			option.WithHTTPClient(&http.Client{ // the one option
				Transport: transport.RoundTripper(nil, argsvalidate.New(o), retry.New(retry.Options{})),
			}),
		)
	}
	answer := whole
	switch {
	case h.responses:
		return response(ctx, out, client)
	case h.stream:
		answer = streamed
	}
	calls, err := answer(ctx, out, client, openai.ChatCompletionNewParams{
		Model:    openai.ChatModelGPT5_5,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("How is the weather in Oslo?")},
		Tools:    []openai.ChatCompletionToolUnionParam{tool},
	})
	if err != nil {
		return err
	}
	for _, call := range calls {
		fmt.Fprintf(out, "%s(%s) %s\n", call.Function.Name, call.Function.Arguments, call.ID)
	}
	return nil
}

// whole writes the text of an answer, and returns its calls.
func whole(ctx context.Context, out io.Writer, client openai.Client, params openai.ChatCompletionNewParams) ([]openai.ChatCompletionMessageToolCallUnion, error) {
	completion, err := client.Chat.Completions.New(ctx, params)
	if err != nil {
		return nil, err
	}
	message := completion.Choices[0].Message
	fmt.Fprintln(out, message.Content)
	return message.ToolCalls, nil
}

// streamed does the same with a stream, whose text it writes as it comes.
func streamed(ctx context.Context, out io.Writer, client openai.Client, params openai.ChatCompletionNewParams) ([]openai.ChatCompletionMessageToolCallUnion, error) {
	stream := client.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	var answer openai.ChatCompletionAccumulator
	for stream.Next() {
		chunk := stream.Current()
		if !answer.AddChunk(chunk) {
			return nil, errors.New("a chunk that does not belong to the answer")
		}
		if len(chunk.Choices) > 0 {
			fmt.Fprint(out, chunk.Choices[0].Delta.Content)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	fmt.Fprintln(out)
	return answer.Choices[0].Message.ToolCalls, nil
}

// response uses Responses.
func response(ctx context.Context, out io.Writer, client openai.Client) error {
	response, err := client.Responses.New(ctx, responses.ResponseNewParams{
		Model: openai.ChatModelGPT5_5,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("How is the weather in Oslo?")},
		Tools: []responses.ToolUnionParam{responsesTool},
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

const (
	toolName        = "get_weather"
	toolDescription = "the weather of the coming days"
)

var (
	tool = openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: toolName, Description: openai.String(toolDescription), Parameters: parameters,
	})
	responsesTool = responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{
		Name: toolName, Description: openai.String(toolDescription), Parameters: parameters, Strict: openai.Bool(false),
	}}
	parameters = map[string]any{
		"type": "object",
		"properties": map[string]any{
			"city":   map[string]any{"type": "string"},
			"days":   map[string]any{"type": "integer"},
			"unit":   map[string]any{"type": "string", "enum": []string{"celsius", "fahrenheit"}},
			"fields": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		},
		"required": []string{"city"},
	}
)
