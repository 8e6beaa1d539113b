package gemini

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// request is a body as it was read:
//
//	{"systemInstruction": {"parts": […]}, "contents": [content, …], "tools": […], "toolConfig": {…},
//	 "generationConfig": {"temperature": …, "maxOutputTokens": …, "stopSequences": […]}, …}
//
// The messages in is are the lead messages of the system instruction, and then the messages of
// the contents (groups). Only the neutral request is remembered, and no parsed text: an edit,
// which is rare, reads the body again.
type request struct {
	is        middleware.Request
	toolsAt   []int // the element of tools that has each tool
	lead      int   // how many system messages there are
	contents  []content
	groups    []int  // the content that has each other message
	replyRole string // the role of contents that hold results: user or, of some clients, function
}

// ReadRequest reads a body. Tools that the server runs lead the tools, because all functions are in
// one list, and a new function goes to its end. The error wraps ErrShape.
func (Format) ReadRequest(in *codec.Input) (*middleware.Request, error) {
	var h request
	err := in.Borrow(dialect, "contents", func(root rawjson.Value) error {
		err := h.read(root, in)
		if err == nil {
			for element := range root.Get("tools").Each() {
				in.Keep(on.Get(element, listKey), nil, readTool)
			}
			in.Calls = make([]int, len(h.contents))
			for i, group := range h.groups {
				in.Calls[group] += len(h.is.Messages[h.lead+i].ToolCalls)
			}
			in.Keep(root.Get("contents"), nil, nil)
		}
		return err
	})
	return new(h.is), err // nothing else of h is kept
}

// read reads the object that a body is. in is nil for all of a body. The tools come first, because they decide which calls
// are built-in ones.
func (h *request) read(root rawjson.Value, in *codec.Input) error {
	if !on.Get(root, "contents").Exists() {
		return codec.Shapef("no object with contents")
	}
	h.replyRole = "user"
	if err := h.readTools(root, in); err != nil {
		return err
	}
	if err := readSettings(root, &h.is); err != nil {
		return err
	}
	if err := h.readSystem(root); err != nil {
		return err
	}
	return h.readContents(root)
}

// readSystem makes a message of each part of the system instruction, so that
// another one can follow.
func (h *request) readSystem(root rawjson.Value) error {
	v, err := on.Kind(root, "systemInstruction", rawjson.Object)
	if err != nil || !v.Exists() {
		return err
	}
	c, err := readContent(v, true)
	if err != nil {
		return err
	}
	for _, p := range c.pieces {
		if p.call != nil {
			p.part = opaque(p.v)
		}
		h.is.Messages = append(h.is.Messages, middleware.Message{Role: middleware.RoleSystem,
			Parts: []middleware.Part{p.part}, Native: on.Native(c.share([]string{p.v.Raw()}))})
	}
	return nil
}

// readContents reads the conversation. A content becomes one or more messages.
func (h *request) readContents(root rawjson.Value) error {
	list, err := on.List(root, "contents", rawjson.Object)
	if err != nil {
		return err
	}
	h.lead, h.contents = len(h.is.Messages), make([]content, 0, len(list))
	r := reader{builtin: builtinsOf(h.is.Tools)}
	for _, v := range list {
		c, messages, err := r.read(v)
		if err != nil {
			return err
		}
		if role := on.Get(v, "role").Str(); messages[0].Role == middleware.RoleTool && role != "" {
			h.replyRole = role
		}
		for range messages {
			h.groups = append(h.groups, len(h.contents))
		}
		h.is.Messages = append(h.is.Messages, messages...)
		h.contents = append(h.contents, c)
	}
	return nil
}

// EncodeRequest writes the body of a request. What was not changed is not written: the
// messages, the tools and the settings are compared one after the other, and each keeps its
// bytes.
//
// A tool that is strict and demanded needs no more than the demand: the mode ANY constrains
// its arguments.
func (f Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	if i := slices.IndexFunc(req.Tools, func(t middleware.Tool) bool { return t.Strict && t.Name == req.ToolChoice.Name }); i >= 0 {
		demanded := *req
		demanded.Tools = slices.Clone(req.Tools)
		demanded.Tools[i].Strict = false
		req = &demanded
	}
	return on.EncodeRequest(req, f.ReadRequest, edit, fresh)
}

// edit returns the text of doc with what differs in req.
func edit(doc *rawjson.Doc, _, req *middleware.Request) (string, error) {
	var h request
	if err := h.read(doc.Root(), nil); err != nil {
		return "", err
	}
	if req.Model != "" {
		return "", codec.Unencodablef("the model is in the path of the request: leave Request.Model empty")
	}
	edit := on.Edit(doc.Root())
	if !codec.SameMessages(req.Messages, h.is.Messages) {
		system, contents, err := h.messages(req.Messages)
		if err != nil {
			return "", err
		}
		edit.Elements("contents", contents)
		if len(system) > 0 {
			edit.Elements("systemInstruction/parts", system)
		} else if h.lead > 0 { // the instruction goes when its last message does
			edit.Put(lens.None("systemInstruction"))
		}
	}
	if !codec.SameTools(req.Tools, h.is.Tools) {
		tools, err := h.tools(doc.Root(), req.Tools)
		if err != nil {
			return "", err
		}
		if len(tools) > 0 {
			edit.Elements("tools", tools)
		} else { // the server refuses an empty list
			edit.Put(lens.None("tools"))
		}
	}
	if !codec.SameChoice(req, &h.is) {
		edit.Put(choice(req)...)
	}
	edit.Put(lens.Differ(settings(&h.is), settings(req))...)
	return edit.Apply(doc)
}

