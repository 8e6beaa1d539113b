package anthropic

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// maxTokens is what a fresh request allows for the answer where it does not
// say: the wire demands a number.
const maxTokens = 4096

// fresh writes a request from its neutral fields.
func fresh(req *middleware.Request) ([]byte, error) {
	ts, err := turns(req.Messages, nil)
	if err != nil {
		return nil, err
	}
	members, err := freshTurns(ts)
	if err != nil {
		return nil, err
	}
	members = append(freshModel(req), members...)
	tools, err := toolsOf(req.Tools, nil)
	if err != nil {
		return nil, err
	}
	if len(tools) > 0 {
		members = append(members, kv("tools", codec.Array(tools)))
	}
	if kind := choiceKind(req); kind != "" {
		choice := []member{kv("type", quote(kind))}
		if req.ToolChoice.Name != "" {
			choice = append(choice, kv("name", quote(req.ToolChoice.Name)))
		}
		members = append(members, kv("tool_choice", codec.Object(choice...)))
	}
	members = append(members, freshSettings(req)...)
	if members, err = codec.WithParams(members, req.Params); err != nil {
		return nil, err
	}
	return []byte(codec.Object(members...)), nil
}

func freshModel(req *middleware.Request) []member {
	members := []member{kv("max_tokens", codec.Count(tokens(req)))}
	if req.Model != "" {
		members = append([]member{kv("model", quote(req.Model))}, members...)
	}
	return members
}

func freshTurns(ts []turn) ([]member, error) {
	n := lead(ts)
	system, err := systemOf(ts[:n])
	if err != nil {
		return nil, err
	}
	messages, err := messagesOf(ts[n:])
	if err != nil {
		return nil, err
	}
	members := []member{kv("messages", codec.Array(messages))}
	if len(system) > 0 {
		members = append([]member{kv("system", contentOf(system))}, members...)
	}
	return members, nil
}

func freshSettings(req *middleware.Request) []member {
	var members []member
	if req.Temperature != nil {
		members = append(members, kv("temperature", codec.Number(*req.Temperature)))
	}
	if len(req.Stop) > 0 {
		members = append(members, kv("stop_sequences", quoted(req.Stop)))
	}
	if req.Sink != nil {
		members = append(members, kv("stream", "true"))
	}
	return members
}

func quoted(texts []string) string {
	items := make([]string, len(texts))
	for i, s := range texts {
		items[i] = quote(s)
	}
	return codec.Array(items)
}

// freshPart returns a part that has no Native here; a text is a bare string.
func freshPart(p middleware.Part) (string, error) {
	switch p.Kind {
	case middleware.PartText:
		return quote(p.Text), nil
	case middleware.PartMedia:
		kind, source, err := mediaSource(p)
		if err != nil {
			return "", err
		}
		return codec.Object(kv("type", quote(kind)), kv("source", source)), nil
	}
	return "", codec.Unencodablef("a part that only its own provider knows")
}

// mediaSource returns the type of the block that holds p, and its source.
func mediaSource(p middleware.Part) (kind, source string, err error) {
	image := strings.HasPrefix(p.MediaType, "image/")
	switch {
	case len(p.Data) > 0 && p.MediaType == "text/plain" && utf8.Valid(p.Data):
		return "document", codec.Object(kv("type", `"text"`), kv("media_type", `"text/plain"`), kv("data", quote(string(p.Data)))), nil
	case len(p.Data) > 0 && image, len(p.Data) > 0 && p.MediaType == "application/pdf":
		kind, data := "document", quote(base64.StdEncoding.EncodeToString(p.Data))
		if image {
			kind = "image"
		}
		return kind, codec.Object(kv("type", `"base64"`), kv("media_type", quote(p.MediaType)), kv("data", data)), nil
	case len(p.Data) == 0 && p.URL != "" && (image || p.MediaType == ""):
		return "image", codec.Object(kv("type", `"url"`), kv("url", quote(p.URL))), nil
	case len(p.Data) == 0 && p.URL != "" && p.MediaType == "application/pdf":
		return "document", codec.Object(kv("type", `"url"`), kv("url", quote(p.URL))), nil
	}
	return "", "", codec.Unencodablef("media that is neither an image nor a document")
}

func freshCall(c middleware.ToolCall, lax bool) (string, error) {
	if c.Kind != middleware.KindFunction {
		return "", codec.Unencodablef("a tool call of another kind")
	}
	input, err := inputOf(c, lax)
	if err != nil {
		return "", err
	}
	return codec.Object(kv("type", `"tool_use"`), kv("id", quote(c.ID)), kv("name", quote(c.Name)), kv("input", input)), nil
}

func (t turn) freshResult() (string, error) {
	contents, err := t.parts()
	if err != nil {
		return "", err
	}
	members := []member{kv("type", `"tool_result"`), kv("tool_use_id", quote(t.m.ToolCallID))}
	if len(contents) > 0 {
		members = append(members, kv("content", contentOf(contents)))
	}
	if t.m.IsError {
		members = append(members, kv("is_error", "true"))
	}
	return codec.Object(members...), nil
}
