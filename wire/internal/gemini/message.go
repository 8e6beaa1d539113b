package gemini

import (
	"math"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// content is one content as it was read: a role and parts.
type content struct {
	v      rawjson.Value // absent for one that is to be written
	pieces []*piece
}

// readContent reads the parts of a content. model says that the model speaks: only
// then a functionCall is a call, and only otherwise a functionResponse is a result.
func readContent(v rawjson.Value, model bool) (content, error) {
	list, err := on.List(v, "parts", rawjson.Object)
	if err != nil {
		return content{}, err
	}
	c := content{v, make([]*piece, len(list))}
	for i, part := range list {
		if c.pieces[i], err = readPart(part, model); err != nil {
			return content{}, err
		}
	}
	return c, nil
}

// texts returns the texts of the parts.
func texts(pieces []*piece) []string {
	out := make([]string, len(pieces))
	for i, p := range pieces {
		out[i] = p.v.Raw()
	}
	return out
}

// first returns the index of the first of pieces that is so, none if there is
// none.
func first(pieces []*piece, none int, is func(*piece) bool) int {
	if i := slices.IndexFunc(pieces, is); i >= 0 {
		return i
	}
	return none
}

// maxFrame bounds what stands around the parts of a content and is repeated for
// each message that the content becomes.
const maxFrame = 256

// framed returns the content with only those of its parts, as they stand. It is the
// Native of one of the messages of the content, so that a message that is taken
// into another request brings its role and its further members along. A frame that
// is too long is left out.
func (c content) framed(parts []string) string {
	text := c.v.Raw()
	if len(parts) == len(c.pieces) {
		return text
	}
	base, _ := c.v.Span()
	start, _ := c.pieces[0].v.Span()
	_, end := c.pieces[len(c.pieces)-1].v.Span()
	before, after := text[:start-base], text[end-base:]
	if len(before)+len(after) > maxFrame {
		return freshContent("user", parts)
	}
	return before + strings.Join(parts, ",") + after
}

// emptyPart is the part of a content that would have none, such as that of a message
// whose only part was taken out: the server refuses such a content.
const emptyPart = `{"text":""}`

// freshContent returns a content that is not of the request. It has a part at least.
func freshContent(role string, parts []string) string {
	if len(parts) == 0 {
		parts = []string{emptyPart}
	}
	return codec.Object(lens.Text("role", role), lens.List("parts", parts))
}

// reader makes messages of contents, in order. It counts calls, because those without
// ids are numbered through the whole conversation. The zero reader is at the beginning
// of one.
type reader struct {
	pairs
	builtin func(name string) bool // calls that the client answers in a form of its own
	calls   int                    // of the conversation so far
}

// read returns a content, its messages, and for each message the id that the wire
// has for the call that it answers.
func (r *reader) read(v rawjson.Value) (content, []middleware.Message, []string, error) {
	role, err := on.Text(v, "role")
	if err != nil {
		return content{}, nil, nil, err
	}
	c, err := readContent(v, role == "model")
	if err != nil {
		return c, nil, nil, err
	}
	if role != "model" {
		messages, ids := r.told(c)
		return c, messages, ids, nil
	}
	m, wireIDs := modelMessage(c.pieces, r.calls, r.builtin)
	m.Native = on.Native(v.Raw())
	r.calls += len(m.ToolCalls)
	r.said(m.ToolCalls, wireIDs)
	return c, []middleware.Message{m}, []string{""}, nil
}

// modelMessage returns the message that a content of the model is, without a Native. A call without an id is
// numbered by its place in the conversation, which had before calls until here.
// builtin may be nil. wireIDs reports whether a call has an id on the wire.
func modelMessage(pieces []*piece, before int, builtin func(string) bool) (m middleware.Message, wireIDs bool) {
	m.Role = middleware.RoleAssistant
	for _, p := range pieces {
		if p.call == nil {
			m.Parts = append(m.Parts, p.part)
			continue
		}
		c := *p.call
		before++
		wireIDs = wireIDs || c.ID != ""
		if c.ID == "" {
			c.ID = codec.PlaceID(before)
		}
		if builtin != nil && builtin(c.Name) {
			c.Kind = middleware.KindBuiltin
		}
		m.ToolCalls = append(m.ToolCalls, c)
	}
	return m, wireIDs
}

// told returns the messages for the model: results, and a message of all other parts,
// which is there also for a content without parts. ids has the id that stands on the
// wire for each of the messages.
func (r *reader) told(c content) (out []middleware.Message, ids []string) {
	r.begun = false
	rest := middleware.Message{Role: middleware.RoleUser}
	var others []string
	for _, p := range c.pieces {
		if p.reply == nil {
			rest.Parts, others = append(rest.Parts, p.part), append(others, p.v.Raw())
			continue
		}
		m := p.reply.is
		ids = append(ids, m.ToolCallID)
		m.ToolCallID = r.answered(m.ToolCallID, m.ToolName)
		m.Native = on.Native(c.framed([]string{p.v.Raw()}))
		out = append(out, m)
	}
	if len(out) == 0 || len(others) > 0 {
		rest.Native = on.Native(c.framed(others))
		out, ids = append(out, rest), append(ids, "")
	}
	return out, ids
}

// joins reports whether m goes into a content with the messages before it: all
// results of a turn do.
func joins(begun []middleware.Message, m middleware.Message) bool {
	return begun[0].Role == middleware.RoleTool && m.Role == middleware.RoleTool
}

// writer writes the contents of a request, in order.
type writer struct {
	of    *request            // that is edited, or one with nothing in it
	calls map[string]wireCall // the last one of each neutral id
	pairs                     // as the server makes them of what was written so far
}

// content returns the text of a run of messages that makes one content: the content
// that they came from with what has changed, or a fresh one.
func (w *writer) content(run lens.Run) (string, error) {
	m := run.Messages[0]
	role := map[middleware.Role]string{middleware.RoleAssistant: "model", middleware.RoleTool: w.of.replyRole, middleware.RoleUser: "user"}[m.Role]
	if role == "" {
		return "", codec.Unencodablef("a message of role %q that does not lead", m.Role)
	}
	w.begun = w.begun && m.Role == middleware.RoleAssistant
	if run.Same {
		return w.same(run)
	}
	c, err := w.base(run)
	if err != nil {
		return "", err
	}
	var parts []string
	if m.Role == middleware.RoleAssistant {
		if err := w.note(m.ToolCalls); err != nil {
			return "", err
		}
		parts, err = modelTexts(m, c.pieces, false)
	} else {
		parts, err = w.toldTexts(run, c.pieces)
	}
	switch {
	case err != nil:
		return "", err
	case !c.v.Exists():
		return freshContent(role, parts), nil
	case slices.Equal(parts, texts(c.pieces)):
		return c.v.Raw(), nil
	}
	edit := on.Edit(c.v)
	edit.Elements("parts", parts)
	return edit.Text()
}

// same returns the text of a content that did not change. Its calls and results are
// noted all the same: what changed in front of it may have moved the pairs.
func (w *writer) same(run lens.Run) (string, error) {
	for i, m := range run.Messages {
		if m.Role == middleware.RoleTool {
			if err := w.reaches(m, w.of.replyIDs[run.At[i]]); err != nil {
				return "", err
			}
		}
		if err := w.note(m.ToolCalls); err != nil {
			return "", err
		}
	}
	return w.of.contents[run.Group].v.Raw(), nil
}

// base returns the content to edit: one of the request, or what the first message
// was in another request or an answer. It is empty if there is none.
func (w *writer) base(run lens.Run) (content, error) {
	if run.Group >= 0 {
		return w.of.contents[run.Group], nil
	}
	v, err := on.Value(run.Messages[0].Native)
	if err != nil || !v.Exists() {
		return content{}, err
	}
	c, was, _, err := new(reader).read(v)
	if err != nil {
		return content{}, codec.Unencodablef("what was stored is not content: %v", err)
	}
	if len(was) != 1 || was[0].Role != run.Messages[0].Role {
		return content{}, nil
	}
	return c, nil
}

// modelTexts returns the parts and calls of the model as texts, in the order of the wire;
// pieces are what it had. Reasoning of another provider is left out of a history, and is a
// thought without a signature in an answer.
func modelTexts(m middleware.Message, pieces []*piece, answer bool) ([]string, error) {
	from := first(pieces, math.MaxInt, func(p *piece) bool { return p.call != nil })
	return on.Arrange(m, texts(pieces), from, func(p middleware.Part, _ int) (string, error) {
		text, err := partText(p)
		if err == nil && text == "" && answer && p.Text != "" {
			text = codec.Object(lens.Text("text", p.Text), lens.Flag("thought", true))
		}
		return text, err
	}, func(c middleware.ToolCall, _ int) (string, error) { return callText(c, answer) })
}

// toldTexts returns the texts for the model: results, in their own order,
// and all other parts where they stood. To order them like parts and calls, it puts
// them into one message as such.
func (w *writer) toldTexts(run lens.Run, pieces []*piece) ([]string, error) {
	var order middleware.Message // parts and, as if they were calls, results
	for i, m := range run.Messages {
		if len(m.ToolCalls) > 0 {
			return nil, codec.Unencodablef("calls in a message of role %q", m.Role)
		}
		if m.Role != middleware.RoleTool {
			order.Parts = append(order.Parts, m.Parts...)
			continue
		}
		was := ""
		if run.At[i] >= 0 {
			was = w.of.is.Messages[w.of.lead+run.At[i]].ToolCallID
		}
		text, part, err := w.result(m, was)
		if err != nil {
			return nil, err
		}
		order.ToolCalls = append(order.ToolCalls, middleware.ToolCall{Native: part, Arguments: text})
	}
	from := first(pieces, -1, func(p *piece) bool { return p.reply != nil })
	return on.Arrange(order, texts(pieces), from,
		func(p middleware.Part, _ int) (string, error) { return partText(p) },
		func(result middleware.ToolCall, _ int) (string, error) { return result.Arguments, nil })
}

// result returns the text of a result, and the part that it was; nil for a new one.
// It has an id where its call has one. was is the call that it was for: as long as
// it is for that one, the id on the wire stays, which may be the client's own.
func (w *writer) result(m middleware.Message, was string) (text string, part *middleware.Native, err error) {
	call, known := w.calls[m.ToolCallID]
	if !known && !codec.IsPlaceID(m.ToolCallID) {
		call.id = m.ToolCallID
	}
	id := call.id
	old, err := replyOf(m.Native)
	if err != nil {
		return "", nil, err
	}
	switch {
	case old == nil && m.ToolName == "":
		m.ToolName = call.name
	case old == nil:
	case m.ToolCallID == was, m.ToolCallID == old.reply.is.ToolCallID, old.reply.is.ToolCallID == "" && codec.IsPlaceID(m.ToolCallID):
		id = old.reply.is.ToolCallID
	}
	if err := w.reaches(m, id); err != nil {
		return "", nil, err
	}
	text, err = replyText(m, old, id)
	if old != nil {
		part = on.Native(old.v.Raw())
	}
	return text, part, err
}
