package middlewaretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/toolmend/toolmend/middleware"
)

// play is what a model of the laws does on its n-th call, from 1.
type play func(n int, ctx context.Context, req *middleware.Request) (*middleware.Response, error)

// spy is a model that counts what it is asked and what it spends.
type spy struct {
	play  play
	mu    sync.Mutex
	asked int
	spent middleware.Usage // of failed calls too, as far as their errors tell
}

// call plays the next call. It adds the usage of the outcome to spent, and sets the
// flag of ask if there was one.
func (s *spy) call(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	s.mu.Lock()
	s.asked++
	n := s.asked
	s.mu.Unlock()
	resp, err := s.play(n, ctx, req)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent = s.spent.Add(middleware.ReportOf(resp, err).Usage())
	if gave, ok := ctx.Value(gaveKey{}).(*atomic.Bool); ok {
		gave.Store(resp != nil || err != nil)
	}
	return resp, err
}

// count returns how often the model was called.
func (s *spy) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// gaveKey is the key of a flag in the context: whether the last call of next
// returned a response or an error.
type gaveKey struct{}

// ask makes one call. ok is false if it panicked, which is reported with a hint if
// next had broken its contract before.
func ask(t tester, ctx context.Context, call middleware.ModelCall, req *middleware.Request) (resp *middleware.Response, err error, ok bool) {
	t.Helper()
	var gave atomic.Bool
	gave.Store(true)
	defer func() {
		if p := recover(); p != nil {
			why := ""
			if !gave.Load() {
				why = "; next had returned neither a response nor an error; middleware.Tally.Call makes that ErrNoResponse"
			}
			t.Errorf("the middleware panics: %v%s\n%s", p, why, debug.Stack())
		}
	}()
	resp, err = call(context.WithValue(ctx, gaveKey{}, &gave), req)
	return resp, err, true
}

var questions atomic.Int64

// question returns words that no request had before.
func question() string { return fmt.Sprintf("question %d?", questions.Add(1)) }

// sample returns a request that all providers accept, with room behind its
// slices, and with the last user message.
func sample(words string) *middleware.Request {
	oslo := middleware.ToolCall{ID: "earlier_1", Name: "weather", Arguments: `{"city":"Oslo"}`}
	rome := middleware.ToolCall{ID: "earlier_2", Name: "weather", Arguments: `{"city": "Rome", "days": 2}`}
	temperature := 0.5
	return &middleware.Request{
		Model: "sample-model",
		Messages: append(make([]middleware.Message, 0, 16),
			middleware.System("Be brief."),
			middleware.User("How is the weather in Oslo and Rome?"),
			middleware.Assistant("Let me see.", oslo, rome),
			middleware.ToolReply(oslo, "cold"),
			middleware.ToolReply(rome, "warm"),
			middleware.Assistant("Cold in Oslo, warm in Rome."),
			middleware.User(words),
		),
		Tools: append(make([]middleware.Tool, 0, 8),
			middleware.Tool{Name: "weather", Description: "The weather of a city.", Parameters: json.RawMessage(`{"type":"object","properties":{` +
				`"city":{"type":"string","minLength":1},"days":{"type":"integer","minimum":1,"maximum":9},"unit":{"enum":["C","F"]},` +
				`"hours":{"type":"array","items":{"type":"integer"}},"wind":{"type":"boolean"}},"required":["city"]}`)},
			middleware.Tool{Name: "note", Parameters: json.RawMessage(`{"type":"object","properties":{"place":{"type":"object","properties":{` +
				`"name":{"type":"string"},"lat":{"type":"number"}},"required":["name"]},"text":{"type":"string"}},` +
				`"required":["place"],"additionalProperties":false}`)},
		),
		Temperature: &temperature,
		MaxTokens:   1000,
		Stop:        append(make([]string, 0, 4), "END"),
		Params:      json.RawMessage(`{"seed": 7}`),
		Header:      http.Header{"X-Sample": {"a", "b"}},
	}
}

// reply is an answer whose usage tells the n-th call from the others.
func reply(n int, m middleware.Message) *middleware.Response {
	finish := middleware.FinishStop
	if len(m.ToolCalls) > 0 {
		finish = middleware.FinishToolCalls
	}
	k := int64(n)
	return &middleware.Response{Message: m, FinishReason: finish, Model: "sample-model", Usage: middleware.Usage{
		InputTokens: 100 + k, Cached: k, CacheWrite: 1, OutputTokens: 10 + k, Reasoning: 2 * k,
	}}
}

