package toolmend_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/textcall"
	"github.com/toolmend/toolmend/tracing"
)

var (
	good     = middlewaretest.Calls("book", `{"city":"Rome"}`)
	bad      = middlewaretest.Calls("book", `{"nights":2}`)
	worse    = middlewaretest.Calls("book", `{"nights":[]}`)
	worst    = middlewaretest.Calls("book", `{}`)
	limited  = middlewaretest.Fail(&middleware.ModelError{StatusCode: 429})
	refusal  = &middleware.ModelError{StatusCode: 400, Message: "No tool output found for function call a."}
	cut      = middlewaretest.Text("<tool_call>\n{\"name\": \"book\", \"arguments\": {\"city\": }}\n</tool_call>")
	inMarkup = middlewaretest.Text("<tool_call>\n{\"name\": \"book\", \"arguments\": {\"nights\": 2}}\n</tool_call>")
)

func ask() *middleware.Request {
	return &middleware.Request{Messages: []middleware.Message{middleware.User("Two nights in Rome, please.")}, Tools: []middleware.Tool{book}}
}

func TestLaws(t *testing.T) {
	t.Parallel()
	t.Run("default", func(t *testing.T) { middlewaretest.Run(t, toolmend.Stack(toolmend.Options{})) })
	t.Run("with rescue and heal", func(t *testing.T) {
		middlewaretest.Run(t, toolmend.Stack(toolmend.Options{Rescue: &rescue.Options{}, Heal: &heal.Options{}}))
	})
}

// TestNeighbours and the tests beside it hold the rest of the order.
func TestOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options toolmend.Options
		turns   []middlewaretest.Turn // all are used
		check   func(t *testing.T, resp *middleware.Response, err error)
	}{
		"a message that stays invalid is an error": {
			turns: []middlewaretest.Turn{bad, worse, worst},
			check: func(t *testing.T, _ *middleware.Response, err error) {
				require.ErrorIs(t, err, argsvalidate.ErrExhausted)
			},
		},
		"a retry is within one attempt of the validation": {
			turns: []middlewaretest.Turn{bad, limited, worse, worst},
			check: func(t *testing.T, _ *middleware.Response, err error) {
				require.ErrorIs(t, err, argsvalidate.ErrExhausted)
			},
		},
		"no retries": {
			options: toolmend.Options{Retry: retry.Options{MaxAttempts: 1}},
			turns:   []middlewaretest.Turn{limited},
			check:   func(t *testing.T, _ *middleware.Response, err error) { require.Error(t, err) },
		},
		"a call in the text stays text": {
			turns: []middlewaretest.Turn{inMarkup},
			check: func(t *testing.T, resp *middleware.Response, err error) {
				require.NoError(t, err)
				require.Empty(t, resp.Message.ToolCalls)
			},
		},
		"a rescued call is validated": {
			options: toolmend.Options{Rescue: &rescue.Options{}},
			turns:   []middlewaretest.Turn{inMarkup, good},
			check: func(t *testing.T, resp *middleware.Response, err error) {
				require.NoError(t, err)
				require.JSONEq(t, `{"city":"Rome"}`, resp.Message.ToolCalls[0].Arguments)
			},
		},
		"a call of a model that writes text is validated": {
			options: toolmend.Options{TextCall: &textcall.Options{}},
			turns: []middlewaretest.Turn{
				middlewaretest.Text("Thought: book\nAction: book\nAction Input: {\"nights\": 2}"),
				middlewaretest.Text("Thought: book\nAction: book\nAction Input: {\"city\": \"Rome\"}"),
			},
			check: func(t *testing.T, resp *middleware.Response, err error) {
				require.NoError(t, err)
				require.JSONEq(t, `{"city":"Rome"}`, resp.Message.ToolCalls[0].Arguments)
			},
		},
		"the answer is validated": {
			options: toolmend.Options{Answer: &answer.Options{Schema: []byte(`{"type":"integer"}`)}},
			turns:   []middlewaretest.Turn{bad, good},
			check:   func(t *testing.T, _ *middleware.Response, err error) { require.NoError(t, err) },
		},
		"an invalid answer is asked for again": {
			options: toolmend.Options{Answer: &answer.Options{Schema: []byte(`{"type":"integer"}`)}},
			turns:   []middlewaretest.Turn{middlewaretest.Text("two"), middlewaretest.Text("2")},
			check: func(t *testing.T, resp *middleware.Response, err error) {
				require.NoError(t, err)
				require.Equal(t, "2", resp.Message.Text())
			},
		},
		"a refusal is an error": {
			turns: []middlewaretest.Turn{middlewaretest.Fail(refusal)},
			check: func(t *testing.T, _ *middleware.Response, err error) { require.Error(t, err) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // retries wait
				model := middlewaretest.NewModel(t, c.turns...)
				resp, err := toolmend.Stack(c.options)(model.Call)(t.Context(), ask())
				c.check(t, resp, err)
				require.Len(t, model.Requests(), len(c.turns))
			})
		})
	}
}

