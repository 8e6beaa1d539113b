package middleware_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
)

// streaming returns a model whose n-th call shows pieces[n] and then answers,
// or fails if its entry in failures says so. It honours the sink's error.
func streaming(pieces [][]string, failures []bool) middleware.ModelCall {
	n := -1
	return func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		n++
		text := ""
		for _, p := range pieces[n] {
			if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: p}); err != nil {
				return nil, err
			}
			text += p
		}
		if failures[n] {
			return nil, errBoom
		}
		return &middleware.Response{Message: middleware.Assistant(text)}, nil
	}
}

// TestResetExactly: what was shown is voided exactly when something was
// shown since the last time and another call starts.
func TestResetExactly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		calls := rapid.IntRange(1, 5).Draw(t, "calls")
		pieces, failures := make([][]string, calls), make([]bool, calls)
		var want []middleware.Event
		shown := false
		for i := range calls {
			pieces[i] = rapid.SliceOfN(rapid.StringN(0, 2, -1), 0, 2).Draw(t, "pieces")
			failures[i] = i < calls-1
			if shown {
				want = append(want, middleware.Event{Kind: middleware.EventReset})
				shown = false
			}
			for _, p := range pieces[i] {
				want = append(want, middleware.Event{Kind: middleware.EventText, Text: p})
				shown = true
			}
		}
		var got []middleware.Event
		req := &middleware.Request{Sink: func(e middleware.Event) error { got = append(got, e); return nil }}
		layers := []middleware.Middleware{retried(calls)}
		if rapid.Bool().Draw(t, "nested") {
			layers = append([]middleware.Middleware{retried(1)}, layers...)
		}
		_, err := middleware.Chain(layers...)(streaming(pieces, failures))(context.Background(), req)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// Two layers that both ask again do not void twice.
func TestResetOnceAcrossLayers(t *testing.T) {
	t.Parallel()
	var got []middleware.EventKind
	req := &middleware.Request{Sink: func(e middleware.Event) error { got = append(got, e.Kind); return nil }}
	model := streaming([][]string{{"a"}, {"b"}, {}, {"d"}}, []bool{true, true, true, false})
	_, err := middleware.Chain(retried(2), retried(2))(model)(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, []middleware.EventKind{"text", "reset", "text", "reset", "text"}, got)
}

func TestSinkErrorEndsTheCall(t *testing.T) {
	t.Parallel()
	t.Run("from reset, without a call", func(t *testing.T) {
		t.Parallel()
		asked := 0
		inner := streaming([][]string{{"a"}, {"b"}}, []bool{true, false})
		model := func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			asked++
			return inner(ctx, req)
		}
		req := &middleware.Request{Sink: func(e middleware.Event) error {
			if e.Kind == middleware.EventReset {
				return errBoom
			}
			return nil
		}}
		var tally middleware.Tally
		_, err := tally.Call(t.Context(), model, req)
		require.Error(t, err)
		_, err = tally.Call(t.Context(), model, req)
		require.Same(t, errBoom, err)
		require.Equal(t, 1, asked)
	})
	t.Run("from an event, through the model", func(t *testing.T) {
		t.Parallel()
		req := &middleware.Request{Sink: func(middleware.Event) error { return errBoom }}
		_, err := retried(1)(streaming([][]string{{"a"}}, []bool{false}))(t.Context(), req)
		require.ErrorIs(t, err, errBoom)
	})
}

func TestTallySinkForCallsOfOnesOwn(t *testing.T) {
	t.Parallel()
	var tally middleware.Tally
	require.Nil(t, tally.Sink(nil))

	var got []middleware.Event
	fail := false
	sink := func(e middleware.Event) error {
		got = append(got, e)
		if fail {
			return errBoom
		}
		return nil
	}
	first := tally.Sink(sink)
	require.NoError(t, first(middleware.Event{Kind: middleware.EventText, Text: "a", Step: 2}))
	second := tally.Sink(sink)
	require.Len(t, got, 1, "voiding waits for the next call's first event")
	require.NoError(t, second(middleware.Event{Kind: middleware.EventText, Text: "b", Step: 2}))
	require.NoError(t, second(middleware.Event{Kind: middleware.EventText, Text: "c", Step: 2}))
	third := tally.Sink(sink)
	fail = true
	require.Same(t, errBoom, third(middleware.Event{Kind: middleware.EventText, Text: "d", Step: 2}))
	require.Equal(t, []middleware.Event{
		{Kind: middleware.EventText, Text: "a", Step: 2},
		{Kind: middleware.EventReset, Step: 2},
		{Kind: middleware.EventText, Text: "b", Step: 2},
		{Kind: middleware.EventText, Text: "c", Step: 2},
		{Kind: middleware.EventReset, Step: 2},
	}, got)
}

// The caller's request keeps its own sink.
func TestTallyDoesNotChangeTheRequest(t *testing.T) {
	t.Parallel()
	count := 0
	req := &middleware.Request{Sink: func(middleware.Event) error { count++; return nil }}
	_, err := retried(2)(streaming([][]string{{"a"}, {"b"}}, []bool{true, false}))(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, 3, count)
	require.NoError(t, req.Sink(middleware.Event{}))
	require.Equal(t, 4, count, "no voiding ahead of this one: it is the caller's sink itself")
}
