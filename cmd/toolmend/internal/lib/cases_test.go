package lib_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/strip"
	"github.com/toolmend/toolmend/textcall"
)

// stepCase is a step of testdata/cases.json: a request, the answers of a scripted model, and what
// the library makes of them. The tests of the packages for Python and npm read the same file.
type stepCase struct {
	Name       string                 `json:"name"`
	Tools      []middleware.Tool      `json:"tools"`
	User       string                 `json:"user"`
	ToolChoice *middleware.ToolChoice `json:"tool_choice,omitempty"`
	MaxTokens  int                    `json:"max_tokens,omitempty"`
	Options    json.RawMessage        `json:"options,omitempty"`
	Rule       *caseRule              `json:"rule,omitempty"`
	Answers    []caseAnswer           `json:"answers"`
	Want       caseWant               `json:"want"`
}

// caseRule rejects a call, or the value at Path, whose text begins with Prefix.
type caseRule struct {
	Tool    string `json:"tool"`
	Path    string `json:"path,omitempty"`
	Prefix  string `json:"prefix"`
	Message string `json:"message"`
}

type caseAnswer struct {
	Calls  [][2]string             `json:"calls"` // names and arguments
	Text   string                  `json:"text,omitempty"`
	Finish middleware.FinishReason `json:"finish,omitempty"`
}

type caseWant struct {
	Code    string            `json:"code,omitempty"` // of the error
	Status  middleware.Status `json:"status,omitempty"`
	Calls   [][2]string       `json:"calls,omitempty"`
	Text    string            `json:"text,omitempty"`
	Replies [][]string        `json:"replies,omitempty"` // the texts behind the failed turn, of each re-ask
}

// response returns the n-th answer, from 1.
func (a caseAnswer) response(n int) *middleware.Response {
	m := middleware.Assistant(a.Text)
	for i, c := range a.Calls {
		m.ToolCalls = append(m.ToolCalls, middleware.ToolCall{ID: fmt.Sprintf("call_%d_%d", n, i), Name: c[0], Arguments: c[1]})
	}
	return &middleware.Response{Message: m, FinishReason: a.Finish}
}

func (c *stepCase) request() *middleware.Request {
	req := &middleware.Request{Messages: []middleware.Message{middleware.User(c.User)}, Tools: c.Tools, MaxTokens: c.MaxTokens}
	if c.ToolChoice != nil {
		req.ToolChoice = *c.ToolChoice
	}
	return req
}

// model returns the scripted model, and what it was asked.
func (c *stepCase) model(replies *[][]string) middleware.ModelCall {
	asked := 0
	return func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		if asked++; asked > len(c.Answers) {
			return nil, errors.New("the script is over")
		}
		if asked > 1 {
			*replies = append(*replies, repliesOf(req.Messages))
		}
		return c.Answers[asked-1].response(asked), nil
	}
}

// repliesOf returns the texts behind the last assistant message.
func repliesOf(messages []middleware.Message) []string {
	texts := []string{}
	for _, m := range messages {
		if texts = append(texts, m.Text()); m.Role == middleware.RoleAssistant {
			texts = []string{}
		}
	}
	return texts
}

func wantOf(resp *middleware.Response, err error, replies [][]string) caseWant {
	want := caseWant{Replies: replies}
	if typed := (interface{ ErrorType() string })(nil); errors.As(err, &typed) {
		want.Code = typed.ErrorType()
	} else if err != nil {
		want.Code = err.Error()
	}
	if invalid, ok := errors.AsType[*argsvalidate.Error](err); ok {
		resp = invalid.Response
	} else if err == nil {
		want.Status = middleware.ReportOf(resp, nil).Status
	}
	if resp != nil {
		want.Text = resp.Message.Text()
		for _, c := range resp.Message.ToolCalls {
			want.Calls = append(want.Calls, [2]string{c.Name, c.Arguments})
		}
	}
	return want
}

