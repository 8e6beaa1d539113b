package toolmend_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
)

// TestFailedReaskOfALayer: a re-ask that fails takes nothing away, whichever layer outside of
// retry made it.
func TestFailedReaskOfALayer(t *testing.T) {
	t.Parallel()
	type layer = func(middleware.OnExhausted) middleware.Middleware
	refused := &middleware.ModelError{StatusCode: 429}
	for name, c := range map[string]struct {
		layer layer
		text  string
	}{
		"rescue": {func(o middleware.OnExhausted) middleware.Middleware {
			return rescue.New(rescue.Options{OnExhausted: o})
		}, `<tool_call>{"name": "get_w`},
		"answer": {func(o middleware.OnExhausted) middleware.Middleware {
			return answer.New(answer.Options{OnExhausted: o, Schema: json.RawMessage(`{"type":"object"}`)})
		}, "no object"},
	} {
		for cause, want := range map[error]error{refused: nil, middleware.ErrBudget: middleware.ErrBudget} {
			for _, policy := range []middleware.OnExhausted{middleware.Pass, middleware.Raise} {
				t.Run(name+"/"+policy.String()+"/"+cause.Error(), func(t *testing.T) {
					t.Parallel()
					made := 0
					model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
						if made++; made > 1 {
							return nil, cause
						}
						return &middleware.Response{Message: middleware.Assistant(c.text)}, nil
					}
					var shown string
					req := &middleware.Request{Messages: []middleware.Message{middleware.User("hi")}, Tools: []middleware.Tool{{Name: "get_weather", Parameters: json.RawMessage(`{"type":"object"}`)}},
						Sink: func(e middleware.Event) error { shown += e.Text; return nil }}
					resp, err := c.layer(policy)(model)(t.Context(), req)
					require.Equal(t, 2, made)
					want := want
					if policy == middleware.Raise {
						want = cause
					}
					require.ErrorIs(t, err, want)
					if want != nil {
						return
					}
					require.Equal(t, middleware.Invalid, resp.Report.Status)
					require.Equal(t, c.text, resp.Message.Text())
					require.Len(t, resp.Report.Attempts, 2)
					require.Zero(t, resp.Report.Final)
					if name == "rescue" {
						require.Equal(t, c.text, shown)
					}
				})
			}
		}
	}
}

// TestFailedReaskOfRescueRaises: argsvalidate outside of rescue raises both, the unread call and
// the failure of its re-ask.
func TestFailedReaskOfRescueRaises(t *testing.T) {
	t.Parallel()
	made := 0
	_, err := middleware.Chain(argsvalidate.New(argsvalidate.Options{}), rescue.New(rescue.Options{}))(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		if made++; made > 1 {
			return nil, &middleware.ModelError{StatusCode: 429}
		}
		return &middleware.Response{Message: middleware.Assistant(`<tool_call>{"name": "get_w`)}, nil
	})(t.Context(), &middleware.Request{Messages: []middleware.Message{middleware.User("hi")}, Tools: []middleware.Tool{{Name: "get_weather", Parameters: json.RawMessage(`{"type":"object"}`)}}})
	require.ErrorIs(t, err, argsvalidate.ErrInvalid)
	var refused *middleware.ModelError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 2, made)
}
