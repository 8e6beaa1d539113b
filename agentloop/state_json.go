package agentloop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/middleware"
)

// MarshalJSON writes the state. A result whose call and text are in Messages
// is written as a reference to that message, so each result is stored once.
func (s State) MarshalJSON() ([]byte, error) { return new(Encoder).Encode(&s) }

// UnmarshalJSON reads what MarshalJSON writes, and states of version 1. It
// keeps Sink. The error wraps ErrVersion for a state of a newer version. It
// wraps ErrState if a result refers to a message that answers no call, or if
// two results refer to the same message.
func (s *State) UnmarshalJSON(b []byte) error {
	next := State{Sink: s.Sink}
	err := next.extend(b)
	if err == nil {
		*s = next
	}
	return err
}

// Encoder writes States as JSON, as State.MarshalJSON does. It encodes a message,
// a step or a result only once: of the State that it wrote last, it encodes what
// is new or has changed since. So a program that stores a run at each checkpoint
// keeps one Encoder for the run. The zero Encoder is ready to use. It is not safe
// for concurrent use.
type Encoder struct {
	messages pieces[middleware.Message]
	steps    pieces[StepRecord]
	results  pieces[ToolResult]
}

// Encode returns the JSON of s.
func (e *Encoder) Encode(s *State) ([]byte, error) {
	if _, err := e.update(s, extent{}); err != nil {
		return nil, err
	}
	turn, err := encodeAll(s.turn)
	if err != nil {
		return nil, err
	}
	return e.document(s, turn, extent{})
}

// pieces are values and their JSON.
type pieces[T any] struct {
	values  []T
	encoded []json.RawMessage
}

// keep drops the values from the first one on that differs from now. The first
// known values are not compared.
func (p *pieces[T]) keep(now []T, known int, same func(a, b T) bool) {
	n := min(known, len(now), len(p.values))
	for n < len(now) && n < len(p.values) && same(p.values[n], now[n]) {
		n++
	}
	p.values, p.encoded = p.values[:n], p.encoded[:n]
}

// add encodes v as it is encoded, and keeps both. v must not be modified.
func (p *pieces[T]) add(v T, as any) error {
	b, err := json.Marshal(as)
	p.values, p.encoded = append(p.values, v), append(p.encoded, b)
	return err
}

// extent is how many messages, steps and results there are.
type extent struct{ messages, steps, results int }

func (e *Encoder) extent() extent {
	return extent{len(e.messages.values), len(e.steps.values), len(e.results.values)}
}

// update encodes what is new in s, and returns how much is not. What is known has
// not changed since the last update. After an error e is empty.
func (e *Encoder) update(s *State, known extent) (kept extent, err error) {
	was := len(e.messages.values)
	e.messages.keep(s.Messages, known.messages, sameMessage)
	e.steps.keep(s.Steps, known.steps, func(a, b StepRecord) bool { return a == b })
	if len(e.messages.values) < was { // results may refer to what has changed
		e.results = pieces[ToolResult]{}
	}
	e.results.keep(s.Results, known.results, sameResult)
	kept = e.extent()
	for _, m := range s.Messages[kept.messages:] {
		err = errors.Join(err, e.messages.add(m.Clone(), m))
	}
	for _, r := range s.Steps[kept.steps:] {
		err = errors.Join(err, e.steps.add(r, r))
	}
	answered, first := answeredCalls(s.Messages, kept.messages)
	replies := map[string][]int{} // by the id of the call
	for i, c := range answered {
		if c != nil && first+i >= kept.messages {
			replies[c.ID] = append(replies[c.ID], first+i)
		}
	}
	for _, r := range s.Results[kept.results:] {
		stored := storedResult{ToolResult: r}
		for rest := replies[r.Call.ID]; len(rest) > 0 && stored.reply == nil; {
			at := rest[0]
			if m := s.Messages[at]; sameCall(*answered[at-first], r.Call) && m.IsError == r.IsError && m.Text() == r.Text {
				stored.reply = &at
			}
			rest = rest[1:]
			replies[r.Call.ID] = rest
		}
		r.Value, r.Err = nil, nil // they are not stored
		err = errors.Join(err, e.results.add(r, stored))
	}
	if err != nil {
		*e = Encoder{}
	}
	return kept, err
}

