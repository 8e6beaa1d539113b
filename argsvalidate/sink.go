package argsvalidate

import "github.com/toolmend/toolmend/middleware"

// withoutCalls holds back tool calls from sink: whether they are valid is known
// later, and then the step shows them. Where nothing else was shown there is
// nothing to void.
func (s *step) withoutCalls(sink middleware.Sink) middleware.Sink {
	return func(e middleware.Event) error {
		if e.Kind == middleware.EventToolCall || e.Kind == middleware.EventReset && !s.shown {
			return nil
		}
		return sink(e)
	}
}

// watched notices whether sink has shown what is not void.
func (s *step) watched(sink middleware.Sink) middleware.Sink {
	return func(e middleware.Event) error {
		s.shown = e.Kind != middleware.EventReset
		return sink(e)
	}
}

// finish shows the valid calls to the sink and closes the ledger.
func (s *step) finish(resp *middleware.Response, err error) (*middleware.Response, error) {
	if err == nil && s.req.Sink != nil {
		err = s.show(resp)
	}
	return s.tally.Finish(resp, err)
}

// show shows the valid calls of the response that is returned. If its message is
// not that of the last attempt, what was shown is void, and its text comes first.
func (s *step) show(resp *middleware.Response) error {
	var events []middleware.Event
	if returned := s.returned(); returned < s.attempt {
		if s.shown {
			events = append(events, middleware.Event{Kind: middleware.EventReset})
		}
		for _, p := range resp.Message.Parts {
			switch {
			case p.Kind == middleware.PartText && p.Text != "":
				events = append(events, middleware.Event{Kind: middleware.EventText, Text: p.Text})
			case p.Kind == middleware.PartReasoning && p.Text != "":
				events = append(events, middleware.Event{Kind: middleware.EventReasoning, Text: p.Text})
			}
		}
	}
	for i, c := range resp.Message.ToolCalls {
		if resp.Report.Status != middleware.Invalid || s.valid(i) {
			events = append(events, middleware.Event{Kind: middleware.EventToolCall, Call: &c})
		}
	}
	for _, e := range events {
		if err := s.req.Sink(e); err != nil {
			return err
		}
	}
	return nil
}

// returned is the attempt whose message is returned.
func (s *step) returned() int {
	if s.held != nil {
		return s.held.attempt
	}
	return s.answered
}
