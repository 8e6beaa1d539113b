package gemini

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// request is the handle behind a request: its body, and what was handed out.
type request struct {
	native    middleware.Native
	doc       *rawjson.Doc
	was       middleware.Request
	system    *content
	replyRole string // of the contents that hold results
}

// DecodeRequest is part of wire.Codec. The model is in the path, not in the
// body. Each part of the system instruction is a message, so that another one
// can follow; tools that the server runs lead the tools, because all functions
// stand in one list, whose end is where another one goes.
func (Format) DecodeRequest(body []byte) (*middleware.Request, error) {
	h, err := readRequest(string(body))
	if err != nil {
		return nil, err
	}
	out := h.was.Clone()
	out.Native = &h.native
	return out, nil
}

func readRequest(body string) (*request, error) {
	doc, err := codec.Parse(body)
	if err != nil {
		return nil, err
	}
	root := doc.Root()
	if root.Kind() != rawjson.Object || !get(root, "contents").Exists() {
		return nil, codec.Shapef("no object with contents")
	}
	h := &request{doc: doc, replyRole: "user"}
	h.native = middleware.Native{Dialect: dialect, Raw: body, Ref: h}
	if err := h.readTools(root); err != nil {
		return nil, err
	}
	if err := h.readSettings(root); err != nil {
		return nil, err
	}
	if err := h.readSystem(root); err != nil {
		return nil, err
	}
	return h, h.readContents(root)
}

// readSettings reads the tool choice and the settings of the generation.
func (h *request) readSettings(root rawjson.Value) error {
	config, err := getKind(root, "generationConfig", rawjson.Object)
	if err != nil {
		return err
	}
	for _, key := range []string{"temperature", "maxOutputTokens"} {
		if _, err := getKind(config, key, rawjson.Number); err != nil {
			return err
		}
	}
	h.was.Temperature = codec.Float(get(config, "temperature"))
	h.was.MaxTokens = int(codec.Int(get(config, "maxOutputTokens")))
	if h.was.Stop, err = getTexts(config, "stopSequences"); err != nil {
		return err
	}
	return h.readChoice(root)
}

// readSystem makes a message of each part of the system instruction.
func (h *request) readSystem(root rawjson.Value) error {
	v, err := getKind(root, "systemInstruction", rawjson.Object)
	if err != nil || !v.Exists() {
		return err
	}
	if h.system, err = readContent(v, h, true); err != nil {
		return err
	}
	for _, p := range h.system.pieces {
		if p.call != nil {
			p.makeOpaque()
		}
		m := middleware.Message{Role: middleware.RoleSystem, Parts: []middleware.Part{p.part}}
		h.was.Messages = append(h.was.Messages, h.system.add(m, h.system.framed([]string{p.v.Raw()}), nil))
	}
	return nil
}

func (h *request) readContents(root rawjson.Value) error {
	list, _, err := getList(root, "contents")
	if err != nil {
		return err
	}
	r := &reader{of: h, builtin: builtinsOf(h.was.Tools)}
	for _, v := range list {
		out, err := r.read(v)
		if err != nil {
			return err
		}
		if role := get(v, "role").Str(); out[0].Role == middleware.RoleTool && role != "" {
			h.replyRole = role
		}
		h.was.Messages = append(h.was.Messages, out...)
	}
	return nil
}

// EncodeRequest is part of wire.Codec.
func (Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	h, err := codec.Handle(req.Native, dialect, readRequest)
	if err != nil {
		return nil, codec.Unencodablef("a Native that is no request")
	}
	if h == nil {
		return freshRequest(req)
	}
	now := *req
	if req.Native.Ref == nil {
		now.Messages = adoptMessages(req.Messages, h.was.Messages)
		now.Tools = adoptTools(req.Tools, h.was.Tools)
	}
	edits, err := h.edits(&now)
	if err != nil {
		return nil, err
	}
	if err := unambiguous(h.doc, edits); err != nil {
		return nil, err
	}
	body, err := codec.Apply(h.native.Raw, edits)
	return []byte(body), err
}

