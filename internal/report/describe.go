package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Fault is one issue of a call with its place in the schema. Without Message and
// Schema it shows no value that a model wrote.
type Fault struct {
	Code     string `json:"code"`
	Pointer  string `json:"pointer"`           // into the arguments; "" means all of them
	Expected string `json:"expected,omitzero"` // what the schema asks for there: types, such as "integer or null", or the demand of the keyword, such as "at least 1"; the tools that there are; "" if it does not say
	Received string `json:"received,omitzero"` // the type of the value, or "nothing"; "" if the arguments are not JSON
	Message  string `json:"message,omitzero"`  // for a person; it may quote a value
	Rule     string `json:"rule,omitzero"`     // the rule of the configuration that made the issue; "" means none
	Schema   string `json:"schema,omitzero"`   // the part of the tool's schema that applies there, cut after maxFragment bytes

	value string // as sent, cut; "" where it tells nothing
}

// Bounds of what is kept of one call.
const (
	maxFaults   = 20   // of one call
	maxFragment = 600  // bytes of a schema
	maxMessage  = 1000 // bytes
	maxPointer  = 300  // bytes
)

// viewBytes bounds the schemas that a describer keeps. It keeps one schema of any size:
// the calls of a step, and the steps of a log, have the same ones.
const viewBytes = 4 << 20

// describer says what schemas expect. It is safe for concurrent use.
type describer struct {
	views *schema.Cache[*view.View]
}

func newDescriber() *describer {
	return &describer{schema.NewCache(viewBytes, func(raw []byte) (*view.View, int) {
		v, err := view.Read(raw)
		if err != nil {
			return nil, 64
		}
		return v, min(16*len(raw)+256, viewBytes) // nodes are larger than their text
	})}
}

// faults returns the faults of a call of s as sent: its issues, each with what the
// tool's schema expects at its place and which type was received. For an unknown tool,
// the names of the declared tools are expected. It returns at most 20.
func (d *describer) faults(s *Step, c *Call) []Fault {
	issues := c.Issues[:min(len(c.Issues), maxFaults)]
	if len(issues) == 0 {
		return nil
	}
	var v *view.View
	if tool := s.Tool(c); len(tool.Parameters) > 0 {
		v = d.views.Get(tool.Parameters)
	}
	var root rawjson.Value
	if doc, err := rawjson.Parse(c.Sent.Arguments, schema.Limits); err == nil {
		root = doc.Root()
	}
	out := make([]Fault, len(issues))
	for i, issue := range issues {
		if isOfCall(issue.Code) {
			out[i] = Fault{Code: issue.Code, Message: text.Clip(issue.Message, maxMessage)}
			if issue.Code == string(UnknownTool) {
				out[i].Expected = offered(s.Tools, c.Sent.Name)
			}
		} else {
			out[i] = describe(v, root, issue)
		}
		out[i].Rule = text.Clip(issue.Rule, maxName)
	}
	return out
}

// isOfCall reports whether a code is about the call as a whole, not about its arguments.
func isOfCall(code string) bool {
	return code == string(UnknownTool) || code == string(Truncated) || ForbiddenCall(code)
}

// ForbiddenCall reports whether a code is about a call that the request forbids.
func ForbiddenCall(code string) bool { return code == "tool_choice" || code == "parallel_calls" }

// describe describes one issue. A nil View says nothing.
func describe(v *view.View, root rawjson.Value, issue middleware.Issue) Fault {
	f := Fault{Code: text.Clip(issue.Code, 64), Pointer: text.Clip(issue.Pointer, maxPointer), Message: text.Clip(issue.Message, maxMessage)}
	var got rawjson.Value
	if root.Exists() {
		f.Received = "nothing"
		if got = root.At(issue.Pointer); got.Exists() {
			f.Received = got.Kind().String()
			f.value = sentValue(issue.Code, got)
		}
	}
	if node := v.At(issue.Pointer); node != nil && root.Exists() {
		f.Expected = expectedAt(node, issue.Code, got)
		f.Schema = text.Clip(compact(node.Text()), maxFragment)
	}
	return f
}

// maxOffered is how many tools are named where another one was called.
const maxOffered = 8

// offered names the tools that a model may call, first the one that is most like the
// name that was called.
func offered(tools []middleware.Tool, called string) string {
	var names []string
	for _, t := range tools {
		if t.Kind != middleware.KindHosted {
			names = append(names, t.Name)
		}
	}
	similar := schema.SuggestTool(called, names)
	if i := slices.Index(names, similar); similar != "" && i >= 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, similar)
	}
	var out []string
	for i, name := range head(names, maxOffered) {
		out = append(out, text.Clip(name, 64))
		if i == 0 && similar != "" {
			out[0] += " (the most similar)"
		}
	}
	if more := rest(names, maxOffered); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(out, ", "), more)
	}
	return strings.Join(out, ", ")
}

// words names types: "integer or null". It returns "" for all types.
func words(k view.Kinds) string {
	if k == view.Any || k == 0 {
		return ""
	}
	var out []string
	for _, t := range []struct {
		kind view.Kinds
		name string
	}{
		{view.String, "string"}, {view.Number, "number"}, {view.Integer, "integer"}, {view.Bool, "boolean"},
		{view.Array, "array"}, {view.Object, "object"}, {view.Null, "null"},
	} {
		if !k.Has(t.kind) || t.kind == view.Integer && k.Has(view.Number) {
			continue
		}
		out = append(out, t.name)
	}
	return strings.Join(out, " or ")
}

// compact removes the white space between the tokens of JSON text.
func compact(text string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return text
	}
	return b.String()
}

// maxName is how many bytes of a model-written name are kept as a key, and shown.
const maxName = 200

// Name returns a model-written name for people: on one line, never empty.
func Name(s string) string {
	if s == "" {
		return "(none)"
	}
	return oneLine(s, maxName)
}

// oneLine returns text of others on one line, cut to n bytes.
func oneLine(s string, n int) string { return text.Visible(text.Clip(s, n), false) }
