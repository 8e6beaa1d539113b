package middleware

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// Tally records the attempts of a middleware that calls next more than once.
// The zero Tally is ready to use. It serves one step, on one goroutine at a
// time.
//
//	var tally middleware.Tally
//	for {
//		resp, err := tally.Call(ctx, next, req)
//		if good(resp, err) {
//			return tally.Finish(resp, err)
//		}
//	}
type Tally struct {
	report  Report
	added   added           // the last response
	earlier []added         // the responses before it
	latest  int             // index of the attempt that SetVerdicts and SetIssues describe
	noted   map[string]bool // the notes of the report
	calls   int
	shown   bool // an event has reached the sink
	step    int  // Step of the last such event
}

// added is a response, and the index of the attempt behind it.
type added struct {
	resp *Response
	at   int
}

// Call calls next once and records the outcome. If an earlier attempt has sent
// events to the request's sink, Call first sends EventReset. The response is
// non-nil exactly when the error is nil: if next returns neither, the error is
// ErrNoResponse. If the sink fails on EventReset, Call returns the sink's
// error and does not call next. If next fails, the attempt's Message holds the
// output that was streamed before, up to 1 MiB of it.
func (t *Tally) Call(ctx context.Context, next ModelCall, req *Request) (*Response, error) {
	var arrived *partial
	if req.Sink != nil {
		arrived = &partial{}
		if t.shown {
			t.shown = false
			if err := req.Sink(Event{Kind: EventReset, Step: t.step}); err != nil {
				return nil, err
			}
		}
		watched := *req
		watched.Sink = arrived.sink(t.Sink(req.Sink))
		req = &watched
	}
	start := time.Now()
	resp, err := next(ctx, req)
	took := time.Since(start)
	if resp == nil && err == nil {
		err = ErrNoResponse
	}
	n := len(t.report.Attempts)
	t.Add(resp, err)
	if len(t.report.Attempts) == n+1 {
		a := &t.report.Attempts[n]
		if a.Start.IsZero() {
			a.Start, a.Duration = start, took
		}
		if err != nil && arrived != nil && a.Message.Role == "" {
			a.Message = arrived.message()
		}
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// Add records the outcome of a call that was not made through Call. If there
// are both a response and an error, Add records the error with the response's
// usage and message.
func (t *Tally) Add(resp *Response, err error) {
	r := ReportOf(resp, err)
	if resp != nil && err != nil && len(r.Attempts) == 1 && r.Attempts[0].Message.Role == "" {
		r.Attempts = []Attempt{attemptOf(resp)}
		r.Attempts[0].Err = err
	}
	base := len(t.report.Attempts)
	if base == 0 && err == nil && resp != nil && len(resp.Report.Attempts) == 0 {
		t.report.Attempts = r.Attempts // ReportOf has just made them
	} else {
		t.report.Attempts = append(t.report.Attempts, r.Attempts...)
	}
	for _, note := range r.Notes {
		t.Note(note)
	}
	for _, failure := range r.Failures {
		t.Fail(failure)
	}
	t.report.Status = r.Status
	t.latest = len(t.report.Attempts) - 1
	if resp != nil && err == nil {
		if t.added.resp != nil {
			t.earlier = append(t.earlier, t.added)
		}
		t.latest = base + max(r.Final, 0)
		t.added = added{resp, t.latest}
	}
}

// SetVerdicts records the verdicts on the last outcome, and the replies that the
// model gets next; replies is nil if the model is not re-asked. SetVerdicts does
// not set the status of a response that is passed to Finish: the middleware sets
// it.
func (t *Tally) SetVerdicts(verdicts []Verdict, replies []Message) {
	if t.latest < 0 || t.latest >= len(t.report.Attempts) {
		return
	}
	a := &t.report.Attempts[t.latest]
	a.Verdicts, a.Replies = verdicts, replies
	if len(verdicts) > 0 {
		t.report.Status = StatusOf(verdicts)
	}
}

// SetIssues records the result of validating a message without calls, or of reading
// tool calls in its text: the issues, the repairs of the text, and the replies that
// the model gets next. No issues mean that the message is valid.
func (t *Tally) SetIssues(issues []Issue, changes []Change, replies []Message) {
	if t.latest < 0 || t.latest >= len(t.report.Attempts) {
		return
	}
	a := &t.report.Attempts[t.latest]
	a.Issues, a.Changes, a.Replies = issues, changes, replies
	t.report.Status = Valid
	if len(issues) > 0 {
		t.report.Status = Invalid
	}
}

// SetAnswer is SetIssues for a text that was validated as an answer. It stays one
// if it is invalid: see Response.Unusable.
func (t *Tally) SetAnswer(issues []Issue, changes []Change, replies []Message) {
	if t.latest >= 0 && t.latest < len(t.report.Attempts) {
		t.report.Attempts[t.latest].Answer = true
	}
	t.SetIssues(issues, changes, replies)
}

// AddHealed records the names of rules by which the request of the last outcome was changed.
func (t *Tally) AddHealed(names ...string) {
	if t.latest >= 0 && t.latest < len(t.report.Attempts) {
		a := &t.report.Attempts[t.latest]
		a.Healed = slices.Concat(a.Healed, names)
	}
}

// SetRescued records the number of calls that were read in the text of the last outcome.
func (t *Tally) SetRescued(calls int) {
	if t.latest >= 0 && t.latest < len(t.report.Attempts) {
		t.report.Attempts[t.latest].Rescued = calls
	}
}

// SetStatus sets the status of the report that Finish puts into an error. Without
// it that is the status of the last outcome, which does not fit an error about
// calls of several attempts. The report of a response has the response's status.
func (t *Tally) SetStatus(s Status) { t.report.Status = s }

// Limits on the notes of one step.
const (
	maxNotes = 128
	maxNote  = 1000 // bytes
	moreNote = "and more"
)

// Note adds a remark for an operator to the report. A note that is already
// there is not added again. A step has at most 128 notes, including those of
// inner calls; if there are more, the last note is "and more". A note is cut
// at 1,000 bytes, between characters, and then ends with "…".
func (t *Tally) Note(note string) {
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "") + "…"
	}
	if t.noted[note] || len(t.report.Notes) > maxNotes {
		return
	}
	if len(t.report.Notes) == maxNotes {
		note = moreNote
	}
	if t.noted == nil {
		t.noted = make(map[string]bool, 1)
	}
	t.noted[note] = true
	t.report.Notes = append(t.report.Notes, note)
}

