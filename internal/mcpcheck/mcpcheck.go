// Package mcpcheck validates calls of MCP tools, and their results, where the
// tools are: inside a server, and in a proxy in front of one.
//
//	c := mcpcheck.New(mcpcheck.Options{})
//	tool, ok := mcpcheck.Read(`{"name": "add", "inputSchema": {…}}`)
//	outcome, err := c.Call(ctx, []mcpcheck.Tool{tool}, call)
package mcpcheck

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// Limits of the JSON texts that are read: lists of tools, and results.
var Limits = rawjson.Limits{Bytes: 16 << 20, Depth: 1000, Number: 10_000, Exponent: 10_000, Values: 1 << 20}

// maxOutputs limits the compiled schemas of results that a Checker keeps, in
// bytes. A schema takes about 80 times its text.
const maxOutputs, perByte = 64 << 20, 80

// Tool is a tool as its server lists it.
type Tool struct {
	Def    middleware.Tool // Parameters is the inputSchema, byte for byte
	Output json.RawMessage // the outputSchema; nil if there is none
}

// Read returns the tool of an element of a list of tools. ok is false if the
// text is not an object with a name.
func Read(text string) (t Tool, ok bool) {
	doc, err := rawjson.Parse(text, Limits)
	if err != nil {
		return Tool{}, false
	}
	root := doc.Root()
	t.Def = middleware.Tool{Name: strings.Clone(root.Get("name").Str()), Parameters: object(root.Get("inputSchema"))}
	t.Output = object(root.Get("outputSchema"))
	hints := root.Get("annotations")
	var destructive *bool
	if v := hints.Get("destructiveHint"); v.Kind() == rawjson.Bool {
		yes := v.Raw() == "true"
		destructive = &yes
	}
	t.Def.Destructive = Destructive(hints.Get("readOnlyHint").Raw() == "true", destructive)
	return t, t.Def.Name != ""
}

// object returns the text of an object, or nil for any other value.
func object(v rawjson.Value) json.RawMessage {
	if v.Kind() != rawjson.Object {
		return nil
	}
	return json.RawMessage(v.Raw())
}

// Destructive returns the value of middleware.Tool.Destructive for a tool with
// these hints; nil is a hint that is absent. A tool that is not read-only may
// destroy, unless its server says otherwise, and so may a tool without hints.
//
// Source: ToolAnnotations of the MCP schema, where readOnlyHint is false and
// destructiveHint is true by default.
func Destructive(readOnly bool, destructive *bool) bool {
	return !readOnly && (destructive == nil || *destructive)
}

// Options configure New. The zero value works.
type Options struct {
	// Args are the options of the validator, with two defaults of their own:
	// Strip is strip.WhenInvalid, so that a valid call stays as it was sent, and
	// Limits.Bytes is 16 MiB, because there are tools that write files.
	Args argsvalidate.Options
	// PassUnread passes calls that could not be validated, because they are past
	// a limit or would cost too much. false refuses them.
	PassUnread bool
}

// Action is what to do with a call.
type Action uint8

// The actions.
const (
	Pass   Action = iota // the call goes on as it was sent
	Change               // Outcome.Call goes on
	Refuse               // the caller gets Outcome.Text
)

// Outcome is the result of validating a call.
type Outcome struct {
	Action  Action
	Call    middleware.ToolCall // as it goes on
	Text    string              // for the model, at most 8 KiB; "" unless Action is Refuse
	Tool    Tool                // by which Call was validated; the zero Tool if there is none of its name
	Verdict middleware.Verdict
}

// Checker validates calls and results. It is safe for concurrent use. It keeps
// compiled schemas.
type Checker struct {
	o       Options
	args    *argsvalidate.Validator
	outputs *schema.Cache[*schema.Schema] // nil for a schema that cannot be used
}

// New returns a Checker. It panics with the error of o.Args.Validate.
func New(o Options) *Checker {
	o.Args.Strip = cmp.Or(o.Args.Strip, strip.WhenInvalid)
	o.Args.Limits.Bytes = cmp.Or(o.Args.Limits.Bytes, 16<<20)
	c := &Checker{o: o, args: argsvalidate.NewValidator(o.Args)}
	c.outputs = schema.NewCache(maxOutputs, func(raw []byte) (*schema.Schema, int) {
		s, _ := schema.Compile(raw, schema.Options{})
		return s, 16<<10 + perByte*len(raw)
	})
	return c
}

// Call validates one call. A call of a tool that is not among tools passes,
// unless mend.ToolName finds the only tool that its name is a variant of: only
// the server knows all of its tools. The error is that of a rule that could not
// decide, or of ctx.
func (c *Checker) Call(ctx context.Context, tools []Tool, call middleware.ToolCall) (Outcome, error) {
	defs := make([]middleware.Tool, len(tools))
	for i, t := range tools {
		defs[i] = t.Def
	}
	verdicts, err := c.args.Validate(ctx, defs, call)
	var invalid *argsvalidate.Error
	if err != nil && (!errors.Is(err, argsvalidate.ErrInvalid) || ctx.Err() != nil || !errors.As(err, &invalid)) {
		return Outcome{Call: call}, err
	}
	out := Outcome{Call: verdicts[0].Call, Verdict: verdicts[0]}
	if i := slices.IndexFunc(tools, func(t Tool) bool { return t.Def.Name == out.Call.Name }); i >= 0 {
		out.Tool = tools[i]
	}
	switch {
	case invalid != nil && c.passes(verdicts[0].Issues):
		out.Verdict.Issues, out.Verdict.Unchecked = nil, true
	case invalid != nil:
		out.Action, out.Text = Refuse, invalid.Replies[0].Text()
	case out.Call.Name != call.Name || out.Call.Arguments != call.Arguments:
		out.Action = Change
	}
	return out, nil
}

// unread are the codes of calls that were not validated to the end.
var unread = []string{"size", "depth", "number", "unchecked", "undecided"}

// passes reports whether a call with these issues is left to the server.
func (c *Checker) passes(issues []middleware.Issue) bool {
	return len(issues) == 1 && issues[0].Code == "unknown_tool" || c.o.PassUnread && slices.Contains(unread, issues[0].Code)
}

// maxPlaces is how many places a note names.
const maxPlaces = 5

// Notes returns a note about structured content that violates Tool.Output, or nil
// if it does not, and if the schema or the content cannot be used. A note contains
// places and codes, and no values.
func (c *Checker) Notes(t Tool, structured string) []string {
	if len(t.Output) == 0 || structured == "" {
		return nil
	}
	s := c.outputs.Get(t.Output)
	doc, err := rawjson.Parse(structured, rawjson.Limits{Bytes: Limits.Bytes})
	if s == nil || err != nil {
		return nil
	}
	issues := slices.DeleteFunc(s.Validate(doc.Root()), func(i middleware.Issue) bool { return slices.Contains(unread, i.Code) })
	if len(issues) == 0 {
		return nil
	}
	var places []string
	for _, i := range issues[:min(len(issues), maxPlaces)] {
		places = append(places, fmt.Sprintf("%s (%s)", cmp.Or(schema.Clip(i.Pointer), "the result"), i.Code))
	}
	return []string{fmt.Sprintf("tool %s: the result violates its outputSchema in %d places: %s", schema.Clip(t.Def.Name), len(issues), strings.Join(places, ", "))}
}
