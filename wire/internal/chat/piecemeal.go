package chat

import (
	"cmp"
	"math"
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// piecemeal is a call that comes in deltas.
type piecemeal struct {
	index int64
	id    string
	name  string
	kind  middleware.Kind
	typed bool   // kind is known
	word  string // type as written; "" if it never was
	old   bool   // a function_call
	args  codec.Joined
	more  bag // members beside those known
	inner bag // the same beside name and arguments
}

// call reads the pieces of calls in a delta, and reports whether there are any.
func (t *turn) call(delta rawjson.Value) (bool, error) {
	list := delta.Get("tool_calls")
	for v := range list.Each() {
		if v.Kind() != rawjson.Object {
			return true, codec.Shapef("a tool call is of kind %s", v.Kind())
		}
		if err := t.place(v).add(v); err != nil {
			return true, err
		}
	}
	if !hasFunction(delta) {
		return list.Len() > 0, nil
	}
	if t.old == nil {
		t.old = &piecemeal{old: true}
	}
	return true, t.old.add(delta.Get("function_call"))
}

// pieceOf returns the call of a delta that brings a piece of its arguments and nothing
// else, and the piece; nil for any other delta.
func (t *turn) pieceOf(delta rawjson.Value) (*piecemeal, rawjson.Value) {
	list := delta.Get("tool_calls")
	for v := range list.Each() {
		n, ok := indexOf(v)
		function := v.Get("function")
		if c := t.byIndex[n]; c != nil && ok && list.Len() == 1 && v.Len() == 2 && function.Len() == 1 && c.kind == middleware.KindFunction {
			return c, function.Get("arguments")
		}
	}
	return nil, rawjson.Value{}
}

// indexOf returns the index of a choice or a call, which some server may write
// as a string, or as 1.0; false for what is not an index, such as the -1 of Z.ai.
func indexOf(v rawjson.Value) (int64, bool) {
	n, err := strconv.ParseInt(codec.Text(v.Get("index")), 10, 64)
	if err != nil && v.Get("index").Kind() == rawjson.Number { // 1.0
		n, err = codec.Int(v.Get("index")), nil
	}
	return n, err == nil && n >= 0
}

// place returns the call that a delta belongs to: by its index, else by its
// id, else the last one. An index with another id and a name starts a new call:
// some servers number every call 0.
func (t *turn) place(v rawjson.Value) *piecemeal {
	id := codec.Text(v.Get("id"))
	named := v.Get("function").Get("name").Str() != "" || v.Get("custom").Get("name").Str() != ""
	var c *piecemeal
	n, ok := indexOf(v)
	switch last := len(t.calls) - 1; {
	case ok:
		c = t.byIndex[n]
		if c != nil && named && id != "" && c.id != "" && id != c.id {
			c = nil
		}
	case id != "":
		n, c = t.top, t.byID[id] // behind those before it
	default:
		n = t.top
		if last >= 0 && !(named && t.calls[last].name != "") {
			c = t.calls[last]
		}
	}
	if c == nil {
		if t.byIndex == nil {
			t.byIndex, t.byID = map[int64]*piecemeal{}, map[string]*piecemeal{}
		}
		c = &piecemeal{index: n}
		t.calls = append(t.calls, c)
		t.byIndex[n] = c
		t.top = max(t.top, c.next())
	}
	if id != "" {
		t.byID[id] = c
	}
	return c
}

// next returns an index behind that of the call.
func (c *piecemeal) next() int64 { return min(c.index, math.MaxInt64-1) + 1 }

// maxName bounds the name of a tool, which may come in pieces.
const maxName = 4096

// add reads one delta of the call:
//
//	{"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ""}}
//	{"index": 0, "function": {"arguments": "{\"city\": "}}
//	{"index": 0, "function": {"arguments": "\"Oslo\"}"}}
//
// The arguments are joined, and so is a name that comes in pieces. A name that is
// what the call has already is a repetition, not a piece. The first id counts.
func (c *piecemeal) add(v rawjson.Value) error {
	if function, custom := v.Get("function"), v.Get("custom"); !c.typed && !c.old && (function.Kind() == rawjson.Object || custom.Kind() == rawjson.Object) {
		c.kind, c.typed = kindOf(v), true
	}
	holder, _, key := holderOf(v, c.kind, c.old)
	if !c.old {
		c.id = cmp.Or(c.id, codec.Text(v.Get("id")))
		c.word = cmp.Or(c.word, v.Get("type").Str())
	}
	if name := holder.Get("name").Str(); name != c.name { // a server may repeat it
		if len(c.name)+len(name) > maxName {
			return codec.Shapef("a tool's name of more than %d bytes", maxName)
		}
		c.name += name
	}
	if v := holder.Get(key); v.Exists() && v.Kind() != rawjson.Null {
		c.args.Add(v)
	}
	c.inner.add(holder, functionKeys)
	if !c.old {
		c.more.add(v, callKeys)
	}
	return nil
}

// text returns the call as it stands in history: without an index, and with the
// members that some server has put beside the known ones.
func (c *piecemeal) text() string {
	at, word, key := "function", cmp.Or(c.word, "function"), "arguments"
	if c.kind == middleware.KindCustom {
		at, word, key = "custom", "custom", "input"
	}
	holder := codec.Object(append([]lens.Member{lens.Text("name", c.name),
		lens.Raw(key, codec.QuoteAsSent(c.args.String()))}, c.inner.members()...)...)
	if c.old {
		return holder
	}
	return codec.Object(append([]lens.Member{lens.Word("id", c.id), lens.Text("type", word), lens.Raw(at, holder)}, c.more.members()...)...)
}
