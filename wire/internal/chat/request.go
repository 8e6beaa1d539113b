package chat

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// request is the handle of a request.
type request struct {
	native middleware.Native
	v      rawjson.Value
	snap   middleware.Request // the settings as decoded
	stop   []string           // its own copy
}

// DecodeRequest is part of wire.Codec.
func (Format) DecodeRequest(body []byte) (*middleware.Request, error) {
	h, req, err := readRequest(string(body))
	if err != nil {
		return nil, err
	}
	req.Native = &h.native
	return req, nil
}

func readRequest(body string) (*request, *middleware.Request, error) {
	v, err := codec.ParseObject(body)
	if err != nil {
		return nil, nil, err
	}
	h := &request{v: v}
	h.native = middleware.Native{Dialect: dialect, Raw: body, Ref: h}
	req := &middleware.Request{}
	if err := readSettings(v, req); err != nil {
		return nil, nil, err
	}
	h.snap, h.stop = *req, slices.Clone(req.Stop)
	if t := req.Temperature; t != nil {
		copied := *t
		h.snap.Temperature = &copied
	}
	if req.Tools, err = readTools(v); err != nil {
		return nil, nil, err
	}
	req.Messages, err = readMessages(v.Get("messages"))
	return h, req, err
}

func readMessages(list rawjson.Value) ([]middleware.Message, error) {
	if list.Kind() != rawjson.Array {
		return nil, codec.Shapef("no list of messages")
	}
	messages := make([]middleware.Message, 0, list.Len())
	calls := 0
	var names map[string]string // of the calls, by id
	var open []string           // places of the calls in the old form that have no reply yet
	for v := range list.Each() {
		m, err := readMessage(v)
		if err != nil {
			return nil, err
		}
		if oldCall(m) {
			m.ToolCalls[0].ID = codec.PlaceID(calls + 1)
			open = append(open, m.ToolCalls[0].ID)
		}
		calls += len(m.ToolCalls)
		for _, c := range m.ToolCalls {
			if names == nil {
				names = map[string]string{}
			}
			names[c.ID] = c.Name
		}
		if m.Native.Ref.(*message).old() && len(open) > 0 {
			m.ToolCallID, open = open[0], open[1:]
		}
		if m.Role == middleware.RoleTool && m.ToolName == "" {
			m.ToolName = names[m.ToolCallID]
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// EncodeRequest is part of wire.Codec.
func (Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	h, err := codec.Handle(req.Native, dialect, func(raw string) (*request, error) {
		h, _, err := readRequest(raw)
		return h, err
	})
	if err != nil {
		return nil, err
	}
	if h == nil {
		return freshRequest(req)
	}
	members, inner, err := h.settings(req)
	if err != nil {
		return nil, err
	}
	tools, more, err := h.tools(req)
	if err != nil {
		return nil, err
	}
	turns, err := messagesEdits(h.v.Get("messages"), req.Messages)
	if err != nil {
		return nil, err
	}
	if len(turns) > 0 {
		if _, err := codec.Only(h.v, "messages"); err != nil {
			return nil, err
		}
	}
	edits, err := codec.SetAll(h.v, append(members, tools...)...)
	if err != nil {
		return nil, err
	}
	edits = append(append(append(edits, inner...), more...), turns...)
	out, err := codec.Apply(h.native.Raw, edits)
	return []byte(out), err
}

// messagesEdits returns the edits that make list hold messages.
func messagesEdits(list rawjson.Value, messages []middleware.Message) ([]rawjson.Edit, error) {
	if unchanged(list, messages) {
		return nil, nil
	}
	items, err := messageTexts(messages)
	return codec.Splice(list, items), err
}

// unchanged is the answer for most requests, without allocating.
func unchanged(list rawjson.Value, messages []middleware.Message) bool {
	i := 0
	for v := range list.Each() {
		if i == len(messages) {
			return false
		}
		h, err := messageHandle(messages[i])
		if err != nil || h == nil || h.v.Raw() != v.Raw() || !h.same(messages[i]) {
			return false
		}
		i++
	}
	return i == len(messages)
}

// messageTexts writes messages as they stand in a request.
func messageTexts(messages []middleware.Message) ([]string, error) {
	items := make([]string, len(messages))
	old := map[string]bool{} // ids of calls in the old form
	for i, m := range messages {
		var err error
		if items[i], err = messageText(m, old); err != nil {
			return nil, err
		}
		if oldCall(m) {
			old[m.ToolCalls[0].ID] = true
		}
	}
	return items, nil
}

func messageText(m middleware.Message, old map[string]bool) (string, error) {
	h, err := messageHandle(m)
	switch {
	case err != nil:
		return "", err
	case h == nil:
		return freshMessage(m, m.Role == middleware.RoleTool && old[m.ToolCallID])
	case h.same(m):
		return h.v.Raw(), nil
	}
	edits, err := messageEdits(h.v, h, m)
	if err != nil {
		return "", err
	}
	return codec.Within(h.v, edits)
}
