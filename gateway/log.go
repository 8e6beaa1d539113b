package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/transport"
)

// LogMessage is the message of the record that a Gateway logs for each model call.
const LogMessage = "model call"

// logger writes one record for each exchange, without content.
type logger struct{ to *slog.Logger }

func (l logger) observed(x *exchange) {
	level := slog.LevelInfo
	if x.status == "invalid" || x.err != nil {
		level = slog.LevelWarn
	}
	broken, panicked := errors.AsType[*transport.Panic](x.err)
	if panicked {
		level = slog.LevelError
	}
	if !l.to.Enabled(context.Background(), level) {
		return
	}
	usage, final := x.report.Usage(), x.final()
	attrs := append(make([]slog.Attr, 0, 20),
		slog.String("upstream", x.upstream), slog.String("mode", string(x.mode)), slog.String("format", x.dialect),
		slog.String("model", x.model()), slog.String("client", x.client), slog.Int("http_status", x.code),
		slog.String("status", x.status), slog.Int("attempts", len(x.report.Attempts)), slog.Int("calls", len(final.Message.ToolCalls)),
		slog.Float64("duration_ms", ms(x.duration)), slog.Float64("upstream_ms", ms(x.upstreamTime)), slog.Float64("overhead_ms", ms(x.overhead())),
		slog.Int64("input_tokens", usage.InputTokens), slog.Int64("output_tokens", usage.OutputTokens))
	if x.dialect == otherFormat {
		attrs = append(attrs, slog.String("path", text.Clip(x.path, 256)))
	}
	if x.key != "" {
		attrs = append(attrs, slog.String("client_key", x.key))
	}
	if n := x.repairs(); len(n) > 0 {
		attrs = append(attrs, slog.Any("repairs", n))
	}
	if n := x.report.Rescued(); n > 0 {
		attrs = append(attrs, slog.Int("rescued", n))
	}
	if rules := x.report.Healed(); len(rules) > 0 {
		attrs = append(attrs, slog.Any("healed", rules))
	}
	if n := x.issues(); len(n) > 0 {
		attrs = append(attrs, slog.Any("issues", n))
	}
	if x.err != nil {
		attrs = append(attrs, slog.String("error", x.errorWord()))
		if x.errorWord() == "redirect" {
			attrs = append(attrs, slog.String("advice", x.err.Error()))
		}
	}
	if x.enforced != "" {
		attrs = append(attrs, slog.String("would", string(x.enforced)))
	}
	if x.unread {
		attrs = append(attrs, slog.Bool("unread", true))
	}
	if x.dropped != "" {
		attrs = append(attrs, slog.String("not_validated", x.dropped))
	}
	if panicked {
		attrs = append(attrs, slog.Any("panic", broken.Value), slog.String("stack", string(broken.Stack)))
	}
	for _, note := range x.report.Notes {
		attrs = append(attrs, slog.String("note", note))
	}
	r := slog.NewRecord(time.Now(), level, LogMessage, 0) // no source: it is always this line, and finding it takes a walk of the stack
	r.AddAttrs(attrs...)
	_ = l.to.Handler().Handle(context.Background(), r)
}
