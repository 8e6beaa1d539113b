package ollama

import (
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// request is a body as it was read:
//
//	{"model": …, "messages": [message, …], "tools": [tool, …], "options": {…}, "stream": false, …}
//
// It is remembered behind the request's Native, and is read again if that was
// stored. The caller gets a clone of is, so that nothing here can change.
type request struct {
	doc     *rawjson.Doc
	is      middleware.Request
	values  []rawjson.Value // the messages
	results []result        // what each of them says of its call
}

// DecodeRequest is part of wire.Codec.
func (Format) DecodeRequest(body []byte) (*middleware.Request, error) {
	h, err := readRequest(string(body))
	if err != nil {
		return nil, err
	}
	req := h.is.Clone()
	req.Native = on.Remember(h.doc.Text(), h)
	return req, nil
}

// readRequest reads a body. Settings and tools come first, because they are small:
// a body that is not of this format is refused early.
func readRequest(body string) (*request, error) {
	doc, err := codec.ParseBody(body)
	if err != nil {
		return nil, err
	}
	root := doc.Root()
	h := &request{doc: doc}
	if err := readSettings(root, &h.is); err != nil {
		return nil, err
	}
	if h.is.Tools, err = lens.ReadList(on, root, "tools", readTool); err != nil {
		return nil, err
	}
	messages, err := on.Kind(root, "messages", rawjson.Array)
	if err != nil {
		return nil, err
	}
	n := messages.Len()
	h.is.Messages, h.values, h.results = make([]middleware.Message, 0, n), make([]rawjson.Value, 0, n), make([]result, 0, n)
	var c conversation
	for v := range messages.Each() {
		m, r, err := c.read(v)
		if err != nil {
			return nil, err
		}
		h.is.Messages, h.values, h.results = append(h.is.Messages, m), append(h.values, v), append(h.results, r)
	}
	return h, nil
}

// EncodeRequest is part of wire.Codec. A request that came from this format is an
// edit of its body: the elements of messages and tools that are as they were keep
// their text, and so does every member that this package does not know.
func (Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	if req.ToolChoice != (middleware.ToolChoice{}) {
		return nil, codec.Unencodablef("a tool choice")
	}
	h, edited, err := lens.Again(on, req.Native, readRequest)
	if err != nil {
		return nil, err
	}
	if !edited {
		h = &request{}
	} else if codec.SameRequest(&h.is, req) {
		return []byte(req.Native.Raw), nil
	}
	messages, err := h.messages(req.Messages)
	if err != nil {
		return nil, err
	}
	tools, err := on.Tools(h.is.Tools, req.Tools, toolText)
	if err != nil {
		return nil, err
	}
	if !edited {
		return fresh(req, messages, tools)
	}
	edit := on.Edit(h.doc.Root())
	edit.Put(lens.Differ(settings(&h.is), settings(req))...)
	edit.Elements("messages", messages)
	edit.Elements("tools", tools)
	body, err := edit.Apply(h.doc)
	return []byte(body), err
}

// messages returns the texts of now. The messages of the body are found again by
// their text, wherever they stand now. The writer sees all of them in order,
// because a result without an id belongs to a call by its place. Those that
// neither call nor answer say nothing about that.
func (h *request) messages(now []middleware.Message) ([]string, error) {
	old := make([]lens.Entry, len(h.is.Messages))
	for i, m := range h.is.Messages {
		old[i] = lens.Entry{Message: m, Group: i}
	}
	w := writer{}
	out := make([]string, len(now))
	for i, run := range on.History(old, now, nil) {
		if run.Same && now[i].Role != middleware.RoleTool && len(now[i].ToolCalls) == 0 {
			out[i] = now[i].Native.Raw
			continue
		}
		var o origin
		var err error
		if g := run.Group; g >= 0 {
			o = origin{h.values[g], h.is.Messages[g], h.results[g], run.Same}
		} else if o, err = readOrigin(now[i].Native); err != nil {
			return nil, err
		}
		if out[i], err = w.text(now[i], o); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fresh writes a request that is not of this format. Params win, in options
// too, which they share with the neutral fields.
func fresh(req *middleware.Request, messages, tools []string) ([]byte, error) {
	all := settings(req)
	members := []lens.Member{all[0], lens.Raw("messages", codec.Array(messages)), lens.List("tools", tools)}
	members = append(append(members, all[1:]...), lens.Raw("stream", strconv.FormatBool(req.Sink != nil)))
	body, err := on.WithParams(members, req.Params)
	return []byte(body), err
}
