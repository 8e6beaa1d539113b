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
// The zero request belongs to a fresh one.
type request struct {
	is      *middleware.Request
	values  []rawjson.Value // the messages
	results []result        // the reference of each to its call
}

// ReadRequest reads a body. Only the neutral request is remembered, and no parsed text: an edit,
// which is rare, reads the body again. The error wraps ErrShape.
func (Format) ReadRequest(in *codec.Input) (*middleware.Request, error) {
	h := request{is: &middleware.Request{}}
	return h.is, in.Borrow(dialect, "messages", func(root rawjson.Value) error {
		err := h.read(root)
		if err == nil {
			h.is.Tools = append(in.Tools(root.Get("tools")), h.is.Tools...)
			in.Keep(root.Get("tools"), nil, readTool)
			in.Calls = make([]int, len(h.is.Messages))
			for i, m := range h.is.Messages {
				in.Calls[i] = len(m.ToolCalls)
			}
			in.Keep(root.Get("messages"), nil, nil)
		}
		return err
	})
}

// read reads the object that a body is. Settings and tools come first, because they
// are small: a body that is not of this format is refused early.
func (h *request) read(root rawjson.Value) (err error) {
	if err := readSettings(root, h.is); err != nil {
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
	h.is.Messages, h.values, h.results = make([]middleware.Message, 0, n), make([]rawjson.Value, 0, n), make([]result, 0, n)
	var c conversation
	for v := range messages.Each() {
		m, r, err := c.read(v)
		if err != nil {
			return err
		}
		h.is.Messages, h.values, h.results = append(h.is.Messages, m), append(h.values, v), append(h.results, r)
	}
	return nil
}

// EncodeRequest writes the body of a request. A request that came from this format is an
// edit of its body: the elements of messages and tools that are as they were keep
// their text, and so does every member that this package does not know.
func (f Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	if req.ToolChoice != (middleware.ToolChoice{}) {
		return nil, codec.Unencodablef("a tool choice")
	}
	return on.EncodeRequest(req, f.ReadRequest, edit, fresh)
}

func edit(doc *rawjson.Doc, was, req *middleware.Request) (string, error) {
	h := request{is: &middleware.Request{}}
	if err := h.read(doc.Root()); err != nil {
		return "", err
	}
	messages, err := h.messages(req.Messages)
	if err != nil {
		return "", err
	}
	tools, _, err := on.Tools(was.Tools, req.Tools, toolText)
	if err != nil {
		return "", err
	}
	e := on.Edit(doc.Root())
	e.Put(lens.Differ(settings(was), settings(req))...)
	if len(req.Output) > 0 {
		if form := doc.Root().Get("format"); form.Exists() && form.Kind() != rawjson.Null {
			return "", codec.Unencodablef("a schema of the answer's text beside format")
		}
		e.Put(lens.Raw("format", string(req.Output)))
	}
	e.Elements("messages", messages)
	e.Elements("tools", tools)
	return e.Apply(doc)
}

// messages returns the texts of now. The messages of the body are found by their text,
// wherever they are now. The writer gets all of them in order, because a result without an id
// belongs to a call by its place.
func (h *request) messages(now []middleware.Message) ([]string, error) {
	w := writer{}
	out := make([]string, len(now))
	for i, run := range on.History(h.is.Messages, nil, now, nil) {
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
func fresh(req *middleware.Request) (string, error) {
	messages, err := (&request{is: &middleware.Request{}}).messages(req.Messages)
	if err != nil {
		return "", err
	}
	tools, _, err := on.Tools(nil, req.Tools, toolText)
	if err != nil {
		return "", err
	}
	all := settings(req)
	members := []lens.Member{all[0], lens.Raw("messages", codec.Array(messages)), lens.List("tools", tools), lens.Raw("format", string(req.Output))}
	return on.WithParams(append(append(members, all[1:]...), lens.Raw("stream", strconv.FormatBool(req.Sink != nil))), req.Params)
}

// readSettings reads the model and the options into r:
//
//	"model": "llama3.1", "options": {"temperature": 0.5, "num_predict": 64, "stop": ["END"]}
//
// A tool choice has no place in this format.
func readSettings(root rawjson.Value, r *middleware.Request) error {
	in := on.Reader()
	r.Model = in.Text(root, "model")
	options := in.Kind(root, "options", rawjson.Object)
	r.Temperature = codec.Float(in.Kind(options, "temperature", rawjson.Number))
	r.MaxTokens = int(max(0, codec.Int(in.Kind(options, "num_predict", rawjson.Number)))) // -1 and -2 are no bound
	r.Stop = in.Texts(options, "stop")
	return in.Err
}

// settings projects the model, which comes first, and the options. EncodeRequest sets only the
// settings whose projection has changed, so that 0.50 stays 0.50, and a bound of -1 does not
// become 0.
func settings(r *middleware.Request) []lens.Member {
	return []lens.Member{
		lens.Text("model", r.Model),
		lens.Float("options/temperature", r.Temperature),
		lens.Count("options/num_predict", int64(r.MaxTokens)),
		lens.Words("options/stop", r.Stop),
	}
}
