package middlewaretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/middleware"
)

// lawSink lets each attempt stream its number, and checks that after all resets the
// sink holds at most one of them.
func lawSink(t tester, mw middleware.Middleware) {
	t.Helper()
	for _, s := range scenes {
		model := &spy{play: func(n int, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			if req.Sink != nil {
				if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: fmt.Sprintf("<%d>", n)}); err != nil {
					return nil, err
				}
			}
			return s.play(n, ctx, req)
		}}
		var shown strings.Builder
		req := sample(question())
		req.Sink = func(e middleware.Event) error {
			switch e.Kind {
			case middleware.EventReset:
				shown.Reset()
			case middleware.EventText:
				shown.WriteString(e.Text)
			}
			return nil
		}
		ask(t, context.Background(), mw(model.call), req)
		attempts := 0
		for n := 1; n <= model.count(); n++ {
			if strings.Contains(shown.String(), fmt.Sprintf("<%d>", n)) {
				attempts++
			}
		}
		if attempts > 1 {
			t.Errorf("where the model %s: the sink was shown %d attempts as one answer; a Tally voids what was shown", s.name, attempts)
		}
	}
}

// lawSinkError fails in the sink. The model ends its call with the sink's error, as
// adapters do, and the caller must find it.
func lawSinkError(t tester, mw middleware.Middleware) {
	t.Helper()
	errSink := errors.New("middlewaretest: the sink fails")
	failed := false
	req := sample(question())
	req.Sink = func(middleware.Event) error { failed = true; return errSink }
	call := mw(func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		resp := words(1)
		if err := emit(req.Sink, resp); err != nil {
			return nil, err
		}
		return resp, nil
	})
	_, err, ok := ask(t, context.Background(), call, req)
	if ok && failed && !errors.Is(err, errSink) {
		t.Errorf("the sink failed, but errors.Is does not find its error in: %v", err)
	}
}

// lawAccepted checks every request that is sent on with all providers. The caller's
// own request is accepted, so a refused one is the work of the middleware: a turn
// repeated without its replies, invalid arguments echoed, a system message in the
// wrong place.
func lawAccepted(t tester, mw middleware.Middleware) {
	t.Helper()
	for _, s := range append(faultyScenes(40), scenes...) {
		refused := map[Provider]bool{}
		for range 3 {
			model := &spy{play: func(n int, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
				for _, p := range []Provider{OpenAI, Anthropic, Gemini} {
					if err := Check(p, req); err != nil && !refused[p] {
						refused[p] = true
						t.Errorf("where the model %s: a request was sent on that %s refuses: %v", s.name, p, err)
					}
				}
				return s.play(n, ctx, req)
			}}
			ask(t, context.Background(), mw(model.call), sample(question()))
		}
	}
}

// echo answers with the question it finds, and a call that holds it.
func echo(prefix string) middleware.ModelCall {
	return func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		for _, m := range req.Messages {
			if m.Role == middleware.RoleUser && strings.HasPrefix(m.Text(), "question ") {
				return reply(1, echoed(prefix, m.Text())), nil
			}
		}
		return nil, errors.New("middlewaretest: the question is missing from the request")
	}
}

// echoed is what echo answers.
func echoed(prefix, question string) middleware.Message {
	return middleware.Assistant(prefix+" "+question, middleware.ToolCall{
		ID: "echo_1", Name: "weather", Arguments: fmt.Sprintf(`{"city": %q}`, prefix+" "+question),
	})
}

// lawGoroutines asks many different questions concurrently. Each caller must get
// the answer to its own question.
func lawGoroutines(t tester, mw middleware.Middleware) {
	t.Helper()
	call := mw(echo("to"))
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for range 4 {
				q := question()
				if resp, err, ok := ask(t, context.Background(), call, sample(q)); ok {
					comesOut(t, echoed("to", q), resp, err)
				}
			}
		})
	}
	all.Wait()
}

// lawModels puts one value in front of several models, as a program with a
// fallback does: each stack must ask its own.
func lawModels(t tester, mw middleware.Middleware) {
	t.Helper()
	names := []string{"first", "second", "third"}
	var calls []middleware.ModelCall
	for _, name := range names {
		calls = append(calls, mw(echo(name)))
	}
	for i, name := range names {
		q := question()
		if resp, err, ok := ask(t, context.Background(), calls[i], sample(q)); ok {
			comesOut(t, echoed(name, q), resp, err)
		}
	}
}

// lawChain puts the middleware between two others, twice and nested: the answer and
// the usage are the same as without it.
func lawChain(t tester, mw middleware.Middleware) {
	t.Helper()
	var seen []string
	probe := func(name string) middleware.Middleware {
		return func(next middleware.ModelCall) middleware.ModelCall {
			return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
				seen = append(seen, name)
				return next(ctx, req)
			}
		}
	}
	call := middleware.Chain(probe("outer"), middleware.Chain(mw, nil, mw), probe("inner"))(echo("to"))
	q := question()
	resp, err, ok := ask(t, context.Background(), call, sample(q))
	if !ok {
		return
	}
	comesOut(t, echoed("to", q), resp, err)
	if len(seen) < 2 || seen[0] != "outer" || seen[len(seen)-1] != "inner" {
		t.Errorf("in Chain(outer, mw, mw, inner) the layers ran as %v", seen)
	}
	if got, want := middleware.ReportOf(resp, err).Usage(), reply(1, middleware.Message{}).Usage; len(seen) == 2 && got != want {
		t.Errorf("in Chain(outer, mw, mw, inner) one call spent %+v, the report says %+v", want, got)
	}
}
