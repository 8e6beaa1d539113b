// Command langchaingo is langchaingo's OpenAI model with one option more, whole or
// with -stream.
package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"
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
	model, err := openai.New(
		openai.WithBaseURL(baseURL), openai.WithToken(key), openai.WithModel("gpt-4o-mini"),
		openai.WithHTTPClient(&http.Client{ // the one option
			Transport: transport.RoundTripper(nil, argsvalidate.New(o), retry.New(retry.Options{})),
		}),
	)
	if err != nil {
		return err
	}
	messages := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "How is the weather in Oslo?")}
	options := []llms.CallOption{llms.WithTools([]llms.Tool{tool})}
	if stream {
		options = append(options, llms.WithStreamingFunc(func(_ context.Context, piece []byte) error {
			if bytes.HasPrefix(piece, []byte("[{")) {
				return nil // a piece of a call comes as JSON: the whole call is in the answer
			}
			_, err := out.Write(piece)
			return err
		}))
	}
	response, err := model.GenerateContent(ctx, messages, options...)
	if err != nil {
		return err
	}
	choice := response.Choices[0]
	if stream {
		choice.Content = "" // it has been written
	}
	fmt.Fprintln(out, choice.Content)
	for _, call := range choice.ToolCalls {
		fmt.Fprintf(out, "%s(%s) %s\n", call.FunctionCall.Name, call.FunctionCall.Arguments, call.ID)
	}
	return nil
}

var tool = llms.Tool{Type: "function", Function: &llms.FunctionDefinition{
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
