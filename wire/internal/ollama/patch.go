package ollama

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// patch is what is to change in the lines of an answer.
type patch struct {
	text, thinking piece
	calls          []string
	retell         bool // write them
	inPlace        bool // each where it stood
	model          string
	end, usage     []codec.Member
	alone          bool

	told  int // calls that have their place
	edits []rawjson.Edit
}

// piece is text that stands in pieces in several lines. The first one gets all,
// the others go; where there is none, the last line gets it.
type piece struct {
	want *string // nil: it stays
	told bool
}

func (p *patch) nothing() bool {
	return p.text.want == nil && p.thinking.want == nil && !p.retell && p.model == "" && len(p.end)+len(p.usage) == 0
}

// apply makes the changes in body.
func (p *patch) apply(body string) ([]byte, error) {
	buf := codec.NewBuffer(true)
	event := func(e codec.Event) (bool, error) {
		root, ok, err := line(e, buf.IsWhole())
		if err != nil || !ok {
			return false, err
		}
		return false, p.event(e, root)
	}
	if err := buf.Feed([]byte(body), event); err != nil {
		return nil, err
	}
	if err := buf.End(event); err != nil {
		return nil, err
	}
	if p.unplaced() {
		return nil, codec.Unencodablef("an answer without a line for it")
	}
	out, err := codec.Apply(body, p.edits)
	return []byte(out), err
}

// unplaced reports whether something has found no line.
func (p *patch) unplaced() bool {
	return p.retell && p.told < len(p.calls) || p.text.open() || p.thinking.open()
}

func (s *piece) open() bool { return s.want != nil && !s.told }

// event adds the changes of one line.
func (p *patch) event(e codec.Event, root rawjson.Value) error {
	message, done := root.Get("message"), isDone(root)
	if !message.Exists() && !root.Get("done").Exists() {
		return nil
	}
	line := codec.NewPatch(root)
	if p.model != "" && (done || root.Get("model").Exists()) {
		line.Set("model", p.model)
	}
	if done {
		line.Put(p.end...)
		if root.Get(inputKey).Exists() || root.Get(outputKey).Exists() {
			line.Put(p.usage...)
		}
	}
	inner := codec.NewPatch(message)
	changed := p.text.put(inner, message, "content", done)
	changed = p.thinking.put(inner, message, "thinking", done) || changed
	if p.retell {
		again, err := p.putCalls(inner, e, root, done)
		if err != nil {
			return err
		}
		changed = changed || again
	}
	if changed {
		line.Add(nil, only(root, "message"))
		line.Add(inner.Edits())
	}
	edits, err := line.Edits()
	if err != nil {
		return err
	}
	edits, err = e.Edits(edits)
	p.edits = append(p.edits, edits...)
	return err
}

// put writes the piece of one line, and reports whether it did.
func (s *piece) put(line *codec.Patch, message rawjson.Value, key string, done bool) bool {
	old := message.Get(key).Str()
	switch {
	case s.want == nil, old == "" && (s.told || !done):
		return false
	case s.told:
		line.Set(key, `""`)
	default:
		line.Set(key, rawjson.Quote(*s.want))
		s.told = true
	}
	return true
}

// putCalls writes the calls of one line: those that stood there or, after
// calls came or went, all in the first line that had any.
func (p *patch) putCalls(line *codec.Patch, e codec.Event, root rawjson.Value, done bool) (bool, error) {
	message := root.Get("message")
	list, n := message.Get("tool_calls"), message.Get("tool_calls").Len()
	switch {
	case n > 0 && p.inPlace:
		if p.told+n > len(p.calls) {
			return false, codec.Unencodablef("calls in another place than before")
		}
		line.Add(codec.Splice(list, p.calls[p.told:p.told+n]), only(message, "tool_calls"))
		p.told += n
	case n > 0 && p.told < len(p.calls):
		line.Add(codec.Splice(list, p.calls), only(message, "tool_calls"))
		p.told = len(p.calls)
	case n > 0:
		line.Unset("tool_calls")
	case !done || p.told == len(p.calls):
		return false, nil
	case p.alone:
		line.Put(listed("tool_calls", p.calls))
		p.told = len(p.calls)
	default:
		p.insert(e, root)
		return false, nil
	}
	return true, nil
}

// insert puts a line with the calls in front of e, the last one.
func (p *patch) insert(e codec.Event, root rawjson.Value) {
	model := root.Get("model").Raw()
	if p.model != "" {
		model = p.model
	}
	line := codec.Object(
		codec.Member{Key: "model", Raw: model},
		codec.Member{Key: "created_at", Raw: root.Get("created_at").Raw()},
		codec.Member{Key: "message", Raw: codec.Object(
			codec.Member{Key: "role", Raw: rawjson.Quote(string(middleware.RoleAssistant))},
			codec.Member{Key: "content", Raw: `""`},
			listed("tool_calls", p.calls))},
		codec.Member{Key: "done", Raw: "false"},
	)
	p.edits = append(p.edits, rawjson.Edit{Start: e.Start, End: e.Start, Text: codec.OneLine(line) + "\n"})
	p.told = len(p.calls)
}
