package middlewaretest

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// lawRequestUnchanged compares the caller's request with a copy made before, and
// checks the spare room behind its slices: an append without a copy writes there,
// where two callers of one request would overwrite one another.
func lawRequestUnchanged(t tester, mw middleware.Middleware) {
	t.Helper()
	for _, s := range append(faultyScenes(5), scenes...) {
		req := sample(question())
		want := req.Clone()
		_, _, ok := ask(t, context.Background(), mw((&spy{play: s.play}).call), req)
		if !ok {
			continue
		}
		if !reflect.DeepEqual(want, req) {
			t.Errorf("where the model %s: the caller's request was changed\nbefore: %+v\nafter:  %+v", s.name, want, req)
		}
		if !spare(req.Messages) || !spare(req.Tools) || !spare(req.Stop) {
			t.Errorf("where the model %s: something was appended to the caller's slices; Request.With appends to a copy", s.name)
		}
	}
}

// spare reports whether the room behind s is as it was made.
func spare[T any](s []T) bool {
	for _, v := range s[len(s):cap(s)] {
		if !reflect.ValueOf(&v).Elem().IsZero() {
			return false
		}
	}
	return true
}

// lawOutcome wants either a response or an error. If the model breaks this, mw may
// pass the same breach on, because a middleware that does not read the outcome
// cannot repair it. It must not panic or break the contract in the other way.
func lawOutcome(t tester, mw middleware.Middleware) {
	t.Helper()
	for _, s := range append(faultyScenes(20), scenes...) {
		passed := map[bool]bool{} // the breaches of the model itself, by whether there was a response
		model := &spy{play: func(n int, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			resp, err := s.play(n, ctx, req)
			if (resp == nil) == (err == nil) {
				passed[resp != nil] = true
			}
			return resp, err
		}}
		resp, err, ok := ask(t, context.Background(), mw(model.call), sample(question()))
		if ok && (resp == nil) == (err == nil) && !passed[resp != nil] {
			t.Errorf("where the model %s: response %v and error %v; a response comes exactly when there is no error", s.name, resp != nil, err)
		}
	}
}

// lawUsage compares the usage of the models with the usage in the response and the
// report. Each call costs a different sum, so that a lost attempt and one counted
// twice cannot cancel out.
func lawUsage(t tester, mw middleware.Middleware) {
	t.Helper()
	for _, s := range scenes {
		if !s.lawful {
			continue
		}
		model := &spy{play: s.play}
		resp, err, ok := ask(t, context.Background(), mw(model.call), sample(question()))
		if !ok || model.count() == 0 || resp == nil && err == nil {
			continue // an answer from elsewhere has a price of its own
		}
		if got := middleware.ReportOf(resp, err).Usage(); got != model.spent {
			t.Errorf("where the model %s: %d calls spent %+v, the report says %+v; a Tally keeps count", s.name, model.count(), model.spent, got)
		}
		if err == nil && resp.Usage != model.spent {
			t.Errorf("where the model %s: %d calls spent %+v, the response says %+v", s.name, model.count(), model.spent, resp.Usage)
		}
	}
}

// lawModelError looks for a model's error inside what mw returns: one that is not
// retried (400) and one that may be (503).
func lawModelError(t tester, mw middleware.Middleware) {
	t.Helper()
	for _, status := range []int{400, 503} {
		call := mw(func(context.Context, *middleware.Request) (*middleware.Response, error) {
			return nil, modelError(status)
		})
		_, err, ok := ask(t, context.Background(), call, sample(question()))
		if !ok || err == nil {
			continue // something stood in for the model
		}
		if !errors.Is(err, errSample) {
			t.Errorf("status %d: errors.Is does not find the model's error in: %v", status, err)
		}
		var me *middleware.ModelError
		if !errors.As(err, &me) || me.StatusCode != status {
			t.Errorf("status %d: errors.As does not find the ModelError in: %v", status, err)
		}
	}
}

// lawAnswer wants text, and calls that are valid, to come out as they were
// written: byte for byte in the arguments, in the same order, with their ids.
func lawAnswer(t tester, mw middleware.Middleware) {
	t.Helper()
	for _, want := range []*middleware.Response{words(1), goodCalls(1)} {
		call := mw(func(context.Context, *middleware.Request) (*middleware.Response, error) { return want.Clone(), nil })
		resp, err, ok := ask(t, context.Background(), call, sample(question()))
		if ok {
			comesOut(t, want.Message, resp, err)
		}
	}
}

// comesOut reports text and calls of the model that are missing from a response.
// The response may hold more.
func comesOut(t tester, want middleware.Message, resp *middleware.Response, err error) {
	t.Helper()
	if err != nil || resp == nil {
		t.Errorf("a valid answer is lost: response %v, error %v", resp != nil, err)
		return
	}
	if !strings.Contains(resp.Message.Text(), want.Text()) {
		t.Errorf("the model said %q, the response %q", want.Text(), resp.Message.Text())
	}
	rest := resp.Message.ToolCalls
	for _, c := range want.ToolCalls {
		for len(rest) > 0 && !sameCall(rest[0], c) {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			t.Errorf("the model's valid call %s of %s is missing, changed or out of order in %+v", c.ID, c.Name, resp.Message.ToolCalls)
			return
		}
		rest = rest[1:]
	}
}

// sameCall leaves Kind and Native aside: a layer may fill them in.
func sameCall(a, b middleware.ToolCall) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Arguments == b.Arguments
}
