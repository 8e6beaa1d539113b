package ollama

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// call is the handle behind a tool call.
type call struct {
	value rawjson.Value
	id    string // as written; mostly "" on older servers
	snap  middleware.ToolCall

	encoded bool // the arguments are a string that holds JSON
}

// readCall reads an element of tool_calls. Without an id on the wire it gets
// place.
func readCall(v rawjson.Value, place string) (middleware.ToolCall, error) {
	if v.Kind() != rawjson.Object {
		return middleware.ToolCall{}, codec.Shapef("a call of kind %s", v.Kind())
	}
	h := &call{value: v}
	function, err := member(v, "function", rawjson.Object)
	if err != nil {
		return middleware.ToolCall{}, err
	}
	if !function.Exists() {
		return middleware.ToolCall{}, codec.Shapef("a call without a function")
	}
	h.id = codec.Text(v.Get("id"))
	if h.snap.ID = h.id; h.id == "" {
		h.snap.ID = place
	}
	if h.snap.Name, err = text(function, "name"); err != nil {
		return middleware.ToolCall{}, err
	}
	switch arguments := function.Get("arguments"); arguments.Kind() {
	case rawjson.Null:
	case rawjson.String: // as servers write it that are made like this one
		h.snap.Arguments, h.encoded = arguments.Str(), true
	default:
		h.snap.Arguments = arguments.Raw()
	}
	h.snap.Native = native(v, h)
	return h.snap, nil
}

// handleOf returns the handle behind c, nil if c is not of this format.
func handleOf(c middleware.ToolCall) (*call, error) {
	return codec.Handle(c.Native, dialect, func(raw string) (*call, error) {
		v, err := object(raw)
		if err != nil {
			return nil, err
		}
		again, err := readCall(v, "")
		if err != nil {
			return nil, codec.Unencodablef("the Native of a call is none")
		}
		return again.Native.Ref.(*call), nil
	})
}

// wireID returns the id that c has, or gets, on the wire; "" for none. What is
// only its place is not written where there was nothing.
func (h *call) wireID(c middleware.ToolCall) string {
	if codec.IsPlaceID(c.ID) && (h == nil || h.id == "") {
		return ""
	}
	return c.ID
}

// writeCall returns c as an element of tool_calls, and its id there. Arguments
// that are no object become {} in a request, and are ErrUnencodable in an
// answer.
func writeCall(c middleware.ToolCall, answer bool) (raw, id string, err error) {
	h, err := handleOf(c)
	if err != nil {
		return "", "", err
	}
	if c.Kind != middleware.KindFunction {
		return "", "", codec.Unencodablef("a call of kind %q", c.Kind)
	}
	id = h.wireID(c)
	var of []codec.Member
	if h == nil || c.Name != h.snap.Name {
		of = append(of, codec.Member{Key: "name", Raw: rawjson.Quote(c.Name)})
	}
	if h == nil || c.Arguments != h.snap.Arguments {
		arguments := strings.TrimSpace(c.Arguments)
		switch object := codec.IsObject(arguments); {
		case !object && answer:
			return "", "", codec.Unencodablef("arguments that are no JSON object")
		case !object:
			arguments = "{}"
		}
		if h != nil && h.encoded {
			arguments = rawjson.Quote(arguments)
		}
		of = append(of, codec.Member{Key: "arguments", Raw: arguments})
	}
	if h == nil {
		return codec.Object(quoted("id", id), codec.Member{Key: "function", Raw: codec.Object(of...)}), id, nil
	}
	raw, err = h.edited(id, of)
	return raw, id, err
}

// edited returns the call's text with another id and other members of its
// function.
func (h *call) edited(id string, of []codec.Member) (string, error) {
	p := codec.NewPatch(h.value)
	if id != h.id {
		p.Put(quoted("id", id))
	}
	if len(of) > 0 {
		function, err := codec.Only(h.value, "function")
		if err != nil {
			return "", err
		}
		p.Add(codec.SetAll(function, of...))
	}
	return p.Text()
}

// quoted is a member with a string, none for "".
func quoted(key, s string) codec.Member {
	if s == "" {
		return codec.Member{Key: key}
	}
	return codec.Member{Key: key, Raw: rawjson.Quote(s)}
}
