// Command genai is Google's SDK with one option more: generateContent, or with
// -stream streamGenerateContent.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"iter"
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
	stream := flag.Bool("stream", false, "stream the answer")
	flag.Parse()
	baseURL, key := "https://generativelanguage.googleapis.com", os.Getenv("GEMINI_API_KEY")
	if key == "" {
		baseURL, key = fake.Demo(fake.Gemini, os.Stderr), "none" // a model that needs to be told
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
	// region: client
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: baseURL},
		HTTPClient: &http.Client{ // the one option
			Transport: transport.RoundTripper(nil, argsvalidate.New(o), retry.New(retry.Options{})),
		},
	})
	// endregion

	if err != nil {
		return err
	}
	config, prompt := &genai.GenerateContentConfig{Tools: []*genai.Tool{tool}}, genai.Text("How is the weather in Oslo?")
	answer := client.Models.GenerateContentStream
	if !stream {
		answer = func(ctx context.Context, model string, prompt []*genai.Content, config *genai.GenerateContentConfig) iter.Seq2[*genai.GenerateContentResponse, error] {
			return func(yield func(*genai.GenerateContentResponse, error) bool) {
				yield(client.Models.GenerateContent(ctx, model, prompt, config))
			}
		}
	}
	var calls []*genai.FunctionCall
	for piece, err := range answer(ctx, "gemini-2.5-flash", prompt, config) {
		if err != nil {
			return err
		}
		for _, part := range parts(piece) {
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
	Parameters: &genai.Schema{
		Type: genai.TypeObject,
		Properties: map[string]*genai.Schema{
			"city":   {Type: genai.TypeString},
			"days":   {Type: genai.TypeInteger},
			"unit":   {Type: genai.TypeString, Enum: []string{"celsius", "fahrenheit"}},
			"fields": {Type: genai.TypeArray, Items: &genai.Schema{Type: genai.TypeString}},
		},
		Required: []string{"city"},
	},
}}}
