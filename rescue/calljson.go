package rescue

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/text"
)

// inJSON reads a call, or an array of calls, that is written as JSON: an object
// with a name and arguments, which some models put into a member "function".
func (t *tools) inJSON(v rawjson.Value) ([]call, issue) {
	if v.Kind() != rawjson.Array {
		c, wrong := t.oneInJSON(v)
		return []call{c}, wrong
	}
	var calls []call
	for element := range v.Each() {
		c, wrong := t.oneInJSON(element)
		if wrong.code != "" {
			return nil, wrong
		}
		calls = append(calls, c)
	}
	if len(calls) == 0 {
		return nil, issue{"unreadable", "the list of calls is empty"}
	}
	return calls, issue{}
}

// envelope says which members the object around a call may have, and which of
// them hold the arguments.
var envelope = map[string]bool{"arguments": true, "parameters": true, "name": false, "id": false, "type": false, "index": false, "call_id": false}

// oneInJSON reads one call. Arguments that are missing are none: models leave them
// out for tools without parameters, and argsvalidate knows which are required.
// Arguments in a string are those of OpenAI's format, which models have seen.
func (t *tools) oneInJSON(v rawjson.Value) (call, issue) {
	if inner := v.Get("function"); inner.Kind() == rawjson.Object {
		for m := range v.Each() {
			if key := m.Key(); key != "function" && key != "id" && key != "type" && key != "index" {
				return call{}, issue{"ambiguous", "it has members beside the function"}
			}
		}
		v = inner
	}
	if v.Kind() != rawjson.Object {
		return call{}, issue{"unreadable", "it is not a JSON object"}
	}
	var arguments rawjson.Value
	seen := map[string]bool{}
	for m := range v.Each() {
		holds, known := envelope[m.Key()]
		if !known || seen[m.Key()] || holds && arguments.Exists() {
			return call{}, issue{"ambiguous", "it must have the members name and arguments, each once, and no others"}
		}
		seen[m.Key()] = true
		if holds {
			arguments = m
		}
	}
	name, ok := t.find(v.Get("name").Str())
	if !ok {
		return call{}, unknown(v.Get("name").Str())
	}
	c := call{name: name, body: v.Raw()}
	switch inside, err := rawjson.Parse(arguments.Str(), anySize); {
	case !arguments.Exists(), arguments.Kind() == rawjson.Null:
		c.arguments = "{}"
	case arguments.Kind() == rawjson.Object:
		c.arguments = arguments.Raw()
	case arguments.Kind() == rawjson.String && err == nil && inside.Root().Kind() == rawjson.Object:
		c.arguments = arguments.Str()
	default:
		return call{}, issue{"unreadable", "its arguments are not a JSON object"}
	}
	return c, issue{}
}

// unknown is the issue of a call to a tool that is not offered.
func unknown(name string) issue {
	return issue{"unknown_tool", "there is no tool " + text.Label(name)}
}
