package chat

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// holderOf returns what holds the name and the arguments of a call, and under
// which keys. at is "" for the call itself.
func holderOf(v rawjson.Value, kind middleware.Kind, old bool) (holder rawjson.Value, at, key string) {
	switch {
	case old:
		return v, "", "arguments"
	case kind == middleware.KindCustom:
		return v.Get("custom"), "custom", "input"
	}
	return v.Get("function"), "function", "arguments"
}

// kindOf tells the kind of a call, whole or a delta's. Mistral leaves the type
// out, and some servers fill both members:
//
//	{"id": …, "type": "function", "function": {"name": …, "arguments": text}}
//	{"id": …, "type": "custom", "custom": {"name": …, "input": text}}
//
// A call of any other type is one that the client answers in a form of its own.
func kindOf(v rawjson.Value) middleware.Kind {
	function, custom := v.Get("function").Kind() == rawjson.Object, v.Get("custom").Kind() == rawjson.Object
	switch kind := v.Get("type").Str(); {
	case kind == "custom" && custom, !function && custom:
		return middleware.KindCustom
	case function || kind == "function" || kind == "":
		return middleware.KindFunction
	}
	return middleware.KindBuiltin
}

// textOf returns the text of a value that should be one, such as arguments: a few servers
// send the object itself.
func textOf(v rawjson.Value) string {
	switch v.Kind() {
	case rawjson.String:
		return v.Str()
	case rawjson.Null, rawjson.Invalid:
		return ""
	}
	return v.Raw()
}

// checkCall returns an error if it cannot be told what a call, whole or a
// delta's, calls.
func checkCall(v rawjson.Value) error {
	if v.Kind() != rawjson.Object {
		return codec.Shapef("a tool call is of kind %s", v.Kind())
	}
	if _, err := on.Text(v, "name"); err != nil {
		return err
	}
	filled := 0
	for _, key := range []string{"function", "custom"} {
		holder, err := on.Kind(v, key, rawjson.Object)
		if err != nil {
			return err
		}
		name, err := on.Text(holder, "name")
		if err != nil {
			return err
		}
		if name+textOf(holder.Get("arguments"))+textOf(holder.Get("input")) != "" {
			filled++
		}
	}
	if filled > 1 {
		return codec.Shapef("a tool call that is a function's and a custom tool's")
	}
	return nil
}

// readCall reads an element of tool_calls or, if old, a function_call.
func readCall(v rawjson.Value, old bool) (middleware.ToolCall, error) {
	c := middleware.ToolCall{Native: on.Native(v.Raw())}
	if err := checkCall(v); err != nil {
		return c, err
	}
	if !old {
		c.Kind, c.ID = kindOf(v), codec.Text(v.Get("id"))
	}
	holder, _, key := holderOf(v, c.Kind, old)
	c.Name, c.Arguments = holder.Get("name").Str(), textOf(holder.Get(key))
	if c.Kind == middleware.KindBuiltin {
		c.Name = v.Get("type").Str()
	}
	return c, nil
}

