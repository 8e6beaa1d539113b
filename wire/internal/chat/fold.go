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

// turn puts the deltas of one choice together to a message as it stands in
// history. Which rule a member follows depends on what it is:
//
//   - reasoning_content, reasoning, refusal: texts are joined
//   - content: texts are joined; a list, of Mistral, is joined element by element,
//     neighbours of one type to one element
//   - reasoning_details: the same, by type, index and id
//   - tool_calls, function_call: see piecemeal
//   - audio: its id alone, which is what a provider takes in history
//   - anything else: see bag
type turn struct {
	index   int64
	finish  string        // the last finish_reason
	written string        // the message of an answer that is one object
	beside  []lens.Member // what stands beside that
	role    string
	content list
	text    bool   // a delta had a text for content
	half    string // the escaped first half of a letter, with which that text ended
	listed  bool   // a delta had a list
	joined  [3]strings.Builder
	details list
	audio   string                // its id, as JSON
	more    bag                   // members that are not known here
	calls   []*piecemeal          // in the order in which they began
	byIndex map[int64]*piecemeal  // the last one of each index
	byID    map[string]*piecemeal // the last one of each id
	top     int64                 // above every index
	old     *piecemeal            // a function_call
}

// joinedKeys are the members of a delta whose texts are joined.
var joinedKeys = [3]string{"reasoning_content", "reasoning", "refusal"}

// What is understood of a message, of a call and of its function. A member that some
// reader takes for one of them, because it ignores case, is not a further member.
var (
	messageKeys  = []string{"role", "content", "name", "tool_call_id", "tool_calls", "function_call", "reasoning", "reasoning_content", "reasoning_details", "refusal", "audio"}
	callKeys     = []string{"index", "id", "type", "function", "custom"}
	functionKeys = []string{"name", "arguments", "input"}
)

// add reads one delta, and reports whether there is a call in it. Reasoning that stands
// in several members is shown once.
func (t *turn) add(delta rawjson.Value, sink middleware.Sink) (calls bool, err error) {
	if err := checkCalls(delta); err != nil {
		return true, err
	}
	t.role = cmp.Or(t.role, delta.Get("role").Str())
	for i, key := range joinedKeys {
		t.joined[i].WriteString(delta.Get(key).Str())
	}
	if details := delta.Get("reasoning_details"); details.Kind() == rawjson.Array {
		for d := range details.Each() {
			key := map[string]string{"reasoning.text": "text", "reasoning.summary": "summary"}[d.Get("type").Str()]
			t.details.add(d, key, d.Get(key).Str())
		}
	}
	if err := codec.Tell(sink, middleware.PartReasoning, reasoningText(delta)); err != nil {
		return false, err
	}
	if err := t.say(delta.Get("content"), sink); err != nil {
		return false, err
	}
	if err := codec.Tell(sink, middleware.PartText, delta.Get("refusal").Str()); err != nil {
		return false, err
	}
	if id := delta.Get("audio").Get("id"); t.audio == "" && id.Str() != "" {
		t.audio = id.Raw()
	}
	t.more.add(delta, messageKeys)
	return t.call(delta)
}

