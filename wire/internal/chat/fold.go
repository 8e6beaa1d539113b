package chat

import (
	"cmp"
	"slices"
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
	content []*entry
	text    bool   // a delta had a text for content
	half    string // the escaped first half of a letter, with which that text ended
	listed  bool   // a delta had a list
	joined  [3]strings.Builder
	details []*entry
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

// add reads one delta, and reports whether there is a call in it.
func (t *turn) add(delta rawjson.Value, sink middleware.Sink) (calls bool, err error) {
	if err := checkCalls(delta); err != nil {
		return true, err
	}
	if t.role == "" {
		t.role = delta.Get("role").Str()
	}
	if err := t.say(delta, sink); err != nil {
		return false, err
	}
	if id := delta.Get("audio").Get("id"); t.audio == "" && id.Str() != "" {
		t.audio = id.Raw()
	}
	t.more.add(delta, messageKeys)
	return t.call(delta)
}

// What is understood of a message, of a call and of its function. A member that some
// reader takes for one of them, because it ignores case, is not a further member.
var (
	messageKeys  = []string{"role", "content", "name", "tool_call_id", "tool_calls", "function_call", "reasoning", "reasoning_content", "reasoning_details", "refusal", "audio"}
	callKeys     = []string{"index", "id", "type", "function", "custom"}
	functionKeys = []string{"name", "arguments", "input"}
)

// say reads the texts of a delta. Reasoning that stands in several members is
// shown once.
func (t *turn) say(delta rawjson.Value, sink middleware.Sink) error {
	told := false
	for i, key := range joinedKeys[:2] {
		text := delta.Get(key).Str()
		t.joined[i].WriteString(text)
		if told {
			continue
		}
		if err := codec.Tell(sink, middleware.PartReasoning, text); err != nil {
			return err
		}
		told = text != ""
	}
	if details := delta.Get("reasoning_details"); details.Kind() == rawjson.Array {
		for d := range details.Each() {
			t.detail(d)
			if told {
				continue
			}
			if err := codec.Tell(sink, middleware.PartReasoning, d.Get("text").Str()+d.Get("summary").Str()); err != nil {
				return err
			}
		}
	}
	switch content := delta.Get("content"); content.Kind() {
	case rawjson.String:
		t.text = true
		if text := t.decoded(content); text != "" {
			if err := t.write(entry{key: "text"}, text, sink); err != nil {
				return err
			}
		}
	case rawjson.Object: // Cloudflare sends structured output as it is
		t.text = true
		if err := t.write(entry{key: "text"}, content.Raw(), sink); err != nil {
			return err
		}
	case rawjson.Array:
		t.listed = true
		for v := range content.Each() {
			if err := t.item(v, sink); err != nil {
				return err
			}
		}
	}
	refusal := delta.Get("refusal").Str()
	t.joined[2].WriteString(refusal)
	return codec.Tell(sink, middleware.PartText, refusal)
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

// entry is an element of a list of a streamed message, content or
// reasoning_details, or several that are joined: of two pieces the texts are put
// one after the other, and of the other members the last one counts.
type entry struct {
	raw  string // of one that is not joined
	key  string // of its text
	text strings.Builder
	rest []lens.Member // beside the text
}

// set notes what stands beside the text.
func (e *entry) set(key, raw string) {
	if i := slices.IndexFunc(e.rest, func(m lens.Member) bool { return m.Key == key }); i >= 0 {
		e.rest[i].Raw = raw
	} else {
		e.rest = append(e.rest, lens.Raw(key, raw))
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

// item reads an element of a content list.
func (t *turn) item(v rawjson.Value, sink middleware.Sink) error {
	e := entry{key: itemKind(v)}
	text := v.Get(e.key).Str()
	switch e.key {
	case "text":
	case "thinking":
		text = thinking(v.Get(e.key))
	default:
		t.content = append(t.content, &entry{raw: codec.Plain(v)})
		return nil
	}
	for m := range v.Each() {
		if k := m.Key(); k != e.key && k != "type" && m.Kind() != rawjson.Null {
			e.set(k, codec.Plain(m))
		}
	}
	return t.write(e, text, sink)
}

// write adds a piece of content, which is joined to the one before if that is of
// the same type.
func (t *turn) write(e entry, text string, sink middleware.Sink) error {
	if n := len(t.content); n == 0 || t.content[n-1].key != e.key {
		t.content = append(t.content, &entry{key: e.key, rest: e.rest})
	} else {
		for _, m := range e.rest {
			t.content[n-1].set(m.Key, m.Raw)
		}
	}
	t.content[len(t.content)-1].text.WriteString(text)
	kind := middleware.PartText
	if e.key == "thinking" {
		kind = middleware.PartReasoning
	}
	return codec.Tell(sink, kind, text)
}

// detail reads an entry of reasoning_details. OpenRouter sends an entry in
// fragments that repeat its type and its index; what is encrypted comes whole.
func (t *turn) detail(v rawjson.Value) {
	key := map[string]string{"reasoning.text": "text", "reasoning.summary": "summary"}[v.Get("type").Str()]
	if key == "" {
		t.details = append(t.details, &entry{raw: codec.Plain(v)})
		return
	}
	e := &entry{key: key}
	if n := len(t.details); n > 0 && t.details[n-1].continues(key, v) {
		e = t.details[n-1]
	} else {
		t.details = append(t.details, e)
	}
	for m := range v.Each() {
		switch {
		case m.Key() == key:
			e.text.WriteString(m.Str())
		case m.Kind() != rawjson.Null || !slices.ContainsFunc(e.rest, func(have lens.Member) bool { return have.Key == m.Key() }):
			e.set(m.Key(), codec.Plain(m))
		}
	}
}

// continues reports whether v is the next fragment of e.
func (e *entry) continues(key string, v rawjson.Value) bool {
	id, index := on.Get(v, "id").Raw(), on.Get(v, "index").Raw()
	return e.key == key && e.get("index") == index && (e.get("id") == "" || id == "" || e.get("id") == id)
}

// detailText returns the entry as an element of reasoning_details. The text comes
// last, behind the type and the index, as OpenRouter writes it.
func (e *entry) detailText() string {
	if e.raw != "" {
		return e.raw
	}
	return codec.Object(append(slices.Clone(e.rest), lens.Word(e.key, e.text.String()))...)
}

// itemText returns the entry as an element of a content list: the type, the text,
// and what stood beside them.
func (e *entry) itemText() string {
	if e.raw != "" {
		return e.raw
	}
	text := lens.Text("text", e.text.String())
	if e.key == "thinking" {
		text = lens.Raw(e.key, thinkingList(e.text.String()))
	}
	return codec.Object(append([]lens.Member{lens.Text("type", e.key), text}, e.rest...)...)
}

// bag keeps what deltas said of members that are not known here, in the order in
// which they came first: lists are joined, of objects the last counts. A text or
// a number that came more than once is a label of the delta, or a piece of what
// no format defines: it is left out.
type bag []said

type said struct {
	key, raw string
	list     []string
	label    bool
}

// add joins the members of v to those before, but for those that are known.
func (b *bag) add(v rawjson.Value, known []string) {
	for m := range v.Each() {
		if m.Kind() != rawjson.Null && !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, m.Key()) }) && codec.FreeMember(m) {
			b.member(m)
		}
	}
}

func (b *bag) member(m rawjson.Value) {
	key := m.Key()
	i := slices.IndexFunc(*b, func(s said) bool { return strings.EqualFold(s.key, key) })
	if i < 0 {
		i = len(*b)
		*b = append(*b, said{key: key})
	}
	s := &(*b)[i]
	switch m.Kind() {
	case rawjson.Array:
		for v := range m.Each() {
			s.list = append(s.list, codec.Plain(v))
		}
		s.raw = "[]"
	case rawjson.Object:
		s.raw = codec.Plain(m)
	default:
		s.label, s.raw = s.raw != "", codec.Plain(m)
	}
}

// members returns what is left of the bag: without labels.
func (b bag) members() []lens.Member {
	var out []lens.Member
	for _, s := range b {
		switch {
		case s.label:
		case len(s.list) > 0:
			out = append(out, lens.List(s.key, s.list))
		default:
			out = append(out, lens.Raw(s.key, s.raw))
		}
	}
	return out
}

// raw returns the message, as JSON. Its content is a list if a delta had one, and
// null if no delta had any, as in an answer that came whole.
func (t *turn) raw() string {
	if t.written != "" {
		return t.written
	}
	content, details := make([]string, len(t.content)), make([]string, len(t.details))
	for i, e := range t.content {
		content[i] = e.itemText()
	}
	for i, e := range t.details {
		details[i] = e.detailText()
	}
	said := lens.Raw("content", "null")
	switch {
	case t.listed:
		said.Raw = codec.Array(content)
	case len(t.content) > 0:
		said.Raw = rawjson.Quote(t.content[0].text.String())
	case t.text:
		said.Raw = `""`
	}
	members := []lens.Member{lens.Text("role", cmp.Or(t.role, "assistant")), said,
		lens.Word(joinedKeys[0], t.joined[0].String()), lens.Word(joinedKeys[1], t.joined[1].String()),
		lens.List("reasoning_details", details), lens.Word(joinedKeys[2], t.joined[2].String())}
	if t.audio != "" {
		members = append(members, lens.Raw("audio", codec.Object(lens.Raw("id", t.audio))))
	}
	members = append(members, t.more.members()...)
	t.sortCalls()
	calls := make([]string, len(t.calls))
	for i, c := range t.calls {
		calls[i] = c.text()
	}
	if t.old != nil && len(calls) == 0 {
		return codec.Object(append(members, lens.Raw("function_call", t.old.text()))...)
	}
	return codec.Object(append(members, lens.List("tool_calls", calls))...)
}

// sortCalls brings the calls into the order that clients give them: by index, and
// calls of one index in the order in which they began.
func (t *turn) sortCalls() {
	slices.SortStableFunc(t.calls, func(a, b *piecemeal) int { return cmp.Compare(a.index, b.index) })
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
