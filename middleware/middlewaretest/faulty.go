package middlewaretest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"

	"github.com/toolmend/toolmend/middleware"
)

// FaultOptions configure NewFaulty. The zero value works.
type FaultOptions struct {
	// Rates are the frequencies of the faults, from 0 to 1: the share of the
	// calls, or of the responses, in which a fault is possible. nil means
	// DefaultRates. A fault that is not in the map never occurs, so an empty
	// map makes a model without faults. Validate refuses unknown names.
	Rates map[Fault]float64
	// Calls is the largest number of calls in a response; 0 means 3.
	Calls int
	// AnswerAfter is a number of tool messages. After so many of them
	// without an error since the last user message, the model answers with
	// text. 0 means 4; NeverAnswer means that the model always calls tools.
	AnswerAfter int
}

// NeverAnswer turns FaultOptions.AnswerAfter off.
const NeverAnswer = -1

// Validate returns the first invalid field as an error, or nil. NewFaulty
// panics with the same error.
func (o FaultOptions) Validate() error {
	known := DefaultRates()
	for f, r := range o.Rates {
		if _, ok := known[f]; !ok {
			return fmt.Errorf("middlewaretest: FaultOptions.Rates: unknown fault, got %q", string(f))
		}
		if !(r >= 0 && r <= 1) { // so that NaN is refused too
			return fmt.Errorf("middlewaretest: FaultOptions.Rates: a rate is from 0 to 1, got %v for %q", r, string(f))
		}
	}
	if o.Calls < 0 {
		return fmt.Errorf("middlewaretest: FaultOptions.Calls: must not be negative, got %d", o.Calls)
	}
	if o.AnswerAfter < 0 && o.AnswerAfter != NeverAnswer {
		return fmt.Errorf("middlewaretest: FaultOptions.AnswerAfter: must not be negative, unless it is NeverAnswer, got %d", o.AnswerAfter)
	}
	return nil
}

// Faulty is a model that calls the offered tools with valid arguments, and
// makes the mistakes that real models make. After tool messages with an
// error it repeats the turn that they answer. The same seed, options and
// order of calls give the same responses. Faulty is safe for concurrent use.
//
// Faulty makes the arguments of a call as a tree of values, by the schema of
// the tool. Faults in values change the tree. Then the tree is written as
// text. At most one fault changes the text, one the name and one the id of
// the call.
type Faulty struct {
	o FaultOptions

	mu       sync.Mutex
	rng      *rand.Rand
	ids      int
	injected map[Fault]int
}

// NewFaulty returns a model that makes faults at the rates of o. It panics
// with the error of o.Validate.
func NewFaulty(seed uint64, o FaultOptions) *Faulty {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	return &Faulty{o: o.withDefaults(), rng: rand.New(rand.NewPCG(seed, 0)), injected: map[Fault]int{}}
}

// withDefaults returns o with its zero fields filled in and a map of its own.
func (o FaultOptions) withDefaults() FaultOptions {
	if o.Rates == nil {
		o.Rates = DefaultRates()
	}
	o.Rates = maps.Clone(o.Rates)
	if o.Calls == 0 {
		o.Calls = 3
	}
	if o.AnswerAfter == 0 {
		o.AnswerAfter = 4
	}
	return o
}

// Injected returns the number of times that each fault was made. The caller
// owns the map.
func (f *Faulty) Injected() map[Fault]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.injected)
}

// Call is a middleware.ModelCall. A response has a usage of 10 input and 5
// output tokens. A sink in req gets the text and the calls, valid or not.
// Besides the faults, Call fails only if ctx has ended or if the sink fails.
func (f *Faulty) Call(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	resp, err := f.answer(req)
	if resp == nil || err != nil {
		return nil, err
	}
	if err := emit(req.Sink, resp); err != nil {
		return nil, err
	}
	return resp, nil
}

// draws reports whether a fault is due. It takes one number from the source whatever
// the rate, so that a changed rate does not change the rest of the answer.
func (f *Faulty) draws(fault Fault) bool { return f.rng.Float64() < f.o.Rates[fault] }

// due draws and counts a fault that always has room.
func (f *Faulty) due(fault Fault) bool {
	if f.draws(fault) {
		f.injected[fault]++
		return true
	}
	return false
}

// answer draws in a fixed order, which is part of what a seed means: the failures
// of the call, the kind of the answer, its calls with their faults, and at last
// whether the provider refuses it.
func (f *Faulty) answer(req *middleware.Request) (*middleware.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	resp := &middleware.Response{Model: req.Model, Usage: scriptedUsage, FinishReason: middleware.FinishStop}
	switch {
	case f.due(transient):
		if f.rng.IntN(2) == 0 {
			return nil, &middleware.ModelError{StatusCode: 429, Code: "rate_limit_exceeded", Err: errors.New("slow down")}
		}
		return nil, &middleware.ModelError{StatusCode: 500, Code: "server_error", Err: errors.New("try again")}
	case f.due(noResponse):
		return nil, nil
	}
	tools := callable(req)
	must := req.ToolChoice.Mode == middleware.ToolRequired || req.ToolChoice.Name != ""
	switch {
	case len(tools) == 0, !must && f.o.AnswerAfter > 0 && answered(req.Messages) >= f.o.AnswerAfter:
		resp.Message = middleware.Assistant("That is all.")
		return resp, nil
	case f.due(textForCall):
		resp.Message = middleware.Assistant("I would call " + tools[0].Name + " now.")
		return resp, nil
	}
	resp.FinishReason = middleware.FinishToolCalls
	resp.Message = middleware.Assistant("", f.calls(req, tools, resp)...)
	if f.due(refusal) {
		c := resp.Message.ToolCalls[0]
		return nil, &middleware.ModelError{
			StatusCode: 400, Code: "tool_use_failed", Err: middleware.ErrInvalidToolCall,
			Output: fmt.Sprintf(`{"name": %s, "arguments": %s`, quoted(c.Name), c.Arguments),
		}
	}
	return resp, nil
}
