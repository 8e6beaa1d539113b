package agentloop

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/middleware"
)

// MarshalJSON writes the state. A result whose call and text are in Messages
// is written as a reference to that message, so each result is stored once.
func (s State) MarshalJSON() ([]byte, error) {
	type plain State
	if s.Version == 0 || s.Version == firstVersion { // the form in memory is the same
		s.Version = stateVersion
	}
	v := struct {
		plain
		Turn    []turnCall     `json:"turn,omitzero"`
		Made    int            `json:"made,omitzero"`
		Results []storedResult `json:"results,omitzero"`
	}{plain: plain(s), Turn: s.turn, Made: s.made}
	answered := answeredCalls(s.Messages)
	replies := map[string][]int{} // by the id of the call
	for at, c := range answered {
		if c != nil {
			replies[c.ID] = append(replies[c.ID], at)
		}
	}
	for _, r := range s.Results {
		stored := storedResult{ToolResult: r}
		for rest := replies[r.Call.ID]; len(rest) > 0 && stored.reply == nil; {
			at := rest[0]
			if m := s.Messages[at]; sameCall(*answered[at], r.Call) && m.IsError == r.IsError && m.Text() == r.Text {
				stored.reply = &at
			}
			rest = rest[1:]
			replies[r.Call.ID] = rest
		}
		v.Results = append(v.Results, stored)
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads what MarshalJSON writes, and states of version 1. It
// keeps Sink. The error wraps ErrVersion for a state of a newer version. It
// wraps ErrState if a result refers to a message that answers no call, or if
// two results refer to the same message.
func (s *State) UnmarshalJSON(b []byte) error {
	type plain State
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	if head.Version < firstVersion || head.Version > stateVersion {
		return fmt.Errorf("%w: %d", ErrVersion, head.Version)
	}
	var v struct {
		plain
		Turn    []turnCall     `json:"turn"`
		Made    int            `json:"made"`
		Results []storedResult `json:"results"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	answered := answeredCalls(v.Messages)
	for i, r := range v.Results {
		if r.reply != nil {
			at := *r.reply
			if at < 0 || at >= len(answered) || answered[at] == nil {
				return fmt.Errorf("%w: result %d refers to message %d, which answers no call or is another result's", ErrState, i, at)
			}
			r.Call, r.Text, r.IsError = *answered[at], v.Messages[at].Text(), v.Messages[at].IsError
			answered[at] = nil
			if r.asSent {
				r.Raw = r.Call.Arguments
			}
		}
		v.plain.Results = append(v.plain.Results, r.ToolResult)
	}
	v.plain.Version, v.plain.Sink, v.plain.turn, v.plain.made = stateVersion, s.Sink, v.Turn, v.Made
	*s = State(v.plain)
	return nil
}

// answeredCalls returns, for each message that answers a call of the last
// message with calls before it, that call; nil for the other messages.
func answeredCalls(msgs []middleware.Message) []*middleware.ToolCall {
	answered := make([]*middleware.ToolCall, len(msgs))
	var open map[string]*middleware.ToolCall
	for i, m := range msgs {
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
	return answered
}

// sameCall reports whether the JSON of a and b is the same.
func sameCall(a, b middleware.ToolCall) bool {
	n, m := a.Native, b.Native
	a.Native, b.Native = nil, nil
	return a == b && (n == m || n != nil && m != nil && n.Dialect == m.Dialect && n.Raw == m.Raw)
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
func (c turnCall) MarshalJSON() ([]byte, error) {
	type plain turnCall
	return json.Marshal(struct {
		plain
		Raw     raw  `json:"raw"`
		Checked bool `json:"checked,omitzero"`
	}{plain(c), raw(c.Raw), c.checked})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *turnCall) UnmarshalJSON(b []byte) error {
	type plain turnCall
	v := struct {
		*plain
		Raw     raw  `json:"raw"`
		Checked bool `json:"checked"`
	}{plain: (*plain)(c)}
	err := json.Unmarshal(b, &v)
	c.Raw, c.checked = string(v.Raw), v.Checked
	return err
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

// SaveFile writes s as JSON to a file with mode 0600. It writes a new file
// in the same folder, syncs it, renames it and syncs the folder. After a
// crash the file has either the old or the new state. After a power failure
// that follows SaveFile it has the new one. Only one process at a time may
// write a file. Options.Checkpoint may be func(_ context.Context, s *State)
// error { return SaveFile(name, s) }.
func SaveFile(name string, s *State) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.new") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(name))
}

// syncFolder makes a rename in the folder last. Windows has no such call, and
// needs none.
func syncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// LoadFile reads a state that SaveFile wrote. The error wraps fs.ErrNotExist
// if there is no such file, and ErrVersion or ErrState if the state cannot
// continue.
func LoadFile(name string) (*State, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s := new(State)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("agentloop: %s: %w", name, err)
	}
	return s, nil
}
