package responses

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// sort is what an item is to the neutral vocabulary.
type sort uint8

const (
	isOpaque    sort = iota // run by the provider, or unknown
	isMessage               // of any role
	isReasoning             // belongs to the item after it
	isCall                  // the client answers it
	isOutput                // the client's answer
	isTools                 // declares further tools
)

// form is where a call has its members.
type form struct {
	kind middleware.Kind
	name string   // of calls that have none on the wire; "": the item has one
	id   string   // the member with the id that the answer repeats
	args []string // the members that may hold the arguments, the usual one first
}

// calls are the items that the client runs, by their type. The arguments of the first two are
// a string that the model wrote; the others have objects that the provider has parsed, such as
// {"type": "exec", "command": ["ls"]}.
var calls = map[string]form{
	"function_call":        {middleware.KindFunction, "", "call_id", []string{"arguments"}},
	"custom_tool_call":     {middleware.KindCustom, "", "call_id", []string{"input"}},
	"computer_call":        {middleware.KindBuiltin, "computer", "call_id", []string{"action", "actions"}},
	"local_shell_call":     {middleware.KindBuiltin, "local_shell", "call_id", []string{"action"}},
	"shell_call":           {middleware.KindBuiltin, "shell", "call_id", []string{"action"}},
	"apply_patch_call":     {middleware.KindBuiltin, "apply_patch", "call_id", []string{"operation"}},
	"tool_search_call":     {middleware.KindBuiltin, "tool_search", "call_id", []string{"arguments"}},
	"mcp_approval_request": {middleware.KindBuiltin, "mcp_approval_request", "id", []string{"arguments"}},
}

// hostedCalls are the types of the calls that the provider runs itself. The events about them
// begin with the same words. Sources: OpenAI (API reference, "Responses", the output), xAI
// (guide "Advanced usage" of tools) and Alibaba Model Studio (API reference of its Responses).
// A call of any other type may be one that some client runs.
var hostedCalls = []string{"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "mcp_list_tools",
	"tool_search_call", "x_search_call", "web_extractor_call"}

// outputs are the items that answer a call, by their type. Each names the members
// that may hold the id of the call, the usual one first.
var outputs = map[string][]string{
	"function_call_output":    {"call_id"},
	"custom_tool_call_output": {"call_id"},
	"computer_call_output":    {"call_id"},
	"local_shell_call_output": {"call_id", "id"},
	"shell_call_output":       {"call_id"},
	"apply_patch_call_output": {"call_id"},
	"tool_search_output":      {"call_id"},
	"mcp_approval_response":   {"approval_request_id"},
}

// item is one item and, if the model wrote it, its call or parts.
type item struct {
	val   rawjson.Value
	sort  sort
	odd   bool // of an answer: history leaves it out, because no provider takes it
	parts []middleware.Part
	call  *middleware.ToolCall
}

// newItem classifies v. The error wraps ErrShape.
func newItem(v rawjson.Value) (item, error) {
	if v.Kind() != rawjson.Object {
		return item{}, codec.Shapef("%s where an item should be", v.Kind())
	}
	typ, role := v.Get("type"), v.Get("role")
	if typ.Exists() && typ.Kind() != rawjson.String {
		return item{}, codec.Shapef("%s where the type of an item should be", typ.Kind())
	}
	it := item{val: v, sort: isOpaque}
	switch t := typ.Str(); {
	case t == "message", !typ.Exists() && role.Exists():
		if role.Kind() != rawjson.String {
			return item{}, codec.Shapef("a message without a role")
		}
		it.sort = isMessage
	case t == "reasoning":
		it.sort = isReasoning
	case t == "additional_tools":
		it.sort = isTools
	case (t == "tool_search_call" || t == "tool_search_output") && v.Get("execution").Str() != "client":
	case outputs[t] != nil:
		it.sort = isOutput
	case calls[t].args != nil:
		it.sort = isCall
	}
	return it, nil
}

// newItems classifies the elements of list.
func newItems(list rawjson.Value) ([]item, error) {
	return lens.Convert(slices.Collect(list.Each()), newItem)
}

// answerItem classifies an item of an answer: what is out of shape is opaque.
// The error wraps ErrShape: a client might read a call there.
func answerItem(v rawjson.Value) (item, error) {
	it, err := newItem(v)
	if err == nil && it.sort != isOpaque {
		return it, nil
	}
	typ := v.Get("type")
	if outputs[typ.Str()] == nil && !slices.Contains(hostedCalls, typ.Str()) && !codec.HasNoCallWord(v.Raw()) && codec.NamesCall(v) {
		return item{}, codec.Shapef("an item of an unknown type that may be a call")
	}
	if typ.Kind() != rawjson.String {
		for m := range v.Each() {
			if v.Kind() == rawjson.Object && (strings.EqualFold(m.Key(), "call_id") || strings.EqualFold(m.Key(), "arguments")) {
				return item{}, codec.Shapef("a call without a type")
			}
		}
	}
	if typ.Str() == "message" {
		return item{val: v, sort: isMessage, odd: true}, nil
	}
	return item{val: v, sort: isOpaque, odd: err != nil}, nil
}

// ofAssistant reports whether the item is part of what the model wrote.
func (it item) ofAssistant() bool {
	if it.sort == isMessage {
		return it.val.Get("role").Str() == "assistant"
	}
	return it.sort != isOutput && it.sort != isTools
}

// read reads the content of an item of the model: a call, or one or more parts. It may be
// called again after sort has changed.
func (it *item) read() (err error) {
	it.parts, it.call = nil, nil
	switch it.sort {
	case isCall:
		var c middleware.ToolCall
		c, err = readCall(it.val)
		it.call = &c
	case isReasoning:
		var p middleware.Part
		p, err = readReasoning(it.val)
		it.parts = []middleware.Part{p}
	case isMessage:
		it.parts, err = readContent(it.val)
	default:
		it.parts = []middleware.Part{readOpaque(it.val)}
	}
	return err
}