// Fail records an error of a function of the program that does not end the
// step. A step has at most 128 of them.
func (t *Tally) Fail(err error) {
	if len(t.report.Failures) < maxNotes {
		t.report.Failures = append(t.report.Failures, err)
	}
}

// Sink wraps sink for one more call that is not made through Call. From the
// second wrapped sink on, EventReset is sent before the first event if an
// earlier call has sent events. Sink returns nil for nil.
func (t *Tally) Sink(sink Sink) Sink {
	if sink == nil {
		return nil
	}
	t.calls++
	renewed := t.calls > 1
	return func(e Event) error {
		if renewed && t.shown {
			if err := sink(Event{Kind: EventReset, Step: e.Step}); err != nil {
				return err
			}
		}
		renewed = false
		t.shown, t.step = e.Kind != EventReset, e.Step
		return sink(e)
	}
}

// Finish returns resp or err with the recorded report. The response is a copy
// that keeps its status, which is Unchecked if it has calls that no middleware
// validated; its Usage is the sum over the attempts. The error
// wraps err and has the same text, and ReportOf finds the report in it.
func (t *Tally) Finish(resp *Response, err error) (*Response, error) {
	r := t.report
	r.Final = -1
	if err != nil {
		return nil, &stepError{err: err, report: r}
	}
	if resp == nil {
		return nil, &stepError{err: ErrNoResponse, report: r}
	}
	out := *resp
	if len(r.Attempts) == 0 {
		r.Attempts = []Attempt{attemptOf(resp)}
	}
	r.Final = t.added.at
	if resp != t.added.resp {
		for _, a := range t.earlier {
			if a.resp == resp {
				r.Final = a.at
			}
		}
		for i := range r.Attempts {
			if e, ok := errors.AsType[*ModelError](r.Attempts[i].Err); ok && e.Response == resp {
				r.Final = i
			}
		}
	}
	r.Status = resp.Report.Status
	out.Report, out.Usage = r, r.Usage()
	out.Report.Status = out.status()
	return &out, nil
}
