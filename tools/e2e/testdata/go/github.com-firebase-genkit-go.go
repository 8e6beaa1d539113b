// A prompt of Genkit with one tool. Arguments: the base URL and the prompt.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/compat_oai"
)

type place struct {
	Path string `json:"path"`
}

func main() {
	ctx := context.Background()
	provider := &compat_oai.OpenAICompatible{Provider: "scripted", APIKey: "k", BaseURL: os.Args[1] + "/v1"}
	g := genkit.Init(ctx, genkit.WithPlugins(provider))
	model := provider.DefineModel("scripted", "m", ai.ModelOptions{Supports: &ai.ModelSupports{Multiturn: true, Tools: true, SystemRole: true}})
	reader := genkit.DefineTool(g, "read_file", "Read a file.", func(_ *ai.ToolContext, p place) (string, error) {
		fmt.Println("call", p.Path)
		b, err := os.ReadFile(p.Path)
		return string(b), err
	})
	answer, err := genkit.Generate(ctx, g, ai.WithModel(model), ai.WithPrompt("%s", os.Args[2]), ai.WithTools(reader), ai.WithMaxTurns(100),
		ai.WithStreaming(func(context.Context, *ai.ModelResponseChunk) error { return nil }))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text())
}
