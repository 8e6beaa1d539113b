package middleware

import (
	"context"
	"time"
)

// Tally keeps the ledger for a middleware that calls next more than once. The
// zero Tally is ready. It serves one step, on one goroutine at a time.
//
//	var tally middleware.Tally
//	for {
//		resp, err := tally.Call(ctx, next, req)
//		if good(resp, err) {
//			return tally.Finish(resp, err)
//		}
//	}
type Tally struct {
	report Report
	last   int               // index of the attempt behind the response added last
	latest int               // index of the attempt that Judge speaks of
	of     map[*Response]int // index of the attempt behind each response
	noted  map[string]bool   // what the report's notes are, as they were given
	calls  int
	shown  bool // something reached the sink
	step   int  // of the last event that did
}

// Call asks next once and records the outcome: it measures, voids what earlier
// calls showed to the request's sink, and holds next to its contract. The
// response is non-nil exactly when the error is nil; ErrNoResponse stands in
// for a next that returned neither. An error from the sink is returned as it
// is, without a call. Of a call that fails, the attempt's Message has what the
// sink had got of the answer by then, up to 1 MiB of it.
func (t *Tally) Call(ctx context.Context, next ModelCall, req *Request) (*Response, error) {
	var arrived partial
	if req.Sink != nil {
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
		if a := &t.report.Attempts[n]; a.Start.IsZero() {
			a.Start, a.Duration = start, took
		}
		if a := &t.report.Attempts[n]; err != nil && a.Message.Role == "" {
			a.Message = arrived.message()
		}
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// Add records the outcome of one call that was not made through Call. Where a
// response comes with an error, its usage counts and its message is kept.
func (t *Tally) Add(resp *Response, err error) {
	r := ReportOf(resp, err)
	if resp != nil && err != nil && len(r.Attempts) == 1 && r.Attempts[0].Message.Role == "" {
		r.Attempts = []Attempt{attemptOf(resp)}
		r.Attempts[0].Err = err
	}
	base := len(t.report.Attempts)
	t.report.Attempts = append(t.report.Attempts, r.Attempts...)
	for _, note := range r.Notes {
		t.Note(note)
	}
	for _, failure := range r.Failures {
		t.Fail(failure)
	}
	t.report.Status = r.Status
	t.latest = len(t.report.Attempts) - 1
	if resp != nil && err == nil {
		t.last = base + max(r.Final, 0)
		t.latest = t.last
		if t.of == nil {
			t.of = make(map[*Response]int, 1)
		}
		t.of[resp] = t.last
	}
}

// Judge records the verdicts on the outcome added last, and what the model is
// told next, nil if it is not asked again. It does not set the status of a
// response that Finish gets: that is the middleware's to say.
func (t *Tally) Judge(verdicts []Verdict, replies []Message) {
	if t.latest < 0 || t.latest >= len(t.report.Attempts) {
		return
	}
	a := &t.report.Attempts[t.latest]
	a.Verdicts, a.Replies = verdicts, replies
	if len(verdicts) > 0 {
		t.report.Status = StatusOf(verdicts)
	}
}

// JudgeText is Judge for the text of an answer without tool calls: it records
// what is wrong with it, what was repaired in it, and what the model is told
// next, nil if it is not asked again.
func (t *Tally) JudgeText(issues []Issue, changes []Change, replies []Message) {
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

// Bounds of the notes of one step.
const (
	maxNotes = 128
	maxNote  = 1000 // bytes
	moreNote = "and more"
)

// Note records what an operator should know. Saying the same again changes
// nothing. A step has at most 128 notes, those that calls came back with
// included; if there were others, "and more" follows as the last. A note of
// more than 1,000 bytes is cut there, between characters, and ends with "…".
func (t *Tally) Note(note string) {
	note = clip(note, maxNote)
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

// Fail records the error of a function of the program that does not end the
// step. A step has at most 128.
func (t *Tally) Fail(err error) {
	if len(t.report.Failures) < maxNotes {
		t.report.Failures = append(t.report.Failures, err)
	}
}

// Sink returns sink for one more call that is not made through Call: the
// second and later ones void what was shown before, ahead of their first
// event. Sink returns nil for nil.
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

// Finish puts all that was recorded on the outcome that the middleware
// returns. The response is a copy with the status that it came with, its Usage
// the sum over the attempts. The error wraps err: its text is the same, and ReportOf finds the ledger in it.
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
	if i, ok := t.of[resp]; ok {
		r.Final = i
	} else if len(r.Attempts) > 0 {
		r.Final = t.last
	}
	if len(r.Attempts) == 0 {
		r.Attempts, r.Final = []Attempt{attemptOf(resp)}, 0
	}
	r.Status = resp.Report.Status
	out.Report, out.Usage = r, r.Usage()
	return &out, nil
}
