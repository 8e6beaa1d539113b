// Command click shows two local fixes. Models call the tool click with
// {"element": …} where {"selector": …} is declared, or with the bare string.
// Both are repaired without another model call, because the program says
// what they mean.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

type clickArgs struct {
	Selector string `json:"selector" jsonschema:"minLength=1" jsonschema_description:"CSS selector of the element"`
}

func run(ctx context.Context, out io.Writer) error {
	click := agentloop.NewTool("click", "Clicks an element of the page.",
		func(_ context.Context, args clickArgs) (agentloop.Result, error) {
			return agentloop.Text("clicked " + args.Selector), nil
		})
	validator := argsvalidate.NewValidator(argsvalidate.Options{
		PerTool: map[string]argsvalidate.ToolOptions{"click": {
			Mend:    []mend.Rule{mend.Rename, mend.Wrap},
			Aliases: map[string]string{"element": "selector"}, // a name that models send, and what it stands for
		}},
	})
	for _, arguments := range []string{
		`{"element":"#myCoolButton"}`, // another key
		`"myCoolButton"`,              // no object at all
	} {
		agent, err := agentloop.New(validator.Middleware()(model(arguments)), agentloop.Options{
			Tools:     []agentloop.Tool{click},
			Validator: validator,
			StopWhen:  agentloop.ToolSucceeded("click"),
		})
		if err != nil {
			return err
		}
		s := agentloop.NewState(middleware.User("Press the button."))
		if err := agent.Run(ctx, s); err != nil {
			return err
		}
		for _, r := range s.Results {
			fmt.Fprintf(out, "raw     %s %s\n", r.Call.Name, r.Raw)
			fmt.Fprintf(out, "as run  %s %s\n", r.Call.Name, r.Call.Arguments)
			for _, change := range r.Changes {
				fmt.Fprintf(out, "mended by %s\n", change.By)
			}
			fmt.Fprintln(out, "result ", r.Text)
		}
		fmt.Fprintf(out, "model calls: %d\n\n", s.Steps[0].Attempts)
	}
	return nil
}

// model plays one that clicks with the given arguments, whatever the replies say.
func model(arguments string) middleware.ModelCall {
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		call := middleware.ToolCall{ID: "call_1", Name: "click", Arguments: arguments}
		return &middleware.Response{Message: middleware.Assistant("", call), FinishReason: middleware.FinishToolCalls}, nil
	}
}
