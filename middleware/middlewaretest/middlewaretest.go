// Package middlewaretest tests middlewares and agents without a model.
//
//   - [Run] holds a middleware to the laws that every middleware keeps.
//   - [NewModel] is a model that plays a script, and fails the test if the
//     requests do not match the script.
//   - [NewFaulty] is a model that calls tools as their schemas say, and makes
//     the mistakes of real models, with rates and a seed that the test sets.
//   - [Strict] and [Check] refuse the requests that real providers refuse.
//
// A test of a middleware needs no more than
//
//	func TestLaws(t *testing.T) { middlewaretest.Run(t, mine.New(mine.Options{})) }
package middlewaretest

import (
	"testing"
	"testing/synctest"

	"github.com/toolmend/toolmend/middleware"
)

// Run checks mw against the laws that every middleware keeps, each in a subtest
// named after the law. It puts mw in front of models that answer, fail, answer
// correctly only after several attempts, make the faults of [NewFaulty], and break
// their own contract. In all of these cases it checks:
//
//   - the caller's request is not changed, nor the array behind its slices;
//   - mw returns a response exactly when there is no error, and does not panic,
//     even if next returned neither (middleware.Tally.Call makes that
//     ErrNoResponse); a contract that the model itself broke may stay broken;
//   - usage is neither lost nor counted twice, in the report and in the response;
//   - errors.Is and errors.As find a model's error;
//   - a plain answer and a valid tool call are returned;
//   - next gets the given context or a child of it; after cancellation no further
//     model call is made, and the call ends at once;
//   - a sink sees one attempt at a time, and its error ends the step;
//   - all providers accept each request that is sent on;
//   - one value serves many goroutines, many models, and itself in a chain.
//
// How often next is called is not a law: a cache does not call it, a retry calls
// it more than once. mw may add to an answer.
//
// Each law runs in a bubble of [testing/synctest], so that waiting costs no time.
// Every question is a new one, so that a cache has no answer to it yet. A
// middleware that waits for goroutines, timers or channels that it made before
// Run cannot be tested this way. Run with -race.
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
