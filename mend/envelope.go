package mend

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// envelopes are the names under which models send the arguments as a whole.
var envelopes = []string{"action_input", "args", "arguments", "input", "kwargs", "parameters", "params", "tool_input"}

// envelope returns the object that the arguments hold under their only key, or
// beside one key whose value is the tool's name: {"function": "f", "args": {…}}.
// It may be in a string.
func (m *mender) envelope(o *object) (string, bool) {
	if len(o.strays) > 2 || o.value.Parent().Exists() || o.value.Len() != len(o.strays) {
		return "", false
	}
	inside := slices.DeleteFunc(slices.Clone(o.strays), func(s stray) bool {
		return s.Kind() == rawjson.String && s.Str() == m.in.Tool.Name
	})
	if len(inside) != 1 || !slices.Contains(envelopes, inside[0].Key()) && inside[0].Key() != m.in.Tool.Name {
		return "", false
	}
	if inside[0].Kind() == rawjson.String {
		return m.container(inside[0].Str(), view.Object)
	}
	return inside[0].Raw(), inside[0].Kind() == rawjson.Object
}

// echoed returns the value that v, an object of a type and a value, is a schema
// around: {"type": "string", "value": "Oslo"}. Models write it that repeat the schema
// that they were shown.
func echoed(v rawjson.Value) (string, bool) {
	inner := v.Get("value")
	return inner.Raw(), inner.Exists() && v.Len() == 2 && namesType(v.Get("type"))
}

// echoedArguments returns the arguments that stand where a schema has its
// properties: {"type": "object", "properties": {"city": "Oslo"}}. Properties that are
// schemas themselves are not arguments.
func echoedArguments(o *object) (string, bool) {
	if len(o.strays) > 3 || o.value.Parent().Exists() {
		return "", false
	}
	inner := o.value.Get("properties")
	if inner.Kind() != rawjson.Object || o.value.Len() != len(o.strays) {
		return "", false
	}
	for _, s := range o.strays {
		if key := s.Key(); key != "properties" && key != "required" && (key != "type" || s.Str() != "object") {
			return "", false
		}
	}
	for member := range inner.Each() {
		if member.Kind() == rawjson.Object && namesType(member.Get("type")) && !member.Get("value").Exists() {
			return "", false
		}
	}
	return inner.Raw(), true
}

// otherTypes are names of types beside those of JSON Schema.
var otherTypes = []string{"any", "bool", "date", "dict", "double", "enum", "float", "int", "list", "long", "map", "str", "text", "tuple"}

// namesType reports whether v is the name of a type, of JSON Schema or of a programming
// language.
func namesType(v rawjson.Value) bool {
	name := strings.ToLower(v.Str())
	_, ok := view.KindNamed(name)
	return ok || slices.Contains(otherTypes, name)
}
