package gemini

import (
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// pairs knows the calls of the last turn, and which of them results belong to. The
// reader uses it to find the call of a result, and the writer to make sure that the
// server will find the same one.
type pairs struct {
	open    []middleware.ToolCall
	wireIDs bool // some of them have an id on the wire
	begun   bool // the turn goes on: nothing was told since
	paired  bool // pairing has all of open
	pairing codec.Pairing
}

// said notes calls. A turn may be cut into several contents: as long as the model goes
// on, their calls are answered together.
func (p *pairs) said(calls []middleware.ToolCall, wireIDs bool) {
	if len(calls) == 0 {
		return
	}
	if !p.begun {
		p.open, p.wireIDs = nil, false
	}
	p.open, p.wireIDs = append(p.open, calls...), p.wireIDs || wireIDs
	p.begun, p.paired = true, false
}

// answered returns the id of the call that a result is for. A client may make up
// ids where the model gave none: then its name and its place tell.
func (p *pairs) answered(id, name string) string {
	if !p.paired {
		p.pairing.Turn(p.open)
		p.paired = true
	}
	i := p.pairing.Result(id, name)
	if i < 0 && id != "" && !p.wireIDs {
		i = p.pairing.Result("", name)
	}
	if i < 0 {
		return id
	}
	return p.open[i].ID
}

// wireCall is a call as the wire has it. id is "" for a call that goes by its place.
type wireCall struct{ id, name string }

// note notes calls and their ids on the wire, for the results that follow.
func (w *writer) note(calls []middleware.ToolCall) error {
	wireIDs := false
	for _, c := range calls {
		id, err := wireID(c)
		if err != nil {
			return err
		}
		w.calls[c.ID] = wireCall{id, c.Name}
		wireIDs = wireIDs || id != ""
	}
	w.said(calls, wireIDs)
	return nil
}

// reaches returns an error if the server takes the result m, which has that id on
// the wire, for that of another call. That is so where calls have no ids, and
// results come in another order, or some are missing. A result for a call that is
// not in the history belongs to no response, and passes.
func (w *writer) reaches(m middleware.Message, id string) error {
	call := w.answered(id, m.ToolName)
	if _, known := w.calls[m.ToolCallID]; known && call != m.ToolCallID && call != id {
		return codec.Unencodablef("results in another order than their calls, which have no ids")
	}
	return nil
}
