package ollama

import (
	"slices"
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
// What is remembered of it is the neutral request, and no parsed text: an edit, which
// is rare, reads the body again. The zero request is that behind a fresh one.
type request struct {
	is      middleware.Request
	results []result // what each message says of its call

	// for an edit
	doc    *rawjson.Doc
	values []rawjson.Value // the messages
}

// DecodeRequest reads the body of a request.
func (Format) DecodeRequest(body []byte) (*middleware.Request, error) {
	return on.Request(body, readRequest)
}

// readRequest reads a body. The error wraps ErrShape.
func readRequest(body string) (*middleware.Request, error) {
	var h request
	if err := codec.Borrow(body, h.read); err != nil {
		return nil, err
	}
	is := h.is // nothing else of h is kept
	return &is, nil
}

// forEdit is readRequest for an edit of the body.
func forEdit(body string) (*request, error) {
	doc, err := codec.ParseBody(body)
	if err != nil {
		return nil, err
	}
	h := &request{doc: doc, values: slices.Collect(doc.Root().Get("messages").Each())}
	return h, h.read(doc.Root())
}

// read reads the object that a body is. Settings and tools come first, because they
// are small: a body that is not of this format is refused early.
func (h *request) read(root rawjson.Value) (err error) {
	if err := readSettings(root, &h.is); err != nil {
		return err
	}
	if h.is.Tools, err = lens.ReadList(on, root, "tools", readTool); err != nil {
		return err
	}
	messages, err := on.Kind(root, "messages", rawjson.Array)
	if err != nil {
		return err
	}
	n := messages.Len()
	h.is.Messages, h.results = make([]middleware.Message, 0, n), make([]result, 0, n)
	var c conversation
	for v := range messages.Each() {
		m, r, err := c.read(v)
		if err != nil {
			return err
		}
		h.is.Messages, h.results = append(h.is.Messages, m), append(h.results, r)
	}
	return nil
}

// EncodeRequest writes the body of a request. A request that came from this format is an
// edit of its body: the elements of messages and tools that are as they were keep
// their text, and so does every member that this package does not know.
func (Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	if req.ToolChoice != (middleware.ToolChoice{}) {
		return nil, codec.Unencodablef("a tool choice")
	}
	is, edited, err := lens.Again(on, req.Native, readRequest)
	if err != nil {
		return nil, err
	}
	h := &request{}
	if edited {
		if codec.SameRequest(is, req) {
			return []byte(req.Native.Raw), nil
		}
		if h, err = forEdit(req.Native.Raw); err != nil {
			return nil, err
		}
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
