// A program of any-llm-go with one tool. Arguments: the base URL and the prompt.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	anyllm "github.com/mozilla-ai/any-llm-go"
	"github.com/mozilla-ai/any-llm-go/providers/openai"
)

func main() {
	provider, err := openai.New(anyllm.WithAPIKey("k"), anyllm.WithBaseURL(os.Args[1]+"/v1"))
	check(err)
	tools := []anyllm.Tool{{Type: "function", Function: anyllm.Function{
		Name: "read_file", Description: "Read a file.",
		Parameters: map[string]any{
			"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}},
			"required": []string{"path"}, "additionalProperties": false,
		},
	}}}
	messages := []anyllm.Message{{Role: anyllm.RoleUser, Content: os.Args[2]}}
	for {
		answer, err := provider.Completion(context.Background(), anyllm.CompletionParams{Model: "m", Messages: messages, Tools: tools})
		check(err)
		message := answer.Choices[0].Message
		if len(message.ToolCalls) == 0 {
			fmt.Println(message.Content)
			return
		}
		messages = append(messages, message)
		for _, call := range message.ToolCalls {
			var place struct{ Path string }
			check(json.Unmarshal([]byte(call.Function.Arguments), &place))
			fmt.Println("call", place.Path)
			content, err := os.ReadFile(place.Path)
			check(err)
			messages = append(messages, anyllm.Message{Role: anyllm.RoleTool, ToolCallID: call.ID, Content: string(content)})
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
