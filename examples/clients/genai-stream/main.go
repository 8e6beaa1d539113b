// Command genai-stream is Google's SDK with one option more:
// streamGenerateContent.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/transport"
	"google.golang.org/genai"
)

func main() {
	baseURL, key := "https://generativelanguage.googleapis.com", os.Getenv("GEMINI_API_KEY")
	if key == "" {
		baseURL, key = fake.Demo(fake.Gemini, os.Stderr), "none" // a model that needs to be told
	}
	if err := run(context.Background(), os.Stdout, baseURL, key, argsvalidate.Options{}); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, baseURL, key string, o argsvalidate.Options) error {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: baseURL},
		HTTPClient: &http.Client{ // the one option
			Transport: transport.RoundTripper(nil, argsvalidate.New(o), retry.New(retry.Options{})),
		},
	})
	if err != nil {
		return err
	}
	var calls []*genai.FunctionCall
	for chunk, err := range client.Models.GenerateContentStream(ctx, "gemini-2.5-flash",
		genai.Text("How is the weather in Oslo?"), &genai.GenerateContentConfig{Tools: []*genai.Tool{tool}}) {
		if err != nil {
			return err
		}
		for _, part := range parts(chunk) {
			fmt.Fprint(out, part.Text)
			if part.FunctionCall != nil {
				calls = append(calls, part.FunctionCall)
			}
		}
	}
	fmt.Fprintln(out)
	for _, call := range calls {
		arguments, err := json.Marshal(call.Args)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s(%s) %s\n", call.Name, arguments, call.ID)
	}
	return nil
}

// parts returns what the model said, which may be nothing.
func parts(response *genai.GenerateContentResponse) []*genai.Part {
	if len(response.Candidates) == 0 || response.Candidates[0].Content == nil {
		return nil
	}
	return response.Candidates[0].Content.Parts
}

var tool = &genai.Tool{FunctionDeclarations: []*genai.FunctionDeclaration{{
	Name:        "get_weather",
	Description: "the weather of the coming days",
	ParametersJsonSchema: map[string]any{
		"type": "object",
		"properties": map[string]any{
			"city":   map[string]any{"type": "string"},
			"days":   map[string]any{"type": "integer"},
			"unit":   map[string]any{"type": "string", "enum": []string{"celsius", "fahrenheit"}},
			"fields": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		},
		"required": []string{"city"},
	},
}}}
