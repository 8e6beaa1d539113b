// An agent of Google's ADK with one tool. Arguments: the base URL and the prompt.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model/gemini"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/genai"
)

type place struct {
	Path string `json:"path"`
}

type content struct {
	Text string `json:"text"`
}

func read(_ tool.Context, p place) (content, error) {
	fmt.Println("call", p.Path)
	b, err := os.ReadFile(p.Path)
	return content{string(b)}, err
}

func main() {
	ctx := context.Background()
	model, err := gemini.NewModel(ctx, "gemini-2.5-pro", &genai.ClientConfig{
		APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: os.Args[1]},
	})
	check(err)
	reader, err := functiontool.New(functiontool.Config{Name: "read_file", Description: "Read a file."}, read)
	check(err)
	a, err := llmagent.New(llmagent.Config{Name: "reader", Model: model, Tools: []tool.Tool{reader}})
	check(err)
	sessions := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "reader", Agent: a, SessionService: sessions})
	check(err)
	s, err := sessions.Create(ctx, &session.CreateRequest{AppName: "reader", UserID: "u"})
	check(err)
	answer := ""
	for event, err := range r.Run(ctx, "u", s.Session.ID(), genai.NewContentFromText(os.Args[2], genai.RoleUser), agent.RunConfig{StreamingMode: agent.StreamingModeSSE}) {
		check(err)
		if event.Content == nil || event.Partial {
			continue
		}
		answer = ""
		for _, p := range event.Content.Parts {
			if !p.Thought {
				answer += p.Text
			}
		}
	}
	fmt.Println(answer)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
