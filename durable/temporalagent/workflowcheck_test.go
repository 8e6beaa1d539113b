package temporalagent

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"
)

// workflowcheck does not follow calls through interfaces, and it finds workflows
// by their registration. This one is never run: it calls what the loop calls.
func everyEffect(ctx workflow.Context, l *loop) error {
	_, _ = l.Ask(nil)
	_ = l.Await(nil)
	_ = l.Tools(nil, nil)
	_ = l.decide(ctx, decision{})
	_ = l.validateDecision(decision{})
	_ = l.validateMessages(json.RawMessage{})
	_ = l.message(ctx, json.RawMessage{})
	_, _ = l.pending()
	return nil
}

var _ = func(r Registry) { r.RegisterWorkflowWithOptions(everyEffect, workflow.RegisterOptions{}) }