// messages returns the parts of the system instruction, and the contents. System
// messages that lead the conversation make the instruction; no other place holds
// any.
func (h *request) messages(now []middleware.Message) (system, contents []string, err error) {
	lead := first(now, len(now), func(m middleware.Message) bool { return m.Role != middleware.RoleSystem })
	for _, m := range now[:lead] {
		if system, err = appendParts(system, m.Parts); err != nil {
			return nil, nil, err
		}
	}
	if lead > 0 && len(system) == 0 {
		system = []string{emptyPart}
	}
	w := writer{of: h, calls: map[string]wireCall{}}
	for _, run := range on.History(h.is.Messages[h.lead:], h.groups, now[lead:], joins) {
		text, err := w.content(run)
		if err != nil {
			return nil, nil, err
		}
		contents = append(contents, text)
	}
	return system, contents, nil
}

// fresh writes a request that is not of this format. Params override the settings, and are
// merged with them in two objects: generationConfig and toolConfig. The model and the wish for
// a stream go into the path, which URL writes.
func fresh(req *middleware.Request) (string, error) {
	h := &request{replyRole: "user"}
	system, contents, err := h.messages(req.Messages)
	if err != nil {
		return "", err
	}
	tools, err := h.tools(rawjson.Value{}, req.Tools)
	if err != nil {
		return "", err
	}
	members := []lens.Member{lens.List("systemInstruction/parts", system), lens.Raw("contents", codec.Array(contents)), lens.List("tools", tools)}
	if !codec.SameChoice(req, &middleware.Request{}) {
		members = append(members, choice(req)...)
	}
	members = append(members, settings(req)...)
	return on.WithParams(members, req.Params)
}

// modes are the modes of a tool choice by their number: a client may ask for
// enums as numbers.
var modes = map[string]string{"1": "AUTO", "2": "ANY", "3": "NONE", "4": "VALIDATED"}

// readSettings reads the settings of the generation and the tool choice into r:
//
//	"generationConfig": {"temperature": 1, "maxOutputTokens": 100, "stopSequences": ["END"]}
//	"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["wind"]}}
//
// Both objects hold more, which stays as it is. The mode VALIDATED leaves the model
// the choice. ANY with one allowed name is the choice of that tool. In both modes the names
// limit the model; in other modes they have no meaning.
func readSettings(root rawjson.Value, req *middleware.Request) error {
	r := on.Reader()
	config := r.Kind(root, "generationConfig", rawjson.Object)
	req.Temperature = codec.Float(r.Kind(config, "temperature", rawjson.Number))
	req.MaxTokens = int(codec.Int(r.Kind(config, "maxOutputTokens", rawjson.Number)))
	req.Stop = r.Texts(config, "stopSequences")
	calling := r.Kind(r.Kind(root, "toolConfig", rawjson.Object), "functionCallingConfig", rawjson.Object)
	allowed, mode := r.Texts(calling, "allowedFunctionNames"), on.Get(calling, "mode")
	word := strings.ToUpper(mode.Str())
	if mode.Kind() == rawjson.Number {
		word = modes[mode.Raw()]
	}
	if word == "ANY" || word == "VALIDATED" {
		req.AllowedTools = allowed
	}
	switch {
	case word == "NONE":
		req.ToolChoice.Mode = middleware.ToolNone
	case word == "ANY" && len(allowed) == 1:
		req.ToolChoice.Name = allowed[0]
	case word == "ANY":
		req.ToolChoice.Mode = middleware.ToolRequired
	}
	return r.Err
}

// settings projects the settings of the generation.
func settings(r *middleware.Request) []lens.Member {
	return []lens.Member{
		lens.Float("generationConfig/temperature", r.Temperature),
		lens.Count("generationConfig/maxOutputTokens", int64(r.MaxTokens)),
		lens.Words("generationConfig/stopSequences", r.Stop),
	}
}

// choice projects a tool choice. Unlike settings, a changed choice is written as a whole: AUTO
// and VALIDATED are one mode in the neutral form, so two different choices may have equal
// projections, which would hide the change.
func choice(req *middleware.Request) []lens.Member {
	mode := "AUTO"
	c, allowed := codec.Choice(req)
	switch {
	case c.Name != "":
		mode, allowed = "ANY", []string{c.Name}
	case c.Mode == middleware.ToolNone:
		mode = "NONE"
	case c.Mode == middleware.ToolRequired:
		mode = "ANY"
	case allowed != nil:
		mode = "VALIDATED"
	}
	const config = "toolConfig/functionCallingConfig/"
	return []lens.Member{lens.Text(config+"mode", mode), lens.Words(config+"allowedFunctionNames", allowed)}
}
