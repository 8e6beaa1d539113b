package hostile_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/test/hostile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/textcall"
	"github.com/toolmend/toolmend/transport"
)

// BenchmarkHostile prints the table of docs/measured/hostile-input.md, but for the lists
// of MCP servers.
func BenchmarkHostile(b *testing.B) {
	hostile.Table(b, os.Stdout, hostile.Attacks(hostile.Arguments, hostile.Schemas, hostile.Calls, hostile.ReAct, hostile.Answers, hostile.States), handle)
	hostile.GrowthTable(b, os.Stdout, growing)
}

// Every attack is handled without a panic, at a size at which that is quick.
func TestEveryAttackIsHandled(t *testing.T) {
	t.Parallel()
	for _, a := range hostile.Attacks() {
		t.Run(string(a.Group)+"/"+a.Name, func(t *testing.T) {
			t.Parallel()
			s := a.Make(5000)
			require.Less(t, s.Bytes(), 400_000)
			require.NotNil(t, handle(a.Group, s)(t.Context()))
		})
	}
}

// handle returns what a program does with a sample. Nothing is kept between two
// runs: each compiles its schemas anew.
func handle(g hostile.Group, s hostile.Sample) hostile.Run {
	switch g {
	case hostile.ReAct:
		return func(ctx context.Context) any { return react(ctx, s) }
	case hostile.Answers:
		return func(ctx context.Context) any { return proxied(ctx, s) }
	case hostile.States:
		return func(ctx context.Context) any { return resume(ctx, s) }
	}
	return func(ctx context.Context) any { return step(ctx, s.Tools, s.Calls) }
}

// step validates a message and asks again about it, once.
func step(ctx context.Context, tools []middleware.Tool, calls []middleware.ToolCall) any {
	resp, err := argsvalidate.New(argsvalidate.Options{MaxAttempts: 2})(says(middleware.Assistant("", calls...)))(ctx, question(tools))
	return outcome{resp, err}
}

// says answers with m, and then with a text.
func says(m middleware.Message) middleware.ModelCall {
	asked := 0
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		if asked++; asked == 1 {
			return &middleware.Response{Message: m}, nil
		}
		return &middleware.Response{Message: middleware.Assistant("done")}, nil
	}
}

func question(tools []middleware.Tool) *middleware.Request {
	return &middleware.Request{Messages: []middleware.Message{middleware.User("go")}, Tools: tools}
}

type outcome struct {
	value any
	err   error
}

// react reads a text in both of its forms.
func react(ctx context.Context, s hostile.Sample) any {
	var all []outcome
	for _, f := range []textcall.Format{textcall.ReAct, textcall.JSONAction} {
		resp, err := textcall.New(textcall.Options{Format: f, MaxAttempts: 2})(says(middleware.Assistant(s.Text)))(ctx, question(s.Tools))
		all = append(all, outcome{resp, err})
	}
	return all
}

// resume reads a state, runs it and writes it.
func resume(ctx context.Context, s hostile.Sample) any {
	var state agentloop.State
	err := json.Unmarshal([]byte(s.Text), &state)
	if err == nil {
		ok := func(context.Context, middleware.ToolCall) (agentloop.Result, error) { return agentloop.Text("ok"), nil }
		var a *agentloop.Agent
		if a, err = agentloop.New(says(middleware.Assistant("done")), agentloop.Options{Tools: []agentloop.Tool{agentloop.RawTool("t", "", s.Tools[0].Parameters, ok)}}); err == nil {
			err = a.Run(ctx, &state)
		}
	}
	b, _ := json.Marshal(&state)
	return []any{&state, b, err}
}

// proxied takes the answer through the transport, as a client does.
func proxied(ctx context.Context, s hostile.Sample) any {
	server := roundTrip(func(req *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, req.Body)
		h := http.Header{"Content-Type": {"application/json"}}
		if !strings.HasPrefix(s.Text, "{") && !s.Gzip {
			h.Set("Content-Type", "text/event-stream")
		}
		if s.Gzip {
			h.Set("Content-Encoding", "gzip")
		}
		return &http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(strings.NewReader(s.Text)), ContentLength: -1, Request: req}, nil
	})
	rt := transport.RoundTripper(server, argsvalidate.New(argsvalidate.Options{MaxAttempts: 2}))
	body := `{"model":"m","stream":` + map[bool]string{true: "false", false: "true"}[strings.HasPrefix(s.Text, "{") || s.Gzip] +
		`,"messages":[{"role":"user","content":"go"}],"tools":[{"type":"function","function":{"name":"t","parameters":` + string(s.Tools[0].Parameters) + `}}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	n, err := io.Copy(io.Discard, resp.Body)
	return outcome{n, err}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
