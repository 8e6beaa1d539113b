package rescue

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/mend"
	"slices"
)

// inJSON reads a call, or an array of calls, from JSON that ends at end: an object with a name and
// arguments, which some models wrap in another object. See form.keyed.
func (t *tools) inJSON(v rawjson.Value, end int, keyed bool) reading {
	if list := v.Get("tool_calls"); list.Kind() == rawjson.Array && v.Len() == 1 {
		v = list
	}
	read := t.oneInJSON
	if keyed {
		read = t.keyedJSON
	}
	elements := []rawjson.Value{v}
	if v.Kind() == rawjson.Array {
		elements = slices.Collect(v.Each())
	}
	r := reading{match: complete, end: end}
	if len(elements) == 0 {
		r.match, r.issue = malformed, issue{"unreadable", "the list of calls is empty"}
	}
	for _, element := range elements {
		c, problem := read(element)
		if problem.code != "" {
			return reading{match: malformed, issue: problem, end: end}
		}
		r.calls = append(r.calls, c)
	}
	return r
}

// member is what a member of the object around a call holds.
type member uint8

const (
	unused member = iota
	theName
	theArguments
)

// envelope are the members that the object around a call may have. Small models
// write the less usual ones: qwen3.5 tool_name, gemma4 tool_call and params.
var envelope = map[string]member{
	"name": theName, "tool_name": theName, "tool_call": theName,
	"arguments": theArguments, "parameters": theArguments, "params": theArguments,
	"id": unused, "type": unused, "index": unused, "call_id": unused, "tool_call_id": unused,
}

// wrappers are the members that may hold the whole call.
var wrappers = []string{"function", "tool_call"}

// unwrapped returns the object in a wrapper of v, or v. key is the key of the wrapper.
func unwrapped(v rawjson.Value) (inner rawjson.Value, key string) {
	for _, key := range wrappers {
		if inner := v.Get(key); inner.Kind() == rawjson.Object {
			return inner, key
		}
	}
	return v, ""
}

// hasArguments reports whether an object has a member that holds arguments, or a
// call.
func hasArguments(v rawjson.Value) bool {
	if _, key := unwrapped(v); key != "" {
		return true
	}
	for m := range v.Each() {
		if envelope[m.Key()] == theArguments {
			return true
		}
	}
	return false
}

// oneInJSON reads one call.
func (t *tools) oneInJSON(v rawjson.Value) (call, issue) {
	if inner, key := unwrapped(v); key != "" {
		for m := range v.Each() {
			if k := m.Key(); k != key && k != "id" && k != "type" && k != "index" {
				return call{}, issue{"ambiguous", "it has members beside the " + key}
			}
		}
		v = inner
	}
	if v.Kind() != rawjson.Object {
		return call{}, issue{"unreadable", "it is not a JSON object"}
	}
	var named, arguments rawjson.Value
	keys := map[string]bool{}
	for m := range v.Each() {
		holds, known := envelope[m.Key()]
		if !known || keys[m.Key()] || holds == theArguments && arguments.Exists() || holds == theName && named.Exists() {
			return call{}, issue{"ambiguous", "it must have the members name and arguments, each once, and no others"}
		}
		keys[m.Key()] = true
		switch holds {
		case theName:
			named = m
		case theArguments:
			arguments = m
		}
	}
	return t.called(named.Str(), arguments, v)
}

// keyedJSON reads one call whose only key is the name of the tool.
func (t *tools) keyedJSON(v rawjson.Value) (call, issue) {
	for m := range v.Each() {
		if v.Len() == 1 {
			return t.called(m.Key(), m, v)
		}
	}
	return call{}, issue{"ambiguous", "it must have the name of one tool as its only member"}
}

// noFunction is what granite calls if no function fits.
const noFunction = "no_function"

// called returns the call that v holds. It may be noFunction. Models leave out the arguments of tools without
// parameters, so missing arguments are an empty object; argsvalidate checks the required
// ones. Arguments may be JSON in a string, as in OpenAI's format.
func (t *tools) called(written string, arguments, v rawjson.Value) (call, issue) {
	name, ok := t.find(written)
	switch {
	case !ok && written == noFunction:
		return call{name: noFunction, arguments: "{}"}, issue{}
	case !ok:
		return call{}, unknown(written)
	}
	c := call{name: name, body: v.Raw()}
	switch inside, ok := mend.JSON(arguments.Str()); {
	case !arguments.Exists(), arguments.Kind() == rawjson.Null:
		c.arguments = "{}"
	case arguments.Kind() == rawjson.Object:
		c.arguments = arguments.Raw()
	case ok && isObject(inside):
		c.arguments = inside
	default:
		return call{}, issue{"unreadable", "its arguments are not a JSON object"}
	}
	return c, issue{}
}

// isObject reports whether a text is a JSON object.
func isObject(text string) bool {
	doc, err := rawjson.Parse(text, anySize)
	return err == nil && doc.Root().Kind() == rawjson.Object
}

// unknown is the issue of a call to a tool that is not offered.
func unknown(name string) issue {
	return issue{"unknown_tool", "there is no tool " + text.Label(name)}
}
