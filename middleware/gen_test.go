package middleware_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
)

// plainText is text that the program itself sets: UTF-8, with what
// encoding/json escapes.
func plainText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "<a>&b</a>", "\u2028\x00\ufffd", "😀"}))
}

// wildText is text from outside: any bytes at all.
func wildText() *rapid.Generator[string] {
	return rapid.OneOf(
		plainText(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 12), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{"\xff", "caf\xe9", "{\"a\":\"\xc3\"}", "{", `{"base64":"/w=="}`, `{"a": 1}`}),
	)
}

// rawJSON is schema or parameter text as encoding/json writes it.
func rawJSON() *rapid.Generator[json.RawMessage] {
	return rapid.SampledFrom([]json.RawMessage{
		nil, json.RawMessage(`{}`), json.RawMessage(`null`), json.RawMessage(`true`), json.RawMessage(`"a string"`),
		json.RawMessage(`{"a":1e400,"a":2}`), json.RawMessage(`{"a":"\u003c"}`), json.RawMessage(`{"base64":"/w=="}`),
	})
}

// list draws nil, an empty slice or a few elements.
func list[T any](t *rapid.T, label string, draw func(*rapid.T) T) []T {
	n := rapid.IntRange(-1, 3).Draw(t, label)
	if n < 0 {
		return nil
	}
	out := make([]T, 0, n)
	for range n {
		out = append(out, draw(t))
	}
	return out
}

func drawNative(t *rapid.T) *middleware.Native {
	if rapid.Bool().Draw(t, "no native") {
		return nil
	}
	return &middleware.Native{Dialect: plainText().Draw(t, "dialect"), Raw: wildText().Draw(t, "raw")}
}

func drawCall(t *rapid.T) middleware.ToolCall {
	return middleware.ToolCall{
		ID: wildText().Draw(t, "id"), Name: wildText().Draw(t, "name"), Arguments: wildText().Draw(t, "arguments"),
		Kind: middleware.Kind(rapid.SampledFrom([]string{"", "custom", "builtin"}).Draw(t, "kind")), Native: drawNative(t),
	}
}

func drawPart(t *rapid.T) middleware.Part {
	p := middleware.Part{
		Kind: middleware.PartKind(rapid.SampledFrom([]string{"", "reasoning", "media", "opaque"}).Draw(t, "part kind")),
		Text: plainText().Draw(t, "text"), MediaType: plainText().Draw(t, "media type"), URL: plainText().Draw(t, "url"), Native: drawNative(t),
	}
	p.Data = list(t, "data", func(t *rapid.T) byte { return rapid.Byte().Draw(t, "byte") })
	return p
}

func drawMessage(t *rapid.T) middleware.Message {
	return middleware.Message{
		Role:  middleware.Role(rapid.SampledFrom([]string{"", "system", "user", "assistant", "tool"}).Draw(t, "role")),
		Parts: list(t, "parts", drawPart), ToolCalls: list(t, "calls", drawCall), ToolCallID: wildText().Draw(t, "call id"),
		ToolName: wildText().Draw(t, "tool name"), IsError: rapid.Bool().Draw(t, "is error"), Native: drawNative(t),
	}
}

func drawTool(t *rapid.T) middleware.Tool {
	return middleware.Tool{
		Name: plainText().Draw(t, "tool"), Description: plainText().Draw(t, "description"), Parameters: rawJSON().Draw(t, "parameters"),
		Strict: rapid.Bool().Draw(t, "strict"), Kind: middleware.Kind(rapid.SampledFrom([]string{"", "hosted"}).Draw(t, "tool kind")),
		Native: drawNative(t),
	}
}

