// Command local is an agent on a model of your own, behind llama.cpp, Ollama,
// vLLM or LM Studio. The server may fail to parse the calls that the model
// writes: package rescue reads them from the text.
//
//	LOCAL_MODEL_URL=http://127.0.0.1:8080/v1 go run ./examples/local
//
// LOCAL_MODEL names the model where the server has several, as Ollama does
// (http://127.0.0.1:11434/v1). Without LOCAL_MODEL_URL a small server on this
// machine plays a model whose calls all arrive as text.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/wire"
)

func main() {
	if err := start(context.Background(), os.Stdout, os.Getenv("LOCAL_MODEL_URL"), os.Getenv("LOCAL_MODEL")); err != nil {
		log.Fatal(err)
	}
}

// start runs the agent on the model at url, or on the scripted one.
func start(ctx context.Context, out io.Writer, url, model string) error {
	if url == "" {
		scripted, stop, err := serveScript()
		if err != nil {
			return err
		}
		defer stop()
		url = scripted
	}
	return run(ctx, out, url, model)
}

func run(ctx context.Context, out io.Writer, url, model string) error {
	// region: stack
	call := middleware.Layers{
		middleware.LayerValidate: argsvalidate.New(argsvalidate.Options{}),
		middleware.LayerRescue:   rescue.New(rescue.Options{}), // Markups: only those of your model
		middleware.LayerRetry:    retry.New(retry.Options{}),
	}.Chain()(wire.OpenAIChat().Model(wire.Endpoint{URL: url, Model: model}))
	// endregion

	agent, err := agentloop.New(call, agentloop.Options{Tools: []agentloop.Tool{forecast(), fahrenheit()}, MaxSteps: 8})
	if err != nil {
		return err
	}
	question := "How warm will it be in Oslo over the next 3 days? Give me the warmest day in Fahrenheit."
	fmt.Fprintf(out, "Q: %s\n", question)
	s := agentloop.NewState(middleware.User(question))
	for step, err := range agent.Steps(ctx, s) {
		if err != nil {
			return err
		}
		if step.Response != nil {
			describe(out, step.Response)
		}
		for _, r := range step.Results {
			fmt.Fprintf(out, "   %s %s = %s\n", r.Call.Name, strings.Join(strings.Fields(r.Call.Arguments), " "), r.Text)
		}
	}
	fmt.Fprintf(out, "A: %s\n", s.Answer())
	return nil
}

// describe says what had to be done to get a valid answer of the model.
func describe(out io.Writer, resp *middleware.Response) {
	for i, a := range resp.Report.Attempts {
		for _, issue := range a.Issues {
			fmt.Fprintf(out, "   attempt %d, asked again: %s: %s\n", i+1, issue.Code, issue.Message)
		}
	}
	if n := resp.Report.Rescued(); n > 0 {
		fmt.Fprintf(out, "   written as text, %d: %q\n", n, resp.Report.Attempts[resp.Report.Final].Changes[0].Before)
	}
}

type city struct {
	City string `json:"city"`
	Days int    `json:"days" jsonschema:"minimum=1,maximum=7"`
}

func forecast() agentloop.Tool {
	return agentloop.NewTool("get_forecast", "The highest temperature of each of the next days, in Celsius.",
		func(_ context.Context, args city) (agentloop.Result, error) {
			var days []string
			for i := range args.Days {
				days = append(days, fmt.Sprint(10+(3*i+len(args.City))%7))
			}
			return agentloop.Text(args.City + ": " + strings.Join(days, ", ")), nil
		})
}

type temperature struct {
	Celsius float64 `json:"celsius"`
}

func fahrenheit() agentloop.Tool {
	return agentloop.NewTool("to_fahrenheit", "Converts a temperature.",
		func(_ context.Context, args temperature) (agentloop.Result, error) {
			return agentloop.Text(fmt.Sprintf("%.1f", args.Celsius*9/5+32)), nil
		})
}
