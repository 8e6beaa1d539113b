package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolmend/toolmend/middleware"
)

// eventWriter puts events on a span, up to its bound.
type eventWriter struct {
	content
	span    trace.Span
	left    int
	dropped int64
	attempt int       // from 1
	when    time.Time // zero: now
}

// addEvents tells the step's story: attempt by attempt what was wrong, what
// was changed and what the model was told; the notes last, with content only.
func addEvents(span trace.Span, c content, s *summary) {
	w := eventWriter{content: c, span: span, left: maxEvents}
	for i, a := range s.report.Attempts {
		w.attempt, w.when = i+1, time.Time{}
		if !a.Start.IsZero() {
			w.when = a.Start.Add(a.Duration)
		}
		if a.Err != nil && w.take() {
			w.add(eventAttemptFail, attribute.String(errorTypeKey, outcomeOf(context.Background(), nil, a.Err, true).kind))
		}
		for _, v := range a.Verdicts {
			w.verdict(v)
		}
		w.verdict(middleware.Verdict{Issues: a.Issues, Changes: a.Changes}) // of the text: without a tool
		if len(a.Replies) > 0 && w.take() {
			kvs := []attribute.KeyValue{attribute.Int(repliesKey, len(a.Replies))}
			if w.on {
				kvs = append(kvs, attribute.String(feedbackKey, w.joined(a.Replies)))
			}
			w.add(eventFeedback, kvs...)
		}
	}
	w.attempt, w.when = 0, s.end
	if w.on { // a note without its text says nothing that the count does not
		for _, note := range s.report.Notes {
			if w.take() {
				w.add(eventNote, attribute.String(noteKey, w.value(note)))
			}
		}
	}
	if w.dropped > 0 {
		span.SetAttributes(attribute.Int64(droppedKey, w.dropped))
	}
}

// verdict tells what is wrong with one call, or with the text of an answer, and
// what was changed in it, the values only with content.
func (w *eventWriter) verdict(v middleware.Verdict) {
	for _, issue := range v.Issues {
		if w.take() {
			w.about(v.Call, eventIssue, issueCodeKey, issue.Code, issue.Pointer, issueMessageKey, issue.Message)
		}
	}
	for _, change := range v.Changes {
		if w.take() {
			w.about(v.Call, eventChange, changeByKey, change.By, change.Pointer, changeBeforeKey, change.Before, changeAfterKey, change.After)
		}
	}
}

// about writes an event about a call, if c is one, and a place in its arguments. An
// empty pointer is recorded: it is the whole. contents are names and values.
func (w *eventWriter) about(c middleware.ToolCall, name, key, label, pointer string, contents ...string) {
	kvs := make([]attribute.KeyValue, 0, 8)
	if c != (middleware.ToolCall{}) {
		kvs = append(kvs, attribute.String(toolName, bounded(c.Name, maxLabel)))
	}
	kvs = append(appendSet(kvs, toolCallID, c.ID), attribute.String(key, bounded(label, maxLabel)), attribute.String(pointerKey, bounded(pointer, maxLabel)))
	for i := 0; w.on && i < len(contents); i += 2 {
		kvs = append(kvs, attribute.String(contents[i], w.value(contents[i+1])))
	}
	w.add(name, kvs...)
}

// take asks for room for one event, before its values are redacted.
func (w *eventWriter) take() bool {
	if w.left == 0 {
		w.dropped++
		return false
	}
	w.left--
	return true
}

// add writes an event for which take said yes.
func (w *eventWriter) add(name string, kvs ...attribute.KeyValue) {
	if w.attempt > 0 {
		kvs = append(kvs, attribute.Int(attemptKey, w.attempt))
	}
	opts := []trace.EventOption{trace.WithAttributes(kvs...)}
	if !w.when.IsZero() {
		opts = append(opts, trace.WithTimestamp(w.when))
	}
	w.span.AddEvent(name, opts...)
}
