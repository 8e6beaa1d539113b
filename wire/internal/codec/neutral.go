package codec

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Unpaired reports whether one of the balances is not 0: calls of provider-executed tools in a
// message count 1, and their results -1, by the id that they share.
func Unpaired(balances map[string]int) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(balances)), func(n int) bool { return n != 0 })
}

// The comparisons find out what a middleware changed in what was decoded. They
// leave Native out. Strings that did not change share their memory, so that
// comparing them costs next to nothing.

// SameCall reports whether a and b differ in nothing that a codec writes.
func SameCall(a, b middleware.ToolCall) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Kind == b.Kind && a.Arguments == b.Arguments
}

// SamePart is SameCall for parts.
func SamePart(a, b middleware.Part) bool {
	return a.Kind == b.Kind && a.Text == b.Text && a.MediaType == b.MediaType && a.URL == b.URL && bytes.Equal(a.Data, b.Data)
}

// SameNative reports whether a and b hold the same text of the provider, before or after
// storage.
func SameNative(a, b *middleware.Native) bool {
	return a == b || a != nil && b != nil && a.Dialect == b.Dialect && a.Raw == b.Raw
}

// SameMessage is SameCall for messages: a part or a call that was put in the
// place of one with another Native counts as a change.
func SameMessage(a, b middleware.Message) bool {
	return a.Role == b.Role && a.ToolCallID == b.ToolCallID && a.ToolName == b.ToolName && a.IsError == b.IsError &&
		slices.EqualFunc(a.Parts, b.Parts, func(a, b middleware.Part) bool { return SameNative(a.Native, b.Native) && SamePart(a, b) }) &&
		slices.EqualFunc(a.ToolCalls, b.ToolCalls, func(a, b middleware.ToolCall) bool { return SameNative(a.Native, b.Native) && SameCall(a, b) })
}

// SameRequest reports whether a and b differ in nothing that a codec writes into
// the body that both came from.
func SameRequest(a, b *middleware.Request) bool {
	return a.Model == b.Model && SameChoice(a, b) && a.NoParallelCalls == b.NoParallelCalls && a.MaxTokens == b.MaxTokens && bytes.Equal(a.Output, b.Output) &&
		SameFloat(a.Temperature, b.Temperature) && slices.Equal(a.Stop, b.Stop) && SameTools(a.Tools, b.Tools) &&
		(a.SameDeferred(b) || SameMessages(a.Loaded().Messages, b.Loaded().Messages))
}

// SameChoice reports whether a and b let the model call the same tools.
func SameChoice(a, b *middleware.Request) bool {
	return a.ToolChoice == b.ToolChoice && slices.Equal(a.AllowedTools, b.AllowedTools) && (a.AllowedTools == nil) == (b.AllowedTools == nil)
}

// Choice returns the tool choice of req, and the names to which it limits the model: nil if it
// has no list, names the one tool, or allows none.
func Choice(req *middleware.Request) (c middleware.ToolChoice, allowed []string) {
	c = req.ToolChoice
	switch {
	case c.Name != "" || c.Mode == middleware.ToolNone:
		return c, nil
	case req.AllowedTools != nil && len(req.AllowedTools) == 0:
		return middleware.ToolChoice{Mode: middleware.ToolNone}, nil
	}
	return c, req.AllowedTools
}

// AllowedNames returns the names in a list of allowed tools, as name reads one: of an empty list
// none. It is nil without a list, or if an entry has no name: then it is not known which
// tools are allowed.
func AllowedNames(list rawjson.Value, name func(rawjson.Value) string) []string {
	if list.Kind() != rawjson.Array {
		return nil
	}
	names := []string{}
	for v := range list.Each() {
		n := name(v)
		if n == "" {
			return nil
		}
		names = append(names, n)
	}
	return names
}

