package temporalagent

import (
	"context"
	"encoding/json"
	"errors"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// Handle is a run. It is safe for concurrent use.
//
// A decision is refused before it is in the history if its call does not wait
// (agentloop.ErrUnknownCall) or is decided already (agentloop.ErrDecided). So a
// decision that is sent twice counts once. Approve, Edit, Reject and Resolve return
// when the decision was validated, which needs a worker; what they mean is in
// agentloop.State. They return an error if an edit is not valid: the call then waits
// again.
type Handle struct {
	client client.Client
	o      Options
	blobs  *blobs
}

// Pending returns the calls that wait for a decision.
func (h *Handle) Pending(ctx context.Context) ([]agentloop.Pending, error) {
	v, err := h.client.QueryWorkflow(ctx, h.o.ID, "", named(pendingQuery, h.o.Key))
	if err != nil {
		return nil, err
	}
	var doc json.RawMessage
	if err := v.Get(&doc); err != nil {
		return nil, err
	}
	if doc, err = h.blobs.unpack(ctx, doc); err != nil {
		return nil, err
	}
	var calls []pendingCall
	if err := json.Unmarshal(doc, &calls); err != nil {
		return nil, err
	}
	waiting := make([]agentloop.Pending, len(calls))
	for i, c := range calls {
		waiting[i] = agentloop.Pending(c)
	}
	return waiting, nil
}

// Approve lets a call run.
func (h *Handle) Approve(ctx context.Context, callID string) error {
	return h.decide(ctx, decision{CallID: callID, Kind: approved})
}

// Edit lets a call run with other arguments.
func (h *Handle) Edit(ctx context.Context, callID, arguments string) error {
	return h.decide(ctx, decision{CallID: callID, Kind: edited, Text: arguments})
}

// Reject answers a call with a reason, which may be empty.
func (h *Handle) Reject(ctx context.Context, callID, reason string) error {
	return h.decide(ctx, decision{CallID: callID, Kind: rejected, Text: reason})
}

// Resolve sets the result of a call.
func (h *Handle) Resolve(ctx context.Context, callID string, r agentloop.Result) error {
	return h.decide(ctx, decision{CallID: callID, Kind: resolved, Text: r.Text, IsError: r.IsError})
}

func (h *Handle) decide(ctx context.Context, d decision) (err error) {
	if d.Kind != rejected { // a reason becomes part of a text, where a reference would stay one
		if d.Text, err = h.blobs.packString(ctx, d.Text, h.blobs.limit); err != nil {
			return err
		}
	}
	if size := sizeOf(d.Text); size > maxValue {
		return tooLarge("the decision", size)
	}
	return h.update(ctx, decideUpdate, d)
}

// Send adds messages of the user before the next model step. It returns when the
// run has accepted them. A run that has ended accepts none.
func (h *Handle) Send(ctx context.Context, msgs ...middleware.Message) error {
	doc, err := h.blobs.packJSON(ctx, msgs)
	if err != nil {
		return err
	}
	if len(doc) > maxValue {
		return tooLarge("the message", len(doc))
	}
	return h.update(ctx, messageUpdate, json.RawMessage(doc))
}

func (h *Handle) update(ctx context.Context, name string, arg any) error {
	u, err := h.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: h.o.ID, UpdateName: named(name, h.o.Key), Args: []any{arg}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = u.Get(ctx, nil)
	}
	var app *temporal.ApplicationError
	if f := new(failure); errors.As(err, &app) && app.HasDetails() && app.Details(f) == nil {
		return f
	}
	return err
}
