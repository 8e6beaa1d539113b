package gemini

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// content is one turn as it stands in a history: a role and parts. The parts
// of a streamed answer are one content too, though nobody ever wrote it.
type content struct {
	text   string        // its JSON text
	v      rawjson.Value // absent: text is parsed when it is needed
	of     *request      // that it was read in; nil: it stands alone
	pieces []*piece
	n      int // how many messages it became
	offset int // of its first part in text, and of the end of its last one
	end    int
}

// turn is the handle behind a message.
type turn struct {
	native middleware.Native
	was    middleware.Message
	in     *content
	reply  *piece // of a tool message
}

// value returns the content as a value.
func (c *content) value() (rawjson.Value, error) {
	if c.v.Exists() {
		return c.v, nil
	}
	return codec.ParseObject(c.text)
}

// readContent reads the parts of a content.
func readContent(v rawjson.Value, of *request, model bool) (*content, error) {
	if v.Kind() != rawjson.Object {
		return nil, codec.Shapef("a content of kind %s", v.Kind())
	}
	list, _, err := getList(v, "parts")
	if err != nil {
		return nil, err
	}
	c := &content{text: v.Raw(), v: v, of: of, pieces: make([]*piece, len(list))}
	for i, part := range list {
		if c.pieces[i], err = newPiece(part, c, i, model); err != nil {
			return nil, err
		}
	}
	if len(list) > 0 {
		base, _ := v.Span()
		start, _ := list[0].Span()
		_, end := list[len(list)-1].Span()
		c.offset, c.end = start-base, end-base
	}
	return c, nil
}

// maxFrame bounds what stands around the parts of a content and is repeated
// for each message that the content becomes.
const maxFrame = 256

// framed returns the content with only those parts, as they stand.
func (c *content) framed(parts []string) string {
	if len(parts) == len(c.pieces) {
		return c.text
	}
	before, after := c.text[:c.offset], c.text[c.end:]
	if len(before)+len(after) > maxFrame {
		return codec.Object(codec.Member{Key: "role", Raw: `"user"`}, codec.Member{Key: "parts", Raw: codec.Array(parts)})
	}
	return before + strings.Join(parts, ",") + after
}

// add makes a message of the content: it gets its handle. It is the snapshot as
// well, so what is handed out is a clone of it.
func (c *content) add(m middleware.Message, raw string, reply *piece) middleware.Message {
	t := &turn{in: c, reply: reply}
	t.native = middleware.Native{Dialect: dialect, Raw: raw, Ref: t}
	m.Native = &t.native
	t.was = m
	c.n++
	return m
}

// reader makes messages of contents, in order.
type reader struct {
	of      *request
	builtin func(name string) bool // calls that the client answers in a form of its own
	calls   int
	open    []middleware.ToolCall // of the turn before
	wireIDs bool                  // some of them have an id on the wire
	paired  bool                  // pairing knows of them
	goesOn  bool                  // nothing was told since they were made
	pairing codec.Pairing
}

// read returns the messages of one content. What the model says is one; of
// what it is told, each result is one, and the rest another.
func (r *reader) read(v rawjson.Value) ([]middleware.Message, error) {
	role, err := getText(v, "role")
	if err != nil {
		return nil, err
	}
	model := role == "model"
	c, err := readContent(v, r.of, model)
	if err != nil {
		return nil, err
	}
	if model {
		return []middleware.Message{r.assistant(c)}, nil
	}
	return r.told(c), nil
}

// assistant numbers the calls that have no id by their place in the
// conversation. A turn may be cut into several contents.
func (r *reader) assistant(c *content) middleware.Message {
	m := message(c, r.calls, r.builtin)
	r.calls += len(m.ToolCalls)
	if len(m.ToolCalls) > 0 {
		if !r.goesOn {
			r.open, r.wireIDs = nil, false
		}
		r.goesOn = true
		r.open = append(r.open, m.ToolCalls...)
		for _, p := range c.pieces {
			r.wireIDs = r.wireIDs || p.id != ""
		}
		r.paired = false
	}
	return c.add(m, c.text, nil)
}

// message returns what the model says in c; calls is how many it made before.
func message(c *content, calls int, builtin func(string) bool) middleware.Message {
	m := middleware.Message{Role: middleware.RoleAssistant}
	for _, p := range c.pieces {
		if p.call == nil {
			m.Parts = append(m.Parts, p.part)
			continue
		}
		calls++
		if p.id == "" {
			p.call.ID = codec.PlaceID(calls)
		}
		if builtin != nil && builtin(p.call.Name) {
			p.call.Kind = middleware.KindBuiltin
		}
		m.ToolCalls = append(m.ToolCalls, *p.call)
	}
	return m
}

func (r *reader) told(c *content) []middleware.Message {
	r.goesOn = false
	var out []middleware.Message
	rest := middleware.Message{Role: middleware.RoleUser}
	var texts []string
	for _, p := range c.pieces {
		if p.reply == nil {
			rest.Parts = append(rest.Parts, p.part)
			texts = append(texts, p.v.Raw())
			continue
		}
		m := p.reply.message()
		m.ToolCallID = r.answers(p.reply)
		out = append(out, c.add(m, c.framed([]string{p.v.Raw()}), p))
	}
	if len(out) == 0 || len(texts) > 0 {
		out = append(out, c.add(rest, c.framed(texts), nil))
	}
	return out
}

// answers returns the id of the call that a result is for. A client may make
// up ids where the model gave none: then its name and its place tell.
func (r *reader) answers(reply *reply) string {
	if !r.paired {
		r.pairing.Turn(r.open)
		r.paired = true
	}
	i := r.pairing.Result(reply.id, reply.name)
	if i < 0 && reply.id != "" && !r.wireIDs {
		i = r.pairing.Result("", reply.name)
	}
	if i < 0 {
		return reply.id
	}
	return r.open[i].ID
}

// readTurn reads a message again that was stored.
func readTurn(raw string) (*turn, error) {
	v, err := codec.ParseObject(raw)
	if err != nil {
		return nil, codec.Unencodablef("a Native that is no content")
	}
	out, err := (&reader{}).read(v)
	if err != nil || len(out) != 1 {
		return nil, codec.Unencodablef("a Native that is no one content")
	}
	return out[0].Native.Ref.(*turn), nil
}
