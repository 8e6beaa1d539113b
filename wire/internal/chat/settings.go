package chat

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// readSettings reads the members of a request beside messages and tools. null
// means that the provider's default holds.
func readSettings(v rawjson.Value, req *middleware.Request) (err error) {
	if req.Model, err = on.Text(v, "model"); err != nil {
		return err
	}
	req.Temperature = codec.Float(v.Get("temperature"))
	for _, key := range limits {
		if n := codec.Int(v.Get(key)); n > 0 && n == int64(int(n)) && req.MaxTokens == 0 {
			req.MaxTokens = int(n)
		}
	}
	switch stop := v.Get("stop"); stop.Kind() {
	case rawjson.String:
		req.Stop = []string{stop.Str()}
	case rawjson.Array:
		req.Stop, err = on.Texts(v, "stop")
	}
	choice := v.Get("tool_choice")
	if !choice.Exists() {
		choice = v.Get("function_call") // the old name
	}
	req.ToolChoice = readChoice(choice)
	return err
}

// limits are the two names of the bound on the answer, the newer one first.
var limits = []string{"max_completion_tokens", "max_tokens"}

// readChoice reads a choice of tools, in the newer or the old form:
//
//	"auto" or "none" or "required" or "any", which is Mistral's word for it
//	{"type": "function", "function": {"name": …}} or {"name": …}
//	{"type": "allowed_tools", "allowed_tools": {"mode": …, "tools": […]}}
//
// The list of allowed tools has no neutral form: its mode is read.
func readChoice(v rawjson.Value) middleware.ToolChoice {
	word := v.Str()
	if v.Kind() == rawjson.Object {
		for _, holder := range []rawjson.Value{v.Get("function"), v.Get("custom"), v} {
			if name := holder.Get("name").Str(); name != "" {
				return middleware.ToolChoice{Name: name}
			}
		}
		word = v.Get("allowed_tools").Get("mode").Str()
	}
	switch word {
	case "none":
		return middleware.ToolChoice{Mode: middleware.ToolNone}
	case "required", "any":
		return middleware.ToolChoice{Mode: middleware.ToolRequired}
	}
	return middleware.ToolChoice{}
}

// editSettings puts the settings in which req differs from is into an edit of v. Without
// tools the members that are allowed beside tools only go.
func editSettings(e *lens.Edit, v rawjson.Value, is, req *middleware.Request) error {
	e.Put(lens.Differ(settings(v, is), settings(v, req))...)
	if len(req.Output) > 0 {
		if form := v.Get("response_format"); form.Exists() && form.Get("type").Str() != "text" {
			return codec.Unencodablef("a schema of the answer's text beside response_format")
		}
		e.Put(output(req))
	}
	if len(req.Tools) == 0 && req.ToolChoice == (middleware.ToolChoice{}) && len(is.Tools) > 0 && v.Get("tools").Len() > 0 {
		e.Put(lens.None("tool_choice"), lens.None("parallel_tool_calls"))
		return nil
	}
	if req.ToolChoice == is.ToolChoice {
		return nil
	}
	m, err := choice(v, req)
	e.Put(m)
	return err
}

// output is the member for the schema of the answer's text.
func output(req *middleware.Request) lens.Member {
	if len(req.Output) == 0 {
		return lens.None("response_format")
	}
	return lens.Raw("response_format", `{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":`+string(req.Output)+`}}`)
}

// settings projects the settings but for the choice of tools. A limit is written
// where it stands, or under its newer name: OpenAI refuses both.
func settings(v rawjson.Value, req *middleware.Request) []lens.Member {
	members := []lens.Member{lens.Word("model", req.Model), lens.Float("temperature", req.Temperature)}
	limit := lens.Count(limits[0], int64(max(req.MaxTokens, 0)))
	found := false
	for _, key := range limits {
		if on.Get(v, key).Exists() {
			members, found = append(members, lens.Raw(key, limit.Raw)), true
		}
	}
	if !found {
		members = append(members, limit)
	}
	if len(req.Stop) == 1 && v.Get("stop").Kind() == rawjson.String {
		return append(members, lens.Text("stop", req.Stop[0]))
	}
	return append(members, lens.Words("stop", req.Stop))
}

// choice returns the member that another choice of tools changes. The list of
// allowed tools stays where only its mode does.
func choice(v rawjson.Value, req *middleware.Request) (lens.Member, error) {
	const function = "function_call"
	mode, only := req.ToolChoice.Mode, req.ToolChoice.Name
	switch {
	case v.Get("tool_choice").Get("allowed_tools").Kind() == rawjson.Object && only == "" && mode != middleware.ToolNone:
		if mode == middleware.ToolAuto {
			mode = "auto"
		}
		return lens.Text("tool_choice/allowed_tools/mode", string(mode)), nil
	case !isOld(v) || v.Get("tool_choice").Exists(): // which is the one that is read
		return lens.Raw("tool_choice", choiceText(req)), nil
	case only != "":
		return lens.Raw(function, codec.Object(lens.Text("name", only))), nil
	case mode == middleware.ToolRequired:
		return lens.Member{}, codec.Unencodablef("function_call cannot require some call")
	}
	return lens.Word(function, string(mode)), nil
}

// choiceText writes req's choice of tools; "" is the default.
func choiceText(req *middleware.Request) string {
	c := req.ToolChoice
	if c.Name == "" {
		return lens.Word("", string(c.Mode)).Raw
	}
	kind := "function"
	for _, t := range req.Tools {
		if t.Name == c.Name && t.Kind == middleware.KindCustom {
			kind = "custom"
		}
	}
	return on.Object(lens.Text("type", kind), lens.Text(kind+"/name", c.Name))
}
