package lib

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// job is a request of the host that may ask it questions: step or validate.
type job struct {
	session *Session
	sent    hostFrame
	request middleware.Request // of the step, with its messages and tools
	stack   *openStack
	ctx     context.Context
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	some    sync.Cond // a frame has come, or a context has ended
	asked   int       // questions so far
	frames  map[int][]hostFrame
	answers map[int]middleware.Message // of the model, as the host sent them, by their questions
}

type jobKey struct{}

// jobOf returns the job of a context of run.
func jobOf(ctx context.Context) *job { return ctx.Value(jobKey{}).(*job) }

// run carries out the job and sends its end. A panic ends this job only.
func (j *job) run() {
	var end sessionFrame
	defer func() {
		if p := recover(); p != nil {
			e := middleware.NewPanicError(p)
			end = sessionFrame{Type: "error", Code: "panic", Message: e.Error(), Trace: string(e.Stack)}
		}
		j.session.mu.Lock()
		delete(j.session.running, j.sent.ID)
		j.session.mu.Unlock()
		end.ID = j.sent.ID
		j.session.send(end)
		j.cancel(nil)
	}()
	if j.sent.Type == "validate" {
		end = j.validate()
	} else {
		end = j.step()
	}
}

func (j *job) validate() sessionFrame {
	verdicts, err := j.stack.validator.ValidateTurn(j.ctx, argsvalidate.Turn{Request: &j.request, Calls: j.sent.Calls})
	if err != nil && (!errors.Is(err, argsvalidate.ErrInvalid) || j.ctx.Err() != nil) {
		return j.failed(err)
	}
	end := sessionFrame{Type: "result", Status: middleware.StatusOf(verdicts), Verdicts: verdicts}
	if invalid, ok := errors.AsType[*argsvalidate.Error](err); ok {
		end.Replies = invalid.Replies
	}
	return end
}

func (j *job) step() sessionFrame {
	if j.sent.Stream {
		j.request.Sink = func(e middleware.Event) error {
			j.session.send(sessionFrame{Type: "event", ID: j.sent.ID, Event: &e})
			return nil
		}
	}
	resp, err := j.stack.call(j.ctx, &j.request)
	if err != nil {
		return j.failed(err)
	}
	end := sessionFrame{Type: "result", Status: middleware.ReportOf(resp, nil).Status}
	end.report(resp.Report)
	j.mu.Lock()
	defer j.mu.Unlock()
	for n, m := range j.answers {
		if reflect.DeepEqual(m, resp.Message) {
			end.N = n
		}
	}
	if end.N == 0 || len(resp.Report.Attempts) > 1 { // the usage is the sum
		end.Response = withoutReport(resp)
	}
	return end
}

// failed returns the end of a job with an error. Its code is the word of the error's ErrorType.
func (j *job) failed(err error) sessionFrame {
	end := sessionFrame{Type: "error", Code: "failed", Message: err.Error()}
	end.report(middleware.ReportOf(nil, err))
	if typed := (interface{ ErrorType() string })(nil); j.ctx.Err() != nil {
		end.Code = "cancelled"
		if cause := context.Cause(j.ctx); cause != context.Canceled {
			end.Code, end.Message = "frame", cause.Error()
		}
	} else if errors.As(err, &typed) {
		end.Code = typed.ErrorType()
	}
	if own, ok := errors.AsType[*hostError](err); ok {
		end.N = own.n // the host raises its own error
	}
	if invalid, ok := errors.AsType[*argsvalidate.Error](err); ok {
		end.Verdicts, end.Replies = invalid.Verdicts, invalid.Replies
		if invalid.Response != nil {
			end.Response = withoutReport(invalid.Response)
		}
	}
	return end
}

func withoutReport(r *middleware.Response) *middleware.Response {
	own := *r
	own.Report, own.Native = middleware.Report{}, nil
	return &own
}

// report sets the report and its sentences, which have names of tools and properties and no values,
// if more happened than one valid answer that needed no repair.
func (f *sessionFrame) report(r middleware.Report) {
	eventful := len(r.Attempts) > 1
	for i := range r.Attempts {
		a := &r.Attempts[i]
		say := func(format string, args ...any) {
			f.Log = append(f.Log, fmt.Sprintf("attempt %d: ", i+1)+fmt.Sprintf(format, args...))
		}
		eventful = eventful || a.Rescued > 0
		for _, v := range a.Verdicts {
			eventful = eventful || v.Unchecked || len(v.Notes) > 0
			for _, c := range v.Changes {
				say("%s was repaired: %s: %s", v.Call.Name, middleware.Issue{Pointer: c.Pointer}.Path(), c.By)
			}
			for _, issue := range v.Issues {
				say("%s is invalid: %s: %s", v.Call.Name, issue.Path(), issue.Code)
			}
		}
		for _, issue := range a.Issues {
			say("the message is invalid: %s", issue.Code)
		}
		if a.Err != nil {
			say("the model call failed")
		}
	}
	f.Log = append(f.Log, r.Notes...)
	if eventful || len(f.Log) > 0 {
		f.Report = &r
	}
}

// origin returns the mark of a message of the host: m2 is the third message of the step, a1 the
// answer to question 1.
func origin(from string, i int) *middleware.Native {
	return &middleware.Native{Dialect: "host", Raw: from + strconv.Itoa(i)}
}

