package middlewaretest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// fakeT is a test that notes its failures and whose end is called by hand.
type fakeT struct {
	testing.TB
	mu       sync.Mutex
	said     []string
	cleanups []func()
}

func (f *fakeT) Helper() {}
func (f *fakeT) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, fmt.Sprintf(format, args...))
}
func (f *fakeT) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *fakeT) end() {
	for _, c := range f.cleanups {
		c()
	}
}

func ask(text string) *middleware.Request {
	return &middleware.Request{Model: "m", Messages: []middleware.Message{middleware.User(text)}}
}

func TestModelPlaysItsTurns(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	whole := &middleware.Response{Message: middleware.Assistant("whole", ok("mine")), Model: "other", FinishReason: "odd", Usage: middleware.Usage{InputTokens: 1}}
	model := middlewaretest.NewModel(t,
		middlewaretest.Calls("f", `{}`, "g", `{"a":`),
		middlewaretest.Text("hi"),
		middlewaretest.Fail(boom),
		middlewaretest.Calls("f", `{"b":1}`),
		middlewaretest.Reply(whole),
		middlewaretest.Reply(nil),
	)
	resp, err := model.Call(t.Context(), ask("1"))
	require.NoError(t, err)
	require.Equal(t, &middleware.Response{
		Message: middleware.Assistant("",
			middleware.ToolCall{ID: "call_1", Name: "f", Arguments: `{}`}, middleware.ToolCall{ID: "call_2", Name: "g", Arguments: `{"a":`}),
		FinishReason: middleware.FinishToolCalls, Model: "m", Usage: middleware.Usage{InputTokens: 10, OutputTokens: 5},
	}, resp)

	resp, err = model.Call(t.Context(), ask("2"))
	require.NoError(t, err)
	require.Equal(t, &middleware.Response{
		Message: middleware.Assistant("hi"), FinishReason: middleware.FinishStop, Model: "m", Usage: middleware.Usage{InputTokens: 10, OutputTokens: 5},
	}, resp)

	resp, err = model.Call(t.Context(), ask("3"))
	require.Same(t, boom, err)
	require.Nil(t, resp)

	resp, err = model.Call(t.Context(), ask("4"))
	require.NoError(t, err)
	require.Equal(t, "call_3", resp.Message.ToolCalls[0].ID, "ids go on through the turns")

	resp, err = model.Call(t.Context(), ask("5"))
	require.NoError(t, err)
	require.Equal(t, whole, resp, "a reply is played as it is")
	require.NotSame(t, whole, resp)

	resp, err = model.Call(t.Context(), ask("6"))
	require.NoError(t, err)
	require.Nil(t, resp, "a model that breaks its contract")
	require.Len(t, model.Requests(), 6)
}

func TestModelFailsTheTest(t *testing.T) {
	t.Parallel()
	t.Run("asked too often", func(t *testing.T) {
		t.Parallel()
		f := &fakeT{}
		model := middlewaretest.NewModel(f, middlewaretest.Text("hi"))
		_, err := model.Call(t.Context(), ask("1"))
		require.NoError(t, err)
		_, err = model.Call(t.Context(), ask("2"))
		require.EqualError(t, err, "middlewaretest: Model: asked 2 times, but there are 1 turns")
		f.end()
		require.Equal(t, []string{err.Error()}, f.said)
	})
	t.Run("turns left over", func(t *testing.T) {
		t.Parallel()
		f := &fakeT{}
		middlewaretest.NewModel(f, middlewaretest.Text("hi"), middlewaretest.Text("ho"))
		f.end()
		require.Equal(t, []string{"middlewaretest: Model: 2 of 2 turns are left over"}, f.said)
	})
	t.Run("a request that is refused", func(t *testing.T) {
		t.Parallel()
		f := &fakeT{}
		model := middlewaretest.NewModel(f, middlewaretest.Text("hi"))
		bad := &middleware.Request{Messages: []middleware.Message{middleware.User("hi"), middleware.Assistant("", ok("a"))}}
		_, err := model.Call(t.Context(), bad)
		require.ErrorIs(t, err, middlewaretest.ErrRefused)
		require.Len(t, f.said, 1)
		require.Len(t, model.Requests(), 1, "refused requests are recorded")
		_, err = model.Call(t.Context(), ask("again"))
		require.NoError(t, err, "a refusal costs no turn")
	})
	t.Run("not after its end", func(t *testing.T) {
		t.Parallel()
		f := &fakeT{}
		model := middlewaretest.NewModel(f)
		f.end()
		_, err := model.Call(t.Context(), ask("late"))
		require.Error(t, err)
		require.Empty(t, f.said)
	})
}

func TestModelHonoursItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	model := middlewaretest.NewModel(t, middlewaretest.Text("hi"))
	_, err := model.Call(ctx, ask("1"))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, model.Requests())
	_, err = model.Call(t.Context(), ask("1"))
	require.NoError(t, err, "the turn is still there")
}

func TestModelShowsItsSink(t *testing.T) {
	t.Parallel()
	m := middleware.Assistant("hi", ok("a"), ok("b"))
	m.Parts = append([]middleware.Part{{Kind: middleware.PartReasoning, Text: "so"}, {Kind: middleware.PartOpaque, Text: "no"}}, m.Parts...)
	model := middlewaretest.NewModel(t, middlewaretest.Reply(&middleware.Response{Message: m}), middlewaretest.Text("hi"))
	var got []middleware.Event
	req := ask("1")
	req.Sink = func(e middleware.Event) error { got = append(got, e); return nil }
	_, err := model.Call(t.Context(), req)
	require.NoError(t, err)
	a, b := ok("a"), ok("b")
	require.Equal(t, []middleware.Event{
		{Kind: middleware.EventReasoning, Text: "so"}, {Kind: middleware.EventText, Text: "hi"},
		{Kind: middleware.EventToolCall, Call: &a}, {Kind: middleware.EventToolCall, Call: &b},
	}, got)

	boom := errors.New("boom")
	req.Sink = func(middleware.Event) error { return boom }
	resp, err := model.Call(t.Context(), req)
	require.Nil(t, resp)
	require.Same(t, boom, err)
}

// Neither a request nor a turn is shared with anybody.
func TestModelCopies(t *testing.T) {
	t.Parallel()
	turn := middlewaretest.Calls("f", `{}`)
	model := middlewaretest.NewModel(t, turn, turn)
	req := ask("before")
	resp, err := model.Call(t.Context(), req)
	require.NoError(t, err)
	req.Messages[0] = middleware.User("after")
	resp.Message.ToolCalls[0].Arguments = "changed"
	model.Requests()[0].Messages[0] = middleware.User("after")
	require.Equal(t, "before", model.Requests()[0].Messages[0].Text())
	resp, err = model.Call(t.Context(), ask("2"))
	require.NoError(t, err)
	require.Equal(t, middleware.ToolCall{ID: "call_2", Name: "f", Arguments: "{}"}, resp.Message.ToolCalls[0])
}

func TestModelServesManyGoroutines(t *testing.T) {
	t.Parallel()
	const n = 16
	turns := make([]middlewaretest.Turn, n)
	for i := range turns {
		turns[i] = middlewaretest.Text("hi")
	}
	model := middlewaretest.NewModel(t, turns...)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, err := model.Call(context.Background(), ask("1")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Len(t, model.Requests(), n)
}

func TestTurnsPanicOnNonsense(t *testing.T) {
	t.Parallel()
	require.PanicsWithValue(t, "middlewaretest: Calls: pairs of a name and its arguments are wanted, got 1 strings", func() { middlewaretest.Calls(strings.Fields("f")...) })
	require.PanicsWithValue(t, "middlewaretest: Calls: pairs of a name and its arguments are wanted, got 0 strings", func() { middlewaretest.Calls() })
	require.PanicsWithValue(t, "middlewaretest: Fail: the error is nil", func() { middlewaretest.Fail(nil) })
}
