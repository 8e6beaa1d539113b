package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// offline stands for the provider. It plays a model that makes three mistakes with
// one booking, and a server that is overloaded once.
func offline(middleware.ModelCall) middleware.ModelCall {
	calls := 0
	return func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		calls++
		last := req.Messages[len(req.Messages)-1].Text()
		message := middleware.Assistant("Your table at Maaemo is booked.")
		switch {
		case calls == 1:
			return nil, &middleware.ModelError{StatusCode: 429, Err: errors.New("overloaded")}
		case calls == 2: // a misnamed property
			message = middleware.Assistant("", call(calls, `{"restaurant":"Maaemo","guests":4,"hour":"19:30"}`))
		case !strings.HasPrefix(last, "A table"): // text for a number, null for an optional property
			message = middleware.Assistant("", call(calls, `{"restaurant":"Maaemo","guests":"4","time":"19:30","notes":null}`))
		}
		finish := middleware.FinishStop
		if len(message.ToolCalls) > 0 {
			finish = middleware.FinishToolCalls
		}
		return &middleware.Response{Message: message, Model: req.Model, FinishReason: finish, Usage: middleware.Usage{InputTokens: 100, OutputTokens: 20}}, nil
	}
}

func call(n int, arguments string) middleware.ToolCall {
	return middleware.ToolCall{ID: fmt.Sprint("call_", n), Name: "book_table", Arguments: arguments}
}