// words is a plain answer.
func words(n int) *middleware.Response {
	return reply(n, middleware.Assistant(fmt.Sprintf("Answer %d.", n)))
}

// goodCalls is a batch that sample's schemas accept. Its white space must not be
// lost.
func goodCalls(n int) *middleware.Response {
	return reply(n, middleware.Assistant("",
		middleware.ToolCall{ID: fmt.Sprintf("good_%d_1", n), Name: "weather", Arguments: `{"city": "Bergen", "days": 3}`},
		middleware.ToolCall{ID: fmt.Sprintf("good_%d_2", n), Name: "note", Arguments: `{"place":{"name":"Voss","lat":60.6}}`},
	))
}

// badCalls is a batch with one valid call and two invalid ones: to the schema, and
// to a tool that is not declared, cut off.
func badCalls(n int) *middleware.Response {
	return reply(n, middleware.Assistant("",
		middleware.ToolCall{ID: fmt.Sprintf("bad_%d_1", n), Name: "weather", Arguments: `{"days": "many"}`},
		middleware.ToolCall{ID: fmt.Sprintf("bad_%d_2", n), Name: "note", Arguments: `{"place":{"name":"Voss"}}`},
		middleware.ToolCall{ID: fmt.Sprintf("bad_%d_3", n), Name: "nothing", Arguments: `{"place":`},
	))
}

// errSample is the cause of every failure of the models here.
var errSample = errors.New("middlewaretest: the sample model fails")

// modelError is a provider's refusal: 400 is final, 503 worth another try.
func modelError(status int) error {
	return &middleware.ModelError{StatusCode: status, Code: "sample", Err: errSample}
}

// scene is one way in which models behave.
type scene struct {
	name   string
	lawful bool // the model keeps its own contract
	play   play
}

// scenes are the ways that every middleware meets. Those that end well after a
// first failure are for the layers that re-ask.
var scenes = []scene{
	{"answers", true, always(responds(words))},
	{"calls tools", true, always(responds(goodCalls))},
	{"calls tools wrongly", true, always(responds(badCalls))},
	{"calls tools wrongly, then well", true, first(responds(badCalls), responds(goodCalls))},
	{"says nothing, then answers", true, first(responds(silence), responds(words))},
	{"refuses", true, always(fails(modelError(400)))},
	{"is overloaded", true, always(fails(modelError(503)))},
	{"is overloaded, then answers", true, first(fails(modelError(503)), responds(words))},
	{"fails, having spent", true, always(spending)},
	{"fails, having spent, then answers", true, first(spending, responds(words))},
	{"refuses its own tool call", true, always(fails(
		&middleware.ModelError{StatusCode: 400, Code: "tool_use_failed", Output: `{"city":`, Err: middleware.ErrInvalidToolCall}))},
	{"returns nothing", false, always(fails(nil))},
	{"returns a response and an error", false, always(func(n int) (*middleware.Response, error) { return words(n), modelError(503) })},
}

// outcome is what a model returns on its n-th call.
type outcome func(n int) (*middleware.Response, error)

// always plays the same outcome on each call.
func always(o outcome) play {
	return func(n int, _ context.Context, _ *middleware.Request) (*middleware.Response, error) { return o(n) }
}

// first plays one outcome on the first call and another one from then on.
func first(once, then outcome) play {
	return func(n int, _ context.Context, _ *middleware.Request) (*middleware.Response, error) {
		if n == 1 {
			return once(n)
		}
		return then(n)
	}
}

// responds returns the response of answer.
func responds(answer func(n int) *middleware.Response) outcome {
	return func(n int) (*middleware.Response, error) { return answer(n), nil }
}

// fails returns an error without an answer.
func fails(err error) outcome {
	return func(int) (*middleware.Response, error) { return nil, err }
}

// silence is an answer without text and calls.
func silence(n int) *middleware.Response { return reply(n, middleware.Assistant("")) }

// spending fails after a hidden attempt that cost something.
func spending(n int) (*middleware.Response, error) {
	var tally middleware.Tally
	tally.Add(badCalls(n), nil)
	return tally.Finish(nil, modelError(503))
}

// faultyScenes are models with every fault, from different seeds.
func faultyScenes(seeds int) []scene {
	var out []scene
	for seed := range seeds {
		f := NewFaulty(uint64(seed), FaultOptions{})
		out = append(out, scene{fmt.Sprintf("makes faults, seed %d", seed), false,
			func(_ int, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
				return f.Call(ctx, req)
			}})
	}
	return out
}