// withOrphan is refused until its history is healed.
func withOrphan() *middleware.Request {
	req := ask()
	req.Messages = append(req.Messages, middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "book", Arguments: `{"city":"Oslo"}`}))
	return req
}

// refusing answers a request whose history has a call without a result as a provider does.
func refusing(model middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		if last := req.Messages[len(req.Messages)-1]; len(last.ToolCalls) > 0 {
			return nil, refusal
		}
		return model(ctx, req)
	}
}

// Stack heals by default. The healed request counts against the budget, a retry repeats it
// healed, and the caller gets the error that ended it.
func TestHeal(t *testing.T) {
	t.Parallel()
	network := errors.New("connection refused")
	for name, c := range map[string]struct {
		options toolmend.Options
		limit   int
		turns   []middlewaretest.Turn // behind the refusals
		calls   int                   // refused ones included
		err     error
	}{
		"by default":                   {turns: []middlewaretest.Turn{good}, calls: 2},
		"off":                          {options: toolmend.Options{Heal: &heal.Options{Rules: heal.Off()}}, calls: 1, err: refusal},
		"a budget of one":              {limit: 1, calls: 1, err: refusal},
		"a 429 is retried healed":      {turns: []middlewaretest.Turn{limited, good}, calls: 3},
		"the network fails":            {turns: []middlewaretest.Turn{middlewaretest.Fail(network)}, calls: 2, err: network},
		"a re-ask of a healed history": {turns: []middlewaretest.Turn{bad, good}, calls: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls, limit := 0, 10
				if c.limit > 0 {
					limit = c.limit
				}
				count := func(next middleware.ModelCall) middleware.ModelCall {
					return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
						calls++
						return next(ctx, req)
					}
				}
				ctx, spent := budget.With(t.Context(), budget.Limits{ModelCalls: limit})
				model := middlewaretest.NewModel(t, c.turns...)
				_, err := toolmend.Stack(c.options)(count(refusing(model.Call)))(ctx, withOrphan())
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.calls, calls)
				require.Equal(t, c.calls, spent.Spent().ModelCalls)
			})
		})
	}
}

// A middleware that is put outside of a layer runs once for each time that the layer runs.
func TestOutside(t *testing.T) {
	t.Parallel()
	for layer, runs := range map[middleware.Layer]int{
		middleware.LayerStep: 1, middleware.LayerValidate: 1, middleware.LayerRescue: 2, middleware.LayerRetry: 2,
		middleware.LayerTextCall: 3, middleware.LayerBudget: 3, middleware.LayerAttempt: 3,
	} {
		synctest.Test(t, func(t *testing.T) {
			var order []string
			mine := func(name string) middleware.Middleware {
				return func(next middleware.ModelCall) middleware.ModelCall {
					return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
						order = append(order, name)
						return next(ctx, req)
					}
				}
			}
			model := middlewaretest.NewModel(t, limited, bad, good)
			layers := toolmend.NewLayers(toolmend.Options{}).Outside(layer, mine("a")).Outside(layer, mine("b"), mine("c"))
			layers[layer] = middleware.Chain(layers[layer]) // what is outside of it stays
			_, err := layers.Chain()(model.Call)(t.Context(), ask())
			require.NoError(t, err)
			require.Equal(t, slices.Repeat([]string{"a", "b", "c"}, runs), order, layer)
		})
	}
}

