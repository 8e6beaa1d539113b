package responses

import (
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// freshRequest writes a request that was not decoded from this format.
func freshRequest(req *middleware.Request) (string, error) {
	if len(req.Stop) > 0 {
		return "", errStop
	}
	in := &input{req: req, stored: true}
	if params, err := codec.ParseObject(string(req.Params)); err == nil {
		in.stored, in.held = params.Get("store").Raw() != "false", holds(params)
	}
	members := []codec.Member{{Key: "model"}, {Key: "instructions"}}
	if req.Model != "" {
		members[0] = member("model", req.Model)
	}
	messages := req.Messages
	if len(messages) > 0 {
		if text, ok := instructions(messages[0]); ok {
			members[1] = member("instructions", text)
			messages = messages[1:]
		}
	}
	items, _, err := in.all(messages)
	if err != nil {
		return "", err
	}
	members = append(members, codec.Member{Key: "input", Raw: codec.Array(items)})
	if members, err = freshTools(req, members); err != nil {
		return "", err
	}
	if req.Temperature != nil {
		members = append(members, codec.Member{Key: "temperature", Raw: codec.Number(*req.Temperature)})
	}
	if req.MaxTokens != 0 {
		members = append(members, codec.Member{Key: "max_output_tokens", Raw: codec.Count(int64(req.MaxTokens))})
	}
	if req.Sink != nil {
		members = append(members, codec.Member{Key: "stream", Raw: "true"})
	}
	if members, err = codec.WithParams(members, req.Params); err != nil {
		return "", err
	}
	return codec.Object(members...), nil
}

func freshTools(req *middleware.Request, members []codec.Member) ([]codec.Member, error) {
	var raws []string
	for _, t := range req.Tools {
		own, err := handleTool(t)
		if err != nil {
			return nil, err
		}
		raw, err := toolText(t, own)
		if err != nil {
			return nil, err
		}
		raws = append(raws, raw)
	}
	if len(raws) > 0 {
		members = append(members, codec.Member{Key: "tools", Raw: codec.Array(raws)})
	}
	if req.ToolChoice != (middleware.ToolChoice{}) {
		members = append(members, codec.Member{Key: "tool_choice", Raw: choiceText(req)})
	}
	return members, nil
}