// edits returns what makes the recorded body say what now says.
func (h *request) edits(now *middleware.Request) ([]rawjson.Edit, error) {
	if now.Model != "" {
		return nil, codec.Unencodablef("the model is in the path, not in the body")
	}
	root := h.doc.Root()
	var edits []rawjson.Edit
	var top []codec.Member // what root has anew, or no longer
	for _, part := range []func(*middleware.Request, rawjson.Value) ([]rawjson.Edit, []codec.Member, error){
		h.messageEdits, h.toolEdits, h.choiceEdits, h.configEdits,
	} {
		e, m, err := part(now, root)
		if err != nil {
			return nil, err
		}
		edits, top = append(edits, e...), append(top, m...)
	}
	if len(top) == 0 {
		return edits, nil
	}
	e, err := setAll(root, top...)
	return append(edits, e...), err
}

func (h *request) messageEdits(now *middleware.Request, root rawjson.Value) (edits []rawjson.Edit, top []codec.Member, err error) {
	if slices.EqualFunc(now.Messages, h.was.Messages, unchanged) {
		return nil, nil, nil
	}
	lead := leading(now.Messages)
	if old := h.was.Messages[:leading(h.was.Messages)]; !slices.EqualFunc(now.Messages[:lead], old, unchanged) {
		if edits, top, err = h.systemEdits(now.Messages[:lead]); err != nil {
			return nil, nil, err
		}
	}
	w := &writer{of: h, replyRole: h.replyRole}
	items, err := w.contents(now.Messages[lead:])
	if err != nil {
		return nil, nil, err
	}
	list, err := only(root, "contents")
	if err != nil {
		return nil, nil, err
	}
	return append(edits, spliced(list, items)...), top, nil
}

// systemEdits writes the leading system messages.
func (h *request) systemEdits(messages []middleware.Message) ([]rawjson.Edit, []codec.Member, error) {
	const key = "systemInstruction"
	if len(messages) == 0 {
		return nil, []codec.Member{{Key: key}}, nil
	}
	parts, err := systemParts(messages, h.system)
	if err != nil {
		return nil, nil, err
	}
	if h.system == nil {
		return nil, []codec.Member{{Key: key, Raw: freshContent("", parts)}}, nil
	}
	edits, err := partEdits(h.system.v, parts)
	return edits, nil, err
}

// systemParts writes the parts of system messages.
func systemParts(messages []middleware.Message, home *content) ([]string, error) {
	var out []string
	f := &finder{home: home}
	for _, m := range messages {
		for _, part := range m.Parts {
			text, ok, _, err := writePart(part, f)
			if err != nil {
				return nil, err
			}
			if ok {
				out = append(out, text)
			}
		}
	}
	return out, nil
}

// leading returns how many system messages lead the conversation.
func leading(messages []middleware.Message) int {
	n := slices.IndexFunc(messages, func(m middleware.Message) bool { return m.Role != middleware.RoleSystem })
	if n < 0 {
		return len(messages)
	}
	return n
}

// unchanged reports whether nothing was done to what was handed out as was.
func unchanged(m, was middleware.Message) bool {
	return codec.SameNative(m.Native, was.Native) && codec.SameMessage(m, was)
}

// configEdits writes the settings of the generation.
func (h *request) configEdits(now *middleware.Request, root rawjson.Value) ([]rawjson.Edit, []codec.Member, error) {
	var set []codec.Member
	if !codec.SameFloat(now.Temperature, h.was.Temperature) {
		set = append(set, temperature(now.Temperature))
	}
	if now.MaxTokens != h.was.MaxTokens {
		set = append(set, maxTokens(now.MaxTokens))
	}
	if !slices.Equal(now.Stop, h.was.Stop) {
		set = append(set, stop(now.Stop))
	}
	if len(set) == 0 {
		return nil, nil, nil
	}
	return setIn(root, "generationConfig", set...)
}

// setIn sets members of the object that root has under key, or will have.
func setIn(root rawjson.Value, key string, set ...codec.Member) ([]rawjson.Edit, []codec.Member, error) {
	if !get(root, key).Exists() {
		return nil, []codec.Member{{Key: key, Raw: codec.Object(set...)}}, nil
	}
	object, err := only(root, key)
	if err != nil {
		return nil, nil, err
	}
	edits, err := setAll(object, set...)
	return edits, nil, err
}
