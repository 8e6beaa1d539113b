package heal_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/retry"
)

// tooMany is a refusal that SchemaSize knows.
const tooMany = "The specified schema produces a constraint that has too many states for serving."

// provider refuses requests whose first tool has maxLength, or whose history has a call
// without a result, and keeps what it got.
type provider struct {
	asked  []*middleware.Request
	status int
	says   string
	answer middleware.Message
}

func (p *provider) call(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
	p.asked = append(p.asked, req)
	says := ""
	for _, t := range req.Tools {
		if strings.Contains(string(t.Parameters), "maxLength") {
			says = tooMany
		}
	}
	if n := len(req.Messages); n > 0 && len(req.Messages[n-1].ToolCalls) > 0 {
		says = "No tool output found for function call a."
	}
	if says == "" {
		return &middleware.Response{Message: p.answer, Usage: middleware.Usage{OutputTokens: 1}}, nil
	}
	if p.says != "" {
		says = fmt.Sprintf(p.says, says)
	}
	status := p.status
	if status == 0 {
		status = 400
	}
	return nil, &middleware.ModelError{StatusCode: status, Message: says, Err: errors.New("refused")}
}

// withTool is a request that offers a tool with a bound.
func withTool(name string) *middleware.Request {
	return &middleware.Request{Model: "m", Messages: []middleware.Message{middleware.User("?")},
		Tools: []middleware.Tool{{Name: name, Parameters: []byte(`{"type":"object","properties":{"a":{"maxLength":3}}}`)}}}
}

// withOrphan is a request whose last call has no result.
func withOrphan() *middleware.Request {
	return &middleware.Request{Messages: []middleware.Message{middleware.User("?"), middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "f", Arguments: "{}"})}}
}

func TestLaws(t *testing.T) {
	t.Parallel()
	middlewaretest.Run(t, heal.New(heal.Options{}))
}

// A constraint that goes in the sent copy still holds: a violation is caught and re-asked.
func TestConstraintIsNotLost(t *testing.T) {
	t.Parallel()
	p := &provider{answer: middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "f", Arguments: `{"a":"too long"}`})}
	req := withTool("f")
	_, err := middleware.Chain(argsvalidate.New(argsvalidate.Options{MaxAttempts: 2}), heal.New(heal.Options{}))(p.call)(t.Context(), req)
	require.ErrorIs(t, err, argsvalidate.ErrExhausted)
	require.Len(t, p.asked, 3, "refused, healed, and re-asked with the change that is known")
	require.Contains(t, string(p.asked[0].Tools[0].Parameters), "maxLength")
	require.NotContains(t, string(p.asked[2].Tools[0].Parameters), "maxLength")
	require.Contains(t, string(req.Tools[0].Parameters), "maxLength", "the caller's request is not changed")
}

// A change of schemas is remembered for an hour, for one client, one model and its tools.
func TestMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &provider{}
		model := heal.New(heal.Options{})(p.call)
		calls := func(client string, req *middleware.Request) int {
			before := len(p.asked)
			req.Client = client
			resp, err := model(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, []string{"schema-size"}, resp.Report.Healed())
			require.Equal(t, int64(1), resp.Usage.OutputTokens)
			return len(p.asked) - before
		}
		require.Equal(t, 2, calls("one", withTool("f")))
		require.Equal(t, 1, calls("one", withTool("f")))
		require.Equal(t, 2, calls("two", withTool("f")), "of another client")
		require.Equal(t, 2, calls("one", withTool("g")), "with another tool")
		other := withTool("f")
		other.Model = "n"
		require.Equal(t, 2, calls("one", other))
		time.Sleep(time.Hour)
		require.Equal(t, 2, calls("one", withTool("f")), "forgotten")
		for i := range 1024 {
			require.Equal(t, 2, calls(fmt.Sprint(i), withTool("f")))
		}
		require.Equal(t, 2, calls("one", withTool("f")), "forgotten for others")
		require.Equal(t, 1, calls("1023", withTool("f")))
	})
}

// A change of the history is made at once within one step, and nowhere else.
func TestStep(t *testing.T) {
	t.Parallel()
	p := &provider{}
	twice := func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			_, err := next(ctx, req)
			require.NoError(t, err)
			return next(ctx, req)
		}
	}
	for _, c := range []struct {
		step  middleware.Middleware
		calls int
	}{{nil, 4}, {heal.Step, 3}} {
		p.asked = nil
		resp, err := middleware.Chain(c.step, twice, heal.New(heal.Options{}))(p.call)(t.Context(), withOrphan())
		require.NoError(t, err)
		require.Equal(t, []string{"orphan-calls"}, resp.Report.Healed())
		require.Equal(t, c.calls == 3, resp.Report.Attempts[0].Healed != nil, "the refused attempt was not changed")
		require.Equal(t, []string{"orphan-calls"}, resp.Report.Attempts[len(resp.Report.Attempts)-1].Healed)
		require.Len(t, p.asked, c.calls)
		require.True(t, p.asked[len(p.asked)-1].Messages[2].IsError)
	}
}

