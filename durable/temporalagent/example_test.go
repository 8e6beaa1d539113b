package temporalagent_test

import (
	"context"
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/durable/temporalagent"
	"github.com/toolmend/toolmend/middleware"
)

// The agent that a worker runs: a model that calls a tool, and then answers.
func newAgent() *agentloop.Agent {
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role == middleware.RoleTool {
			return &middleware.Response{Message: middleware.Assistant("It is " + last.Text() + ".")}, nil
		}
		return &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "weather", Arguments: `{"city":"Oslo"}`})}, nil
	}
	type args struct {
		City string `json:"city"`
	}
	agent, err := agentloop.New(model, agentloop.Options{Tools: []agentloop.Tool{
		agentloop.NewTool("weather", "Says how the weather is.", func(_ context.Context, a args) (agentloop.Result, error) {
			return agentloop.Text("sunny in " + a.City), nil
		}),
	}})
	if err != nil {
		panic(err)
	}
	return agent
}

// A workflow of the user's own runs an agent. The test environment of the SDK runs
// it without a server.
func ExampleRunIn() {
	plugin, err := temporalagent.New(temporalagent.WorkerOptions{Agents: map[string]*agentloop.Agent{"guide": newAgent()}})
	if err != nil {
		panic(err)
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(slog.New(slog.DiscardHandler))
	env := suite.NewTestWorkflowEnvironment()
	plugin.Register(env) // a worker with the plugin does that by itself

	env.ExecuteWorkflow(func(ctx workflow.Context) (*temporalagent.Result, error) {
		return temporalagent.RunIn(ctx, temporalagent.InOptions{Agent: "guide"}, middleware.User("How is the weather in Oslo?"))
	})
	var result temporalagent.Result
	if err := env.GetWorkflowResult(&result); err != nil {
		panic(err)
	}
	s, err := result.State(context.Background(), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Answer(), len(s.Steps), "model steps")
	// Output:
	// It is sunny in Oslo. 2 model steps
}
