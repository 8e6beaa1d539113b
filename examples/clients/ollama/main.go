// Command ollama is Ollama's client with one option more: its own chat format,
// a stream of lines.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/envconfig"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/transport"
)

func main() {
	baseURL := envconfig.Host().String()
	if os.Getenv("OLLAMA_HOST") == "" {
		baseURL = fake.Demo(fake.Ollama, os.Stderr) // a model that needs to be told
	}
	ctx, call := transport.Watch(context.Background())
	err := run(ctx, os.Stdout, baseURL, "", argsvalidate.Options{})
	if err = cmp.Or(call.Err(), err); err != nil { // the error of the chain, which the client hides
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, baseURL, _ string, o argsvalidate.Options) error {
	base, err := url.Parse(baseURL)
	if err != nil {
		return err
	}
	client := api.NewClient(base, &http.Client{ // the one option
		Transport: transport.RoundTripper(nil, argsvalidate.New(o), retry.New(retry.Options{})),
	})
	var calls []api.ToolCall
	err = client.Chat(ctx, &api.ChatRequest{
		Model:    "qwen3",
		Messages: []api.Message{{Role: "user", Content: "How is the weather in Oslo?"}},
		Tools:    api.Tools{tool()},
	}, func(piece api.ChatResponse) error {
		calls = append(calls, piece.Message.ToolCalls...)
		_, err := io.WriteString(out, piece.Message.Content)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, call := range calls {
		fmt.Fprintf(out, "%s(%s) %s\n", call.Function.Name, call.Function.Arguments.String(), call.ID)
	}
	return nil
}

func tool() api.Tool {
	properties := api.NewToolPropertiesMap()
	properties.Set("city", api.ToolProperty{Type: api.PropertyType{"string"}})
	properties.Set("days", api.ToolProperty{Type: api.PropertyType{"integer"}})
	properties.Set("unit", api.ToolProperty{Type: api.PropertyType{"string"}, Enum: []any{"celsius", "fahrenheit"}})
	properties.Set("fields", api.ToolProperty{Type: api.PropertyType{"array"}, Items: map[string]any{"type": "string"}})
	return api.Tool{Type: "function", Function: api.ToolFunction{
		Name:        "get_weather",
		Description: "the weather of the coming days",
		Parameters:  api.ToolFunctionParameters{Type: "object", Properties: properties, Required: []string{"city"}},
	}}
}
