package argsvalidate_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	textanswer "github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/textcall"
)

// layers are the layers that have OnExhausted, in the recommended order.
var layers = []string{"answer", "argsvalidate", "rescue", "textcall"}

// stackOf returns the layers in an order, outermost first, each with its setting.
func stackOf(order []string, attempts int, settings map[string]middleware.OnExhausted) middleware.Middleware {
	short := func(_ context.Context, text string) ([]middleware.Issue, error) {
		if len(text) > 10 {
			return []middleware.Issue{{Message: "is too long"}}, nil
		}
		return nil, nil
	}
	var all []middleware.Middleware
	for _, name := range order {
		on := settings[name]
		all = append(all, map[string]func() middleware.Middleware{
			"answer": func() middleware.Middleware {
				return textanswer.New(textanswer.Options{Check: short, MaxAttempts: attempts, OnExhausted: on})
			},
			"argsvalidate": func() middleware.Middleware {
				return argsvalidate.New(argsvalidate.Options{MaxAttempts: attempts, OnExhausted: on})
			},
			"rescue": func() middleware.Middleware {
				return rescue.New(rescue.Options{MaxAttempts: attempts, OnExhausted: on})
			},
			"textcall": func() middleware.Middleware {
				return textcall.New(textcall.Options{MaxAttempts: attempts, OnExhausted: on})
			},
		}[name]())
	}
	return middleware.Chain(all...)
}

// raisedBy returns the layer whose error err is, and "" for any other error.
func raisedBy(err error) string {
	var a *textanswer.Error
	var v *argsvalidate.Error
	var r *rescue.Error
	var c *textcall.Error
	switch {
	case errors.As(err, &a) && errors.Is(err, textanswer.ErrExhausted):
		return "answer"
	case errors.As(err, &v) && errors.Is(err, argsvalidate.ErrExhausted):
		return "argsvalidate"
	case errors.As(err, &r) && errors.Is(err, rescue.ErrExhausted):
		return "rescue"
	case errors.As(err, &c) && errors.Is(err, textcall.ErrExhausted):
		return "textcall"
	}
	return ""
}

// faults are messages of a model, by the layer that finds them invalid in the
// recommended order.
var faults = map[string]middleware.Message{
	"":                   middleware.Assistant("Sunny."),
	"a valid call":       middleware.Assistant("", call("1", "weather", goodWeather)),
	"argsvalidate":       middleware.Assistant("", call("1", "weather", badWeather)),
	"argsvalidate, both": middleware.Assistant("", call("1", "weather", badWeather), call("2", "note", goodNote)),
	"rescue":             middleware.Assistant(`<tool_call>{"name":"weather","arguments":{"city":`),
	"textcall":           middleware.Assistant("Action: weather[Oslo]"),
	"textcall, a call":   middleware.Assistant("Action: weather\nAction Input: {\"days\": 0}"),
	"answer":             middleware.Assistant("It is sunny in Oslo."),
}

// With zero values an invalid message is an error in every order of the layers: the
// outermost layer that finds it raises, and a layer inside argsvalidate does not.
// With Pass it is returned and marked.
func TestNoOrderReturnsAnInvalidMessage(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range faults {
			if !yield(name) {
				return
			}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.Permutation(layers).Draw(t, "order")
		attempts := rapid.IntRange(1, 2).Draw(t, "attempts")
		sent := rapid.SliceOfN(rapid.SampledFrom(names), 1, 6).Draw(t, "messages")
		ask := func(settings map[string]middleware.OnExhausted) (*middleware.Response, error) {
			n := 0
			return stackOf(order, attempts, settings)(func(context.Context, *middleware.Request) (*middleware.Response, error) {
				m := faults[sent[min(n, len(sent)-1)]]
				n++
				return &middleware.Response{Message: m.Clone(), FinishReason: middleware.FinishStop}, nil
			})(context.Background(), request())
		}
		resp, err := ask(nil)
		if err == nil {
			require.NotEqual(t, middleware.Invalid, middleware.ReportOf(resp, nil).Status)
		} else {
			by := raisedBy(err)
			require.NotEmpty(t, by, "%v", err)
			require.LessOrEqual(t, slices.Index(order, by), slices.Index(order, "argsvalidate"), "%s raised inside argsvalidate", by)
			require.Equal(t, middleware.Invalid, middleware.ReportOf(nil, err).Status)
		}

		all := map[string]middleware.OnExhausted{}
		for _, name := range layers {
			all[name] = middleware.Pass
		}
		passed, passErr := ask(all)
		require.NoError(t, passErr)
		if passed.Report.Status == middleware.Invalid {
			require.Error(t, err, "what is marked with Pass is raised with zero values")
		}

		outer, err := ask(map[string]middleware.OnExhausted{"argsvalidate": middleware.Pass})
		if by := raisedBy(err); by != "" {
			require.Less(t, slices.Index(order, by), slices.Index(order, "argsvalidate"), "argsvalidate passes what is marked inside it")
		} else {
			require.NotNil(t, outer)
		}
	})
}

// In the recommended order argsvalidate raises for all layers inside it.
func TestTheOutermostLayerRaises(t *testing.T) {
	t.Parallel()
	for fault, by := range map[string]string{
		"argsvalidate": "argsvalidate", "argsvalidate, both": "argsvalidate", "rescue": "argsvalidate", "textcall": "argsvalidate", "textcall, a call": "argsvalidate", "answer": "answer",
	} {
		for order, by := range map[string]string{"answer argsvalidate": by, "alone": map[string]string{"rescue": "rescue", "textcall": "textcall"}[fault]} {
			stack := layers
			if order == "alone" {
				stack = []string{by}
			}
			if by == "" {
				continue
			}
			_, err := stackOf(stack, 2, nil)(func(context.Context, *middleware.Request) (*middleware.Response, error) {
				m := faults[fault]
				return &middleware.Response{Message: m.Clone(), FinishReason: middleware.FinishStop}, nil
			})(t.Context(), request())
			require.Equal(t, by, raisedBy(err), "%s, %s: %v", fault, order, err)
		}
	}
}
