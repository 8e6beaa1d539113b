package middleware

import "strings"

// maxPartial limits how much is kept of a response that did not arrive in
// full.
const maxPartial = 1 << 20 // bytes

// partial collects the output that a sink has received so far. The zero
// partial is ready to use.
type partial struct {
	reasoning, text strings.Builder
	calls           []ToolCall
	size            int
}

// sink returns a sink that forwards events to next and collects up to
// maxPartial bytes of them.
func (p *partial) sink(next Sink) Sink {
	return func(e Event) error {
		if e.Kind == EventReset {
			*p = partial{}
		}
		size := len(e.Text)
		if e.Call != nil {
			size += len(e.Call.ID) + len(e.Call.Name) + len(e.Call.Arguments) + 64
		}
		if p.size += size; p.size <= maxPartial {
			p.add(e)
		}
		return next(e)
	}
}

func (p *partial) add(e Event) {
	switch {
	case e.Kind == EventText:
		p.text.WriteString(e.Text)
	case e.Kind == EventReasoning:
		p.reasoning.WriteString(e.Text)
	case e.Kind == EventToolCall && e.Call != nil:
		p.calls = append(p.calls, *e.Call)
	}
}

// message returns the collected output. It is the zero Message if there is
// none.
func (p *partial) message() Message {
	m := Message{ToolCalls: p.calls}
	if p.reasoning.Len() > 0 {
		m.Parts = append(m.Parts, Part{Kind: PartReasoning, Text: p.reasoning.String()})
	}
	if p.text.Len() > 0 {
		m.Parts = append(m.Parts, Part{Text: p.text.String()})
	}
	if len(m.Parts)+len(m.ToolCalls) > 0 {
		m.Role = RoleAssistant
	}
	return m
}