// document returns the JSON of s with this turn, and with those messages, steps and
// results that begin at from. Before, update was called with s.
func (e *Encoder) document(s *State, turn []json.RawMessage, from extent) ([]byte, error) {
	version := s.Version
	if version == 0 || version == firstVersion { // the form in memory is the same
		version = stateVersion
	}
	b, err := json.Marshal(struct {
		Version  int               `json:"version"`
		RunID    string            `json:"run_id"`
		Failures int               `json:"failures,omitzero"`
		Failed   []string          `json:"failed,omitzero"`
		Usage    middleware.Usage  `json:"usage,omitzero"`
		Turn     []json.RawMessage `json:"turn,omitzero"`
		Made     int               `json:"made,omitzero"`
	}{version, s.RunID, s.Failures, s.Failed, s.Usage, turn, s.made})
	if err != nil {
		return nil, err
	}
	for _, list := range []struct {
		name    string
		encoded []json.RawMessage
	}{{"messages", e.messages.encoded[from.messages:]}, {"steps", e.steps.encoded[from.steps:]}, {"results", e.results.encoded[from.results:]}} {
		if len(list.encoded) == 0 {
			continue
		}
		b = append(b[:len(b)-1], `,"`+list.name+`":[`...)
		for i, v := range list.encoded {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, v...)
		}
		b = append(b, "]}"...)
	}
	return b, nil
}