// libraryStack returns toolmend.Stack with the options of the case, written as a Go program writes them.
func (c *stepCase) libraryStack(t *testing.T) middleware.Middleware {
	var o argsvalidate.Options
	all := toolmend.Options{}
	switch string(compact(t, c.Options)) {
	case "":
	case `{"attempts":2,"on_exhausted":"pass"}`:
		o.MaxAttempts, o.OnExhausted = 2, middleware.Pass
	case `{"attempts":2,"on_exhausted":"drop"}`:
		o.MaxAttempts, o.OnExhausted = 2, middleware.DropInvalid
	case `{"batch":"keep-valid"}`:
		o.Batch = batch.KeepValid
	case `{"mode":"repair"}`:
		o.MaxAttempts = 1
	case `{"unknown_tools":"pass"}`:
		o.UnknownTools = argsvalidate.PassUnknown
	case `{"tool":[{"name":"book_flight","strip":"off","repairs":["none"]}]}`:
		o.PerTool = map[string]argsvalidate.ToolOptions{"book_flight": {Strip: strip.Off, Mend: mend.Off()}}
	case `{"text_call":true}`:
		all.TextCall = &textcall.Options{}
	case `{"rescue":["auto"]}`:
		all.Rescue = &rescue.Options{ReaskUnread: true}
	default:
		t.Fatalf("the options %s have no form in Go here", c.Options)
	}
	if r := c.Rule; r != nil {
		o.Rules = append(o.Rules, argsvalidate.RuleFunc(func(_ context.Context, call *argsvalidate.Call) ([]middleware.Issue, error) {
			value, pointer := call.Arguments, ""
			if r.Path != "" {
				var args map[string]string
				_ = json.Unmarshal([]byte(call.Arguments), &args)
				value, pointer = args[r.Path], "/"+r.Path
			}
			if strings.HasPrefix(value, r.Prefix) {
				return []middleware.Issue{{Pointer: pointer, Message: r.Message}}, nil
			}
			return nil, nil
		}))
	}
	all.Validator = argsvalidate.NewValidator(o)
	return toolmend.Stack(all)
}

func compact(t *testing.T, text json.RawMessage) []byte {
	var b bytes.Buffer
	if len(text) > 0 {
		require.NoError(t, json.Compact(&b, text))
	}
	return b.Bytes()
}

// TestCases holds that a session does what the library does in Go, which is what the file has.
func TestCases(t *testing.T) {
	t.Parallel()
	const file = "testdata/cases.json"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var cases []stepCase
	require.NoError(t, json.Unmarshal(text, &cases))
	for i := range cases {
		c := &cases[i]
		var replies [][]string
		resp, err := c.libraryStack(t)(c.model(&replies))(t.Context(), c.request())
		want := wantOf(resp, err, replies)
		if *clitest.Update {
			c.Want = want
		}
		require.Equal(t, want, c.Want, c.Name)
		require.Equal(t, want, c.session(t), c.Name)
	}
	if *clitest.Update {
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		require.NoError(t, e.Encode(cases))
		require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
	}
}

// session runs the case in a session.
func (c *stepCase) session(t *testing.T) caseWant {
	options := map[string]any{}
	if len(c.Options) > 0 {
		require.NoError(t, json.Unmarshal(c.Options, &options))
	}
	if c.Rule != nil {
		options["rules"] = []any{map[string]string{"tool": c.Rule.Tool, "path": c.Rule.Path}}
	}
	h := newHost(t)
	h.frame(map[string]any{"type": "hello", "versions": []int{1}})
	h.frame(map[string]any{"type": "open", "id": 1, "stack": "a", "options": options})
	h.frame(map[string]any{"type": "tools", "id": 2, "stack": "a", "set": "k", "tools": c.Tools})
	for range 3 {
		require.NotEqual(t, "error", h.next(t).Type)
	}
	h.frame(map[string]any{"type": "step", "id": 3, "stack": "a", "set": "k", "length": 1, "request": map[string]any{"tool_choice": c.request().ToolChoice, "max_tokens": c.MaxTokens}})
	var replies [][]string
	var answers []*middleware.Response
	byNumber := map[int]*middleware.Response{}
	for {
		f := h.next(t)
		switch f.Type {
		case "ask":
			if len(answers) > 0 {
				replies = append(replies, repliesOf(append(c.request().Messages[:f.Keep:f.Keep], f.Messages...)))
			}
			if len(answers) == len(c.Answers) {
				h.frame(map[string]any{"type": "answer", "id": 3, "n": f.N, "error": map[string]string{"message": "the script is over"}})
				continue
			}
			answers = append(answers, c.Answers[len(answers)].response(len(answers)+1))
			byNumber[f.N] = answers[len(answers)-1]
			h.frame(map[string]any{"type": "answer", "id": 3, "n": f.N, "response": answers[len(answers)-1]})
		case "load":
			h.frame(map[string]any{"type": "messages", "id": 3, "n": f.N, "messages": c.request().Messages})
		case "rule":
			value := f.Call.Arguments
			if c.Rule.Path != "" {
				require.NoError(t, json.Unmarshal(f.Value, &value))
			}
			issues := []middleware.Issue{}
			if strings.HasPrefix(value, c.Rule.Prefix) {
				issues = append(issues, middleware.Issue{Message: c.Rule.Message})
			}
			h.frame(map[string]any{"type": "findings", "id": 3, "n": f.N, "issues": issues})
		default:
			want := caseWant{Code: f.Code, Status: f.Status, Replies: replies}
			if f.Response == nil {
				f.Response = byNumber[f.N]
			}
			if f.Response != nil {
				want.Text = f.Response.Message.Text()
				for _, call := range f.Response.Message.ToolCalls {
					want.Calls = append(want.Calls, [2]string{call.Name, call.Arguments})
				}
			}
			return want
		}
	}
}
