package middleware_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
)

// named returns a middleware that writes its name into log, before and after.
func named(name string, log *[]string) middleware.Middleware {
	return func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			*log = append(*log, name+" before")
			resp, err := next(ctx, req)
			*log = append(*log, name+" after")
			return resp, err
		}
	}
}

// answer returns a model that says text.
func answer(text string) middleware.ModelCall {
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant(text)}, nil
	}
}

// nesting is a chain as a tree: a leaf is one middleware (nil where the name
// is empty), an inner node a Chain of its children.
type nesting struct {
	name string
	kids []nesting
	leaf bool
}

func (n nesting) build(log *[]string) middleware.Middleware {
	if n.leaf {
		if n.name == "" {
			return nil
		}
		return named(n.name, log)
	}
	mws := make([]middleware.Middleware, len(n.kids))
	for i, k := range n.kids {
		mws[i] = k.build(log)
	}
	return middleware.Chain(mws...)
}

func (n nesting) names() []string {
	if n.leaf {
		if n.name == "" {
			return nil
		}
		return []string{n.name}
	}
	var out []string
	for _, k := range n.kids {
		out = append(out, k.names()...)
	}
	return out
}

func drawNesting(t *rapid.T, depth int) nesting {
	if depth == 0 || rapid.Bool().Draw(t, "leaf") {
		return nesting{leaf: true, name: rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, "name")}
	}
	n := nesting{}
	for range rapid.IntRange(0, 4).Draw(t, "children") {
		n.kids = append(n.kids, drawNesting(t, depth-1))
	}
	return n
}

// TestChainLaws: whatever the nesting and wherever nil stands, the layers run
// in order on the way in and in reverse on the way out.
func TestChainLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tree := nesting{kids: []nesting{drawNesting(t, 3), drawNesting(t, 3)}}
		var log []string
		_, err := tree.build(&log)(answer("hi"))(context.Background(), &middleware.Request{})
		require.NoError(t, err)

		names := tree.names()
		var want []string
		for _, n := range names {
			want = append(want, n+" before")
		}
		for i := len(names) - 1; i >= 0; i-- {
			want = append(want, names[i]+" after")
		}
		require.Equal(t, want, log)
	})
}

func TestChainEmptyIsTheCall(t *testing.T) {
	t.Parallel()
	for name, mw := range map[string]middleware.Middleware{
		"none":        middleware.Chain(),
		"only nil":    middleware.Chain(nil, nil),
		"empty chain": middleware.Chain(middleware.Chain()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := mw(answer("hi"))(t.Context(), &middleware.Request{})
			require.NoError(t, err)
			require.Equal(t, "hi", resp.Message.Text())
		})
	}
}

func TestChainNeverChanges(t *testing.T) {
	t.Parallel()
	var log []string
	layers := []middleware.Middleware{named("a", &log), named("b", &log)}
	chain := middleware.Chain(layers...)
	built := chain(answer("hi"))
	layers[0], layers[1] = nil, named("intruder", &log)

	for _, call := range []middleware.ModelCall{built, chain(answer("hi"))} {
		log = nil
		_, err := call(t.Context(), &middleware.Request{})
		require.NoError(t, err)
		require.Equal(t, []string{"a before", "b before", "b after", "a after"}, log)
	}
}

func TestChainOfNilCallPanics(t *testing.T) {
	t.Parallel()
	require.PanicsWithValue(t, "middleware: Chain: the model call is nil", func() { middleware.Chain()(nil) })
}

func TestWhen(t *testing.T) {
	t.Parallel()
	isBig := func(r *middleware.Request) bool { return r.Model == "big" }
	for name, tc := range map[string]struct {
		model string
		want  []string
	}{
		"matches": {"big", []string{"inner before", "inner after"}},
		"passes":  {"small", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log []string
			call := middleware.When(isBig, named("inner", &log))(answer("hi"))
			resp, err := call(t.Context(), &middleware.Request{Model: tc.model})
			require.NoError(t, err)
			require.Equal(t, "hi", resp.Message.Text())
			require.Equal(t, tc.want, log)
		})
	}
	t.Run("nil middleware", func(t *testing.T) {
		t.Parallel()
		resp, err := middleware.When(isBig, nil)(answer("hi"))(t.Context(), &middleware.Request{Model: "big"})
		require.NoError(t, err)
		require.Equal(t, "hi", resp.Message.Text())
	})
	t.Run("nil match", func(t *testing.T) {
		t.Parallel()
		require.PanicsWithValue(t, "middleware: When: match is nil", func() { middleware.When(nil, middleware.Chain()) })
	})
}

// The first middleware sees a request first and its outcome last, like the
// outer skin of an onion.
func ExampleChain() {
	layer := func(name string) middleware.Middleware {
		return func(next middleware.ModelCall) middleware.ModelCall {
			return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
				fmt.Println(name, "before")
				resp, err := next(ctx, req)
				fmt.Println(name, "after")
				return resp, err
			}
		}
	}
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		fmt.Println("the model answers")
		return &middleware.Response{Message: middleware.Assistant("Paris")}, nil
	}

	call := middleware.Chain(layer("a"), layer("b"), layer("c"))(model)
	resp, err := call(context.Background(), &middleware.Request{Messages: []middleware.Message{
		middleware.User("What is the capital of France?"),
	}})
	fmt.Println(resp.Message.Text(), err)
	// Output:
	// a before
	// b before
	// c before
	// the model answers
	// c after
	// b after
	// a after
	// Paris <nil>
}

// A middleware for some requests only.
func ExampleWhen() {
	short := func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			return next(ctx, req.WithSystem("Answer in one word."))
		}
	}
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		fmt.Println(req.Model, len(req.Messages))
		return &middleware.Response{Message: middleware.Assistant("ok")}, nil
	}
	call := middleware.When(func(r *middleware.Request) bool { return r.Model == "small" }, short)(model)
	for _, m := range []string{"small", "large"} {
		_, _ = call(context.Background(), &middleware.Request{Model: m, Messages: []middleware.Message{middleware.User("Hi")}})
	}
	// Output:
	// small 2
	// large 1
}
