package ollama

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// request is the handle behind a request: what it said beside its messages and
// tools, which have their own.
type request struct {
	value       rawjson.Value
	model       string
	temperature *float64
	maxTokens   int
	stop        []string
}

// DecodeRequest is part of wire.Codec.
func (Format) DecodeRequest(body []byte) (*middleware.Request, error) {
	return readRequest(string(body))
}

func readRequest(body string) (*middleware.Request, error) {
	root, err := codec.ParseObject(body)
	if err != nil {
		return nil, err
	}
	h := &request{value: root}
	if h.model, err = text(root, "model"); err != nil {
		return nil, err
	}
	if err := h.readOptions(); err != nil {
		return nil, err
	}
	req := &middleware.Request{Model: h.model, MaxTokens: h.maxTokens, Stop: slices.Clone(h.stop)}
	if h.temperature != nil {
		t := *h.temperature
		req.Temperature = &t
	}
	messages, err := member(root, "messages", rawjson.Array)
	if err != nil {
		return nil, err
	}
	var c conversation
	for v := range messages.Each() {
		m, err := c.read(v)
		if err != nil {
			return nil, err
		}
		req.Messages = append(req.Messages, m)
	}
	if req.Tools, err = readTools(root); err != nil {
		return nil, err
	}
	req.Native = &middleware.Native{Dialect: dialect, Raw: body, Ref: h}
	return req, nil
}

func (h *request) readOptions() error {
	options, err := member(h.value, "options", rawjson.Object)
	if err != nil {
		return err
	}
	temperature, err := member(options, "temperature", rawjson.Number)
	if err != nil {
		return err
	}
	h.temperature = codec.Float(temperature)
	predict, err := member(options, "num_predict", rawjson.Number)
	if err != nil {
		return err
	}
	h.maxTokens = int(max(0, codec.Int(predict))) // -1 and -2 are no bound
	stop, err := member(options, "stop", rawjson.Array)
	if err != nil {
		return err
	}
	for s := range stop.Each() {
		if s.Kind() != rawjson.String {
			return codec.Shapef("a stop of kind %s", s.Kind())
		}
		h.stop = append(h.stop, s.Str())
	}
	return nil
}

// EncodeRequest is part of wire.Codec.
func (Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	if req.ToolChoice != (middleware.ToolChoice{}) {
		return nil, codec.Unencodablef("a tool choice")
	}
	h, err := codec.Handle(req.Native, dialect, func(raw string) (*request, error) {
		again, err := readRequest(raw)
		if err != nil {
			return nil, codec.Unencodablef("the Native of a request is none")
		}
		return again.Native.Ref.(*request), nil
	})
	if err != nil {
		return nil, err
	}
	var w writer
	messages, err := each(req.Messages, w.write)
	if err != nil {
		return nil, err
	}
	tools, err := each(req.Tools, writeTool)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return fresh(req, messages, tools)
	}
	p := codec.NewPatch(h.value)
	if req.Model != h.model {
		p.Set("model", rawjson.Quote(req.Model))
	}
	h.setOptions(p, req)
	setList(p, h.value, "messages", messages)
	setList(p, h.value, "tools", tools)
	edits, err := p.Edits()
	if err != nil {
		return nil, err
	}
	body, err := codec.Apply(req.Native.Raw, edits)
	return []byte(body), err
}

// each returns what write makes of every item.
func each[T any](items []T, write func(T) (string, error)) ([]string, error) {
	out := make([]string, len(items))
	for i, item := range items {
		raw, err := write(item)
		if err != nil {
			return nil, err
		}
		out[i] = raw
	}
	return out, nil
}

// setOptions writes the changed ones.
func (h *request) setOptions(p *codec.Patch, req *middleware.Request) {
	var changed []codec.Member
	for _, o := range options(req) {
		switch o.Key {
		case "temperature":
			if codec.SameFloat(h.temperature, req.Temperature) {
				continue
			}
		case "num_predict":
			if h.maxTokens == req.MaxTokens {
				continue
			}
		case "stop":
			if slices.Equal(h.stop, req.Stop) {
				continue
			}
		}
		changed = append(changed, o)
	}
	if len(changed) == 0 {
		return
	}
	if old := h.value.Get("options"); old.Kind() == rawjson.Object {
		p.Add(codec.SetAll(old, changed...))
		p.Add(nil, only(h.value, "options"))
		return
	}
	p.Set("options", codec.Object(changed...))
}

// options returns what of req stands in options.
func options(req *middleware.Request) []codec.Member {
	out := []codec.Member{{Key: "temperature"}, {Key: "num_predict"}, {Key: "stop"}}
	if req.Temperature != nil {
		out[0].Raw = codec.Number(*req.Temperature)
	}
	if req.MaxTokens != 0 {
		out[1].Raw = codec.Count(int64(req.MaxTokens))
	}
	if len(req.Stop) > 0 {
		quotes := make([]string, len(req.Stop))
		for i, s := range req.Stop {
			quotes[i] = rawjson.Quote(s)
		}
		out[2] = listed("stop", quotes)
	}
	return out
}