// readCall reads a call that the client answers. Its arguments are a string or,
// as some servers and the calls of KindBuiltin have it, an object.
func readCall(v rawjson.Value) (c middleware.ToolCall, err error) {
	f, ok := calls[v.Get("type").Str()]
	if !ok {
		return c, codec.Shapef("no call where a call should be")
	}
	in := on.Reader()
	c = middleware.ToolCall{Kind: f.kind, Name: f.name, ID: in.Name(v, f.id), Namespace: v.Get("namespace").Str(), Native: on.Native(v.Raw())}
	if f.kind != middleware.KindBuiltin {
		c.Name = in.Name(v, "name")
	}
	args, key := arguments(v, f)
	if k := args.Kind(); k == rawjson.Object || k == rawjson.Array && f.kind == middleware.KindBuiltin {
		c.Arguments = codec.OneLine(args.Raw()) // as it is written
	} else {
		c.Arguments = in.Text(v, key)
	}
	return c, in.Err
}

// arguments returns the member with the arguments, and its key.
func arguments(v rawjson.Value, f form) (rawjson.Value, string) { return first(v, f.args, "arguments") }

// answeredID returns the id of the call that an output answers, and its key.
func answeredID(v rawjson.Value) (rawjson.Value, string) {
	return first(v, outputs[v.Get("type").Str()], "call_id")
}

// first returns the first of the members keys that is there, and its key.
func first(v rawjson.Value, keys []string, other string) (rawjson.Value, string) {
	for _, key := range keys {
		if m := v.Get(key); m.Exists() {
			return m, key
		}
	}
	if len(keys) > 0 {
		other = keys[0]
	}
	return rawjson.Value{}, other
}

// callMembers projects a call onto the form f of the call v. Arguments are a string, unless v
// has an object.
func callMembers(v rawjson.Value, f form, c middleware.ToolCall) []lens.Member {
	args, key := arguments(v, f)
	raw := rawjson.Quote(c.Arguments)
	if k := args.Kind(); k == rawjson.Object || k == rawjson.Array {
		raw = c.Arguments
	}
	return []lens.Member{lens.Text(f.id, c.ID), lens.Text("name", c.Name), lens.Word("namespace", c.Namespace), lens.Raw(key, raw)}
}

// callText returns c as an item: its own text with what has changed in it, or
// afresh. In an answer it needs an id, by which its events go. Not to be confused
// with it is call_id, which the output repeats and which is the neutral ID: the id
// names the item, and stays as it is.
func callText(c middleware.ToolCall, answer bool) (string, error) {
	v, err := on.Value(c.Native)
	if err != nil {
		return "", err
	}
	if !v.Exists() {
		return freshCall(c, answer)
	}
	was, err := readCall(v)
	if err != nil {
		return "", codec.Unencodablef("the Native of a call is none")
	}
	f := calls[v.Get("type").Str()]
	args, _ := arguments(v, f)
	switch {
	case f.kind != c.Kind:
		return "", codec.Unencodablef("a call that became one of another kind")
	case was.Name != c.Name && f.kind == middleware.KindBuiltin:
		return "", codec.Unencodablef("a name for a call that has none")
	case was.ID != c.ID && f.id == "id":
		return "", codec.Unencodablef("another id for an item")
	case was.Arguments != c.Arguments && args.Exists() && args.Kind() != rawjson.String && args.Kind() != rawjson.Null && !codec.IsObject(c.Arguments):
		return "", codec.Unencodablef("arguments that are no object, where an object stands")
	}
	set := lens.Differ(callMembers(v, f, was), callMembers(v, f, c))
	if answer && v.Get("id").Kind() != rawjson.String && f.id != "id" {
		set = append(set, lens.Text("id", idOf("fc_", c.ID)))
	}
	return on.Set(v, set...)
}

// freshCall returns c as an item that no provider wrote:
//
//	{"type": "function_call", "call_id": …, "name": …, "arguments": text}
func freshCall(c middleware.ToolCall, answer bool) (string, error) {
	typ := "function_call"
	switch c.Kind {
	case middleware.KindFunction:
	case middleware.KindCustom:
		typ = "custom_tool_call"
	default:
		return "", codec.Unencodablef("a call of kind %s that is not of this format", c.Kind)
	}
	members := append([]lens.Member{lens.Text("type", typ)}, callMembers(rawjson.Value{}, calls[typ], c)...)
	if answer {
		members = append(members, lens.Text("id", idOf("fc_", c.ID)), lens.Text("status", "completed"))
	}
	return on.Object(members...), nil
}

// idOf returns an item's id for a call or a message that had none. It is made of
// seed, the id that the call has in the conversation, so that it is the same each
// time.
func idOf(prefix, seed string) string {
	return prefix + strings.TrimPrefix(strings.TrimPrefix(seed, "call"), "_")
}

// announced returns an item as it looks before its content has come: the members
// that deltas fill are there and empty, as SDKs add to them.
func announced(v rawjson.Value) (string, error) {
	var members []lens.Member
	for m := range v.Each() {
		switch {
		case m.Key() == "status":
			members = append(members, lens.Text(m.Key(), "in_progress"))
		case (m.Key() == "content" || m.Key() == "summary") && m.Kind() == rawjson.Array:
			members = append(members, lens.Raw(m.Key(), "[]"))
		case (m.Key() == "arguments" || m.Key() == "input") && m.Kind() == rawjson.String:
			members = append(members, lens.Text(m.Key(), ""))
		}
	}
	return on.Set(v, members...)
}