// extend reads a document, whose messages, steps and results come after those of
// s, and replaces everything else. A call of the turn that is null is as before.
func (s *State) extend(b []byte) error {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	if head.Version < firstVersion || head.Version > stateVersion {
		return fmt.Errorf("%w: %d", ErrVersion, head.Version)
	}
	type plain State
	var v struct {
		plain
		Turn    []*turnCall    `json:"turn"`
		Made    int            `json:"made"`
		Results []storedResult `json:"results"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	next := State(v.plain)
	next.Version, next.Sink, next.made = stateVersion, s.Sink, v.Made
	for i, c := range v.Turn {
		switch {
		case c != nil:
			next.turn = append(next.turn, *c)
		case i < len(s.turn):
			next.turn = append(next.turn, s.turn[i])
		default:
			return fmt.Errorf("%w: call %d of the turn is missing", ErrState, i)
		}
	}
	known := len(s.Messages)
	next.Messages = append(s.Messages, v.Messages...)
	next.Steps = append(s.Steps, v.Steps...)
	next.Results = s.Results
	answered, first := answeredCalls(next.Messages, known)
	for i, r := range v.Results {
		if r.reply != nil {
			at := *r.reply - first
			if at < 0 || at >= len(answered) || answered[at] == nil {
				return fmt.Errorf("%w: result %d refers to message %d, which answers no call or is another result's", ErrState, len(s.Results)+i, *r.reply)
			}
			m := next.Messages[*r.reply]
			r.Call, r.Text, r.IsError = *answered[at], m.Text(), m.IsError
			answered[at] = nil
			if r.asSent {
				r.Raw = r.Call.Arguments
			}
		}
		next.Results = append(next.Results, r.ToolResult)
	}
	*s = next
	return nil
}

func encodeAll[T any](values []T) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// answeredCalls returns, for each message that answers a call of the last
// message with calls before it, that call; nil for the other messages. It begins
// with the message first, which has the calls that the messages at from answer.
func answeredCalls(msgs []middleware.Message, from int) (answered []*middleware.ToolCall, first int) {
	for first = from; first > 0 && msgs[first-1].Role == middleware.RoleTool; first-- {
	}
	first = max(first-1, 0)
	answered = make([]*middleware.ToolCall, len(msgs)-first)
	var open map[string]*middleware.ToolCall
	for i, m := range msgs[first:] {
		if len(m.ToolCalls) > 0 {
			open = make(map[string]*middleware.ToolCall, len(m.ToolCalls))
			for n := range m.ToolCalls {
				open[m.ToolCalls[n].ID] = &m.ToolCalls[n]
			}
		} else if m.Role == middleware.RoleTool {
			answered[i] = open[m.ToolCallID]
			delete(open, m.ToolCallID)
		}
	}
	return answered, first
}

// sameMessage reports whether the JSON of a and b is the same.
func sameMessage(a, b middleware.Message) bool {
	return a.Role == b.Role && a.ToolCallID == b.ToolCallID && a.ToolName == b.ToolName && a.IsError == b.IsError &&
		sameNative(a.Native, b.Native) && slices.EqualFunc(a.Parts, b.Parts, samePart) && slices.EqualFunc(a.ToolCalls, b.ToolCalls, sameCall)
}

func samePart(a, b middleware.Part) bool {
	return a.Kind == b.Kind && a.Text == b.Text && a.MediaType == b.MediaType && a.URL == b.URL &&
		bytes.Equal(a.Data, b.Data) && sameNative(a.Native, b.Native)
}

// sameResult reports whether the JSON of a and b is the same.
func sameResult(a, b ToolResult) bool {
	return sameCall(a.Call, b.Call) && a.Raw == b.Raw && slices.Equal(a.Changes, b.Changes) && a.Turn == b.Turn &&
		a.Rejected == b.Rejected && a.Text == b.Text && a.IsError == b.IsError
}

// sameCall reports whether the JSON of a and b is the same.
func sameCall(a, b middleware.ToolCall) bool {
	native := sameNative(a.Native, b.Native)
	a.Native, b.Native = nil, nil
	return native && a == b
}

func sameNative(a, b *middleware.Native) bool {
	return a == b || a != nil && b != nil && a.Dialect == b.Dialect && a.Raw == b.Raw
}

// storedResult is a result in the JSON of a state.
type storedResult struct {
	ToolResult
	reply  *int // the message that holds its text, and answers its call; nil: the result stands for itself
	asSent bool // Raw is the call's arguments; only beside reply
}

// resultRef is a result whose call, text and IsError are those of a message.
type resultRef struct {
	Reply    *int                `json:"reply"`
	Raw      *raw                `json:"raw,omitzero"` // nil: the call's arguments
	Changes  []middleware.Change `json:"changes,omitzero"`
	Turn     int                 `json:"turn"`
	Rejected bool                `json:"rejected,omitzero"`
}

// MarshalJSON writes the reference, or the whole result where there is none.
func (r storedResult) MarshalJSON() ([]byte, error) {
	if r.reply == nil {
		return json.Marshal(r.ToolResult)
	}
	ref := resultRef{Reply: r.reply, Changes: r.Changes, Turn: r.Turn, Rejected: r.Rejected}
	if r.Raw != r.Call.Arguments {
		ref.Raw = (*raw)(&r.Raw)
	}
	return json.Marshal(ref)
}

// UnmarshalJSON reads either form.
func (r *storedResult) UnmarshalJSON(b []byte) error {
	var ref resultRef
	if err := json.Unmarshal(b, &ref); err != nil {
		return err
	}
	if ref.Reply == nil {
		return json.Unmarshal(b, &r.ToolResult)
	}
	r.reply, r.asSent = ref.Reply, ref.Raw == nil
	r.Changes, r.Turn, r.Rejected = ref.Changes, ref.Turn, ref.Rejected
	if ref.Raw != nil {
		r.Raw = string(*ref.Raw)
	}
	return nil
}

// valid makes text UTF-8, as JSON demands: what the model is sent is what
// stands in a state that was stored.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// raw is what the model wrote. It survives JSON where it is not UTF-8, in the
// form that package middleware has for that.
type raw string

type rawBytes struct {
	Base64 []byte `json:"base64"`
}

func (r raw) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(r)) {
		return json.Marshal(string(r))
	}
	return json.Marshal(rawBytes{[]byte(r)})
}

func (r *raw) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var v rawBytes
		err := json.Unmarshal(b, &v)
		*r = raw(v.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(r))
}

// MarshalJSON keeps raw arguments that are not UTF-8.
func (r ToolResult) MarshalJSON() ([]byte, error) {
	type plain ToolResult
	return json.Marshal(struct {
		plain
		Raw raw `json:"raw"`
	}{plain(r), raw(r.Raw)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *ToolResult) UnmarshalJSON(b []byte) error {
	type plain ToolResult
	v := struct {
		*plain
		Raw raw `json:"raw"`
	}{plain: (*plain)(r)}
	err := json.Unmarshal(b, &v)
	r.Raw = string(v.Raw)
	return err
}