// say reads the content of a delta.
func (t *turn) say(content rawjson.Value, sink middleware.Sink) error {
	switch content.Kind() {
	case rawjson.String:
		return t.sayText(t.decoded(content), sink)
	case rawjson.Object: // Cloudflare sends structured output as it is
		return t.sayText(content.Raw(), sink)
	case rawjson.Array:
		t.listed = true
		for v := range content.Each() {
			key, kind := itemKind(v), middleware.PartText
			text := v.Get(key).Str()
			switch key {
			case "text":
			case "thinking":
				kind, text = middleware.PartReasoning, thinking(v.Get(key))
			default:
				key, text = "", ""
			}
			t.content.add(v, key, text)
			if err := codec.Tell(sink, kind, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// sayText adds a text that is not an element of a list.
func (t *turn) sayText(text string, sink middleware.Sink) error {
	if t.text = true; text != "" {
		t.content.add(rawjson.Value{}, "text", text)
	}
	return codec.Tell(sink, middleware.PartText, text)
}

// decoded returns the text of a delta. A letter that is escaped as a surrogate pair may be
// divided between two deltas: its first half waits for the second one.
func (t *turn) decoded(v rawjson.Value) string {
	raw := v.Raw()
	if t.half == "" && !endsInHalf(raw) {
		return v.Str()
	}
	raw = `"` + t.half + raw[1:]
	if t.half = ""; endsInHalf(raw) {
		at := len(raw) - len(`\ud83d"`)
		t.half, raw = raw[at:len(raw)-1], raw[:at]+`"`
	}
	doc, err := codec.Parse(raw)
	if err != nil {
		return v.Str()
	}
	return doc.Root().Str()
}

// endsInHalf reports whether a JSON string ends with the first half of a surrogate pair.
func endsInHalf(raw string) bool {
	at := len(raw) - len(`\ud83d"`)
	if at < 1 || raw[at] != '\\' || raw[at+1] != 'u' || raw[at+2]|0x20 != 'd' || !strings.ContainsRune("89abAB", rune(raw[at+3])) {
		return false
	}
	before := raw[:at] // a backslash that is escaped itself begins no escape
	return (len(before)-len(strings.TrimRight(before, `\`)))%2 == 0
}

// list is a list of a streamed message, content or reasoning_details.
type list []*entry

// entry is an element of a list, or several that are joined: of two pieces the texts are
// put one after the other, and of the other members the last one counts.
type entry struct {
	raw  string // of one that is not joined
	key  string // of its text
	text strings.Builder
	rest []lens.Member // beside the text
}

// add adds an element with a text under key, which is joined to the one before if that is
// of the same type; with the key "" it comes whole. OpenRouter sends an entry of
// reasoning_details in fragments that repeat its type and its index.
func (l *list) add(v rawjson.Value, key, text string) {
	if key == "" {
		*l = append(*l, &entry{raw: codec.Plain(v)})
		return
	}
	if n := len(*l); n == 0 || !(*l)[n-1].continues(key, v) {
		*l = append(*l, &entry{key: key})
	}
	e := (*l)[len(*l)-1]
	e.text.WriteString(text)
	for m := range v.Each() {
		if m.Key() != key && (m.Kind() != rawjson.Null || e.get(m.Key()) == "") {
			e.rest = codec.With(e.rest, lens.Raw(m.Key(), codec.Plain(m)))
		}
	}
}

// get returns what stands beside the text under key, "" for nothing or null.
func (e *entry) get(key string) string {
	for _, m := range e.rest {
		if m.Key == key && m.Raw != "null" {
			return m.Raw
		}
	}
	return ""
}

// continues reports whether v is the next fragment of e.
func (e *entry) continues(key string, v rawjson.Value) bool {
	id, index := on.Get(v, "id").Raw(), on.Get(v, "index").Raw()
	return e.key == key && e.get("index") == index && (e.get("id") == "" || id == "" || e.get("id") == id)
}

// texts returns the elements as JSON: the type, what stood beside the text, and the text.
func (l list) texts() []string {
	out := make([]string, len(l))
	for i, e := range l {
		members := slices.Clone(e.rest)
		if e.get("type") == "" {
			members = append(members, lens.Text("type", e.key))
		}
		text := lens.Word(e.key, e.text.String())
		if e.key == "thinking" {
			text = lens.Raw(e.key, thinkingList(e.text.String()))
		}
		out[i] = cmp.Or(e.raw, codec.Object(append(members, text)...))
	}
	return out
}

// bag keeps what deltas said of members that are not known here, in the order in
// which they came first: lists are joined, of objects the last counts. A text or
// a number that came more than once is a label of the delta, or a piece of what
// no format defines: it is left out.
type bag []further

type further struct {
	key string
	raw []byte // nil for a label
}

// add joins the members of v to those before, but for those that are known.
func (b *bag) add(v rawjson.Value, known []string) {
	for m := range v.Each() {
		if m.Kind() == rawjson.Null || !codec.FreeMember(m) || hasKey(known, m.Key()) {
			continue
		}
		raw := []byte(codec.Plain(m))
		i := slices.IndexFunc(*b, func(have further) bool { return strings.EqualFold(have.key, m.Key()) })
		if i < 0 {
			*b = append(*b, further{m.Key(), raw})
			continue
		}
		have := &(*b)[i].raw
		switch list := m.Kind() == rawjson.Array; {
		case list && len(*have) > len("[]") && (*have)[0] == '[' && len(raw) > len("[]"):
			*have = append(append((*have)[:len(*have)-1], ','), raw[1:]...)
		case list && len(raw) == len("[]"):
		case list, m.Kind() == rawjson.Object:
			*have = raw
		default:
			*have = nil
		}
	}
}

// members returns what is left of the bag: without labels.
func (b bag) members() []lens.Member {
	out := make([]lens.Member, len(b))
	for i, f := range b {
		out[i] = lens.Raw(f.key, string(f.raw))
	}
	return out
}

// hasKey reports whether some reader takes key for one of keys.
func hasKey(keys []string, key string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, key) })
}

// raw returns the message, as JSON. Its content is a list if a delta had one, and
// null if no delta had any, as in an answer that came whole.
func (t *turn) raw() string {
	if t.written != "" {
		return t.written
	}
	said := lens.Raw("content", "null")
	switch {
	case t.listed:
		said.Raw = codec.Array(t.content.texts())
	case len(t.content) > 0:
		said.Raw = rawjson.Quote(t.content[0].text.String())
	case t.text:
		said.Raw = `""`
	}
	members := []lens.Member{lens.Text("role", cmp.Or(t.role, "assistant")), said,
		lens.Word(joinedKeys[0], t.joined[0].String()), lens.Word(joinedKeys[1], t.joined[1].String()),
		lens.List("reasoning_details", t.details.texts()), lens.Word(joinedKeys[2], t.joined[2].String())}
	if t.audio != "" {
		members = append(members, lens.Raw("audio", codec.Object(lens.Raw("id", t.audio))))
	}
	members = append(members, t.more.members()...)
	// the order that clients give calls: by index, and those of one index as they began
	slices.SortStableFunc(t.calls, func(a, b *piecemeal) int { return cmp.Compare(a.index, b.index) })
	calls := make([]string, len(t.calls))
	for i, c := range t.calls {
		calls[i] = c.text()
	}
	if t.old != nil && len(calls) == 0 {
		return codec.Object(append(members, lens.Raw("function_call", t.old.text()))...)
	}
	return codec.Object(append(members, lens.List("tool_calls", calls))...)
}

// deltaIn returns what a choice of a chunk brings. Perplexity repeats in message what
// was said so far; where there is only that, it is the delta.
func (t *turn) deltaIn(choice rawjson.Value) rawjson.Value {
	delta := choice.Get("delta")
	if !delta.Exists() && t.role == "" && !t.text && !t.listed {
		return choice.Get("message")
	}
	return delta
}

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