// Whatever request a middleware gives to a stack of its own, that stack raises.
func TestStackInsideAMiddleware(t *testing.T) {
	t.Parallel()
	number := toolmend.Options{Answer: &answer.Options{Schema: []byte(`{"type":"integer"}`)}}
	for inner, c := range map[string]struct {
		options toolmend.Options
		turns   []middlewaretest.Turn
	}{
		"calls":   {toolmend.Options{}, []middlewaretest.Turn{bad, worse, worst}},
		"text":    {number, slices.Repeat([]middlewaretest.Turn{middlewaretest.Text("two")}, 3)},
		"markup":  {toolmend.Options{Rescue: &rescue.Options{}}, slices.Repeat([]middlewaretest.Turn{cut}, 2)},
		"no call": {toolmend.Options{}, slices.Repeat([]middlewaretest.Turn{middlewaretest.Text("no")}, 2)}, // a call is demanded
	} {
		for name, given := range map[string]func(*middleware.Request) *middleware.Request{
			"the same request": func(r *middleware.Request) *middleware.Request { return r },
			"a shallow copy":   func(r *middleware.Request) *middleware.Request { own := *r; return &own },
			"a clone":          (*middleware.Request).Clone,
			"a new request":    func(*middleware.Request) *middleware.Request { return ask() },
		} {
			for outer, wrap := range map[string]func(middleware.Middleware) middleware.Middleware{
				"the innermost": func(mine middleware.Middleware) middleware.Middleware {
					return middleware.Chain(toolmend.Stack(toolmend.Options{}), mine)
				},
				"between": func(mine middleware.Middleware) middleware.Middleware {
					return toolmend.NewLayers(toolmend.Options{}).Outside(middleware.LayerAttempt, mine).Chain()
				},
			} {
				t.Run(inner+", "+name+", "+outer, func(t *testing.T) {
					t.Parallel()
					var errs []error
					router := func(next middleware.ModelCall) middleware.ModelCall {
						sub := toolmend.Stack(c.options)(middlewaretest.NewModel(t, c.turns...).Call)
						return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
							own := given(req)
							if inner == "no call" {
								own.ToolChoice.Mode = middleware.ToolRequired
							}
							_, err := sub(ctx, own)
							errs = append(errs, err)
							return next(ctx, req)
						}
					}
					_, err := wrap(router)(middlewaretest.NewModel(t, good).Call)(t.Context(), ask())
					require.NoError(t, err)
					require.Len(t, errs, 1)
					require.Error(t, errs[0])
				})
			}
		}
	}
}

