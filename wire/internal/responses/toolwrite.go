package responses

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// tools patches tools and tool_choice.
func (h *request) tools(req *middleware.Request, patch *codec.Patch) error {
	if req.ToolChoice != h.was.ToolChoice {
		if err := h.choice(req, patch); err != nil {
			return err
		}
	}
	here := h.declaring(req)
	if h.sameTools(req, here) {
		return nil
	}
	inside, decoded := map[string]bool{}, map[string]*tool{}
	for _, v := range h.views {
		decoded[v.native.Raw] = v.native.Ref.(*tool)
		if v.inside != nil && here[v.inside.Raw] {
			inside[v.native.Raw] = true
			if !here[v.native.Raw] {
				return codec.Unencodablef("a tool was taken out of what declares it")
			}
		}
	}
	var raws []string
	for _, t := range req.Tools {
		own, err := handleTool(t)
		if err != nil {
			return err
		}
		if own != nil && decoded[t.Native.Raw] != nil {
			own = decoded[t.Native.Raw] // stored or not: what was seen of it
		}
		if own != nil && inside[t.Native.Raw] {
			if !codec.SameTool(own.was, t) {
				return codec.Unencodablef("a change of a tool inside of what declares it")
			}
			continue
		}
		raw, err := toolText(t, own)
		if err != nil {
			return err
		}
		raws = append(raws, raw)
	}
	if old, err := codec.Only(h.root, "tools"); old.Kind() == rawjson.Array || err != nil {
		patch.Add(codec.Splice(old, raws), err)
	} else if len(raws) > 0 {
		patch.Set("tools", codec.Array(raws))
	}
	return nil
}

// declaring returns what is still in the request, by its form, if some of its
// tools are declared elsewhere than in tools.
func (h *request) declaring(req *middleware.Request) map[string]bool {
	if !slices.ContainsFunc(h.views, func(v view) bool { return v.inside != nil }) {
		return nil
	}
	here := map[string]bool{}
	for _, t := range req.Tools {
		if t.Native != nil {
			here[t.Native.Raw] = true
		}
	}
	for _, m := range req.Messages {
		if m.Native != nil {
			here[m.Native.Raw] = true
		}
	}
	return here
}

// sameTools reports whether the tools, and what declares them, are those that
// were decoded.
func (h *request) sameTools(req *middleware.Request, here map[string]bool) bool {
	if len(req.Tools) != len(h.views) {
		return false
	}
	for i, t := range req.Tools {
		own := h.views[i].native
		if !codec.SameNative(t.Native, own) || !codec.SameTool(own.Ref.(*tool).was, t) {
			return false
		}
	}
	return !slices.ContainsFunc(h.views, func(v view) bool { return v.inside != nil && !here[v.inside.Raw] })
}

// choice patches tool_choice.
func (h *request) choice(req *middleware.Request, patch *codec.Patch) error {
	old, err := codec.Only(h.root, "tool_choice")
	if err != nil {
		return err
	}
	word := choiceText(req)
	switch {
	case req.ToolChoice == (middleware.ToolChoice{}) && absent(old):
		return nil
	case req.ToolChoice.Name == "" && req.ToolChoice.Mode != middleware.ToolNone && old.Get("type").Str() == "allowed_tools":
		e, err := codec.Set(old, "mode", word)
		patch.Add([]rawjson.Edit{e}, err)
	default:
		patch.Set("tool_choice", word)
	}
	return nil
}

// choiceText writes tool_choice.
func choiceText(req *middleware.Request) string {
	switch {
	case req.ToolChoice == (middleware.ToolChoice{}):
		return `"auto"`
	case req.ToolChoice.Name == "":
		return rawjson.Quote(string(req.ToolChoice.Mode))
	}
	typ := "function"
	for _, t := range req.Tools {
		if t.Name != req.ToolChoice.Name {
			continue
		}
		if t.Kind == middleware.KindCustom {
			typ = "custom"
		}
		if own, err := handleTool(t); err == nil && own != nil && t.Kind != middleware.KindFunction && t.Kind != middleware.KindCustom {
			if own.val.Get("type").Str() == "mcp" {
				return codec.Object(member("type", "mcp"), member("server_label", req.ToolChoice.Name))
			}
			return codec.Object(member("type", own.val.Get("type").Str()))
		}
		break
	}
	return codec.Object(member("type", typ), member("name", req.ToolChoice.Name))
}

// toolText writes a tool: its own form with what has changed in it, or afresh.
func toolText(t middleware.Tool, own *tool) (string, error) {
	if own == nil {
		return freshTool(t)
	}
	was := own.was
	if codec.SameTool(was, t) {
		return own.val.Raw(), nil
	}
	if was.Kind != t.Kind || t.Kind != middleware.KindFunction && (t.Kind != middleware.KindCustom || !bytes.Equal(was.Parameters, t.Parameters) || was.Strict != t.Strict) {
		return "", codec.Unencodablef("a change of a tool of kind %s", was.Kind)
	}
	patch := codec.NewPatch(own.val)
	if was.Name != t.Name {
		patch.Set("name", rawjson.Quote(t.Name))
	}
	if was.Description != t.Description {
		patch.Set("description", rawjson.Quote(t.Description))
	}
	if was.Strict != t.Strict {
		patch.Set("strict", boolean(t.Strict))
	}
	if !bytes.Equal(was.Parameters, t.Parameters) {
		raw, err := schema(t.Parameters)
		if err != nil {
			return "", err
		}
		patch.Set("parameters", raw)
	}
	return patch.Text()
}

// freshTool writes a tool from its neutral fields. strict is always said: its
// default is true here.
func freshTool(t middleware.Tool) (string, error) {
	description := codec.Member{}
	if t.Description != "" {
		description = member("description", t.Description)
	}
	switch t.Kind {
	case middleware.KindFunction:
		raw, err := schema(t.Parameters)
		return codec.Object(member("type", "function"), member("name", t.Name), description,
			codec.Member{Key: "parameters", Raw: raw}, codec.Member{Key: "strict", Raw: boolean(t.Strict)}), err
	case middleware.KindCustom:
		return codec.Object(member("type", "custom"), member("name", t.Name), description), nil
	}
	return "", codec.Unencodablef("a tool of kind %s that is not of this format", t.Kind)
}

// schema writes parameters; none are null.
func schema(parameters json.RawMessage) (string, error) {
	if len(parameters) == 0 {
		return "null", nil
	}
	doc, err := codec.Parse(string(parameters))
	if err != nil {
		return "", codec.Unencodablef("parameters that are no JSON")
	}
	return doc.Root().Raw(), nil
}

func boolean(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
