package chat

import (
	"cmp"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// call is the handle of a tool call: an element of tool_calls, or a
// function_call.
type call struct {
	native middleware.Native
	v      rawjson.Value
	snap   middleware.ToolCall
	old    bool // a function_call: it has no id
}

// same reports whether c is what was decoded. A function_call has no place for
// an id, so that one is not compared if it comes from the place.
func (h *call) same(c middleware.ToolCall) bool {
	if h.old && codec.IsPlaceID(c.ID) {
		c.ID = h.snap.ID
	}
	return codec.SameCall(c, h.snap)
}

// payload returns what holds the name and the arguments of a call, and under
// which keys.
func payload(v rawjson.Value, kind middleware.Kind, old bool) (holder rawjson.Value, at, key string) {
	switch {
	case old:
		return v, "", "arguments"
	case kind == middleware.KindCustom:
		return v.Get("custom"), "custom", "input"
	}
	return v.Get("function"), "function", "arguments"
}

// kindOf tells the kind of a call, whole or a delta's. Mistral leaves the type
// out, and some servers fill both members.
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

// argumentsOf returns the text of a call's arguments. A few servers send the
// object itself.
func argumentsOf(v rawjson.Value) string {
	switch v.Kind() {
	case rawjson.String:
		return v.Str()
	case rawjson.Null, rawjson.Invalid:
		return ""
	}
	return v.Raw()
}

// argumentsJSON writes arguments as the kind that v is of.
func argumentsJSON(v rawjson.Value, arguments string) string {
	if v.Kind() == rawjson.Object && codec.IsObject(arguments) {
		return arguments
	}
	return rawjson.Quote(arguments)
}

// bothForms returns an error if a message has calls in both forms and the one in
// the old form is none of the others: a client reads either.
func bothForms(f *fields) error {
	if f.calls.Len() == 0 || !f.hasFunction() {
		return nil
	}
	for v := range f.calls.Each() {
		holder, _, key := payload(v, kindOf(v), false)
		if holder.Get("name").Str() == f.function.Get("name").Str() && argumentsOf(holder.Get(key)) == argumentsOf(f.function.Get("arguments")) {
			return nil
		}
	}
	return codec.Shapef("calls in both forms that differ")
}

func isText(v rawjson.Value) bool {
	k := v.Kind()
	return k == rawjson.String || k == rawjson.Null || k == rawjson.Invalid
}

// checkCall returns an error if it cannot be told what a call, whole or a
// delta's, calls.
func checkCall(v rawjson.Value) error {
	if v.Kind() != rawjson.Object {
		return codec.Shapef("a tool call is of kind %s", v.Kind())
	}
	if !isText(v.Get("name")) {
		return codec.Shapef("the name of a tool call is no string")
	}
	filled := 0
	for _, key := range []string{"function", "custom"} {
		holder := v.Get(key)
		if k := holder.Kind(); k != rawjson.Object && k != rawjson.Null && k != rawjson.Invalid || !isText(holder.Get("name")) {
			return codec.Shapef("the %s of a tool call is no object with a name", key)
		}
		if cmp.Or(holder.Get("name").Str(), argumentsOf(holder.Get("arguments")), argumentsOf(holder.Get("input"))) != "" {
			filled++
		}
	}
	if filled > 1 {
		return codec.Shapef("a tool call that is a function's and a custom tool's")
	}
	return nil
}

// readCall decodes an element of tool_calls, or a function_call.
func readCall(v rawjson.Value, old bool) (middleware.ToolCall, error) {
	h := &call{v: v, old: old}
	h.native = middleware.Native{Dialect: dialect, Raw: v.Raw(), Ref: h}
	c := middleware.ToolCall{Native: &h.native}
	if err := checkCall(v); err != nil {
		return c, err
	}
	if !old {
		c.Kind, c.ID = kindOf(v), codec.Text(v.Get("id"))
	}
	holder, _, key := payload(v, c.Kind, old)
	c.Name, c.Arguments = holder.Get("name").Str(), argumentsOf(holder.Get(key))
	if c.Kind == middleware.KindBuiltin {
		c.Name = v.Get("type").Str()
	}
	h.snap = c
	return c, nil
}

// callHandle returns c's own handle; nil if c has none of this dialect.
func callHandle(c middleware.ToolCall) (*call, error) {
	return codec.Handle(c.Native, dialect, func(raw string) (*call, error) {
		v, err := codec.ParseObject(raw)
		if err != nil {
			return nil, err
		}
		old := v.Get("name").Exists() && !v.Get("function").Exists() && !v.Get("custom").Exists()
		again, err := readCall(v, old)
		if err != nil {
			return nil, err
		}
		return again.Native.Ref.(*call), nil
	})
}

// callText writes c as an element of tool_calls or, if old, as a
// function_call: from its Native where that has the same form.
func callText(c middleware.ToolCall, old bool) (string, error) {
	h, err := callHandle(c)
	switch {
	case err != nil:
		return "", err
	case h == nil || h.old != old || h.snap.Kind != c.Kind:
		return freshCall(c, old)
	case h.same(c):
		return h.v.Raw(), nil
	case c.Kind == middleware.KindBuiltin:
		return "", codec.Unencodablef("a changed call of a type that is not known")
	case old && c.ID != h.snap.ID && !codec.IsPlaceID(c.ID):
		return "", codec.Unencodablef("an id for a function_call")
	}
	edits, err := h.edits(c)
	if err != nil {
		return "", err
	}
	return codec.Within(h.v, edits)
}

// edits returns the edits that make the call what c is.
func (h *call) edits(c middleware.ToolCall) ([]rawjson.Edit, error) {
	holder, at, key := payload(h.v, c.Kind, h.old)
	var inner, outer []codec.Member
	if c.Name != h.snap.Name {
		inner = append(inner, codec.Member{Key: "name", Raw: rawjson.Quote(c.Name)})
	}
	if c.Arguments != h.snap.Arguments {
		inner = append(inner, codec.Member{Key: key, Raw: argumentsJSON(holder.Get(key), c.Arguments)})
	}
	if !h.old && c.ID != h.snap.ID {
		outer = append(outer, codec.Member{Key: "id", Raw: rawjson.Quote(c.ID)})
	}
	if holder.Kind() != rawjson.Object && len(inner) > 0 {
		outer, inner = append(outer, codec.Member{Key: at, Raw: codec.Object(inner...)}), nil
	}
	edits, err := codec.SetAll(h.v, outer...)
	if err != nil || len(inner) == 0 {
		return edits, err
	}
	more, err := codec.SetAll(holder, inner...)
	return append(edits, more...), err
}

// freshCall writes c from its neutral fields.
func freshCall(c middleware.ToolCall, old bool) (string, error) {
	name, text := rawjson.Quote(c.Name), rawjson.Quote(c.Arguments)
	switch {
	case c.Kind == middleware.KindFunction && old:
		return `{"name":` + name + `,"arguments":` + text + `}`, nil
	case c.Kind == middleware.KindFunction:
		return `{"id":` + rawjson.Quote(c.ID) + `,"type":"function","function":{"name":` + name + `,"arguments":` + text + `}}`, nil
	case c.Kind == middleware.KindCustom && !old:
		return `{"id":` + rawjson.Quote(c.ID) + `,"type":"custom","custom":{"name":` + name + `,"input":` + text + `}}`, nil
	}
	return "", codec.Unencodablef("a call of kind %q that is not of this format", c.Kind)
}
