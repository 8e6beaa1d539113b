package middleware

import "strings"

// maxPartial bounds what is kept of an answer that did not arrive in full.
const maxPartial = 1 << 20 // bytes

// partial is what a sink has got of an answer so far. The zero partial is
// ready.
type partial struct {
	reasoning, text strings.Builder
	calls           []ToolCall
	size            int
}

// sink returns a sink that notes what next gets, up to maxPartial.
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

// message returns what has arrived; the zero Message if nothing has.
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
