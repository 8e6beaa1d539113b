package lib_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
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
	"github.com/toolmend/toolmend/wire"
)

// stepCase is a step of testdata/cases.json: a request, the answers of a scripted model, and what
// the library makes of them. The tests of the packages for Python and npm read the same file.
type stepCase struct {
	Name       string                 `json:"name"`
	Tools      []middleware.Tool      `json:"tools"`
	User       string                 `json:"user"`
	ToolChoice *middleware.ToolChoice `json:"tool_choice,omitempty"`
	Allowed    []string               `json:"allowed_tools,omitempty"`
	One        bool                   `json:"no_parallel_calls,omitempty"`
	MaxTokens  int                    `json:"max_tokens,omitempty"`
	Results    bool                   `json:"behind_results,omitempty"` // the conversation ends with the result of a call
	Options    json.RawMessage        `json:"options,omitempty"`
	Rule       *caseRule              `json:"rule,omitempty"`
	Answers    []caseAnswer           `json:"answers,omitempty"`
	Want       caseWant               `json:"want"`
	Validate   []caseVerdict          `json:"validate,omitempty"` // instead of answers: calls that are validated without a model
}

// caseRule rejects a call whose arguments are one of Bad, or a value at Path.
type caseRule struct {
	Tool    string `json:"tool"`
	Path    string `json:"path,omitempty"`
	Bad     []any  `json:"bad"`
	Message string `json:"message"`
}

func (r *caseRule) accepts(v any) bool {
	return !slices.ContainsFunc(r.Bad, func(bad any) bool { return reflect.DeepEqual(bad, v) })
}

type caseVerdict struct {
	Call      [2]string   `json:"call"`
	Arguments string      `json:"arguments"` // as they would run
	Unchecked bool        `json:"unchecked,omitempty"`
	Issues    [][2]string `json:"issues,omitempty"` // pointers and messages
	Reply     string      `json:"reply,omitempty"`
}

func (v *caseVerdict) set(of middleware.Verdict, replies []middleware.Message) {
	*v = caseVerdict{Call: v.Call, Arguments: of.Call.Arguments, Unchecked: of.Unchecked}
	for _, i := range of.Issues {
		v.Issues = append(v.Issues, [2]string{i.Pointer, i.Message})
	}
	for _, r := range replies {
		v.Reply += r.Text()
	}
}

type caseAnswer struct {
	Calls  [][2]string             `json:"calls"` // names and arguments
	Text   string                  `json:"text,omitempty"`
	Reason string                  `json:"reasoning,omitempty"`
	Finish middleware.FinishReason `json:"finish,omitempty"`
}

type caseWant struct {
	Code    string            `json:"code,omitempty"` // of the error
	Status  middleware.Status `json:"status,omitempty"`
	Calls   [][2]string       `json:"calls,omitempty"`
	Text    string            `json:"text,omitempty"`
	Replies [][]string        `json:"replies,omitempty"` // the texts behind the failed turn, of each re-ask
	Caps    []int             `json:"caps,omitempty"`    // the length limits of the model calls, if the request has one
}

// response returns the n-th answer, from 1.
func (a caseAnswer) response(n int) *middleware.Response {
	m := middleware.Assistant(a.Text)
	if a.Reason != "" {
		m.Parts = append([]middleware.Part{{Kind: middleware.PartReasoning, Text: a.Reason}}, m.Parts...)
	}
	for i, c := range a.Calls {
		m.ToolCalls = append(m.ToolCalls, middleware.ToolCall{ID: fmt.Sprintf("call_%d_%d", n, i), Name: c[0], Arguments: c[1]})
	}
	return &middleware.Response{Message: m, FinishReason: a.Finish}
}

func (c *stepCase) request() *middleware.Request {
	req := &middleware.Request{Messages: []middleware.Message{middleware.User(c.User)}, Tools: c.Tools, MaxTokens: c.MaxTokens,
		AllowedTools: c.Allowed, NoParallelCalls: c.One}
	if c.Results {
		call := middleware.ToolCall{ID: "earlier", Name: c.Tools[0].Name, Arguments: "{}"}
		req.Messages = append(req.Messages, middleware.Assistant("", call), middleware.ToolReply(call, "done"))
	}
	if c.ToolChoice != nil {
		req.ToolChoice = *c.ToolChoice
	}
	return req
}

