package chat

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// piecemeal is a call that comes in deltas. Clients join them in different ways,
// which is why some streams are refused as unreadable that one client would read:
// see place, astray and oneIndex. The package says nothing of a call that a client
// may read otherwise.
type piecemeal struct {
	index  int64
	label  string // the index as it was written first; "" for none
	id     string
	name   string
	kind   middleware.Kind
	typed  bool   // kind is known
	word   string // type as written; "" if it never was
	old    bool   // a function_call
	args   strings.Builder
	own    astray // the reasons that some chunk with a piece of it did not have; astrayOdd stands for both
	astray astray // the reasons that some chunk with a piece of it had
	more   bag    // members beside those known
	inner  bag    // the same beside name and arguments
}

// call reads the pieces of calls in a delta. The result is valid until the next one.
func (t *turn) call(delta rawjson.Value, a astray) ([]*piecemeal, error) {
	list, function := delta.Get("tool_calls"), hasFunction(delta)
	if list.Len() > 0 && t.old != nil || function && (list.Len() > 0 || len(t.calls) > 0) {
		return nil, codec.Shapef("calls in both forms in one stream")
	}
	out := t.pieces[:0]
	for v := range list.Each() {
		if err := checkCall(v); err != nil {
			return nil, err
		}
		c, err := t.place(v)
		if err == nil {
			err = c.add(v, a)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	t.pieces = out
	if !function {
		return out, nil
	}
	if t.old == nil {
		t.old = &piecemeal{old: true}
	}
	v := delta.Get("function_call")
	if err := checkCall(v); err != nil {
		return nil, err
	}
	return []*piecemeal{t.old}, t.old.add(v, a)
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
//
// Pieces of parallel calls that are interleaved are an error, although the SDKs
// join calls by their index. The stream helpers of openai-python and openai-node
// say that a call is done when the next delta has another index. Other clients
// give a delta without an id to the last call: Qwen-Agent (pull request 943 would
// change that), Bifrost before 1830, programs with go-openai.
func (t *turn) place(v rawjson.Value) (*piecemeal, error) {
	id, label := codec.Text(v.Get("id")), on.Get(v, "index").Raw()
	named := v.Get("function").Get("name").Str() != "" || v.Get("custom").Get("name").Str() != ""
	last := len(t.calls) - 1
	var c *piecemeal
	n, ok := indexOf(v)
	switch {
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
	switch { // some clients go by the index, some by the id, and some by the order
	case c == nil:
	case c.label != label:
		return nil, codec.Shapef("a delta of a call with its index in another spelling")
	case id != "" && id != c.id, id == "" && !isText(v.Get("id")):
		return nil, codec.Shapef("a delta of a call with another id")
	case c != t.calls[last]:
		return nil, codec.Shapef("a delta of a call in front of the last one")
	}
	if c == nil {
		if t.byIndex == nil {
			t.byIndex, t.byID = map[int64]*piecemeal{}, map[string]*piecemeal{}
		}
		c = &piecemeal{index: n, label: label}
		t.calls = append(t.calls, c)
		t.byIndex[n] = c
		t.top = max(t.top, c.next())
	}
	if id != "" {
		t.byID[id] = c
	}
	return c, nil
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
// what the call has already is a repetition, not a piece. The first id counts:
// place refuses another one.
func (c *piecemeal) add(v rawjson.Value, a astray) error {
	c.astray |= a
	c.own |= ^a | a&astrayOdd
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
	c.args.WriteString(argumentsOf(holder.Get(key)))
	for m := range holder.Each() {
		if k := m.Key(); k != "name" && k != key {
			c.inner.add(m)
		}
	}
	for m := range v.Each() {
		switch m.Key() {
		case "index", "id", "type", "function", "custom":
		default:
			if !c.old {
				c.more.add(m)
			}
		}
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

// astray is why some clients leave a chunk out: openai-go where its id is not
// the one of the answer, the helper of openai-python where its object is not
// chat.completion.chunk.
type astray uint8

const (
	astrayID astray = 1 << iota
	astrayObject
	astrayOdd // its id is not a text: clients differ on whether that is another one
)

// divided returns an error if a client may read a part of a call, or one call
// from two. A client that leaves out all chunks of a call, or none, is not a danger:
// it reads no call, or the one that was validated. So a reason counts only if some of
// the chunks have it and some do not.
func (t *turn) divided() error {
	if t.old != nil && t.old.astray&t.old.own != 0 || slices.ContainsFunc(t.calls, func(c *piecemeal) bool { return c.astray&c.own != 0 }) {
		return codec.Shapef("a call in chunks of which clients leave some out")
	}
	return t.oneIndex()
}

// oneIndex returns an error if calls with one index make a call that is none of
// them: clients that go by the index join the arguments, which gives some only
// where all but one have none, and keep one of the names. Some servers number
// every call 0, or none.
func (t *turn) oneIndex() error {
	type group struct {
		name                 string
		mixed, empty, filled bool
	}
	groups := map[string]*group{}
	for _, c := range t.calls {
		label := cmp.Or(c.label, "0")
		g := groups[label]
		if g == nil {
			g = &group{name: c.name}
			groups[label] = g
		}
		none := strings.TrimSpace(c.args.String()) == ""
		g.mixed = g.mixed || c.name != g.name
		g.empty, g.filled = g.empty || none, g.filled || !none
		if g.mixed && g.empty && g.filled {
			return codec.Shapef("calls of one index that a client may join")
		}
	}
	return nil
}
