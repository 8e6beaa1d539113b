package chat

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// fields are the members that a message and a delta may have and that are
// understood here.
type fields struct {
	role, content, name, callID, calls, function  rawjson.Value
	reasoning, reasoningContent, details, refusal rawjson.Value
	audio                                         rawjson.Value
}

// slot returns where the member key is kept; nil for one that is not known.
func (f *fields) slot(key string) *rawjson.Value {
	switch key {
	case "role":
		return &f.role
	case "content":
		return &f.content
	case "name":
		return &f.name
	case "tool_call_id":
		return &f.callID
	case "tool_calls":
		return &f.calls
	case "function_call":
		return &f.function
	case "reasoning":
		return &f.reasoning
	case "reasoning_content":
		return &f.reasoningContent
	case "reasoning_details":
		return &f.details
	case "refusal":
		return &f.refusal
	case "audio":
		return &f.audio
	}
	return nil
}

// readFields looks once at each member of object. Of members with one key the
// last counts.
func readFields(object rawjson.Value) fields {
	var f fields
	for m := range object.Each() {
		if at := f.slot(m.Key()); at != nil {
			*at = m
		}
	}
	return f
}

// chunkFields are the members of a chunk that are understood here.
type chunkFields struct {
	failed, groq, id, object, choices, model, usage rawjson.Value
}

// readChunk is readFields for a chunk.
func readChunk(object rawjson.Value) (f chunkFields) {
	for m := range object.Each() {
		switch m.Key() {
		case "error":
			f.failed = m
		case "x_groq":
			f.groq = m
		case "id":
			f.id = m
		case "object":
			f.object = m
		case "choices":
			f.choices = m
		case "model":
			f.model = m
		case "usage":
			f.usage = m
		}
	}
	return f
}

// check returns an error if a member that holds calls is of a kind that hides
// them.
func (f *fields) check() error {
	if !holds(f.calls, rawjson.Array) {
		return codec.Shapef("tool_calls is of kind %s", f.calls.Kind())
	}
	if !holds(f.function, rawjson.Object) {
		return codec.Shapef("function_call is of kind %s", f.function.Kind())
	}
	return nil
}

// holds reports whether v is of the kind that holds calls, or of one that holds
// nothing at all: servers write "", false or {} for none.
func holds(v rawjson.Value, kind rawjson.Kind) bool {
	switch v.Kind() {
	case kind:
		return true
	case rawjson.String:
		return v.Str() == ""
	case rawjson.Array, rawjson.Object:
		return v.Empty()
	}
	return true
}

// hasReasoning reports whether there is reasoning, in any of the three members
// that servers put it in.
func (f *fields) hasReasoning() bool {
	return f.reasoning.Str() != "" || f.reasoningContent.Str() != "" || f.details.Kind() == rawjson.Array && !f.details.Empty()
}

// reasoningText returns the reasoning once: servers that fill several members
// say the same in each.
func (f *fields) reasoningText() string {
	if s := f.reasoningContent.Str(); s != "" {
		return s
	}
	if s := f.reasoning.Str(); s != "" {
		return s
	}
	var b strings.Builder
	for d := range f.details.Each() {
		b.WriteString(d.Get("text").Str())
		b.WriteString(d.Get("summary").Str())
	}
	return b.String()
}

// reasoningRaw returns the members of the reasoning as an object of their own.
func (f *fields) reasoningRaw() string {
	var members []codec.Member
	for _, v := range []rawjson.Value{f.reasoningContent, f.reasoning, f.details} {
		if k := v.Kind(); k == rawjson.String || k == rawjson.Array {
			members = append(members, codec.Member{Key: v.Key(), Raw: v.Raw()})
		}
	}
	return memberRaw(members...)
}

// hasFunction reports whether a call in the old form is there: some servers
// send an empty one always.
func (f *fields) hasFunction() bool {
	return f.function.Get("name").Str() != "" || f.function.Get("arguments").Str() != ""
}
