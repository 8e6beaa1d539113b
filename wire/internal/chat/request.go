package chat

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// DecodeRequest reads the body of a request.
func (Format) DecodeRequest(body []byte) (*middleware.Request, error) {
	return on.Request(body, readRequest)
}

// readRequest reads a body:
//
//	{"model": …, "messages": [message, …], "tools": [tool, …], "tool_choice": …, "temperature": …, "stop": …, …}
//
// What is remembered of it is the neutral request, and no parsed text: an edit, which is
// rare, reads the body again. The error wraps ErrShape.
func readRequest(body string) (*middleware.Request, error) {
	is := &middleware.Request{}
	err := codec.Borrow(body, func(v rawjson.Value) (err error) {
		if err = readSettings(v, is); err != nil {
			return err
		}
		if is.Tools, err = readTools(v); err != nil {
			return err
		}
		is.Messages, err = readMessages(v.Get("messages"))
		return err
	})
	return is, err
}

// readMessages reads the conversation. Two things do not stand in a message itself:
// the name of the tool that a result is of, which is that of the call with its id,
// and which call in the old form a message of the role function answers. Those
// belong together in order, as neither has an id.
func readMessages(list rawjson.Value) ([]middleware.Message, error) {
	if list.Kind() != rawjson.Array {
		return nil, codec.Shapef("no list of messages")
	}
	messages := make([]middleware.Message, 0, list.Len())
	calls := 0
	names := map[string]string{} // of the calls, by id
	var open []string            // ids of the calls in the old form that have no reply yet
	for v := range list.Each() {
		m, err := readMessage(v)
		if err != nil {
			return nil, err
		}
		if len(m.ToolCalls) > 0 && isOldTurn(v) {
			m.ToolCalls[0].ID = codec.PlaceID(calls + 1)
			open = append(open, m.ToolCalls[0].ID)
		}
		calls += len(m.ToolCalls)
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Name
		}
		if len(open) > 0 && v.Get("role").Str() == functionRole {
			m.ToolCallID, open = open[0], open[1:]
		}
		if m.Role == middleware.RoleTool && m.ToolName == "" {
			m.ToolName = names[m.ToolCallID]
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// EncodeRequest writes the body of a request.
func (Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	return on.EncodeRequest(req, readRequest, editRequest, freshRequest)
}

func editRequest(doc *rawjson.Doc, was, req *middleware.Request) (string, error) {
	v := doc.Root()
	e := on.Edit(v)
	if err := editSettings(e, v, was, req); err != nil {
		return "", err
	}
	if err := editTools(e, v, was, req); err != nil {
		return "", err
	}
	messages, err := messageTexts(was.Messages, req.Messages)
	if err != nil {
		return "", err
	}
	e.Elements("messages", messages)
	return e.Apply(doc)
}

// messageTexts writes messages as they stand in a request that had old.
func messageTexts(old, messages []middleware.Message) ([]string, error) {
	entries := make([]lens.Entry, len(old))
	for i, m := range old {
		entries[i] = lens.Entry{Message: m, Group: i}
	}
	texts := make([]string, len(messages))
	for i, run := range on.History(entries, messages, nil) {
		if run.Same {
			texts[i] = on.Raw(messages[i].Native)
			continue
		}
		var err error
		if texts[i], err = messageText(messages[i], messages[:i]); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// freshRequest writes a request that was not decoded from this format. Params win.
// max_tokens in them keeps max_completion_tokens out: OpenAI refuses a request that
// has both.
func freshRequest(req *middleware.Request) (string, error) {
	messages, err := messageTexts(nil, req.Messages)
	if err != nil {
		return "", err
	}
	tools, err := on.Tools(nil, req.Tools, func(t middleware.Tool) (string, error) { return toolText(t, false) })
	if err != nil {
		return "", err
	}
	members := []lens.Member{lens.Word("model", req.Model), lens.Raw("messages", codec.Array(messages)), lens.List("tools", tools)}
	if len(tools) > 0 {
		members = append(members, lens.Raw("tool_choice", choiceText(req)))
	}
	members = append(members, lens.Float("temperature", req.Temperature))
	if params, _ := codec.ParseObject(string(req.Params)); !params.Get(limits[1]).Exists() {
		members = append(members, lens.Count(limits[0], int64(max(req.MaxTokens, 0))))
	}
	members = append(members, lens.Words("stop", req.Stop))
	if len(req.Output) > 0 {
		members = append(members, output(req))
	}
	if req.Sink != nil {
		members = append(members, lens.Flag("stream", true), lens.Raw("stream_options", `{"include_usage":true}`))
	}
	return on.WithParams(members, req.Params)
}
