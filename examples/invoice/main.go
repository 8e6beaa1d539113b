// Command invoice extracts an invoice from a letter. The loop goes on until the
// tool has accepted one: a value that does not fit the schema goes back to the
// model inside the step, a total that does not add up is the tool's own error.
// The program gets the Go value that the tool kept, the model a word.
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
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

const letter = `Invoice No. 2026-114 of 12 March 2026.
Three oak shelves at 40 euros each, and the delivery for 15 euros.
Please pay 135 euros within 30 days.`

type invoice struct {
	Number string `json:"number" jsonschema:"minLength=1"`
	Date   string `json:"date" jsonschema:"pattern=^[0-9]{4}-[0-9]{2}-[0-9]{2}$"`
	Lines  []line `json:"lines" jsonschema:"minItems=1"`
	Total  int    `json:"total" jsonschema_description:"in euros"`
}

type line struct {
	Item     string `json:"item"`
	Quantity int    `json:"quantity" jsonschema:"minimum=1"`
	Price    int    `json:"price" jsonschema_description:"of one, in euros"`
}

func run(ctx context.Context, out io.Writer) error {
	submit := agentloop.NewTool("submit_invoice", "Hands in the invoice that was found.",
		func(_ context.Context, in invoice) (agentloop.Result, error) {
			sum := 0
			for _, l := range in.Lines {
				sum += l.Quantity * l.Price
			}
			if sum != in.Total {
				return agentloop.Result{}, fmt.Errorf("the lines add up to %d, the total says %d: check quantities and prices", sum, in.Total)
			}
			return agentloop.Result{Text: "Accepted.", Value: in}, nil // Value is never sent
		})
	agent, err := agentloop.New(argsvalidate.New(argsvalidate.Options{})(model()), agentloop.Options{
		Tools:    []agentloop.Tool{submit},
		StopWhen: agentloop.ToolSucceeded("submit_invoice"),
	})
	if err != nil {
		return err
	}
	s := agentloop.NewState(middleware.User("Extract the invoice:\n\n" + letter))
	for step, err := range agent.Steps(ctx, s) {
		if err != nil {
			return err
		}
		show(out, step)
	}
	if found, ok := agentloop.Value[invoice](s); ok {
		fmt.Fprintf(out, "\n%s of %s, %d lines, %d euros\n", found.Number, found.Date, len(found.Lines), found.Total)
	}
	return nil
}

// show prints what the model sent and what it was told, hidden attempts too.
func show(out io.Writer, step agentloop.Step) {
	if step.Response != nil {
		for _, attempt := range step.Response.Report.Attempts {
			for _, v := range attempt.Verdicts {
				fmt.Fprintln(out, "model:", v.Call.Arguments)
				for _, issue := range v.Issues {
					fmt.Fprintln(out, "  refused:", argsvalidate.Line(v.Call.Name, issue))
				}
			}
		}
	}
	for _, r := range step.Results {
		fmt.Fprintln(out, "  tool:", r.Text)
	}
}

// model plays one that reads too fast, and reads again when the reply says what is
// wrong.
func model() middleware.ModelCall {
	calls := 0
	return func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		date, quantity := "12 March 2026", 1
		for _, m := range req.Messages {
			if m.Role == middleware.RoleTool && strings.Contains(m.Text(), "date") {
				date = "2026-03-12"
			}
			if m.Role == middleware.RoleTool && strings.Contains(m.Text(), "add up") {
				date, quantity = "2026-03-12", 3
			}
		}
		calls++
		call := middleware.ToolCall{ID: fmt.Sprint("call_", calls), Name: "submit_invoice", Arguments: fmt.Sprintf(
			`{"number":"2026-114","date":%q,"lines":[{"item":"oak shelf","quantity":%d,"price":40},{"item":"delivery","quantity":1,"price":15}],"total":135}`,
			date, quantity)}
		return &middleware.Response{Message: middleware.Assistant("", call), FinishReason: middleware.FinishToolCalls}, nil
	}
}
