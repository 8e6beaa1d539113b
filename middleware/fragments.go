package middleware

import (
	"cmp"
	"slices"
	"strings"
)

// Fragments assembles the tool calls of one streamed response, for adapters of
// a streaming client. The zero Fragments is ready to use. It is not safe for
// concurrent use.
//
//	var calls middleware.Fragments
//	for _, d := range delta.ToolCalls {
//		calls.AddAt(d.Index, middleware.ToolCall{ID: d.ID, Name: d.Name, Arguments: d.Arguments})
//	}
//	…
//	message.ToolCalls = calls.Calls()
//
// The first id and the first kind of a call's pieces count. Names and
// arguments are joined in the order in which they were added. A piece that
// repeats the whole name, as some servers send it, does not extend the name.
// Pieces of several calls may be interleaved, and a call may begin with its
// arguments.
//
// Source: the deltas of OpenAI Chat Completions, and the deviations of
// compatible servers (wire/internal/chat).
type Fragments struct {
	all  []*fragmented // in the order of their first pieces
	at   map[int]*fragmented
	byID map[string]*fragmented
	top  int // one more than the largest index
}

// fragmented is a call that is being assembled.
type fragmented struct {
	index     int
	call      ToolCall // without the arguments
	arguments strings.Builder
}

// AddAt adds a piece of the call that the provider numbers index. A piece that
// has a name, and an id that differs from the call's id, begins a new call:
// some servers number every call 0. With a negative index AddAt does what Add
// does.
func (f *Fragments) AddAt(index int, piece ToolCall) {
	if index < 0 {
		f.Add(piece)
		return
	}
	c := f.at[index]
	if c == nil || piece.Name != "" && piece.ID != "" && c.call.ID != "" && piece.ID != c.call.ID {
		c = f.begin(index)
	}
	f.add(c, piece)
}

// Add adds a piece of a call that the provider does not number. A piece with
// an id belongs to the call with that id. A piece without an id belongs to the
// last call; if both the piece and the last call have a name, the piece begins
// a new call.
func (f *Fragments) Add(piece ToolCall) {
	c := f.byID[piece.ID]
	if piece.ID == "" && len(f.all) > 0 {
		if last := f.all[len(f.all)-1]; piece.Name == "" || last.call.Name == "" {
			c = last
		}
	}
	if c == nil {
		c = f.begin(f.top)
	}
	f.add(c, piece)
}

func (f *Fragments) begin(index int) *fragmented {
	if f.at == nil {
		f.at, f.byID = map[int]*fragmented{}, map[string]*fragmented{}
	}
	c := &fragmented{index: index}
	f.all = append(f.all, c)
	f.at[index] = c
	f.top = max(f.top, index, index+1) // index+1 may overflow
	return c
}

func (f *Fragments) add(c *fragmented, piece ToolCall) {
	c.call.ID = cmp.Or(c.call.ID, piece.ID)
	c.call.Kind = cmp.Or(c.call.Kind, piece.Kind)
	c.call.Native = cmp.Or(piece.Native, c.call.Native)
	if piece.Name != c.call.Name {
		c.call.Name += piece.Name
	}
	c.arguments.WriteString(piece.Arguments)
	if piece.ID != "" {
		f.byID[piece.ID] = c
	}
}

// Calls returns the calls assembled so far. Calls with a number are in the
// order of their numbers; a call without a number follows the calls that began
// before it. The slice belongs to the caller. It is nil if nothing was added.
func (f *Fragments) Calls() []ToolCall {
	all := slices.Clone(f.all)
	slices.SortStableFunc(all, func(a, b *fragmented) int { return cmp.Compare(a.index, b.index) })
	var calls []ToolCall
	for _, c := range all {
		call := c.call
		call.Arguments = c.arguments.String()
		calls = append(calls, call)
	}
	return calls
}
