package responses

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// request is the handle of a request.
type request struct {
	root     rawjson.Value
	was      middleware.Request // without Messages: those have handles
	messages []*message
	natives  []*middleware.Native
	views    []view
	stored   bool // the provider keeps the answers
	held     bool // the provider keeps the conversation
}

// DecodeRequest is part of wire.Codec.
func (Format) DecodeRequest(body []byte) (*middleware.Request, error) {
	return decodeRequest(string(body))
}

func decodeRequest(body string) (*middleware.Request, error) {
	root, err := codec.ParseObject(body)
	if err != nil {
		return nil, err
	}
	h := &request{root: root, stored: root.Get("store").Raw() != "false", held: holds(root)}
	req := &middleware.Request{Native: native(body, h)}
	for _, read := range []func(*middleware.Request, *request) error{readSettings, readMessages, readTools} {
		if err := read(req, h); err != nil {
			return nil, err
		}
	}
	nameResults(req.Messages, h)
	h.was = middleware.Request{Model: req.Model, ToolChoice: req.ToolChoice, MaxTokens: req.MaxTokens}
	if t := req.Temperature; t != nil {
		kept := *t
		h.was.Temperature = &kept
	}
	return req, nil
}

// holds reports whether the provider keeps the conversation of a request.
func holds(root rawjson.Value) bool { return !absent(root.Get("conversation")) }

// absent reports whether v is null or not there.
func absent(v rawjson.Value) bool { return !v.Exists() || v.Kind() == rawjson.Null }

func readSettings(req *middleware.Request, h *request) (err error) {
	if req.Model, err = textOf(h.root.Get("model"), "the model"); err != nil {
		return err
	}
	temperature, tokens := h.root.Get("temperature"), h.root.Get("max_output_tokens")
	for _, v := range []rawjson.Value{temperature, tokens} {
		if !absent(v) && v.Kind() != rawjson.Number {
			return codec.Shapef("%s where %s should be", v.Kind(), v.Key())
		}
	}
	if c := h.root.Get("conversation"); h.held && c.Kind() != rawjson.String && c.Kind() != rawjson.Object {
		return codec.Shapef("%s where the conversation should be", c.Kind())
	}
	req.Temperature, req.MaxTokens = codec.Float(temperature), int(codec.Int(tokens))
	return nil
}

// readMessages reads instructions and input.
func readMessages(req *middleware.Request, h *request) error {
	add := func(m middleware.Message) {
		handle := m.Native.Ref.(*message)
		handle.owner = h
		req.Messages = append(req.Messages, m)
		h.messages = append(h.messages, handle)
		h.natives = append(h.natives, m.Native)
	}
	if v := h.root.Get("instructions"); v.Kind() == rawjson.String {
		add(readInstructions(v))
	} else if !absent(v) {
		return codec.Shapef("%s where instructions should be", v.Kind())
	}
	input := h.root.Get("input")
	if input.Kind() == rawjson.String {
		add(readInput(input))
		return nil
	}
	if _, err := list(input, "the input"); err != nil {
		return err
	}
	return readItems(input, add)
}

// readItems reads the items of the input: those of the model that stand
// together are one message, every other one is a message of its own.
func readItems(input rawjson.Value, add func(middleware.Message)) error {
	var turn []rawjson.Value
	flush := func() error {
		if len(turn) == 0 {
			return nil
		}
		raws := make([]string, len(turn))
		for i, v := range turn {
			raws[i] = v.Raw()
		}
		m, err := readTurn(slices.Values(turn), codec.Array(raws), false)
		if turn = nil; err == nil {
			add(m)
		}
		return err
	}
	for v := range input.Each() {
		it, err := newItem(v)
		if err != nil {
			return err
		}
		if it.ofAssistant() {
			turn = append(turn, v)
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		m, err := readItem(v)
		if err != nil {
			return err
		}
		add(m)
	}
	return flush()
}

// nameResults gives the tool messages the name of the call that they answer,
// which the wire does not repeat.
func nameResults(messages []middleware.Message, h *request) {
	names := map[string]string{}
	for i := range messages {
		for _, c := range messages[i].ToolCalls {
			names[c.ID] = c.Name
		}
		if m := &messages[i]; m.Role == middleware.RoleTool {
			m.ToolName = names[m.ToolCallID]
			h.messages[i].was.ToolName = m.ToolName
		}
	}
}

// choice reads tool_choice. A hosted tool goes by its type.
func choice(v rawjson.Value) (c middleware.ToolChoice, err error) {
	switch v.Kind() {
	case rawjson.Invalid, rawjson.Null:
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
