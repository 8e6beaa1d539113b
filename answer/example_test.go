package answer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

// says plays a model that gives these answers, in order.
func scripted(answers ...string) middleware.ModelCall {
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		text := answers[0]
		answers = answers[1:]
		return &middleware.Response{Message: middleware.Assistant(text), FinishReason: middleware.FinishStop}, nil
	}
}

// An answer in code fences is repaired. One that does not satisfy the schema
// goes back to the model.
func ExampleNew() {
	model := scripted(
		"```json\n{\"city\": \"Oslo\", \"degrees\": \"mild\"}\n```",
		"```json\n{\"city\": \"Oslo\", \"degrees\": 12}\n```",
	)
	call := answer.New(answer.Options{Schema: json.RawMessage(`{
		"type": "object",
		"properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
		"required": ["city", "degrees"]
	}`)})(model)

	resp, err := call(context.Background(), &middleware.Request{Messages: []middleware.Message{middleware.User("How warm is it in Oslo?")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	feedback, _, _ := strings.Cut(resp.Report.Attempts[0].Replies[0].Text(), "\n\n")
	fmt.Println(feedback)
	fmt.Println()
	fmt.Println(resp.Message.Text(), resp.Report.Status, "after", len(resp.Report.Attempts), "attempts")
	// Output:
	// Your answer is not valid. Fix the following errors and send the whole answer again:
	//   • [degrees] wanted integer; sent string "mild"
	//
	// {"city": "Oslo", "degrees": 12} valid after 2 attempts
}

type Invoice struct {
	Number string `json:"number"`
	Lines  []Line `json:"lines" jsonschema:"minItems=1"`
	Total  int    `json:"total" jsonschema_description:"in cents"`
}

type Line struct {
	Text  string `json:"text"`
	Cents int    `json:"cents"`
}

// The answer is a Go value, and a check of your own sees it as one. The layers
// for tool calls and for failures in transit stand inside.
func ExampleFor() {
	model := scripted(
		`{"number": "A-7", "lines": [{"text": "tea", "cents": 320}, {"text": "cake", "cents": 450}], "total": 700}`,
		`{"number": "A-7", "lines": [{"text": "tea", "cents": 320}, {"text": "cake", "cents": 450}], "total": 770}`,
	)
	adds := func(_ context.Context, i Invoice) ([]middleware.Issue, error) {
		sum := 0
		for _, l := range i.Lines {
			sum += l.Cents
		}
		if sum != i.Total {
			return []middleware.Issue{{Pointer: "/total", Message: fmt.Sprintf("the lines add up to %d, not to %d", sum, i.Total)}}, nil
		}
		return nil, nil
	}
	call := middleware.Chain(
		answer.For[Invoice](answer.Options{Check: answer.Typed(adds), Instruct: true}),
		argsvalidate.New(argsvalidate.Options{}),
		retry.New(retry.Options{}),
	)(model)

	resp, err := call(context.Background(), &middleware.Request{Messages: []middleware.Message{middleware.User("Read the invoice.")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	invoice, err := answer.Value[Invoice](resp)
	fmt.Println(invoice.Number, invoice.Total, err)
	wrong := resp.Report.Attempts[0].Issues[0]
	fmt.Println(wrong.Path(), wrong.Message)
	// Output:
	// A-7 770 <nil>
	// total the lines add up to 770, not to 700
}

// A function alone validates text that is not JSON. With Raise, an answer that
// stays invalid is an error.
func ExampleNew_check() {
	short := func(_ context.Context, text string) ([]middleware.Issue, error) {
		if n := len(strings.Fields(text)); n > 3 {
			return []middleware.Issue{{Code: "length", Message: fmt.Sprintf("use at most 3 words; these are %d", n)}}, nil
		}
		return nil, nil
	}
	model := scripted("a title that is long", "a title that is still long")
	call := answer.New(answer.Options{Check: short, MaxAttempts: 2})(model)
	_, err := call(context.Background(), &middleware.Request{Messages: []middleware.Message{middleware.User("A title, please.")}})
	fmt.Println(err)
	fmt.Println(errors.Is(err, answer.ErrExhausted))
	// Output:
	// answer: attempts exhausted: still invalid after 2 attempts: length
	// true
}
