package responses

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// sort is what an item is to the neutral vocabulary.
type sort uint8

const (
	isOpaque    sort = iota // run by the provider, or unknown
	isMessage               // of any role
	isReasoning             // belongs to the item behind it
	isCall                  // the client answers it
	isOutput                // the client's answer
	isTools                 // declares further tools
)

// form says where a call has what.
type form struct {
	kind middleware.Kind
	name string // of calls that have none
	id   string // the member with the id that the answer repeats
	args []string
}

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

// outputs names the members that may hold the id of the call.
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

// item is one item, and what of a neutral message stands in it.
type item struct {
	val   rawjson.Value
	sort  sort
	parts int  // how many of the message's parts
	odd   bool // of an answer: history leaves it out, because no provider takes it
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
	case t == "tool_search_call" || t == "tool_search_output":
		if v.Get("execution").Str() != "client" {
			break
		}
		it.sort = isCall
		if t == "tool_search_output" {
			it.sort = isOutput
		}
	case outputs[t] != nil:
		it.sort = isOutput
	default:
		if _, ok := calls[t]; ok {
			it.sort = isCall
		}
	}
	return it, nil
}

// answerItem classifies an item of an answer: what is out of shape is opaque.
// The error wraps ErrShape: a client might read a call there.
func answerItem(v rawjson.Value) (item, error) {
	it, err := newItem(v)
	if err == nil && it.sort != isOpaque {
		return it, nil
	}
	typ := v.Get("type")
	for name := range calls {
		if t := typ.Str(); t != name && strings.EqualFold(t, name) {
			return item{}, codec.Shapef("the type of a call in another spelling")
		}
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
	switch it.sort {
	case isMessage:
		return it.val.Get("role").Str() == "assistant"
	case isOutput, isTools:
		return false
	}
	return true
}

// answeredID returns the id of the call that an output answers, and the member
// that holds it.
func answeredID(v rawjson.Value) (rawjson.Value, string) {
	keys := outputs[v.Get("type").Str()]
	for _, key := range keys {
		if m := v.Get(key); m.Exists() {
			return m, key
		}
	}
	if len(keys) == 0 {
		return rawjson.Value{}, "call_id"
	}
	return rawjson.Value{}, keys[0]
}

// idText returns the id or the name that v is. Some servers write numbers, which
// clients read as text. The error wraps ErrShape.
func idText(v rawjson.Value, what string) (string, error) {
	if v.Kind() == rawjson.Number {
		return v.Raw(), nil
	}
	return textOf(v, what)
}

// textOf returns the string that v is; none for null and for what is absent.
// The error wraps ErrShape.
func textOf(v rawjson.Value, what string) (string, error) {
	switch v.Kind() {
	case rawjson.String:
		return v.Str(), nil
	case rawjson.Invalid, rawjson.Null:
		return "", nil
	}
	return "", codec.Shapef("%s where %s should be", v.Kind(), what)
}

// list returns the array that v is; absent for null. The error wraps ErrShape.
func list(v rawjson.Value, what string) (rawjson.Value, error) {
	switch v.Kind() {
	case rawjson.Array:
		return v, nil
	case rawjson.Invalid, rawjson.Null:
		return rawjson.Value{}, nil
	}
	return rawjson.Value{}, codec.Shapef("%s where %s should be", v.Kind(), what)
}
