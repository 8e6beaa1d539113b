package middleware_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// cache answers a request that it has answered before without a model call.
func cache() middleware.Middleware {
	var answers sync.Map // of sha256 to *middleware.Response
	return func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			text, err := json.Marshal(req)
			if err != nil {
				return nil, err
			}
			key := sha256.Sum256(text)
			if known, ok := answers.Load(key); ok {
				resp := known.(*middleware.Response).Clone()
				resp.Usage, resp.Report = middleware.Usage{}, middleware.Report{Status: resp.Report.Status} // this step cost nothing
				return resp, nil
			}
			resp, err := next(ctx, req)
			if err == nil && resp != nil && resp.Report.Status != middleware.Invalid {
				answers.Store(key, resp.Clone())
			}
			return resp, err
		}
	}
}

var cardNumber = regexp.MustCompile(`\b(?:\d[ -]?){15}\d\b`)

// redact removes card numbers from the text that the model receives.
func redact(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		clean := req.Clone()
		for _, m := range clean.Messages {
			for i := range m.Parts {
				m.Parts[i].Text = cardNumber.ReplaceAllString(m.Parts[i].Text, "[card]")
			}
		}
		return next(ctx, clean)
	}
}

// guardrail answers requests about bookings itself. The model is not called.
func guardrail(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role == middleware.RoleUser && strings.Contains(last.Text(), "Book") {
			return &middleware.Response{
				Message:      middleware.Assistant("Rooms are booked at the desk."),
				FinishReason: middleware.FinishStop,
			}, nil
		}
		return next(ctx, req)
	}
}

// insist calls the model a second time if the first answer is empty. The Tally
// adds up the usage of both calls and keeps both in the report.
func insist(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		var tally middleware.Tally
		resp, err := tally.Call(ctx, next, req)
		if err == nil && resp.Message.Text() == "" && len(resp.Message.ToolCalls) == 0 {
			resp, err = tally.Call(ctx, next, req.With(middleware.User("Say something.")))
		}
		return tally.Finish(resp, err)
	}
}

func TestWrittenMiddlewaresKeepTheLaws(t *testing.T) {
	for name, mw := range map[string]middleware.Middleware{"cache": cache(), "redact": redact, "guardrail": guardrail, "insist": insist} {
		t.Run(name, func(t *testing.T) { middlewaretest.Run(t, mw) })
	}
}

// The first middleware of a chain sees a request first and its answer last: a
// request that guardrail answers is not cached, and the cache stores requests
// with their card numbers, because redact is inside of it.
func Example() {
	calls := 0
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		calls++
		text := req.Messages[len(req.Messages)-1].Text()
		return &middleware.Response{Message: middleware.Assistant("You said: " + text), FinishReason: middleware.FinishStop}, nil
	}
	call := middleware.Chain(guardrail, cache(), redact, insist)(model)
	for _, text := range []string{"Book a room.", "My card is 4111 1111 1111 1111.", "My card is 4111 1111 1111 1111."} {
		resp, err := call(context.Background(), &middleware.Request{Messages: []middleware.Message{middleware.User(text)}})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.Message.Text())
	}
	fmt.Println("model calls:", calls)
	// Output:
	// Rooms are booked at the desk.
	// You said: My card is [card].
	// You said: My card is [card].
	// model calls: 1
}