// A stack inside of a stack makes as many model calls as one.
func TestStackInsideAStack(t *testing.T) {
	t.Parallel()
	refused := middlewaretest.Fail(&middleware.ModelError{StatusCode: 400, Err: middleware.ErrInvalidToolCall})
	required := ask()
	required.ToolChoice.Mode = middleware.ToolRequired
	pass := func() toolmend.Options {
		return toolmend.Options{Validator: argsvalidate.NewValidator(argsvalidate.Options{OnExhausted: middleware.Pass})}
	}
	for name, c := range map[string]struct {
		req   *middleware.Request
		turns []middlewaretest.Turn // of the only stack
	}{
		"invalid calls": {ask(), []middlewaretest.Turn{bad, worse, worst}},
		"the provider":  {ask(), []middlewaretest.Turn{limited, limited, limited, limited}},
		"refused calls": {ask(), []middlewaretest.Turn{refused, refused, refused}},
		"no call":       {required, []middlewaretest.Turn{middlewaretest.Text("no"), middlewaretest.Text("no")}},
		"a valid one":   {ask(), []middlewaretest.Turn{bad, good}},
	} {
		for inner, options := range map[string]func() toolmend.Options{"raise": func() toolmend.Options { return toolmend.Options{} }, "pass": pass} {
			t.Run(name+", "+inner, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					one, two := middlewaretest.NewModel(t, c.turns...), middlewaretest.NewModel(t, c.turns...)
					_, want := toolmend.Stack(toolmend.Options{})(one.Call)(t.Context(), c.req)
					_, err := middleware.Chain(toolmend.Stack(toolmend.Options{}), toolmend.Stack(options()))(two.Call)(t.Context(), c.req)
					require.Len(t, two.Requests(), len(c.turns))
					require.Equal(t, want == nil, err == nil)
				})
			})
		}
	}
}

// The budget counts the attempts that retries and re-asks make, and refuses the next one.
func TestBudget(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]middlewaretest.Turn{"retry": limited, "re-ask": bad} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := middlewaretest.NewModel(t, first)
				ctx, b := budget.With(t.Context(), budget.Limits{ModelCalls: 1})
				_, err := toolmend.Stack(toolmend.Options{})(model.Call)(ctx, ask())
				require.ErrorIs(t, err, budget.ErrExceeded)
				require.EqualValues(t, 1, b.Spent().ModelCalls)
			})
		})
	}
}

// A healed request is a model call of its own: it has a span.
func TestSpans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		scripted, first := middlewaretest.NewModel(t, bad, limited, good), true
		model := func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			if first {
				first = false
				return nil, refusal
			}
			return scripted.Call(ctx, req)
		}
		req := ask()
		req.Messages = append(req.Messages, middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "book", Arguments: `{"city":"Oslo"}`}))
		o := toolmend.Options{Tracing: tracing.Options{TracerProvider: provider}, Heal: &heal.Options{}}
		_, err := toolmend.Stack(o)(model)(t.Context(), req)
		require.NoError(t, err)

		var steps, attempts int
		for _, s := range spans.Ended() {
			if s.Parent().IsValid() {
				attempts++
			} else {
				steps++
			}
		}
		require.Equal(t, 1, steps)
		require.Equal(t, 4, attempts)
	})
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	faulty := middlewaretest.NewFaulty(1, middlewaretest.FaultOptions{})
	call := toolmend.Stack(toolmend.Options{Retry: retry.Options{MaxAttempts: 1}, Rescue: &rescue.Options{}, Heal: &heal.Options{}})(faulty.Call)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				resp, err := call(context.Background(), ask())
				if err == nil && resp.Report.Status == middleware.Invalid {
					t.Error("an invalid message without an error")
				}
			}
		})
	}
	all.Wait()
}

// Each part's own error comes out, with the field that it belongs to.
func TestOptions(t *testing.T) {
	t.Parallel()
	for field, o := range map[string]toolmend.Options{
		"Retry":    {Retry: retry.Options{MaxAttempts: -1}},
		"Answer":   {Answer: &answer.Options{}},
		"Rescue":   {Rescue: &rescue.Options{MaxAttempts: -1}},
		"TextCall": {TextCall: &textcall.Options{MaxAttempts: -1}},
		"Heal":     {Heal: &heal.Options{Rules: []heal.Rule{99}}},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			err := o.Validate()
			require.ErrorContains(t, err, "toolmend: Options."+field+": ")
			require.PanicsWithError(t, err.Error(), func() { toolmend.Stack(o) })
		})
	}
	require.NoError(t, toolmend.Options{}.Validate())
}
