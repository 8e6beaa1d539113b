package temporalagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// The names of the handlers of a run. With InOptions.Key, "/" and the key follow.
const (
	decideUpdate  = "toolmend.decide"
	messageUpdate = "toolmend.message"
	pendingQuery  = "toolmend.pending"
)

// named returns the name of a handler of the run with that key.
func named(handler, key string) string {
	if key == "" {
		return handler
	}
	return handler + "/" + key
}

// The stored form of what the handlers get and return.
type (
	decision struct {
		CallID  string   `json:"call_id"`
		Kind    decided  `json:"kind"`
		Text    string   `json:"text,omitzero"` // the arguments, the reason, or the result
		IsError bool     `json:"is_error,omitzero"`
		err     *failure // once it is done
		done    bool
	}
	pendingCall struct {
		Call    middleware.ToolCall `json:"call"`
		Reason  string              `json:"reason"`
		Problem string              `json:"problem,omitzero"`
		Notes   []string            `json:"notes,omitzero"`
	}
)

type decided string

const (
	approved decided = "approve"
	edited   decided = "edit"
	rejected decided = "reject"
	resolved decided = "resolve"
)

// handle registers the handlers. An update that does not fit is refused before it
// is in the history.
func (l *loop) handle() error {
	key := l.o.Key
	return errors.Join(
		workflow.SetUpdateHandlerWithOptions(l.ctx, named(decideUpdate, key), l.decide,
			workflow.UpdateHandlerOptions{Validator: func(_ workflow.Context, d decision) error { return l.validateDecision(d) }}),
		workflow.SetUpdateHandlerWithOptions(l.ctx, named(messageUpdate, key), l.message,
			workflow.UpdateHandlerOptions{Validator: func(_ workflow.Context, doc json.RawMessage) error { return l.validateMessages(doc) }}),
		workflow.SetQueryHandler(l.ctx, named(pendingQuery, key), l.pending),
	)
}

// validateDecision refuses a decision unless its call waits and it is the first
// one about it.
func (l *loop) validateDecision(d decision) error {
	var last middleware.Message
	if n := len(l.r.Messages); n > 0 {
		last = l.r.Messages[n-1]
	}
	queued := slices.ContainsFunc(l.queue, func(q *decision) bool { return q.CallID == d.CallID })
	waits := slices.ContainsFunc(l.r.Pending(), func(p agentloop.Pending) bool { return p.Call.ID == d.CallID })
	called := slices.ContainsFunc(last.ToolCalls, func(c middleware.ToolCall) bool { return c.ID == d.CallID })
	switch {
	case queued, !waits && called:
		return final(fmt.Errorf("%w: %q", agentloop.ErrDecided, d.CallID))
	case !waits:
		return final(fmt.Errorf("%w: %q", agentloop.ErrUnknownCall, d.CallID))
	case l.over: // of a run in a workflow that goes on
		return final(errOver)
	case d.Kind == edited && !isReference(d.Text) && !json.Valid([]byte(d.Text)):
		return final(errors.New("temporalagent: the edited arguments are not JSON"))
	case !slices.Contains([]decided{approved, edited, rejected, resolved}, d.Kind):
		return final(fmt.Errorf("temporalagent: unknown kind of decision %q", d.Kind))
	}
	return nil
}

// decide takes a decision, and returns when it holds, or the reason why not.
func (l *loop) decide(ctx workflow.Context, d decision) error {
	l.deciding++
	defer func() { l.deciding-- }()
	l.queue = append(l.queue, &d)
	if err := workflow.Await(ctx, func() bool { return d.done }); err != nil {
		return err
	}
	if d.err != nil {
		return final(d.err)
	}
	return nil
}

// Await waits for decisions, and lets an activity validate them.
func (l *loop) Await(*agentloop.State) error {
	for len(l.queue) == 0 {
		if err := workflow.Await(l.ctx, func() bool { return len(l.queue) > 0 || l.long() }); err != nil {
			return err
		}
		if err := l.renew(); err != nil {
			return err
		}
	}
	taken := l.queue
	l.queue = nil
	for _, d := range taken {
		if err := l.apply(d); err != nil {
			d.err = failureOf(err)
		}
	}
	_, err := l.step(checkActivity, workflow.ActivityOptions{})
	for _, d := range taken {
		if i := slices.IndexFunc(l.r.Pending(), func(p agentloop.Pending) bool { return p.Call.ID == d.CallID }); i >= 0 && d.err == nil {
			d.err = &failure{Text: "temporalagent: the call waits again: " + l.r.Pending()[i].Problem}
		}
		if err != nil && d.err == nil {
			d.err = failureOf(err)
		}
		d.done = true
	}
	return err
}

func (l *loop) apply(d *decision) error {
	switch d.Kind {
	case approved:
		return l.r.Approve(d.CallID)
	case edited:
		return l.r.Edit(d.CallID, d.Text)
	case rejected:
		return l.r.Reject(d.CallID, d.Text)
	default:
		return l.r.Resolve(d.CallID, agentloop.Result{Text: d.Text, IsError: d.IsError})
	}
}

// message takes messages of a user. They are in the conversation before the next
// model step.
func (l *loop) message(_ workflow.Context, doc json.RawMessage) error {
	msgs, err := readMessages(doc)
	l.inbox = append(l.inbox, msgs...)
	return err
}

// validateMessages refuses messages that the run cannot take.
func (l *loop) validateMessages(doc json.RawMessage) error {
	if l.over {
		return final(errOver)
	}
	_, err := readMessages(doc)
	return err
}

func readMessages(doc json.RawMessage) (msgs []middleware.Message, err error) {
	if err := json.Unmarshal(doc, &msgs); err != nil {
		return nil, final(err)
	}
	for _, m := range msgs {
		if m.Role != middleware.RoleUser {
			return nil, final(fmt.Errorf("temporalagent: only messages of the user can be sent, not one of the role %q", m.Role))
		}
	}
	if len(msgs) == 0 {
		return nil, final(agentloop.ErrNoMessages)
	}
	return msgs, nil
}

// receive appends the messages that have arrived, unless calls wait for results.
func (l *loop) receive() {
	if len(l.inbox) > 0 && l.r.Append(l.inbox...) == nil {
		l.inbox = nil
	}
}

func (l *loop) pending() ([]pendingCall, error) {
	waiting := []pendingCall{}
	for _, p := range l.r.Pending() {
		if !slices.ContainsFunc(l.queue, func(q *decision) bool { return q.CallID == p.Call.ID }) {
			waiting = append(waiting, pendingCall(p))
		}
	}
	return waiting, nil
}
