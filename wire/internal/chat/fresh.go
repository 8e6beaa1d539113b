package chat

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// freshRequest writes a request that was not decoded from this format.
func freshRequest(req *middleware.Request) ([]byte, error) {
	messages, err := messageTexts(req.Messages)
	if err != nil {
		return nil, err
	}
	members := []codec.Member{
		{Key: "model", Raw: quoted(req.Model)},
		{Key: "messages", Raw: codec.Array(messages)},
	}
	var tools []string
	for _, t := range req.Tools {
		text, err := toolText(t, false)
		if err != nil {
			return nil, err
		}
		tools = append(tools, text)
	}
	if len(tools) > 0 {
		members = append(members, codec.Member{Key: "tools", Raw: codec.Array(tools)},
			codec.Member{Key: "tool_choice", Raw: choiceJSON(req)})
	}
	if req.Temperature != nil {
		members = append(members, codec.Member{Key: "temperature", Raw: codec.Number(*req.Temperature)})
	}
	if req.MaxTokens > 0 && !hasParam(req, limits[1]) {
		members = append(members, codec.Member{Key: limits[0], Raw: codec.Count(int64(req.MaxTokens))})
	}
	members = append(members, codec.Member{Key: "stop", Raw: stopJSON(req.Stop, false)})
	if req.Sink != nil {
		members = append(members, codec.Member{Key: "stream", Raw: "true"},
			codec.Member{Key: "stream_options", Raw: `{"include_usage":true}`})
	}
	if members, err = codec.WithParams(members, req.Params); err != nil {
		return nil, err
	}
	return []byte(codec.Object(members...)), nil
}

// hasParam reports whether Params sets the member key.
func hasParam(req *middleware.Request, key string) bool {
	if len(req.Params) == 0 {
		return false
	}
	params, err := codec.ParseObject(string(req.Params))
	return err == nil && params.Get(key).Exists()
}

// freshMessage writes m from its neutral fields, its parts and calls from
// their Native where they have one of this format. old says that m answers a
// call in the old form.
func freshMessage(m middleware.Message, old bool) (string, error) {
	if m.Role == "" {
		return "", codec.Unencodablef("a message without a role")
	}
	parts, err := sortParts(m.Parts)
	if err != nil {
		return "", err
	}
	content, err := contentOf(m.Role, parts.items)
	if err != nil {
		return "", err
	}
	if content == "null" && len(m.ToolCalls) == 0 {
		content = `""`
	}
	members := []codec.Member{{Key: "role", Raw: rawjson.Quote(string(m.Role))}}
	switch {
	case old:
		members = []codec.Member{{Key: "role", Raw: `"` + functionRole + `"`}, {Key: "name", Raw: rawjson.Quote(m.ToolName)}}
	case m.Role == middleware.RoleTool:
		members = append(members, codec.Member{Key: "tool_call_id", Raw: rawjson.Quote(m.ToolCallID)})
	}
	members = append(members, codec.Member{Key: "content", Raw: content})
	for _, p := range parts.members {
		more, err := partMembers(p)
		if err != nil {
			return "", err
		}
		members = append(members, more...)
	}
	calls, err := freshCalls(m)
	return codec.Object(append(members, calls...)...), err
}

// freshCalls writes the calls of a fresh message: in the old form if that is
// how the only one came.
func freshCalls(m middleware.Message) ([]codec.Member, error) {
	if len(m.ToolCalls) == 0 {
		return nil, nil
	}
	if oldCall(m) {
		text, err := callText(m.ToolCalls[0], true)
		return []codec.Member{{Key: "function_call", Raw: text}}, err
	}
	items := make([]string, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		var err error
		if items[i], err = callText(c, false); err != nil {
			return nil, err
		}
	}
	return []codec.Member{{Key: "tool_calls", Raw: codec.Array(items)}}, nil
}
