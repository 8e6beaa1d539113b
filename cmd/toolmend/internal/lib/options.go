package lib

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/serve"
	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/textcall"
)

// ownOptions are the options of open that the gateway does not have.
type ownOptions struct {
	Rules       []hostRule      `json:"rules"`        // the host checks calls by them
	RuleTimeout float64         `json:"rule_timeout"` // of each rule, in seconds; 0 means 10, see argsvalidate.Options
	TextCall    bool            `json:"text_call"`    // the model writes calls as text
	Answer      json.RawMessage `json:"answer"`       // the JSON Schema of answers
	Record      string          `json:"record"`       // a file that gets each answer with calls, for toolmend check
}

// transportKeys are settings of the gateway for HTTP.
var transportKeys = []string{"unreadable", "hold", "keep_alive", "reask_timeout", "model_calls", "max_body", "websockets"}

// openStack is an open stack.
type openStack struct {
	call      middleware.ModelCall
	validator *argsvalidate.Validator
	record    string // a file; "" means that nothing is recorded
	options   string // as they came
}

// newStack returns the stack that the options of open mean. The keys of ownOptions are read here,
// and all others by the reader of the gateway's file.
func newStack(text json.RawMessage) (*openStack, error) {
	var o ownOptions
	values := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if len(text) > 0 {
		if err := cmp.Or(d.Decode(&values), json.Unmarshal(text, &o)); err != nil {
			return nil, err
		}
	}
	for _, key := range transportKeys {
		if values[key] != nil {
			return nil, fmt.Errorf("%s: is for the gateway only", key)
		}
	}
	for _, own := range []string{"rules", "rule_timeout", "text_call", "answer", "record"} {
		delete(values, own)
	}
	s, tools, err := serve.ReadSettings(values)
	if err != nil {
		return nil, err
	}
	if s.Mode == gateway.Observe {
		return nil, errors.New(`mode: must be "enforce" or "repair", got "observe"`)
	}
	s.OnExhausted = cmp.Or(s.OnExhausted, middleware.Raise)
	v := s.ValidatorOptions(tools)
	v.FoldKeys = false // neither Python nor Node takes another key for a declared one
	v.RuleTimeout = time.Duration(o.RuleTimeout * float64(time.Second))
	for i, r := range o.Rules {
		if r.Tool == "" {
			return nil, fmt.Errorf("rules: rule %d has no tool", i)
		}
		r.index = i
		v.Rules = append(v.Rules, argsvalidate.Named(strings.TrimSuffix(r.Tool+" "+r.Path, " "), r.rule()))
	}
	if err := v.Validate(); err != nil {
		return nil, err
	}
	opened := &openStack{validator: argsvalidate.NewValidator(v), record: o.Record, options: string(text)}
	l := s.Layers(opened.validator, tools)
	if o.TextCall {
		l[middleware.LayerTextCall] = textcall.New(textcall.Options{})
	}
	if len(o.Answer) > 0 {
		a := answer.Options{Schema: o.Answer, MaxAttempts: s.Attempts}
		if err := a.Validate(); err != nil {
			return nil, err
		}
		l[middleware.LayerAnswer] = answer.New(a)
	}
	if o.Record != "" {
		f, err := openRecord(o.Record)
		if err != nil {
			return nil, err
		}
		_ = f.Close()
	}
	opened.call = l.Chain()(askHost)
	return opened, nil
}

// openRecord opens a file of the option record for one more line.
func openRecord(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return f, nil
}

// hostRule has calls checked by the host.
type hostRule struct {
	Tool string `json:"tool"` // a name, or * for every tool
	Path string `json:"path"` // of a value in the arguments, as argsvalidate.FieldRule has it; "" means the whole call

	index int
}

// rule has the calls of the tool, or the values at the path, checked by the host of the step.
func (r hostRule) rule() argsvalidate.Rule {
	whole := func(ctx context.Context, _ any, c *argsvalidate.Call) ([]middleware.Issue, error) {
		return r.ask(ctx, c, sessionFrame{})
	}
	field := argsvalidate.FieldRule[json.RawMessage]{Path: r.Path, Find: func(ctx context.Context, v json.RawMessage, pointer string, c *argsvalidate.Call) ([]middleware.Issue, error) {
		return r.ask(ctx, c, sessionFrame{Pointer: pointer, Value: v})
	}}
	switch {
	case r.Path == "" && r.Tool == "*":
		return argsvalidate.RuleFunc(func(ctx context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) { return whole(ctx, nil, c) })
	case r.Path == "":
		return argsvalidate.ForTool(r.Tool, whole)
	case r.Tool != "*":
		field.Tools = []string{r.Tool}
	}
	if !strings.HasPrefix(r.Path, "/") {
		field.Path = argsvalidate.Dotted(r.Path)
	}
	return field
}

// ask sends a question to the host and returns its findings.
func (r hostRule) ask(ctx context.Context, c *argsvalidate.Call, question sessionFrame) ([]middleware.Issue, error) {
	j := jobOf(ctx)
	question.Type, question.Rule, question.Call, question.Siblings = "rule", &r.index, &c.ToolCall, c.Siblings
	f, err := j.take(ctx, j.ask(question))
	if err != nil {
		return nil, err
	}
	for _, note := range f.Notes {
		c.Note(note)
	}
	return f.Issues, nil
}