// model returns the scripted model, and what it was asked.
func (c *stepCase) model(want *caseWant) middleware.ModelCall {
	asked := 0
	return func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		if asked++; asked > len(c.Answers) {
			return nil, errors.New("the script is over")
		}
		if asked > 1 {
			want.Replies = append(want.Replies, repliesOf(req.Messages))
		}
		if c.MaxTokens > 0 {
			want.Caps = append(want.Caps, req.MaxTokens)
		}
		resp := c.Answers[asked-1].response(asked)
		var err error
		word := string(resp.FinishReason)
		if resp.FinishReason, err = wire.FinishReason(word, len(resp.Message.ToolCalls) > 0); err != nil { // as a codec does
			resp.Report.Status = middleware.Invalid
			return nil, &middleware.ModelError{Code: word, Err: err, Response: resp}
		}
		return resp, nil
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

func (want *caseWant) set(resp *middleware.Response, err error) {
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
}

// library returns the validator and toolmend.Stack with the options of the case, written as a Go program writes them.
func (c *stepCase) library(t *testing.T) (*argsvalidate.Validator, middleware.Middleware) {
	var o argsvalidate.Options
	all := toolmend.Options{}
	switch string(compact(t, c.Options)) {
	case "":
	case `{"attempts":3,"unknown_tools":"pass","strip":"all","on_exhausted":"pass"}`:
		o.UnknownTools, o.Strip, o.OnExhausted = argsvalidate.PassUnknown, strip.All, middleware.Pass
	case `{"attempts":3,"unknown_tools":"pass","strip":"off","on_exhausted":"pass"}`:
		o.UnknownTools, o.Strip, o.OnExhausted = argsvalidate.PassUnknown, strip.Off, middleware.Pass
	case `{"attempts":2,"unknown_tools":"pass","strip":"all","on_exhausted":"raise"}`:
		o.UnknownTools, o.Strip, o.MaxAttempts = argsvalidate.PassUnknown, strip.All, 2
	case `{"attempts":1,"unknown_tools":"pass","strip":"all","on_exhausted":"raise"}`:
		o.UnknownTools, o.Strip, o.MaxAttempts = argsvalidate.PassUnknown, strip.All, 1
	case `{"attempts":1,"unknown_tools":"pass","strip":"all","on_exhausted":"pass"}`:
		o.UnknownTools, o.Strip, o.MaxAttempts, o.OnExhausted = argsvalidate.PassUnknown, strip.All, 1, middleware.Pass
	case `{"strip":"all"}`:
		o.Strip = strip.All
	case `{"strip":"off"}`:
		o.Strip = strip.Off
	case `{"on_exhausted":"pass"}`:
		o.OnExhausted = middleware.Pass
	case `{"empty_answers":"off"}`:
		o.EmptyAnswers = argsvalidate.EmptyOff
	case `{"empty_answers":"always"}`:
		o.EmptyAnswers = argsvalidate.EmptyAlways
	case `{"raise_tokens":150}`:
		o.RaiseTokens = 150
	case `{"raise_tokens":"off","on_exhausted":"pass"}`:
		o.RaiseTokens, o.OnExhausted = argsvalidate.NoRaise, middleware.Pass
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
		var rule argsvalidate.Rule = argsvalidate.RuleFunc(func(_ context.Context, call *argsvalidate.Call) ([]middleware.Issue, error) {
			var args any
			if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil || r.accepts(args) || r.Tool != "*" && r.Tool != call.Name {
				return nil, err
			}
			return []middleware.Issue{{Message: r.Message}}, nil
		})
		if r.Path != "" {
			field := argsvalidate.FieldRule[any]{Path: argsvalidate.Dotted(r.Path), Message: r.Message, Valid: r.accepts}
			if r.Tool != "*" {
				field.Tools = []string{r.Tool}
			}
			rule = field
		}
		o.Rules = append(o.Rules, rule)
	}
	all.Validator = argsvalidate.NewValidator(o)
	return all.Validator, toolmend.Stack(all)
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
		validator, stack := c.library(t)
		want := *c
		want.Want, want.Validate = caseWant{}, slices.Clone(c.Validate)
		if len(c.Answers) > 0 {
			resp, err := stack(want.model(&want.Want))(t.Context(), c.request())
			want.Want.set(resp, err)
		}
		for i := range want.Validate {
			v := &want.Validate[i]
			verdicts, err := validator.Validate(t.Context(), c.Tools, middleware.ToolCall{ID: "c", Name: v.Call[0], Arguments: v.Call[1]})
			invalid, _ := errors.AsType[*argsvalidate.Error](err)
			if invalid == nil {
				invalid = &argsvalidate.Error{}
			}
			v.set(verdicts[0], invalid.Replies)
		}
		if *clitest.Update {
			*c = want
		}
		require.Equal(t, want, *c, c.Name)
		got := *c
		got.session(t)
		require.Equal(t, want, got, c.Name)
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

// TestParityCases holds that the cases of docs/parity.md are in the file, but for one whose option the gateway's settings
// do not have.
func TestParityCases(t *testing.T) {
	t.Parallel()
	type named struct{ Name string }
	var peer struct{ Steps, Strips, Schemas, Rules []named }
	var cases []named
	for file, into := range map[string]any{"../../../../argsvalidate/testdata/peer_cases.json": &peer, "testdata/cases.json": &cases} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, into))
	}
	missing := []string{}
	for _, c := range slices.Concat(peer.Steps, peer.Strips, peer.Schemas, peer.Rules) {
		if !slices.Contains(cases, named{"peer: " + c.Name}) {
			missing = append(missing, c.Name)
		}
	}
	require.Equal(t, []string{"placeholder_strip_is_opt_in"}, missing)
}

