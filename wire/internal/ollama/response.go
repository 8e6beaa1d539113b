package ollama

import (
	"slices"
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// handle is the handle behind a response: what it said, but not where. The
// body is read again where something has changed.
type handle struct {
	message middleware.Message
	finish  middleware.FinishReason
	model   string
	usage   middleware.Usage
	whole   bool // several lines that are one text
	alone   bool // one message, nothing but a stream of one
}

// response puts together what was read.
func (s *stream) response() (*middleware.Response, error) {
	switch {
	case s.failure != nil:
		return nil, codec.ModelError(status(s.failure.Code), nil, *s.failure)
	case !s.done && !s.seen && s.strange:
		return nil, codec.Shapef("neither message nor done")
	case !s.done:
		return nil, codec.ErrIncomplete
	}
	turn, err := s.turn()
	if err != nil {
		return nil, err
	}
	c := conversation{calls: s.before}
	m, err := c.read(turn)
	if err != nil {
		return nil, err
	}
	h := &handle{message: m.Clone(), finish: finish(s.reason, len(m.ToolCalls)), model: s.model, usage: s.usage,
		whole: s.buf.IsWhole(), alone: s.messages <= 1}
	s.own = h
	return &middleware.Response{Message: m, FinishReason: h.finish, Model: h.model, Usage: h.usage,
		Native: &middleware.Native{Dialect: dialect, Raw: s.body, Ref: h}}, nil
}

// status is the HTTP status that a code of an error says, 0 for none.
func status(code string) int {
	if n, err := strconv.Atoi(code); err == nil && 400 <= n && n <= 599 {
		return n
	}
	return 0
}

// finish is the neutral word for a done_reason. This format says stop after
// calls too.
func finish(reason string, calls int) middleware.FinishReason {
	f := middleware.FinishReason(reason)
	if calls > 0 && (f == middleware.FinishStop || f == "") {
		return middleware.FinishToolCalls
	}
	return f
}

// behind returns the handle behind resp.
func behind(resp *middleware.Response) (*handle, error) {
	h, err := codec.Handle(resp.Native, dialect, func(raw string) (*handle, error) {
		again, err := Format{}.DecodeResponse(nil, []byte(raw))
		if err != nil {
			return nil, codec.Unencodablef("the Native of an answer is none")
		}
		return again.Native.Ref.(*handle), nil
	})
	if err == nil && h == nil {
		err = codec.Unencodablef("an answer that is not of this format")
	}
	return h, err
}

// EncodeResponse is part of wire.Codec.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	h, err := behind(resp)
	if err != nil {
		return nil, err
	}
	return h.encode(resp)
}

func (h *handle) encode(resp *middleware.Response) ([]byte, error) {
	p, err := h.changes(resp)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return []byte(resp.Native.Raw), nil
	}
	return p.apply(resp.Native.Raw)
}

// changes returns what has changed in resp, nil for nothing.
func (h *handle) changes(resp *middleware.Response) (*patch, error) {
	m := resp.Message
	if len(resp.Choices) > 0 || m.Role != middleware.RoleAssistant || m.ToolCallID != "" || m.ToolName != "" || m.IsError {
		return nil, codec.Unencodablef("more than one answer, or one that is not the assistant's")
	}
	p := &patch{alone: h.alone}
	if !sameParts(m.Parts, h.message.Parts) {
		if err := p.setParts(h.message.Parts, m.Parts); err != nil {
			return nil, err
		}
	}
	if err := p.setCalls(h.message.ToolCalls, m.ToolCalls); err != nil {
		return nil, err
	}
	if resp.Model != h.model {
		p.model = rawjson.Quote(resp.Model)
	}
	if resp.FinishReason != h.finish {
		word := resp.FinishReason
		if word == middleware.FinishToolCalls {
			word = middleware.FinishStop
		}
		p.end = append(p.end, codec.Member{Key: "done_reason", Raw: rawjson.Quote(string(word))})
	}
	if resp.Usage.Input != h.usage.Input {
		p.usage = append(p.usage, codec.Member{Key: inputKey, Raw: codec.Count(resp.Usage.Input)})
	}
	if resp.Usage.Output != h.usage.Output {
		p.usage = append(p.usage, codec.Member{Key: outputKey, Raw: codec.Count(resp.Usage.Output)})
	}
	if p.nothing() {
		return nil, nil
	}
	return p, nil
}

// setParts finds out what of the text has changed. Images stay.
func (p *patch) setParts(old, now []middleware.Part) error {
	before, err := contentOf(old, true)
	if err != nil {
		return err
	}
	after, err := contentOf(now, true)
	if err != nil {
		return err
	}
	if !slices.Equal(before.images, after.images) {
		return codec.Unencodablef("an image in an answer")
	}
	if before.text != after.text {
		p.text.want = &after.text
	}
	if before.thinking != after.thinking {
		p.thinking.want = &after.thinking
	}
	return nil
}

// setCalls finds out what of the calls has changed, and whether each is still
// in its place.
func (p *patch) setCalls(old, now []middleware.ToolCall) error {
	p.calls = make([]string, len(now))
	p.inPlace = len(old) == len(now)
	same := p.inPlace
	for i, c := range now {
		raw, _, err := writeCall(c, true)
		if err != nil {
			return err
		}
		p.calls[i] = raw
		if i < len(old) {
			p.inPlace = p.inPlace && codec.SameNative(old[i].Native, c.Native)
			same = same && raw == old[i].Native.Raw
		}
	}
	p.retell = !same
	if p.retell && !p.inPlace {
		return p.renumber()
	}
	return nil
}

// renumber gives the calls that have an index the one of their place: clients
// put calls of a stream together by it.
func (p *patch) renumber() error {
	for i, raw := range p.calls {
		v, err := object(raw)
		if err != nil {
			return err
		}
		function := v.Get("function")
		if index := function.Get("index"); !index.Exists() || index.Raw() == codec.Count(int64(i)) {
			continue
		}
		edit, err := codec.Set(function, "index", codec.Count(int64(i)))
		if err != nil {
			return err
		}
		if p.calls[i], err = codec.Within(v, []rawjson.Edit{edit}); err != nil {
			return err
		}
	}
	return nil
}
