package main

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolmend/toolmend/middleware"
)

// offline plays a model. It sends a number as text, then misnames a property, and
// corrects itself when it is told.
func offline(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
	results, answers := 0, 0
	for _, m := range req.Messages {
		switch {
		case m.Role == middleware.RoleTool && !strings.Contains(m.Text(), "validation failed"):
			results++
		case m.Role == middleware.RoleAssistant:
			answers++
		}
	}
	text, name, arguments := "", "", ""
	switch {
	case results == 0:
		text, name, arguments = "I will read your notes.", "list_notes", `{"limit":"1"}`
	case results == 1 && answers == 1:
		text, name, arguments = "Ann gets the book.", "send_mail", `{"recipient":"ann@example.com","text":"I will bring the book."}`
	case results == 1:
		text, name, arguments = "Ann gets the book on Friday.", "send_mail", `{"to":"ann@example.com","text":"I will bring the book on Friday."}`
	default:
		text = "Ann knows that you bring the book on Friday."
	}
	if req.Sink != nil {
		if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: text}); err != nil {
			return nil, err
		}
	}
	if name == "" {
		return &middleware.Response{Message: middleware.Assistant(text), FinishReason: middleware.FinishStop}, nil
	}
	call := middleware.ToolCall{ID: fmt.Sprint("call_", answers), Name: name, Arguments: arguments}
	return &middleware.Response{Message: middleware.Assistant(text, call), FinishReason: middleware.FinishToolCalls}, nil
}

type list struct {
	Limit int `json:"limit,omitempty" jsonschema:"the number of notes; 0 means all"`
}

// notes is an MCP server with one tool.
func notes() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "list_notes", Description: "The newest notes."},
		func(context.Context, *sdk.CallToolRequest, list) (*sdk.CallToolResult, any, error) {
			note := "Promised Ann (ann@example.com) to bring the book on Friday."
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: note}}}, nil, nil
		})
	return server
}
