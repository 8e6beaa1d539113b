package tracing

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/toolmend/toolmend/middleware"
)

// stepState is what a step and the attempts inside it share through the context.
type stepState struct {
	attempts atomic.Int64 // begun under a NewAttempt
	measured atomic.Bool  // durations and tokens are recorded further in
}

type stepKey struct{}

// step is New.
func (r *recorder) step(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		c := r.beginStep(ctx, req)
		return watch(c.ctx, next, req, c.end)
	}
}

// stepCall is one step under way.
type stepCall struct {
	running
	state *stepState
	outer *stepState // of a step around this one; nil: none
}

// beginStep starts the span and puts a fresh state under it. A step inside a
// step, such as an agent that serves as a model, has a state of its own.
func (r *recorder) beginStep(ctx context.Context, req *middleware.Request) stepCall {
	c := stepCall{running: r.beginModel(ctx, modelStep, internalSpan, req), state: new(stepState)}
	guard("context", func() {
		c.outer, _ = ctx.Value(stepKey{}).(*stepState)
		c.ctx = context.WithValue(c.ctx, stepKey{}, c.state)
	})
	return c
}

// end reports the step. Each kind of listener has a guard of its own, so that
// one that panics does not silence the others. The step around this one is
// told that its model calls are measured, here or further in.
func (c *stepCall) end(req *middleware.Request, resp *middleware.Response, err error, returned bool) {
	took := time.Since(c.begun)
	o := outcomeOf(c.ctx, resp, err, returned)
	if c.heard() {
		var s summary
		if guard("report", func() { s = summarize(resp, o, c.begun, took) }) {
			if c.recording {
				guard("span", func() { c.span.SetAttributes(s.attributes()...) })
				guard("span", func() { addEvents(c.span, c.content, &s) })
			}
			guard("metrics", func() { c.meters.step(c.ctx, model(req), &s, declaredBy(req)) })
			if !c.state.measured.Load() {
				guard("metrics", func() { c.measure(model(req), &s) })
			}
			c.log(model(req), &s, took)
			c.tellFailures(&s)
		}
	}
	if c.outer != nil {
		c.outer.measured.Store(true)
	}
	c.finish(o)
}

// heard reports whether the step is recorded anywhere. If it is not, its report
// is not read.
func (c *stepCall) heard() (yes bool) {
	if c.recording || c.logger != nil {
		return true
	}
	guard("metrics", func() { yes = c.meters.enabled(c.ctx) })
	return yes
}

// measure records the model calls of a step that had no NewAttempt inside. A
// call without a start time has no duration.
func (c *stepCall) measure(requested string, s *summary) {
	for _, a := range s.report.Attempts {
		took, kind := a.Duration, ""
		if a.Start.IsZero() {
			took = -1
		}
		if a.Err != nil {
			kind = outcomeOf(c.ctx, nil, a.Err, true).kind
		}
		c.meters.operation(c.ctx, requested, a.Model, kind, took, 0, a.Usage)
	}
}

// declaredBy reports whether the request declares a tool of that name.
func declaredBy(req *middleware.Request) func(string) bool {
	return func(name string) bool {
		return req != nil && slices.ContainsFunc(req.Tools, func(t middleware.Tool) bool { return t.Name == name })
	}
}

// summary is a step's report with what is read off it more than once.
type summary struct {
	report  middleware.Report
	outcome outcome
	usage   middleware.Usage
	status  string
	model   string // that answered
	finish  middleware.FinishReason
	invalid int // calls, in all attempts
	failing int // attempts with an error, an invalid call or an invalid text
	end     time.Time
}

// summarize reads the report. It never writes to it: the report is the
// response's own.
func summarize(resp *middleware.Response, o outcome, begun time.Time, took time.Duration) summary {
	s := summary{report: middleware.ReportOf(resp, o.err), outcome: o, status: statusNone, end: begun.Add(took)}
	if as := s.report.Attempts; len(as) == 1 && as[0].Start.IsZero() {
		a := as[0] // the only call took as long as the step
		a.Start, a.Duration = begun, took
		if resp != nil && o.err != nil {
			a.Usage = resp.Usage
		}
		s.report.Attempts = []middleware.Attempt{a}
	}
	switch s.report.Status {
	case middleware.Valid, middleware.Invalid, middleware.Unchecked:
		s.status = string(s.report.Status)
	}
	s.usage = s.report.Usage()
	if resp != nil {
		s.model, s.finish = resp.Model, resp.FinishReason
	}
	for _, a := range s.report.Attempts {
		bad := 0
		for _, v := range a.Verdicts {
			if !v.OK() {
				bad++
			}
		}
		if bad > 0 || a.Err != nil || len(a.Issues) > 0 {
			s.failing++
		}
		s.invalid += bad
	}
	return s
}

// final returns the number of the attempt that was returned, from 1; 0: none.
func (s *summary) final() int { return max(s.report.Final+1, 0) }

// attributes returns what the step's span says at its end. Counts of zero are
// said where they mean something: no invalid call, no note.
func (s *summary) attributes() []attribute.KeyValue {
	kvs := append(make([]attribute.KeyValue, 0, 16),
		attribute.Int(attemptsKey, len(s.report.Attempts)),
		attribute.String(statusKey, s.status),
		attribute.Int(invalidCallsKey, s.invalid),
		attribute.Int(notesKey, len(s.report.Notes)))
	kvs = appendCount(kvs, finalKey, int64(s.final()))
	kvs = appendSet(kvs, responseModel, s.model)
	if s.finish != "" {
		kvs = append(kvs, attribute.StringSlice(responseFinish, []string{bounded(string(s.finish), maxLabel)}))
	}
	return appendUsage(kvs, stepUsage, s.usage)
}
