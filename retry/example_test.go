package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

func ExampleNew() {
	calls := 0
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		if calls++; calls < 3 {
			return nil, &middleware.ModelError{StatusCode: 529, Code: "overloaded_error"}
		}
		return &middleware.Response{Message: middleware.Assistant("Hello.")}, nil
	}
	call := retry.New(retry.Options{MinDelay: time.Microsecond})(model)

	resp, err := call(context.Background(), &middleware.Request{})
	fmt.Println(resp.Message.Text(), err)
	for _, a := range resp.Report.Attempts {
		fmt.Println("attempt:", a.Err)
	}
	// Output:
	// Hello. <nil>
	// attempt: middleware: model error: status 529: overloaded_error
	// attempt: middleware: model error: status 529: overloaded_error
	// attempt: <nil>
}

func ExampleError() {
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return nil, &middleware.ModelError{StatusCode: 503}
	}
	call := retry.New(retry.Options{MaxAttempts: 2, MinDelay: time.Microsecond})(model)

	_, err := call(context.Background(), &middleware.Request{})
	var last *middleware.ModelError
	fmt.Println(err)
	fmt.Println("reason:", errors.Is(err, retry.ErrExhausted))
	fmt.Println("cause:", errors.As(err, &last), last.StatusCode)
	// Output:
	// retry: attempts exhausted (attempts: 2): middleware: model error: status 503
	// reason: true
	// cause: true 503
}

func ExampleFallback() {
	large := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return nil, &middleware.ModelError{StatusCode: 429}
	}
	small := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Model: "small", Message: middleware.Assistant("Hello.")}, nil
	}
	again := retry.New(retry.Options{MaxAttempts: 2, MinDelay: time.Microsecond})
	call := retry.Fallback(nil, again(large), again(small))

	resp, _ := call(context.Background(), &middleware.Request{})
	fmt.Println(resp.Model, "after", len(resp.Report.Attempts), "attempts")
	// Output: small after 3 attempts
}

func ExampleStatus() {
	call := retry.New(retry.Options{If: retry.Status(429)})(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return nil, &middleware.ModelError{StatusCode: 500}
	})
	_, err := call(context.Background(), &middleware.Request{})
	fmt.Println(err)
	// Output: middleware: model error: status 500
}

// GaveUp tells a retried call from the models of a Fallback.
func ExampleGaveUp() {
	down := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return nil, &middleware.ModelError{StatusCode: 503}
	}
	_, retried := retry.New(retry.Options{MaxAttempts: 1})(down)(context.Background(), &middleware.Request{})
	_, fallback := retry.Fallback(nil, down, down)(context.Background(), &middleware.Request{})
	fmt.Println(retry.GaveUp(retried), retry.GaveUp(fallback))
	// Output: true false
}
