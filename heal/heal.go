// Package heal sends a request that the provider refused once more, with the smallest
// change that makes the provider accept it.
//
// Nothing is changed, and no work is done, until the provider answers with status 400 or
// 422. The refusal must have the words that one of the [Rule]s knows, and the request must
// have the defect that these words name. Then the request is copied, changed and sent once
// more. If that is refused too, or a limit allows no further model call
// (middleware.ErrNotSent), the caller gets the first refusal. If it fails in transit, the
// caller gets that error, and a retry sends the changed request. If the context has ended
// after the refusal, the error wraps both, and no second call is made.
//
// Two kinds of requests are refused. A history has a defect: a call without its result, a
// result without its call, reasoning that the provider did not sign. Or a tool has a
// schema with a keyword that the provider does not know. Such a keyword goes in the copy
// that is sent and nowhere else: argsvalidate validates against the whole schema, so
// the constraint is not lost.
//
//	model = middleware.Layers{
//		middleware.LayerHistory:  heal.Step,
//		middleware.LayerValidate: argsvalidate.New(argsvalidate.Options{}),
//		middleware.LayerHeal:     heal.New(heal.Options{}),
//	}.Chain()(model)
//
// toolmend.Stack has it by default.
package heal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/middleware"
)

// Options configure New. The zero value works.
type Options struct {
	// Rules are the rules that are used. nil means Default; Off() turns all off.
	Rules []Rule
	// Destructive are the names of tools whose effects cannot be undone, besides those that
	// are marked Tool.Destructive. OrphanCalls and OrphanResults leave a history with a
	// call of such a tool alone, since the model may repeat the call.
	Destructive []string
}

// Validate returns the first invalid field as an error, or nil. New panics with the same
// error.
func (o Options) Validate() error {
	for _, r := range o.Rules {
		if !r.Known() {
			return fmt.Errorf("heal: Options.Rules: no rule has the number %d", r)
		}
	}
	return nil
}

// New returns a middleware that sends a refused request once more with the smallest change.
// It panics with the error of o.Validate.
//
// The report has the refused attempt, the name of the rule in the next attempt's Healed, and a
// note for people that begins with "heal:". A change of schemas is remembered for an hour, by client, model and
// tools, and is made at once from then on; a change of a history is remembered within one
// step, if the context comes from [Step]. At most 1,024 changes are remembered.
//
// Concurrency: the middleware is safe for concurrent use.
//
// Position: middleware.LayerHeal, inside of retry.New, which then repeats a healed request,
// and outside of budget.New and tracing.NewAttempt, which count the second model call.
func New(o Options) middleware.Middleware {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	if o.Rules == nil {
		o.Rules = Default()
	}
	h := &healer{options: o, known: newMemory()}
	return func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			return h.call(ctx, req, next)
		}
	}
}

type healer struct {
	options Options
	known   *memory
}

func (h *healer) call(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
	var tally middleware.Tally
	var sinks *middleware.Tally // of the events: apart, so that a request without a sink costs no allocation
	if req.Sink != nil {
		sinks = &middleware.Tally{}
	}
	now, healed := h.asKnown(ctx, req, &tally)
	resp, err := next(ctx, watched(now, sinks))
	refused := refusal(err)
	if refused == nil && now == req {
		return resp, err
	}
	tally.Add(resp, err)
	tally.AddHealed(healed...)
	found, changed, note := h.find(now, refused)
	if changed == nil {
		return tally.Finish(resp, err)
	}
	if ctx.Err() != nil {
		return tally.Finish(nil, fmt.Errorf("heal: %w: %w", run.ContextError(ctx), err))
	}
	again, second := next(ctx, watched(changed, sinks))
	switch {
	case second == nil:
		h.keep(ctx, req, found)
	case refusal(second) != nil: // the change was not enough
		tally.Add(nil, second)
		return tally.Finish(nil, err)
	case errors.Is(second, middleware.ErrNotSent): // a limit allows no further call
		return tally.Finish(nil, err)
	default: // a 503, or a network error: a retry sends the changed request
		keepInStep(ctx, found)
	}
	tally.Note(note)
	tally.Add(again, second)
	tally.AddHealed(append(healed, found.rule.String())...)
	return tally.Finish(again, second)
}

