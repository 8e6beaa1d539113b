package tracing

import (
	"log/slog"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// log writes the records of one step: its invalid calls and texts and its
// re-asks in order, then the step itself. Each is guarded alone, so that a handler that stumbles
// over one still gets the others.
func (c *stepCall) log(requested string, s *summary, took time.Duration) {
	if c.logger == nil {
		return
	}
	left := 0
	guard("slog", func() {
		if c.logger.Enabled(c.ctx, slog.LevelWarn) {
			left = maxEvents
		}
	})
	write := func(record func()) {
		if left > 0 {
			left--
			guard("slog", record)
		}
	}
	for i, a := range s.report.Attempts {
		for _, v := range a.Verdicts {
			if !v.OK() {
				write(func() { c.logInvalid(i+1, v) })
			}
		}
		if len(a.Issues) > 0 {
			write(func() { c.logInvalidText(i+1, a) })
		}
		if len(a.Replies) > 0 {
			write(func() { c.logReask(i+1, a.Replies) })
		}
	}
	guard("slog", func() { c.logStep(requested, s, took) })
}

// logInvalid writes an invalid call.
func (c *stepCall) logInvalid(attempt int, v middleware.Verdict) {
	attrs := c.issues([]slog.Attr{
		slog.Int("attempt", attempt),
		slog.String("tool", bounded(v.Call.Name, maxLabel)),
		slog.String("call_id", bounded(v.Call.ID, maxLabel))}, v.Issues)
	if c.content.on {
		attrs = append(attrs, slog.String("arguments", c.content.value(v.Call.Arguments)))
	}
	c.logger.LogAttrs(c.ctx, slog.LevelWarn, "invalid tool call", attrs...)
}

// logInvalidText writes an invalid text.
func (c *stepCall) logInvalidText(attempt int, a middleware.Attempt) {
	attrs := c.issues([]slog.Attr{slog.Int("attempt", attempt)}, a.Issues)
	if c.content.on {
		attrs = append(attrs, slog.String("text", c.content.value(a.Message.Text())))
	}
	c.logger.LogAttrs(c.ctx, slog.LevelWarn, "invalid answer", attrs...)
}

// issues appends codes and pointers in the order of the issues, so that they
// pair up.
func (c *stepCall) issues(attrs []slog.Attr, issues []middleware.Issue) []slog.Attr {
	var codes, pointers, messages []string
	for _, issue := range issues[:min(len(issues), maxList)] {
		codes = append(codes, bounded(issue.Code, maxLabel))
		pointers = append(pointers, bounded(issue.Pointer, maxLabel))
		if c.content.on {
			messages = append(messages, c.content.value(issue.Message))
		}
	}
	attrs = append(attrs, slog.Any("codes", codes), slog.Any("pointers", pointers))
	if c.content.on {
		attrs = append(attrs, slog.Any("messages", messages))
	}
	return attrs
}

// logReask writes that the model was told what was wrong, and asked again.
func (c *stepCall) logReask(attempt int, replies []middleware.Message) {
	attrs := append(make([]slog.Attr, 0, 4),
		slog.Int("attempt", attempt),
		slog.Int("replies", len(replies)))
	if c.content.on {
		attrs = append(attrs, slog.String("text", c.content.joined(replies)))
	}
	c.logger.LogAttrs(c.ctx, slog.LevelWarn, "model asked again", attrs...)
}

// logStep writes the one record that every step has. A step that came through
// after a single failed attempt is logged at Info, after more than one at Warn.
func (c *stepCall) logStep(requested string, s *summary, took time.Duration) {
	level, text := slog.LevelInfo, "model step"
	switch {
	case s.outcome.failed():
		level, text = slog.LevelError, "model step failed"
	case s.outcome.cancelled:
		text = "model step cancelled"
	case s.report.Status == middleware.Invalid || s.failing > 1:
		level = slog.LevelWarn
	}
	if !c.logger.Enabled(c.ctx, level) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 16),
		slog.String("model", bounded(requested, maxLabel)),
		slog.String("status", s.status),
		slog.Int("attempts", len(s.report.Attempts)),
		slog.Int("final_attempt", s.final()),
		slog.Int("invalid_calls", s.invalid),
		slog.String("finish_reason", bounded(string(s.finish), maxLabel)),
		slog.Int64("input_tokens", s.usage.InputTokens),
		slog.Int64("output_tokens", s.usage.OutputTokens),
		slog.Duration("duration", took),
		slog.Int("notes", len(s.report.Notes)))
	if n := len(s.report.Notes); n > 0 && c.content.on {
		notes := make([]string, 0, min(n, maxList))
		for _, note := range s.report.Notes[:cap(notes)] {
			notes = append(notes, c.content.value(note))
		}
		attrs = append(attrs, slog.Any("note_texts", notes))
	}
	c.logger.LogAttrs(c.ctx, level, text, c.appendError(attrs, s.outcome)...)
}

// appendError tells what went wrong, its text only with content.
func (r *recorder) appendError(attrs []slog.Attr, o outcome) []slog.Attr {
	if o.err == nil {
		return attrs
	}
	attrs = append(attrs, slog.String("error_type", o.kind))
	if o.code != "" {
		attrs = append(attrs, slog.String("error_code", o.code))
	}
	if r.content.on {
		attrs = append(attrs, slog.String("error", o.text(r.content)))
	}
	return attrs
}
