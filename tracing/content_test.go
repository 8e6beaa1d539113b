package tracing_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

// everything returns all that was recorded, as one text.
func everything(l *listener, log *bytes.Buffer) string {
	var b strings.Builder
	for _, s := range l.spans.GetSpans() {
		fmt.Fprintln(&b, s.Name, s.Status.Description, attrs(s.Attributes))
		for _, e := range s.Events {
			fmt.Fprintln(&b, e.Name, attrs(e.Attributes))
		}
	}
	for _, name := range []string{"gen_ai.client.inference.duration", "toolmend.steps", "toolmend.invalid_calls"} {
		fmt.Fprintln(&b, l.points(name))
	}
	return b.String() + log.String()
}

// secrets is a step in which every value holds the word.
func secrets(t *testing.T, o tracing.Options) {
	t.Helper()
	fault := fmt.Errorf("secret-fault: %w", &middleware.ModelError{Code: "secret is not a code", Output: "secret"})
	for _, model := range []middleware.ModelCall{
		script(answer(bad), answer(good)), script(answer(bad)), script(answer(bad), turn{err: fault}),
	} {
		_, _ = stack(o, model)(t.Context(), request())
	}
}

func TestNoContentByDefault(t *testing.T) {
	t.Parallel()
	l, log := listen(t), new(bytes.Buffer)
	o := l.options()
	o.Logger = logger(log, slog.LevelDebug)
	secrets(t, o)
	require.NotContains(t, everything(l, log), "secret")
}

func TestRedactSeesAllContent(t *testing.T) {
	t.Parallel()
	l, log := listen(t), new(bytes.Buffer)
	o := l.options()
	o.Logger, o.Content = logger(log, slog.LevelDebug), true
	o.Redact = func(s string) string { return strings.ReplaceAll(s, "secret", "[hidden]") }
	secrets(t, o)
	all := everything(l, log)
	require.NotContains(t, all, "secret")
	for _, want := range []string{"[hidden]-bad", "[hidden]-empty", "[hidden]-brief", "[hidden]-iban", "[hidden]-fault"} {
		require.Contains(t, all, want)
	}
}

func TestMessagesInTheFormOfTheConventions(t *testing.T) {
	t.Parallel()
	l := listen(t)
	o := l.options()
	o.Content = true
	req := &middleware.Request{Messages: []middleware.Message{
		middleware.System("be brief"),
		{Role: middleware.RoleUser, Parts: []middleware.Part{
			{Text: "what is <this>?"},
			{Kind: middleware.PartMedia, MediaType: "image/png", URL: "https://example.com/a.png"},
			{Kind: middleware.PartMedia, MediaType: "image/png", Data: []byte("secret")},
			{Kind: middleware.PartOpaque, Native: &middleware.Native{Raw: "secret"}},
		}},
		middleware.Assistant("", toolCall("look", `{"n":1}`), toolCall("look", `{"n":`)),
		middleware.ToolReply(toolCall("look", ""), "a cat"),
	}}
	resp := answer(toolCall("look", "")).resp
	resp.Message.Parts = []middleware.Part{{Kind: middleware.PartReasoning, Text: "hm"}}
	_, err := tracing.NewAttempt(o)(script(turn{resp: resp}))(t.Context(), req)
	require.NoError(t, err)
	a := attrs(l.one("chat").Attributes)
	require.JSONEq(t, `[
		{"role":"system","parts":[{"type":"text","content":"be brief"}]},
		{"role":"user","parts":[
			{"type":"text","content":"what is <this>?"},
			{"type":"uri","modality":"image","mime_type":"image/png","uri":"https://example.com/a.png"},
			{"type":"blob","modality":"image","mime_type":"image/png"},
			{"type":"opaque"}]},
		{"role":"assistant","parts":[
			{"type":"tool_call","id":"call_look","name":"look","arguments":{"n":1}},
			{"type":"tool_call","id":"call_look","name":"look","arguments":"{\"n\":"}]},
		{"role":"tool","parts":[{"type":"tool_call_response","id":"call_look","response":"a cat"}]}
	]`, a["gen_ai.input.messages"].(string))
	require.Contains(t, a["gen_ai.input.messages"], "<this>")
	require.JSONEq(t, `[{"role":"assistant","finish_reason":"tool_call","parts":[
		{"type":"reasoning","content":"hm"},
		{"type":"tool_call","id":"call_look","name":"look","arguments":""}]}]`, a["gen_ai.output.messages"].(string))
}

func TestContentIsBounded(t *testing.T) {
	t.Parallel()
	l := listen(t)
	o := l.options()
	o.Content = true
	long := strings.Repeat("é", 1<<20) + "end"
	req := &middleware.Request{}
	for range 100 {
		req.Messages = append(req.Messages, middleware.User(long))
	}
	req.Messages = append(req.Messages, middleware.User("newest"))
	_, err := tracing.NewAttempt(o)(script(answer()))(t.Context(), req)
	require.NoError(t, err)
	a := attrs(l.one("chat").Attributes)
	text := a["gen_ai.input.messages"].(string)
	require.Less(t, len(text), 300<<10)
	var messages []struct{ Parts []struct{ Content string } }
	require.NoError(t, json.Unmarshal([]byte(text), &messages))
	require.Equal(t, "newest", messages[len(messages)-1].Parts[0].Content)
	require.Equal(t, strings.Repeat("é", 4<<10)+"…", messages[0].Parts[0].Content)
	require.Equal(t, int64(101-len(messages)), a["toolmend.input.dropped"])
}

func TestOneMessageOfManyPartsIsBounded(t *testing.T) {
	t.Parallel()
	l := listen(t)
	o := l.options()
	o.Content = true
	resp := answer().resp
	resp.Message.Parts = make([]middleware.Part, 100_000)
	resp.Message.ToolCalls = make([]middleware.ToolCall, 10)
	_, err := tracing.NewAttempt(o)(script(turn{resp: resp}))(t.Context(), request())
	require.NoError(t, err)
	a := attrs(l.one("chat").Attributes)
	require.Less(t, len(a["gen_ai.output.messages"].(string)), 300<<10)
	require.Equal(t, int64(100_010-4095), a["toolmend.output.dropped"])
}

func TestManyEmptyMessagesAreBounded(t *testing.T) {
	t.Parallel()
	l := listen(t)
	o := l.options()
	o.Content = true
	resp := answer().resp
	resp.Choices = make([]middleware.Message, 100_000)
	_, err := tracing.NewAttempt(o)(script(turn{resp: resp}))(t.Context(),
		&middleware.Request{Messages: make([]middleware.Message, 100_000)})
	require.NoError(t, err)
	a := attrs(l.one("chat").Attributes)
	require.Less(t, len(a["gen_ai.input.messages"].(string)), 300<<10)
	require.Less(t, len(a["gen_ai.output.messages"].(string)), 300<<10)
}

func TestRedactSeesTheWholeValue(t *testing.T) {
	t.Parallel()
	l := listen(t)
	o := l.options()
	o.Content = true
	o.Redact = func(s string) string { return fmt.Sprint(len(s)) }
	_, err := tracing.NewAttempt(o)(script(answer()))(t.Context(),
		&middleware.Request{Messages: []middleware.Message{middleware.User(strings.Repeat("x", 1<<20))}})
	require.NoError(t, err)
	require.Contains(t, attrs(l.one("chat").Attributes)["gen_ai.input.messages"], "1048576")
}
