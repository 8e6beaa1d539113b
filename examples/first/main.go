package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/middleware"
)

func main() {
	model := toolmend.OpenAI(toolmend.Endpoint{
		URL:   os.Getenv("OPENAI_BASE_URL"), // "" is OpenAI
		Key:   os.Getenv("OPENAI_API_KEY"),
		Model: "gpt-5",
	})
	call := toolmend.Stack(toolmend.Options{})(model)

	resp, err := call(context.Background(), &middleware.Request{
		Messages: []middleware.Message{
			middleware.User("How is the weather in Oslo?"),
		},
		Tools: []middleware.Tool{{
			Name: "get_weather",
			Parameters: []byte(`{"type": "object", "required": ["city"],
				"properties": {"city": {"type": "string"}}}`),
		}},
	})
	if err != nil {
		log.Fatal(err) // such as argsvalidate.ErrExhausted
	}
	for _, c := range resp.Message.ToolCalls { // only valid calls
		fmt.Println(c.Name, c.Arguments)
	}
}