// Nothing is made up for a call of a destructive tool.
func TestDestructive(t *testing.T) {
	t.Parallel()
	marked := withOrphan()
	marked.Tools = []middleware.Tool{{Name: "f", Destructive: true}}
	results := &middleware.Request{Messages: []middleware.Message{middleware.User("?"), {Role: middleware.RoleTool, ToolCallID: "x", ToolName: "f"}}}
	for _, c := range []struct {
		options heal.Options
		req     *middleware.Request
	}{{heal.Options{Destructive: []string{"f"}}, withOrphan()}, {heal.Options{}, marked}, {heal.Options{Destructive: []string{"f"}}, results}} {
		p := &provider{}
		model := heal.New(c.options)(func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			if c.req == results {
				p.asked = append(p.asked, req)
				return nil, &middleware.ModelError{StatusCode: 400, Message: "No tool call found for function call output with call_id x."}
			}
			return p.call(ctx, req)
		})
		_, err := model(t.Context(), c.req)
		var refused *middleware.ModelError
		require.ErrorAs(t, err, &refused)
		require.Len(t, p.asked, 1)
	}
}

// A proxy may put the provider's whole error into a message of its own.
func TestWrappedMessage(t *testing.T) {
	t.Parallel()
	for _, says := range []string{
		`{"type":"error","error":{"type":"invalid_request_error","message":%q},"request_id":"r"}`,
		`litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":%q}}. Received Model Group=m`,
		`litellm.BadRequestError: BedrockException - {"message":%q}`,
		"litellm.BadRequestError: OpenAIException - %s",
	} {
		p := &provider{says: says}
		_, err := heal.New(heal.Options{})(p.call)(t.Context(), withOrphan())
		require.NoError(t, err)
		require.Len(t, p.asked, 2, says)
	}
	for _, says := range []string{`Your prompt "x - {\"message\":\"%s\"}" was refused`, `{"text":%q}`, `x - {"message":%q`} {
		p := &provider{says: says}
		_, err := heal.New(heal.Options{})(p.call)(t.Context(), withOrphan())
		require.Error(t, err)
		require.Len(t, p.asked, 1, says)
	}
}

// What is not a refusal passes as it is, and so does an error of the second call that is not one.
func TestOtherErrors(t *testing.T) {
	t.Parallel()
	p := &provider{status: 429}
	_, err := heal.New(heal.Options{})(p.call)(t.Context(), withOrphan())
	require.Error(t, err)
	require.Len(t, p.asked, 1)
	require.Empty(t, middleware.ReportOf(nil, err).Healed())

	limited := fmt.Errorf("no further call is allowed: %w", middleware.ErrNotSent)
	calls := 0
	for _, second := range []error{limited, &middleware.ModelError{StatusCode: 503}} {
		calls = 0
		_, err = heal.New(heal.Options{})(func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			if calls++; calls == 2 {
				return nil, second
			}
			return (&provider{}).call(ctx, req)
		})(t.Context(), withOrphan())
		var e *middleware.ModelError
		require.ErrorAs(t, err, &e)
		require.Equal(t, map[bool]int{true: 400, false: 503}[second == limited], e.StatusCode)
	}
}

// Within a step, a retry repeats the healed request: the refused one costs one call. What was
// streamed before a repeated call is reset.
func TestRetryRepeatsTheHealedRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		req  *middleware.Request
		busy []int // the failures of the healed request
	}{
		"a history": {withOrphan(), []int{503, 429, 529}},
		"a schema":  {withTool("f"), []int{529, 503}},
		"at once":   {withOrphan(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &provider{answer: middleware.Assistant("done")}
				busy := c.busy
				model := middleware.Chain(heal.Step, retry.New(retry.Options{}), heal.New(heal.Options{}))(func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
					resp, err := p.call(ctx, req)
					if sunk := req.Sink(middleware.Event{Kind: middleware.EventText, Text: fmt.Sprint(len(p.asked))}); sunk != nil || err != nil {
						return nil, cmp.Or(err, sunk)
					}
					if len(busy) > 0 {
						status := busy[0]
						busy = busy[1:]
						return nil, &middleware.ModelError{StatusCode: status}
					}
					return resp, nil
				})
				shown := ""
				watched := *c.req
				watched.Sink = func(e middleware.Event) error {
					if shown += e.Text; e.Kind == middleware.EventReset {
						shown = ""
					}
					return nil
				}
				resp, err := model(t.Context(), &watched)
				require.NoError(t, err)
				require.Equal(t, "done", resp.Message.Text())
				require.Len(t, p.asked, 2+len(c.busy), "the broken request costs one call")
				require.Equal(t, fmt.Sprint(len(p.asked)), shown)
			})
		})
	}
}

// No call is made after the context has ended.
func TestContextThatEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := &provider{}
	_, err := heal.New(heal.Options{})(func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		cancel()
		return p.call(ctx, req)
	})(ctx, withOrphan())
	require.Len(t, p.asked, 1)
	require.ErrorIs(t, err, context.Canceled)
	var refused *middleware.ModelError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 400, refused.StatusCode)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, heal.Options{Rules: []heal.Rule{99}}.Validate(), "heal: Options.Rules")
	require.Panics(t, func() { heal.New(heal.Options{Rules: []heal.Rule{99}}) })
	require.Equal(t, "unknown", heal.Rule(99).String())
}

// BenchmarkAccepted is a model call that is not refused, with the middleware and without.
func BenchmarkAccepted(b *testing.B) {
	req := &middleware.Request{Model: "m", Messages: []middleware.Message{middleware.User("?")}}
	bare := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{}, nil
	}
	for name, call := range map[string]middleware.ModelCall{"bare": bare, "heal": heal.New(heal.Options{})(bare)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = call(b.Context(), req)
			}
		})
	}
}