func drawRequest(t *rapid.T) middleware.Request {
	r := middleware.Request{
		Model: plainText().Draw(t, "model"), Messages: list(t, "messages", drawMessage), Tools: list(t, "tools", drawTool),
		ToolChoice: middleware.ToolChoice{
			Mode: middleware.ToolMode(rapid.SampledFrom([]string{"", "none", "required"}).Draw(t, "mode")), Name: plainText().Draw(t, "only tool"),
		},
		AllowedTools:    list(t, "allowed tools", func(t *rapid.T) string { return plainText().Draw(t, "allowed tool") }),
		NoParallelCalls: rapid.Bool().Draw(t, "no parallel calls"),
		MaxTokens:       rapid.Int().Draw(t, "max tokens"),
		Stop:            list(t, "stop", func(t *rapid.T) string { return plainText().Draw(t, "stop word") }),
		Params:          rawJSON().Draw(t, "params"), Native: drawNative(t),
	}
	if rapid.Bool().Draw(t, "temperature set") {
		f := rapid.Float64Range(-2, 2).Draw(t, "temperature")
		r.Temperature = &f
	}
	switch rapid.IntRange(0, 2).Draw(t, "header") {
	case 1:
		r.Header = http.Header{}
	case 2:
		r.Header = http.Header{"X-A": {plainText().Draw(t, "header value")}, "X-Nil": nil, "X-Empty": {}}
	}
	return r
}

func drawUsage(t *rapid.T) middleware.Usage {
	n := func(label string) int64 { return rapid.Int64().Draw(t, label) }
	return middleware.Usage{InputTokens: n("input"), Cached: n("cached"), CacheWrite: n("cache write"), OutputTokens: n("output"), Reasoning: n("reasoning")}
}

func drawIssue(t *rapid.T) middleware.Issue {
	return middleware.Issue{Code: plainText().Draw(t, "code"), Pointer: plainText().Draw(t, "pointer"), Message: plainText().Draw(t, "message")}
}

func drawChange(t *rapid.T) middleware.Change {
	return middleware.Change{
		By: plainText().Draw(t, "by"), Pointer: plainText().Draw(t, "pointer"),
		Before: plainText().Draw(t, "before"), After: plainText().Draw(t, "after"),
	}
}

func drawVerdict(t *rapid.T) middleware.Verdict {
	return middleware.Verdict{Call: drawCall(t), Issues: list(t, "issues", drawIssue), Changes: list(t, "changes", drawChange)}
}

func drawAttempt(t *rapid.T) middleware.Attempt {
	a := middleware.Attempt{
		Model: plainText().Draw(t, "model"), Message: drawMessage(t), FinishReason: middleware.FinishReason(plainText().Draw(t, "finish")),
		Verdicts: list(t, "verdicts", drawVerdict), Issues: list(t, "issues", drawIssue), Changes: list(t, "changes", drawChange), Replies: list(t, "replies", drawMessage), Usage: drawUsage(t),
		Healed:   list(t, "healed", func(t *rapid.T) string { return plainText().Draw(t, "rule") }),
		Rescued:  rapid.IntRange(0, 9).Draw(t, "rescued"),
		Duration: time.Duration(rapid.Int64().Draw(t, "duration")),
	}
	if rapid.Bool().Draw(t, "measured") {
		a.Start = time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
	}
	if rapid.Bool().Draw(t, "failed") {
		a.Err = errors.New(wildText().Draw(t, "error"))
	}
	return a
}

func drawReport(t *rapid.T) middleware.Report {
	return middleware.Report{
		Status:   middleware.Status(rapid.SampledFrom([]string{"", "valid", "invalid"}).Draw(t, "status")),
		Attempts: list(t, "attempts", drawAttempt), Final: rapid.IntRange(-1, 3).Draw(t, "final"),
		Notes: list(t, "notes", func(t *rapid.T) string { return plainText().Draw(t, "note") }),
	}
}

func drawResponse(t *rapid.T) middleware.Response {
	return middleware.Response{
		Message: drawMessage(t), Choices: list(t, "choices", drawMessage), FinishReason: middleware.FinishReason(plainText().Draw(t, "finish")),
		Model: plainText().Draw(t, "model"), Usage: drawUsage(t), Report: drawReport(t), Native: drawNative(t),
	}
}

func drawEvent(t *rapid.T) middleware.Event {
	e := middleware.Event{
		Kind: middleware.EventKind(rapid.SampledFrom([]string{"text", "reasoning", "reset", "tool_call"}).Draw(t, "event")),
		Step: rapid.Int().Draw(t, "step"), Text: plainText().Draw(t, "text"),
	}
	if rapid.Bool().Draw(t, "has call") {
		c := drawCall(t)
		e.Call = &c
	}
	return e
}