// watched returns req with a sink that gets EventReset first, if an earlier call has sent events.
func watched(req *middleware.Request, sinks *middleware.Tally) *middleware.Request {
	if req.Sink == nil {
		return req
	}
	w := *req
	w.Sink = sinks.Sink(req.Sink)
	return &w
}

// refusal returns the error of a provider that refuses the request for what is in it, nil for any other error.
// Servers of open models answer with 500, or inside of a stream, if arguments in the history are no object.
func refusal(err error) *middleware.ModelError {
	e, ok := errors.AsType[*middleware.ModelError](err)
	if ok && (e.StatusCode == http.StatusBadRequest || e.StatusCode == http.StatusUnprocessableEntity || errors.Is(e, middleware.ErrInvalidHistory)) {
		return e
	}
	return nil
}

// change is a rule with what the provider said.
type change struct {
	rule Rule
	said string
}

// find returns the change for a refusal, the changed request and a note; nil if there is none, or if e is nil.
func (h *healer) find(req *middleware.Request, e *middleware.ModelError) (change, *middleware.Request, string) {
	if e == nil {
		return change{}, nil, ""
	}
	said := message(e)
	for _, r := range h.options.Rules {
		c := change{r, said}
		if r == Arguments != errors.Is(e, middleware.ErrInvalidHistory) || r != Arguments && !rows[r].refuses(said) {
			continue
		}
		if changed, note := h.apply(c, req); changed != nil {
			return c, changed, note
		}
	}
	return change{}, nil, ""
}

// apply returns req with the change, and a note; nil if req does not have the defect.
func (h *healer) apply(c change, req *middleware.Request) (*middleware.Request, string) {
	d := &draft{was: req.Loaded(), said: c.said, destructive: h.options.Destructive}
	rows[c.rule].change(d)
	if d.now == nil {
		return nil, ""
	}
	return d.now, "heal: " + c.rule.String() + ": the provider refused the request; " + d.note
}

// wrapped is how LiteLLM begins a message that has the error of the provider behind it as JSON.
var wrapped = regexp.MustCompile(`^[\w. :]{1,120} - \{`)

// message returns what the provider said. A proxy in front of it may put the whole error, as
// JSON, into the message of its own.
func message(e *middleware.ModelError) string {
	said := e.Message
	for range 3 {
		text := json.RawMessage(said)
		if at := wrapped.FindStringIndex(said); at != nil && json.NewDecoder(strings.NewReader(said[at[1]-1:])).Decode(&text) != nil {
			break
		}
		doc, _ := rawjson.Parse(string(text), rawjson.Limits{})
		inner := cmp.Or(doc.Root().Get("error").Get("message").Str(), doc.Root().Get("message").Str())
		if inner == "" {
			break
		}
		said = inner
	}
	return said
}

// draft is a request that is changed: a copy, once there is a change.
type draft struct {
	was, now    *middleware.Request
	said        string
	note        string
	destructive []string
}

// request returns the copy. Its messages and tools may be replaced, but not changed in place.
func (d *draft) request() *middleware.Request {
	if d.now == nil {
		c := *d.was
		c.Messages, c.Tools = slices.Clone(c.Messages), slices.Clone(c.Tools)
		d.now = &c
	}
	return d.now
}

// latest returns a message as it is now.
func (d *draft) latest(i int) middleware.Message { return cmp.Or(d.now, d.was).Messages[i] }

// replace makes messages the history, if n of what is counted changed in it. The note says so.
func (d *draft) replace(messages []middleware.Message, n int, counts, change string) {
	if n > 0 {
		d.request().Messages = messages
		d.notef("%s %s", counted(n, counts), change)
	}
}

// notef sets the note: what was changed.
func (d *draft) notef(format string, args ...any) { d.note = fmt.Sprintf(format, args...) }

// isDestructive reports whether the effects of a tool cannot be undone.
func (d *draft) isDestructive(name string) bool {
	return slices.Contains(d.destructive, name) ||
		slices.ContainsFunc(d.was.Tools, func(t middleware.Tool) bool { return t.Name == name && t.Destructive })
}