// readCalls reads the calls of a message, in whichever form it has them.
func readCalls(v rawjson.Value) ([]middleware.ToolCall, error) {
	if err := checkCalls(v); err != nil {
		return nil, err
	}
	if isOldTurn(v) {
		c, err := readCall(v.Get("function_call"), true)
		return []middleware.ToolCall{c}, err
	}
	var calls []middleware.ToolCall
	for e := range v.Get("tool_calls").Each() { // checkCalls has made sure that it is a list, if it holds anything
		c, err := readCall(e, false)
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// checkCalls returns an error if a member that holds calls is of a kind that
// hides them.
func checkCalls(v rawjson.Value) error {
	if m := v.Get("tool_calls"); m.Kind() != rawjson.Array && !holdsNothing(m) {
		return codec.Shapef("tool_calls is of kind %s", m.Kind())
	}
	if m := v.Get("function_call"); m.Kind() != rawjson.Object && !holdsNothing(m) {
		return codec.Shapef("function_call is of kind %s", m.Kind())
	}
	return nil
}

// holdsNothing reports whether v is of a kind that holds no calls: servers write
// "", false or {} for none.
func holdsNothing(v rawjson.Value) bool {
	switch v.Kind() {
	case rawjson.String:
		return v.Str() == ""
	case rawjson.Array, rawjson.Object:
		return v.Empty()
	}
	return true
}

// hasFunction reports whether a message has a call in the old form: some servers
// send an empty one always.
func hasFunction(v rawjson.Value) bool {
	f := v.Get("function_call")
	return f.Get("name").Str() != "" || f.Get("arguments").Str() != ""
}

// isOldTurn reports whether the call of a message stands in the old form only. A
// message with calls in both forms is read by its tool_calls.
func isOldTurn(v rawjson.Value) bool {
	list := v.Get("tool_calls")
	return (list.Kind() != rawjson.Array || list.Empty()) && hasFunction(v)
}

// isOldCall reports whether v, the text of a call, has the old form: the name is its
// own member. It is for a text without its place, such as one that was stored.
func isOldCall(v rawjson.Value) bool {
	return v.Get("name").Exists() && !v.Get("function").Exists() && !v.Get("custom").Exists()
}

// oldCall reports whether the only call of calls came in the old form.
func oldCall(calls []middleware.ToolCall) bool {
	if len(calls) != 1 {
		return false
	}
	v, err := on.Value(calls[0].Native)
	return err == nil && isOldCall(v)
}

// sameCall reports whether a call is what was decoded. A function_call has no
// place for an id, so that one that comes from the place is not compared.
func sameCall(was, now middleware.ToolCall) bool {
	if codec.IsPlaceID(now.ID) && (was.ID == "" || codec.IsPlaceID(was.ID)) && oldCall([]middleware.ToolCall{was}) {
		now.ID = was.ID
	}
	return codec.SameNative(was.Native, now.Native) && codec.SameCall(was, now)
}

// callText writes c as an element of tool_calls or, if old, as a function_call:
// from its own text where that has the same form and kind. A call of another form,
// or of another kind, is written afresh.
func callText(c middleware.ToolCall, old bool) (string, error) {
	return rewrite(c.Native, c, codec.SameCall, form[middleware.ToolCall]{
		read:    func(v rawjson.Value) (middleware.ToolCall, error) { return readCall(v, isOldCall(v)) },
		fits:    func(v rawjson.Value, was middleware.ToolCall) bool { return isOldCall(v) == old && was.Kind == c.Kind },
		members: func(v rawjson.Value, c middleware.ToolCall) ([]lens.Member, error) { return callMembers(v, c, old) },
	})
}

// callMembers projects a call. v is the text that is edited, absent for a fresh one.
// If v has the arguments as an object, as a few servers send them, they stay one.
func callMembers(v rawjson.Value, c middleware.ToolCall, old bool) ([]lens.Member, error) {
	holder, at, key := holderOf(v, c.Kind, old)
	arguments := rawjson.Quote(c.Arguments)
	if holder.Get(key).Kind() == rawjson.Object && codec.IsObject(c.Arguments) {
		arguments = c.Arguments
	}
	switch {
	case c.Kind == middleware.KindBuiltin, old && c.Kind != middleware.KindFunction:
		return nil, codec.Unencodablef("a call of kind %q that is not of this format", c.Kind)
	case old && v.Exists() && c.ID != "" && !codec.IsPlaceID(c.ID):
		return nil, codec.Unencodablef("an id for a function_call")
	case old:
		return []lens.Member{lens.Text("name", c.Name), lens.Raw(key, arguments)}, nil
	}
	members := []lens.Member{lens.Text("id", c.ID)}
	if !v.Exists() {
		members = append(members, lens.Text("type", at))
	}
	return append(members, lens.Text(at+"/name", c.Name), lens.Raw(at+"/"+key, arguments)), nil
}
