package middleware_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/middleware"
)

// A middleware that asks a second time keeps its ledger in a Tally: the usage
// of both attempts reaches the caller.
func ExampleTally() {
	again := func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			var tally middleware.Tally
			resp, err := tally.Call(ctx, next, req)
			if err == nil && resp.Message.Text() == "" {
				resp, err = tally.Call(ctx, next, req.With(middleware.User("Say something.")))
			}
			return tally.Finish(resp, err)
		}
	}
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		usage := middleware.Usage{InputTokens: 100 * int64(len(req.Messages)), OutputTokens: 1}
		if len(req.Messages) == 1 {
			return &middleware.Response{Message: middleware.Assistant(""), Usage: usage}, nil
		}
		return &middleware.Response{Message: middleware.Assistant("Hello."), Usage: usage}, nil
	}

	resp, err := again(model)(context.Background(), &middleware.Request{Messages: []middleware.Message{middleware.User("Hi")}})
	fmt.Println(resp.Message.Text(), err)
	fmt.Println("spent:", resp.Usage.InputTokens, "context:", resp.ContextTokens(), "attempts:", len(resp.Report.Attempts))
	// Output:
	// Hello. <nil>
	// spent: 300 context: 201 attempts: 2
}

// The ledger of a failed step is in its error, through any wrapping.
func ExampleReportOf() {
	var tally middleware.Tally
	tally.Add(&middleware.Response{Message: middleware.Assistant("no"), Usage: middleware.Usage{InputTokens: 10, OutputTokens: 5}}, nil)
	_, err := tally.Finish(nil, errors.New("gave up"))

	err = fmt.Errorf("step 3: %w", err)
	fmt.Println(err)
	fmt.Println(middleware.ReportOf(nil, err).Usage())
	// Output:
	// step 3: gave up
	// {10 0 0 5 0}
}

func ExampleIssue_Path() {
	fmt.Println(middleware.Issue{Pointer: "/config/thresholds/1"}.Path())
	fmt.Println(middleware.Issue{}.Path())
	// Output:
	// config.thresholds[1]
	// the arguments
}