// session runs the case in a session, and sets what it wants.
func (c *stepCase) session(t *testing.T) {
	c.Want, c.Validate = caseWant{}, slices.Clone(c.Validate)
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
	req := c.request()
	settings := *req
	settings.Messages, settings.Tools = nil, nil
	for i := range c.Validate {
		v := &c.Validate[i]
		h.frame(map[string]any{"type": "validate", "id": 3, "stack": "a", "set": "k", "calls": []any{middleware.ToolCall{ID: "c", Name: v.Call[0], Arguments: v.Call[1]}}})
		f := h.next(t)
		for ; f.Type == "rule"; f = h.next(t) {
			c.findings(t, h, f)
		}
		v.set(f.Verdicts[0], f.Replies)
	}
	if len(c.Answers) == 0 {
		return
	}
	h.frame(map[string]any{"type": "step", "id": 3, "stack": "a", "set": "k", "length": len(req.Messages), "request": settings})
	var answers []*middleware.Response
	byNumber := map[int]*middleware.Response{}
	for {
		f := h.next(t)
		switch f.Type {
		case "ask":
			if len(answers) > 0 {
				c.Want.Replies = append(c.Want.Replies, repliesOf(append(req.Messages[:f.Keep:f.Keep], f.Messages...)))
			}
			if c.MaxTokens > 0 {
				c.Want.Caps = append(c.Want.Caps, cmp.Or(f.Request.MaxTokens, c.MaxTokens))
			}
			if len(answers) == len(c.Answers) {
				h.frame(map[string]any{"type": "answer", "id": 3, "n": f.N, "error": map[string]string{"message": "the script is over"}})
				continue
			}
			answers = append(answers, c.Answers[len(answers)].response(len(answers)+1))
			byNumber[f.N] = answers[len(answers)-1]
			h.frame(map[string]any{"type": "answer", "id": 3, "n": f.N, "response": answers[len(answers)-1]})
		case "load":
			h.frame(map[string]any{"type": "messages", "id": 3, "n": f.N, "messages": req.Messages})
		case "rule":
			c.findings(t, h, f)
		default:
			want := &c.Want
			want.Code, want.Status = f.Code, f.Status
			if f.Response == nil {
				f.Response = byNumber[f.N]
			}
			if f.Response != nil {
				want.Text = f.Response.Message.Text()
				for _, call := range f.Response.Message.ToolCalls {
					want.Calls = append(want.Calls, [2]string{call.Name, call.Arguments})
				}
			}
			return
		}
	}
}

// findings answers a question for the rule of the case.
func (c *stepCase) findings(t *testing.T, h *host, f frame) {
	var value any
	text := f.Value
	if c.Rule.Path == "" {
		text = json.RawMessage(f.Call.Arguments)
	}
	require.NoError(t, json.Unmarshal(text, &value))
	issues := []middleware.Issue{}
	if !c.Rule.accepts(value) {
		issues = append(issues, middleware.Issue{Message: c.Rule.Message})
	}
	h.frame(map[string]any{"type": "findings", "id": 3, "n": f.N, "issues": issues})
}
