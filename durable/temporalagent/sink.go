package temporalagent

import (
	"context"

	"go.temporal.io/sdk/activity"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// Sink gets what a model streams, from inside the activity, past the history. It
// is called in order for one attempt, and concurrently for several runs. It should
// be quick: the model step waits for it. If it returns an error, the error is
// logged, and the attempt goes on without it.
type Sink func(ctx context.Context, e Event) error

// Event is a piece of a model step. A step whose worker was lost is made again, as
// the next attempt: a reader that has an event of an attempt discards the events
// of lower attempts at that turn, also those that come later.
type Event struct {
	Run     string           `json:"run"`     // the id of the workflow
	Turn    int              `json:"turn"`    // the model step, from 1
	Attempt int              `json:"attempt"` // of the activity, from 1
	Seq     int              `json:"seq"`     // from 1 in each attempt, without gaps
	Event   middleware.Event `json:"event"`
}

// stream lets the sink see the next model step of s.
func (p *Plugin) stream(ctx context.Context, s *agentloop.State) {
	if p.o.Sink == nil {
		return
	}
	info := activity.GetInfo(ctx)
	at := Event{Run: info.WorkflowExecution.ID, Turn: len(s.Steps) + 1, Attempt: int(info.Attempt)}
	failed := false
	s.Sink = func(e middleware.Event) error {
		if failed {
			return nil
		}
		at.Seq++
		at.Event = e
		if err := p.o.Sink(ctx, at); err != nil {
			failed = true
			p.o.Logger.Error("temporalagent: WorkerOptions.Sink failed", "run", at.Run, "turn", at.Turn, "error", err)
		}
		return nil
	}
}
