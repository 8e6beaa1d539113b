package responses

import (
	"cmp"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// readSettings reads the model, the figures and the tool choice into r.
func readSettings(root rawjson.Value, r *middleware.Request) (err error) {
	in := on.Reader()
	r.Model = in.Text(root, "model")
	r.Temperature = codec.Float(in.Kind(root, "temperature", rawjson.Number))
	r.MaxTokens = int(codec.Int(in.Kind(root, "max_output_tokens", rawjson.Number)))
	if on.Get(root, "conversation").Kind() != rawjson.String {
		in.Kind(root, "conversation", rawjson.Object)
	}
	r.ToolChoice, err = readChoice(on.Get(root, "tool_choice"))
	return cmp.Or(in.Err, err)
}

// settings projects the model, which comes first, and the figures. A request
// without a model has it in a prompt that the provider keeps.
func settings(r *middleware.Request) []lens.Member {
	return []lens.Member{
		lens.Word("model", r.Model),
		lens.Float("temperature", r.Temperature),
		lens.Count("max_output_tokens", int64(r.MaxTokens)),
	}
}

// provider says what the provider keeps of a conversation, and a request need not
// or must not repeat.
type provider struct {
	stored bool // the answers ("store", true by default): reasoning may go by its id
	held   bool // the conversation itself: the answers must not be repeated
}

// readProvider reads what a request says of it. Answers are kept unless it says
// that they are not.
func readProvider(root rawjson.Value) provider {
	return provider{stored: root.Get("store").Raw() != "false", held: on.Get(root, "conversation").Exists()}
}

// readChoice reads tool_choice: a mode, one tool, or a list of tools and a mode:
//
//	"auto" or "required" or "none"
//	{"type": "function", "name": …} or {"type": "web_search"}
//	{"type": "allowed_tools", "mode": …, "tools": […]}
//
// A hosted tool goes by its type, a server of tools by its label. The list is not
// seen: every tool of it is one of the request.
func readChoice(v rawjson.Value) (c middleware.ToolChoice, err error) {
	switch v.Kind() {
	case rawjson.Invalid:
	case rawjson.String:
		c.Mode = modeOf(v.Str())
	case rawjson.Object:
		if v.Get("type").Str() == "allowed_tools" {
			c.Mode = modeOf(v.Get("mode").Str())
		} else {
			c.Name = codec.FirstText(v.Get("name"), v.Get("server_label"), v.Get("type"))
		}
	default:
		err = codec.Shapef("%s where tool_choice should be", v.Kind())
	}
	return c, err
}

// modeOf passes on a word that it does not know.
func modeOf(word string) middleware.ToolMode {
	if word == "auto" {
		return middleware.ToolAuto
	}
	return middleware.ToolMode(strings.Clone(word))
}

// choiceMember projects the tool choice of r. A mode goes into the list of
// allowed tools, if old is one, but for none.
func choiceMember(old rawjson.Value, r *middleware.Request) lens.Member {
	c, word := r.ToolChoice, "auto"
	switch {
	case c.Name != "":
		return lens.Raw("tool_choice", toolChoice(r))
	case c.Mode != middleware.ToolAuto:
		word = string(c.Mode)
	}
	if old.Get("type").Str() == "allowed_tools" && c.Mode != middleware.ToolNone {
		return lens.Text("tool_choice/mode", word)
	}
	return lens.Text("tool_choice", word)
}

// toolChoice returns the choice of the one tool that r names. Its type is that of
// the tool; a name that no tool has is taken for that of a function.
func toolChoice(r *middleware.Request) string {
	name, kind := r.ToolChoice.Name, "function"
	for _, t := range r.Tools {
		if t.Name != name {
			continue
		}
		if t.Kind == middleware.KindCustom {
			kind = "custom"
		}
		if v, err := on.Value(t.Native); err == nil && v.Exists() && t.Kind != middleware.KindFunction && t.Kind != middleware.KindCustom {
			if v.Get("type").Str() == "mcp" {
				return on.Object(lens.Text("type", "mcp"), lens.Text("server_label", name))
			}
			return on.Object(lens.Text("type", v.Get("type").Str()))
		}
		break
	}
	return on.Object(lens.Text("type", kind), lens.Text("name", name))
}
