// Package middlewaretest tests middlewares and agents without a model.
//
//   - [Run] checks the laws that every middleware keeps.
//   - [NewModel] returns a scripted model. It fails the test if the requests
//     do not match the script.
//   - [NewFaulty] returns a model that makes valid calls to the offered
//     tools and the mistakes of real models. The test sets the rates and the
//     seed.
//   - [Strict] and [Check] refuse the requests that real providers refuse.
//
// The whole test of a middleware can be
//
//	func TestLaws(t *testing.T) { middlewaretest.Run(t, mine.New(mine.Options{})) }
package middlewaretest

import (
	"testing"
	"testing/synctest"

	"github.com/toolmend/toolmend/middleware"
)

// Run checks mw against the laws that every middleware keeps. Each law is a
// subtest with its name. Run puts mw in front of models that answer, fail,
// answer correctly only after several attempts, make the faults of
// [NewFaulty], and break their own contract. With each of these models it
// checks:
//
//   - mw does not change the caller's request, nor the arrays behind its
//     slices;
//   - mw returns a response exactly when it returns no error. It does not
//     panic if next breaks this rule, but may then return what next returned.
//     middleware.Tally.Call turns a missing response into ErrNoResponse;
//   - no usage is lost or counted twice, in the report and in the response;
//   - errors.Is and errors.As find a model's error;
//   - mw returns a plain answer and a valid tool call;
//   - next gets the given context or a child of it. After a cancellation mw
//     makes no further model call and returns at once;
//   - a sink gets the events of one attempt at a time, and an error of the
//     sink ends the step;
//   - all providers accept each request that mw sends on;
//   - one mw can be used by many goroutines, with many models, and twice in
//     a chain.
//
// The number of calls of next is not a law: a cache calls it less often, a
// retry more often. mw may add text to an answer.
//
// Each law runs in a bubble of [testing/synctest], so waiting takes no time.
// Every request has another question, so a cache has no stored answer. Run
// cannot test a middleware that waits for goroutines, timers or channels
// made before Run. Use the race detector.
func Run(t *testing.T, mw middleware.Middleware) {
	t.Helper()
	if mw == nil {
		t.Fatal("middlewaretest: Run: the middleware is nil")
	}
	for _, l := range laws {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { l.check(t, mw) })
		})
	}
}

// tester is the part of testing.T that a law uses: never Fatal, because most
// of what a law does happens on other goroutines.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
}

// law is one subtest of Run.
type law struct {
	name  string
	check func(t tester, mw middleware.Middleware)
}

var laws = []law{
	{"the caller's request is not changed", lawRequestUnchanged},
	{"a response exactly when there is no error", lawOutcome},
	{"usage is never lost", lawUsage},
	{"a model's error is found", lawModelError},
	{"a valid answer comes out", lawAnswer},
	{"the context is passed on", lawContext},
	{"a cancelled context ends the call", lawCancelledBefore},
	{"no model call after cancellation", lawCancelledDuring},
	{"a sink sees one attempt at a time", lawSink},
	{"a sink's error ends the step", lawSinkError},
	{"requests sent on are accepted", lawAccepted},
	{"one value serves many goroutines", lawGoroutines},
	{"one value serves many models", lawModels},
	{"works inside a chain", lawChain},
}