// NameResults gives each tool message without a name the name of the call that it answers: the
// last one before it with its id. Most formats do not repeat the name.
func NameResults(messages []middleware.Message) {
	names := map[string]string{}
	for i := range messages {
		m := &messages[i]
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Name
		}
		if m.Role == middleware.RoleTool && m.ToolName == "" {
			m.ToolName = names[m.ToolCallID]
		}
	}
}

// SameResponse is SameRequest for answers.
func SameResponse(a, b *middleware.Response) bool {
	return a.Model == b.Model && a.FinishReason == b.FinishReason && a.Usage == b.Usage &&
		SameMessage(a.Message, b.Message) && slices.EqualFunc(a.Choices, b.Choices, SameMessage)
}

// SameMessages is SameMessage for the messages of a request, each of which has a
// text of its own.
func SameMessages(a, b []middleware.Message) bool {
	return slices.EqualFunc(a, b, func(a, b middleware.Message) bool { return SameNative(a.Native, b.Native) && SameMessage(a, b) })
}

// SameTools is SameMessages for tools.
func SameTools(a, b []middleware.Tool) bool {
	return slices.EqualFunc(a, b, func(a, b middleware.Tool) bool { return SameNative(a.Native, b.Native) && SameTool(a, b) })
}

// SameTool is SameCall for tools.
func SameTool(a, b middleware.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && a.Strict == b.Strict && a.Kind == b.Kind &&
		bytes.Equal(a.Parameters, b.Parameters)
}

// SameFloat reports whether a and b are the same number, or both none.
func SameFloat(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// Calls returns how many tool calls the conversation of req has. req may be nil.
func Calls(req *middleware.Request) int {
	if req == nil {
		return 0
	}
	if n, ok := req.DeferredCalls(); ok {
		return n
	}
	n := 0
	for _, m := range req.Loaded().Messages {
		n += len(m.ToolCalls)
	}
	return n
}

const placePrefix = "toolmend_"

// PlaceID is the id of the n-th call of a conversation, from 1, on a wire that
// gives it none: the same in the answer and in later history.
func PlaceID(n int) string { return placePrefix + strconv.Itoa(n) }

// IsPlaceID reports whether id is one of PlaceID, which is never written to a
// wire that has none.
func IsPlaceID(id string) bool {
	n, ok := strings.CutPrefix(id, placePrefix)
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}

// Pairing finds the calls that results without an id belong to. The zero
// Pairing is ready; its work is linear in calls and results.
type Pairing struct {
	calls  []middleware.ToolCall
	used   []bool
	first  int // before it all are used
	byID   map[string][]int
	byName map[string][]int
}

// Turn starts the turn of an assistant message with those calls: what was not
// answered before it never will be. Without calls nothing changes.
func (p *Pairing) Turn(calls []middleware.ToolCall) {
	if len(calls) > 0 {
		*p = Pairing{calls: calls, used: make([]bool, len(calls))}
	}
}

// Result returns the index of the call that a result answers: the call with the id; without an
// id the first open call of the name, else the first open call. It is -1 without such a call.
// The call is then closed.
func (p *Pairing) Result(id, name string) int {
	i := p.Find(id, name)
	if i >= 0 {
		p.used[i] = true
	}
	return i
}

// Find is Result for a call that stays open.
func (p *Pairing) Find(id, name string) int {
	if p.byID == nil {
		p.byID, p.byName = map[string][]int{}, map[string][]int{}
		for i, c := range p.calls {
			p.byID[c.ID] = append(p.byID[c.ID], i)
			p.byName[c.Name] = append(p.byName[c.Name], i)
		}
	}
	if id != "" {
		return p.open(p.byID, id)
	}
	if i := p.open(p.byName, name); i >= 0 {
		return i
	}
	for ; p.first < len(p.calls); p.first++ {
		if !p.used[p.first] {
			return p.first
		}
	}
	return -1
}

// open returns the first open call of those under key, -1 for none.
func (p *Pairing) open(by map[string][]int, key string) int {
	for len(by[key]) > 0 {
		if i := by[key][0]; !p.used[i] {
			return i
		}
		by[key] = by[key][1:]
	}
	return -1
}
