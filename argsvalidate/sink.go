package argsvalidate

import "github.com/toolmend/toolmend/middleware"

// withoutCalls holds back tool calls from sink, because they are not validated
// yet. The step sends the valid ones later. EventReset is dropped if no event
// was sent before it.
func (s *step) withoutCalls(sink middleware.Sink) middleware.Sink {
	return func(e middleware.Event) error {
		if e.Kind == middleware.EventToolCall || e.Kind == middleware.EventReset && !s.shown {
			return nil
		}
		return sink(e)
	}
}

// watched records whether sink has events that were not reset.
func (s *step) watched(sink middleware.Sink) middleware.Sink {
	return func(e middleware.Event) error {
		s.shown = e.Kind != middleware.EventReset
		return sink(e)
	}
}

// finish sends the valid calls to the sink and completes the report.
func (s *step) finish(resp *middleware.Response, err error) (*middleware.Response, error) {
	if err == nil && s.req.Sink != nil {
		err = s.show(resp)
	}
	return s.tally.Finish(resp, err)
}

// show sends the valid calls of the returned response to the sink. If its
// message is not that of the last attempt, EventReset and its text come first.
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

// returned is the number of the attempt whose message is returned.
func (s *step) returned() int {
	if s.held != nil {
		return s.held.attempt
	}
	return s.answered
}
