package anthropic

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// maxTokens is what a request allows for the answer where it does not say: the
// wire demands a number.
const maxTokens = 4096

// readSettings reads the model, the bounds of the answer and the tool choice
// into r:
//
//	"tool_choice": {"type": "auto" or "any" or "none"} or {"type": "tool", "name": …}
//
// The model is "" where a cloud has it in the path.
func readSettings(root rawjson.Value, r *middleware.Request) (err error) {
	if r.Model, err = on.Text(root, "model"); err != nil {
		return err
	}
	r.Temperature = codec.Float(root.Get("temperature"))
	r.MaxTokens = int(codec.Int(root.Get("max_tokens")))
	for v := range root.Get("stop_sequences").Each() {
		r.Stop = append(r.Stop, v.Str())
	}
	choice := root.Get("tool_choice")
	switch choice.Get("type").Str() {
	case "none":
		r.ToolChoice.Mode = middleware.ToolNone
	case "any":
		r.ToolChoice.Mode = middleware.ToolRequired
	case "tool":
		r.ToolChoice.Name, err = on.Text(choice, "name")
	}
	return err
}

// settings projects the model and max_tokens, which come first, and the rest but
// for the tool choice. fresh relies on that order.
func settings(r *middleware.Request) []lens.Member {
	n := r.MaxTokens
	if n == 0 {
		n = maxTokens
	}
	return []lens.Member{
		lens.Word("model", r.Model),
		lens.Count("max_tokens", int64(n)),
		lens.Float("temperature", r.Temperature),
		lens.Words("stop_sequences", r.Stop),
	}
}

// choice projects a tool choice. Other members, such as
// disable_parallel_tool_use, stay where they have a meaning.
func choice(c middleware.ToolChoice) []lens.Member {
	kind := "auto"
	switch {
	case c.Name != "":
		kind = "tool"
	case c.Mode == middleware.ToolNone:
		kind = "none"
	case c.Mode == middleware.ToolRequired:
		kind = "any"
	}
	members := []lens.Member{lens.Text("tool_choice/type", kind), lens.Word("tool_choice/name", c.Name)}
	if kind == "none" {
		members = append(members, lens.None("tool_choice/disable_parallel_tool_use"))
	}
	return members
}
