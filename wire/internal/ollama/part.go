package ollama

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// readParts reads the parts of a message: its reasoning, its text and its images,
// in this order, which is the one in which models write them. An empty text is no
// part.
func readParts(v rawjson.Value) (parts []middleware.Part, err error) {
	for _, p := range []struct {
		key  string
		kind middleware.PartKind
	}{{"thinking", middleware.PartReasoning}, {"content", middleware.PartText}} {
		s, err := on.Kind(v, p.key, rawjson.String)
		if err != nil {
			return nil, err
		}
		if s.Str() != "" {
			parts = append(parts, middleware.Part{Kind: p.kind, Text: s.Str(), Native: on.Native(s.Raw())})
		}
	}
	images, err := on.Kind(v, "images", rawjson.Array)
	for e := range images.Each() {
		parts = append(parts, readImage(e))
	}
	return parts, err
}

// readImage reads an element of images. What is not base64, or no image, the
// server will refuse; it is not this package's to say so.
func readImage(v rawjson.Value) middleware.Part {
	data, err := base64.StdEncoding.DecodeString(v.Str())
	if err != nil || len(data) == 0 {
		return middleware.Part{Kind: middleware.PartOpaque, Native: on.Native(v.Raw())}
	}
	p := middleware.Part{Kind: middleware.PartMedia, Data: data, Native: on.Native(v.Raw())}
	if t := http.DetectContentType(data); strings.HasPrefix(t, "image/") {
		p.MediaType = t
	}
	return p
}

// content is what parts are on the wire. It does not tell where one text ended and
// the next began.
type content struct {
	text, thinking string
	images         []string
}

// members projects a message of that role, but for its lists.
func (c content) members(role middleware.Role) []lens.Member {
	return []lens.Member{lens.Text("role", string(role)), lens.Text("content", c.text), lens.Word("thinking", c.thinking)}
}

// contentOf joins parts. Reasoning that another provider wrote is left out,
// unless others is set.
func contentOf(parts []middleware.Part, others bool) (content, error) {
	var c content
	var text, thinking strings.Builder
	for _, p := range parts {
		own := on.Raw(p.Native) != ""
		switch {
		case p.Kind == middleware.PartText:
			text.WriteString(p.Text)
		case p.Kind == middleware.PartReasoning && (others || own):
			thinking.WriteString(p.Text)
		case p.Kind == middleware.PartReasoning:
		case p.Kind == middleware.PartOpaque && own:
			c.images = append(c.images, p.Native.Raw)
		case p.Kind == middleware.PartMedia && len(p.Data) > 0:
			c.images = append(c.images, imageText(p))
		case p.Kind == middleware.PartMedia:
			return c, codec.Unencodablef("an image that is only an address")
		default:
			return c, codec.Unencodablef("a part of another format")
		}
	}
	c.text, c.thinking = text.String(), thinking.String()
	return c, nil
}

// imageText returns p as an element of images: as it was written, if it is still
// the same.
func imageText(p middleware.Part) string {
	if v, err := on.Value(p.Native); err == nil && v.Exists() && bytes.Equal(readImage(v).Data, p.Data) {
		return v.Raw()
	}
	return `"` + base64.StdEncoding.EncodeToString(p.Data) + `"`
}

// readCall reads an element of tool_calls:
//
//	{"id": "call_1", "function": {"index": 0, "name": "weather", "arguments": {"city": "Oslo"}}}
//
// Its id is "" if it has none: the caller knows its place.
func readCall(v rawjson.Value) (c middleware.ToolCall, err error) {
	function, err := on.Kind(v, "function", rawjson.Object)
	if err != nil {
		return c, err
	}
	if !function.Exists() {
		return c, codec.Shapef("a call without a function")
	}
	c.ID = codec.Text(v.Get("id"))
	c.Arguments = argumentsOf(v)
	c.Native = on.Native(v.Raw())
	c.Name, err = on.Text(function, "name")
	return c, err
}

// argumentsOf returns the arguments of a call: an object or, as servers write it
// that are made like this one, a string that holds one.
func argumentsOf(call rawjson.Value) string {
	arguments := on.Get(on.Get(call, "function"), "arguments")
	if arguments.Kind() == rawjson.String {
		return arguments.Str()
	}
	return arguments.Raw()
}

// hasID reports whether the call behind n has an id on the wire.
func hasID(n *middleware.Native) bool {
	v, err := on.Value(n)
	return err == nil && codec.Text(v.Get("id")) != ""
}

// callTexts returns calls as elements of tool_calls. Arguments that are not an
// object become {} in a request, and are ErrUnencodable in an answer. An index in an
// answer is the place of the call: clients put the calls of a stream together by it.
func callTexts(calls []middleware.ToolCall, answer bool) ([]string, error) {
	members := func(v rawjson.Value, c middleware.ToolCall) ([]lens.Member, error) {
		return callMembers(v, c, answer)
	}
	out := make([]string, len(calls))
	for i, c := range calls {
		if c.Kind != middleware.KindFunction {
			return nil, codec.Unencodablef("a call of kind %q", c.Kind)
		}
		var err error
		if out[i], err = lens.Rewrite(on, c.Native, c, readCall, members); err != nil {
			return nil, err
		}
		v, err := codec.ParseObject(out[i])
		if err == nil && answer && v.Get("function").Get("index").Exists() {
			out[i], err = on.Set(v, lens.Raw("function/index", codec.Count(int64(i))))
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// callMembers projects a call. v is the text that is edited: it says how the
// arguments are written, and whether there is an id. An id that is only the call's
// place is not written where there was none.
func callMembers(v rawjson.Value, c middleware.ToolCall, answer bool) ([]lens.Member, error) {
	if codec.IsPlaceID(c.ID) && codec.Text(v.Get("id")) == "" {
		c.ID = ""
	}
	was := v.Get("function").Get("arguments")
	arguments := was.Raw()
	if !v.Exists() || c.Arguments != argumentsOf(v) {
		arguments = strings.TrimSpace(c.Arguments)
		switch object := codec.IsObject(arguments); {
		case !object && answer:
			return nil, codec.Unencodablef("arguments that are no JSON object")
		case !object:
			arguments = "{}"
		}
		if was.Kind() == rawjson.String {
			arguments = rawjson.Quote(arguments)
		}
	}
	return []lens.Member{lens.Word("id", c.ID), lens.Text("function/name", c.Name), lens.Raw("function/arguments", arguments)}, nil
}
