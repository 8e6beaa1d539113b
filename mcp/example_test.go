package mcp_test

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/mcp"
	"github.com/toolmend/toolmend/middleware"
)

// play stands for a real model: it gives these answers, one after the other.
func play(answers ...middleware.Message) middleware.ModelCall {
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		m := answers[0]
		answers = answers[1:]
		return &middleware.Response{Message: m}, nil
	}
}

type transfer struct {
	Account int64 `json:"account"`
	Amount  int   `json:"amount"`
}

// bank is somebody's MCP server.
func bank() sdk.Transport {
	server := sdk.NewServer(&sdk.Implementation{Name: "bank", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "transfer"}, func(_ context.Context, r *sdk.CallToolRequest, _ transfer) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done: " + string(r.Params.Arguments)}}}, nil, nil
	})
	theirs, ours := sdk.NewInMemoryTransports()
	if _, err := server.Connect(context.Background(), theirs, nil); err != nil {
		panic(err)
	}
	return ours
}

// The model's first call does not satisfy the server's schema. The server never
// sees it, and the account's number arrives as it was written.
func ExampleConnect() {
	ctx := context.Background()
	server, err := mcp.Connect(ctx, bank(), mcp.Options{Prefix: "bank_"})
	if err != nil {
		panic(err)
	}
	defer server.Close()

	model := play(
		middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "bank_transfer", Arguments: `{"account": 9007199254740993}`}),
		middleware.Assistant("", middleware.ToolCall{ID: "2", Name: "bank_transfer", Arguments: `{"account": 9007199254740993, "amount": 5}`}),
		middleware.Assistant("It is done."))
	call := argsvalidate.New(argsvalidate.Options{})(model)
	agent, err := agentloop.New(call, agentloop.Options{Source: server.Tools})
	if err != nil {
		panic(err)
	}
	s := agentloop.NewState(middleware.User("Transfer 5."))
	err = agent.Run(ctx, s)
	fmt.Println(s.Results[0].Text)
	fmt.Println(s.Answer(), err)
	fmt.Println("model calls:", s.Steps[0].Attempts+s.Steps[1].Attempts)
	// Output:
	// done: {"account":9007199254740993,"amount":5}
	// It is done. <nil>
	// model calls: 3
}

// A person decides on what the server does not claim to be harmless. Believing
// the claim is this program's choice.
func ExampleOptions() {
	server, err := mcp.Connect(context.Background(), bank(), mcp.Options{
		Admit: func(e mcp.Entry, t *agentloop.Tool) bool {
			t.Approval = e.Annotations == nil || !e.Annotations.ReadOnlyHint
			return e.Tool != "close_account"
		},
	})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	tools, _ := server.Tools(context.Background())
	fmt.Println(tools[0].Def.Name, tools[0].Approval)
	// Output:
	// transfer true
}

func ExampleJoin() {
	ctx := context.Background()
	home, _ := mcp.Connect(ctx, bank(), mcp.Options{Name: "home bank", Prefix: "home_"})
	defer home.Close()
	other, _ := mcp.Connect(ctx, bank(), mcp.Options{Name: "other bank", Prefix: "other_"})
	defer other.Close()
	third, _ := mcp.Connect(ctx, bank(), mcp.Options{Name: "third bank", Prefix: "home_"})
	defer third.Close()

	for _, e := range mcp.Join(home, other, third).Table() {
		fmt.Printf("%s: %s is %s %q\n", e.Server, e.Tool, e.Name, e.Refused)
	}
	// Output:
	// home bank: transfer is home_transfer ""
	// other bank: transfer is other_transfer ""
	// third bank: transfer is home_transfer "home bank has a tool of that name"
}
