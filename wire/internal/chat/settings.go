package chat

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// readSettings decodes the members of a request beside messages and tools.
// null means that the provider's default holds.
func readSettings(v rawjson.Value, req *middleware.Request) error {
	if !isText(v.Get("model")) {
		return codec.Shapef("model is of kind %s", v.Get("model").Kind())
	}
	req.Model = v.Get("model").Str()
	req.Temperature = codec.Float(v.Get("temperature"))
	req.MaxTokens = readLimit(v)
	stop := v.Get("stop")
	switch stop.Kind() {
	case rawjson.String:
		req.Stop = []string{stop.Str()}
	case rawjson.Array:
		for s := range stop.Each() {
			if s.Kind() != rawjson.String {
				return codec.Shapef("a stop word is of kind %s", s.Kind())
			}
			req.Stop = append(req.Stop, s.Str())
		}
	}
	req.ToolChoice = readChoice(choiceOf(v))
	return nil
}

// The two names of the bound on the answer, the newer one first.
var limits = []string{"max_completion_tokens", "max_tokens"}

func readLimit(v rawjson.Value) int {
	for _, key := range limits {
		if n := codec.Int(v.Get(key)); n > 0 && n == int64(int(n)) {
			return int(n)
		}
	}
	return 0
}

// choiceOf returns where the choice of tools stands: function_call is the old
// name.
func choiceOf(v rawjson.Value) rawjson.Value {
	if c := v.Get("tool_choice"); c.Exists() {
		return c
	}
	return v.Get("function_call")
}

// readChoice decodes a choice of tools. "any" is Mistral's word.
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

// settings returns what has to change for the settings of req: members of the
// body, and edits inside of one.
func (h *request) settings(req *middleware.Request) (members []codec.Member, inner []rawjson.Edit, err error) {
	if req.Model != h.snap.Model {
		members = append(members, codec.Member{Key: "model", Raw: quoted(req.Model)})
	}
	if !codec.SameFloat(req.Temperature, h.snap.Temperature) {
		m := codec.Member{Key: "temperature"}
		if req.Temperature != nil {
			m.Raw = codec.Number(*req.Temperature)
		}
		members = append(members, m)
	}
	if req.MaxTokens != h.snap.MaxTokens {
		members = append(members, h.limit(req.MaxTokens)...)
	}
	if !slices.Equal(req.Stop, h.stop) {
		members = append(members, codec.Member{Key: "stop", Raw: stopJSON(req.Stop, h.v.Get("stop").Kind() == rawjson.String)})
	}
	if req.ToolChoice != h.snap.ToolChoice {
		m, edits, err := h.choice(req)
		return append(members, m...), edits, err
	}
	return members, nil, nil
}

// limit writes the bound on the answer where it stands, or under its newer
// name.
func (h *request) limit(n int) []codec.Member {
	raw := ""
	if n > 0 {
		raw = codec.Count(int64(n))
	}
	var members []codec.Member
	for _, key := range limits {
		if v := h.v.Get(key); v.Exists() && v.Kind() != rawjson.Null { // OpenAI refuses both
			members = append(members, codec.Member{Key: key, Raw: raw})
		}
	}
	if members == nil {
		members = []codec.Member{{Key: limits[0], Raw: raw}}
	}
	return members
}

// choice writes another choice of tools. The list of allowed tools stays where
// only its mode changes.
func (h *request) choice(req *middleware.Request) ([]codec.Member, []rawjson.Edit, error) {
	allowed := h.v.Get("tool_choice").Get("allowed_tools")
	if allowed.Kind() == rawjson.Object && req.ToolChoice.Name == "" && req.ToolChoice.Mode != middleware.ToolNone {
		mode := "auto"
		if req.ToolChoice.Mode == middleware.ToolRequired {
			mode = "required"
		}
		edits, err := codec.SetAll(allowed, codec.Member{Key: "mode", Raw: rawjson.Quote(mode)})
		return nil, edits, err
	}
	if !h.old() || h.v.Get("tool_choice").Exists() { // which is the one that is read
		return []codec.Member{{Key: "tool_choice", Raw: choiceJSON(req)}}, nil, nil
	}
	m := codec.Member{Key: "function_call"}
	switch {
	case req.ToolChoice.Name != "":
		m.Raw = codec.Object(codec.Member{Key: "name", Raw: rawjson.Quote(req.ToolChoice.Name)})
	case req.ToolChoice.Mode == middleware.ToolNone:
		m.Raw = `"none"`
	case req.ToolChoice.Mode == middleware.ToolRequired:
		return nil, nil, codec.Unencodablef("function_call cannot require some call")
	}
	return []codec.Member{m}, nil, nil
}

// choiceJSON writes req's choice of tools; "" is the default.
func choiceJSON(req *middleware.Request) string {
	if req.ToolChoice.Name != "" {
		kind := "function"
		for _, t := range req.Tools {
			if t.Name == req.ToolChoice.Name && t.Kind == middleware.KindCustom {
				kind = "custom"
			}
		}
		name := codec.Object(codec.Member{Key: "name", Raw: rawjson.Quote(req.ToolChoice.Name)})
		return codec.Object(codec.Member{Key: "type", Raw: rawjson.Quote(kind)}, codec.Member{Key: kind, Raw: name})
	}
	return quoted(string(req.ToolChoice.Mode))
}

// stopJSON writes stop words: as one text if that is wanted and enough.
func stopJSON(stop []string, text bool) string {
	if len(stop) == 1 && text {
		return rawjson.Quote(stop[0])
	}
	if len(stop) == 0 {
		return ""
	}
	items := make([]string, len(stop))
	for i, s := range stop {
		items[i] = rawjson.Quote(s)
	}
	return codec.Array(items)
}

// quoted returns s as JSON, and "" for "": no member.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return rawjson.Quote(s)
}
