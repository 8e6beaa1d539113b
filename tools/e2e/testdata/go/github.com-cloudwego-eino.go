// A ReAct agent of Eino with one tool. Arguments: the base URL and the prompt.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
)

type place struct {
	Path string `json:"path" jsonschema:"required"`
}

func read(_ context.Context, p *place) (string, error) {
	fmt.Println("call", p.Path)
	b, err := os.ReadFile(p.Path)
	return string(b), err
}

func main() {
	ctx := context.Background()
	model, err := openai.NewChatModel(ctx, &openai.ChatModelConfig{BaseURL: os.Args[1] + "/v1", APIKey: "k", Model: "m"})
	check(err)
	reader, err := utils.InferTool("read_file", "Read a file.", read)
	check(err)
	agent, err := react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel: model, ToolsConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{reader}}, MaxStep: 200,
		StreamToolCallChecker: func(_ context.Context, s *schema.StreamReader[*schema.Message]) (bool, error) {
			defer s.Close()
			for {
				m, err := s.Recv()
				if err == io.EOF {
					return false, nil
				}
				if err != nil || len(m.ToolCalls) > 0 {
					return err == nil, err
				}
			}
		},
	})
	check(err)
	stream, err := agent.Stream(ctx, []*schema.Message{schema.UserMessage(os.Args[2])})
	check(err)
	answer, err := schema.ConcatMessageStream(stream)
	check(err)
	fmt.Println(answer.Content)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