// askHost is the model of each stack: it asks the host of the step in ctx.
func askHost(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	j := jobOf(ctx)
	n := j.ask(j.question(req))
	for {
		f, err := j.take(ctx, n)
		switch e := f.Failure; {
		case e != nil && (e.Status != 0 || e.InvalidToolCall):
			return nil, &middleware.ModelError{StatusCode: e.Status, Code: e.Code, Output: e.Output, Message: e.Text, Err: e,
				RetryAfter: time.Duration(e.RetryAfter * float64(time.Second))}
		case err != nil:
			return nil, err
		case f.Type == "chunk":
			for _, e := range f.Events {
				if req.Sink == nil {
					break
				}
				if err := req.Sink(e); err != nil {
					return nil, err
				}
			}
		case f.Response == nil:
			return nil, middleware.ErrNoResponse
		default:
			resp, word := f.Response, string(f.Response.FinishReason)
			resp.Message.Native = origin("a", n)
			j.mu.Lock()
			defer j.mu.Unlock()
			j.answers[n] = resp.Message.Clone()
			if resp.FinishReason, err = wire.FinishReason(word, len(resp.Message.ToolCalls) > 0); err != nil {
				resp.Report.Status = middleware.Invalid
				return nil, &middleware.ModelError{Code: word, Err: err, Output: resp.Message.Text(), Response: resp}
			}
			return resp, j.record(req, resp)
		}
	}
}

// record writes an answer with calls to the file of the stack, as toolmend check reads it.
func (j *job) record(req *middleware.Request, resp *middleware.Response) error {
	if j.stack.record == "" || len(resp.Message.ToolCalls) == 0 {
		return nil
	}
	f, err := openRecord(j.stack.record)
	if err != nil {
		return err
	}
	defer f.Close()
	return json.NewEncoder(f).Encode(map[string]any{
		"source": "lib", "id": fmt.Sprint(j.sent.Stack, "-", j.sent.ID), "time": time.Now().UTC(), "model": cmp.Or(resp.Model, req.Model),
		"finish_reason": resp.FinishReason, "tools": append([]middleware.Tool{}, j.request.Tools...), "tool_calls": resp.Message.ToolCalls,
	})
}

// question returns the ask for a model call: what differs from the request of the step.
func (j *job) question(req *middleware.Request) sessionFrame {
	was := &j.request
	q := sessionFrame{Type: "ask", Keep: j.sent.Length}
	if !req.SameDeferred(was) {
		own, all := was.Loaded().Messages, req.Loaded().Messages
		for q.Keep = 0; q.Keep < min(len(own), len(all)) && reflect.DeepEqual(own[q.Keep], all[q.Keep]); {
			q.Keep++
		}
		q.Messages = all[q.Keep:]
	}
	if len(was.Tools) != len(req.Tools) || !reflect.DeepEqual(was.Tools, req.Tools) {
		tools := append([]middleware.Tool{}, req.Tools...) // none is [], not null
		q.Tools = &tools
	}
	settings := func(r middleware.Request) []byte {
		r.Messages, r.Tools, r.Native = nil, nil, nil
		text, _ := json.Marshal(r) // a request of the host came as JSON
		return text
	}
	if rest := settings(*req); !bytes.Equal(rest, settings(*was)) {
		q.Request = rest
	}
	return q
}

// load asks the host for the messages of the step.
func (j *job) load() []middleware.Message {
	if j.sent.Length == 0 {
		return nil
	}
	f, _ := j.take(j.ctx, j.ask(sessionFrame{Type: "load"}))
	if len(f.Messages) != j.sent.Length { // or the job has ended already
		j.cancel(fmt.Errorf("toolmend: the step has %d messages, got %d", j.sent.Length, len(f.Messages)))
	}
	for i := range f.Messages {
		f.Messages[i].Native = origin("m", i)
	}
	return f.Messages
}

// hostError is an error of a function of the host. The end of the step has the number of its
// question, so that the host can raise its own error.
type hostError struct {
	Text            string  `json:"message"`
	Status          int     `json:"status"`
	Code            string  `json:"code"`
	RetryAfter      float64 `json:"retry_after"`       // seconds
	Output          string  `json:"output"`            // of the model, if the provider refused it
	InvalidToolCall bool    `json:"invalid_tool_call"` // the provider refused the model's tool call: the model is re-asked

	n int
}

func (e *hostError) Error() string { return e.Text }

func (e *hostError) Unwrap() error {
	if e.InvalidToolCall {
		return middleware.ErrInvalidToolCall
	}
	return nil
}

// ask sends the next question and returns its number.
func (j *job) ask(question sessionFrame) int {
	j.mu.Lock()
	j.asked++
	question.ID, question.N = j.sent.ID, j.asked
	j.mu.Unlock()
	j.session.send(question)
	return question.N
}

// reply delivers a frame of the host to a question. It never waits.
func (j *job) reply(f hostFrame) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if 0 < f.N && f.N <= j.asked {
		j.frames[f.N] = append(j.frames[f.N], f)
		j.some.Broadcast()
	}
}

// take returns the next frame for question n, and its failure as the error. If ctx ends first, the
// host learns that its answer is not needed.
func (j *job) take(ctx context.Context, n int) (f hostFrame, err error) {
	defer context.AfterFunc(ctx, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.some.Broadcast()
	})()
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.frames[n]) == 0 {
		if ctx.Err() != nil {
			j.session.send(sessionFrame{Type: "stop", ID: j.sent.ID, N: n})
			return f, fmt.Errorf("toolmend: %w", context.Cause(ctx))
		}
		j.some.Wait()
	}
	f, j.frames[n] = j.frames[n][0], j.frames[n][1:]
	if f.Failure != nil {
		f.Failure.n = n
		return f, f.Failure
	}
	return f, nil
}
