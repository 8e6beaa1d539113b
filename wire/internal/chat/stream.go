package chat

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// stream reads an answer. Recorded answers end with [DONE], or with a
// finish_reason and no [DONE] (Perplexity, Cerebras), or with [DONE] and no
// finish_reason (Snowflake, audio): one of the two makes it whole.
type stream struct {
	codec.Splitter
	turns    map[int64]*turn
	id       string
	model    string
	like     []lens.Member // what the chunks repeat, of the first one with a choice
	root     codec.Members // other objects and lists at the root of chunks
	figures  string        // the last usage object
	usage    middleware.Usage
	snapshot map[int64]shown // what the client may be shown of each choice
	done     bool
	strange  bool // an object that is not a chunk was seen
	failed   *middleware.ModelError
	answer   *answer // set by Close
}

// known has the members of a chunk that are written even if they contain a word for calls:
// text may speak of calls.
var known = codec.Tree{"choices": codec.Tree{"logprobs": nil, "delta": message, "message": message}.With(nil, keptKeys...).Scalars("index", "finish_reason")}.With(nil, keptKeys...)

var (
	textMembers = codec.Tree{"content": nil, "reasoning_details": nil, "audio": nil}.With(nil, textKeys[:]...).Scalars("role")
	message     = textMembers.With(nil, keptKeys...)
)

// keptKeys are members that hold no call, and are written even if they contain a word for
// calls: the finish reason of a router's provider (OpenRouter; LiteLLM has it in
// provider_specific_fields), and citations (OpenAI; Perplexity and xAI at the root).
var keptKeys = []string{"native_finish_reason", "provider_specific_fields", "annotations", "citations", "search_results"}

// isKept reports whether the member m, which is not known, is written.
func isKept(m rawjson.Value) bool { return slices.Contains(keptKeys, m.Key()) || codec.FreeMember(m) }

// nativeWord returns the finish word of the provider behind a router, if it means that the
// provider could not read a call; else "". The router's own word may be stop.
func nativeWord(choice rawjson.Value) string {
	for _, v := range []rawjson.Value{choice, choice.Get("provider_specific_fields")} {
		if word := v.Get("native_finish_reason").Str(); codec.IsUnread(word) {
			return word
		}
	}
	return ""
}

// NewStream returns a reader of one answer.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	s := &stream{}
	s.Splitter = codec.NewSplitter(Format{}, s, known, false, req, sink)
	return s
}

// Release returns what becomes of a unit. A call, an error and the end of the first choice are
// held.
func (s *stream) Release(u *codec.Unit) (codec.Release, error) {
	v := u.Value
	switch {
	case s.Buf.IsWhole(), u.Name == "error", strings.TrimSpace(u.Data) == "[DONE]":
		return codec.ReleaseHold, nil
	case codec.HoldsError(v), codec.HoldsError(v.Get("x_groq")), v.Get("object").Str() == "error", s.CutAtEnd(u):
		return codec.ReleaseHold, nil
	case u.Err != nil && strings.HasPrefix(strings.TrimSpace(u.Data), "{"):
		return codec.ReleaseHold, u.Err
	}
	release, at := codec.ReleaseWithPrevious, int64(0)
	for c := range v.Get("choices").Each() {
		n, ok := indexOf(c)
		if !ok {
			n = at
		}
		at++
		delta := c.Get("delta")
		if !delta.Exists() {
			delta = c.Get("message")
		}
		switch {
		case codec.HoldsError(c), textOf(c.Get("finish_reason")) != "" && n == 0, !delta.Get("tool_calls").Empty() && delta.Get("tool_calls").Exists(), hasFunction(delta):
			return codec.ReleaseHold, nil
		case isFilled(delta.Get("content")), isFilled(delta.Get("audio")), fillsOne(delta, textKeys[reasoningTexts:]):
			release = codec.ReleaseNow
		case fillsOne(delta, reasoningKeys):
			release = max(release, codec.ReleaseAfterText)
		}
	}
	return release, nil
}

// Snapshot notes what the client may be shown.
func (s *stream) Snapshot() {
	s.snapshot = map[int64]shown{}
	for n, t := range s.turns {
		s.snapshot[n] = shown{role: t.role != "", message: t.raw()}
	}
}

// Read reads a unit. It keeps no value of u.
func (s *stream) Read(u *codec.Unit) error {
	data := strings.TrimSpace(u.Data)
	switch {
	case s.Buf.IsWhole():
		return s.whole(u)
	case data == "[DONE]":
		s.done = true
	case u.Value.Exists():
		return s.chunk(u)
	case u.Name == "error":
		s.failed = cmp.Or(s.failed, codec.ModelError(0, nil, codec.Refusal(codec.Failure{Message: cmp.Or(data, noMessage)}, rawjson.Value{})))
	}
	return nil
}

// Response returns the answer after the last unit.
func (s *stream) Response() (codec.Written, error) {
	a := s.answer // of one object
	var err error
	if !s.Buf.IsWhole() {
		a, err = s.streamed()
	}
	if err == nil && a == nil {
		err = codec.ErrIncomplete
	}
	if err == nil {
		err = codec.RejectExtraChoices(s.Req, dialect, &a.Is, "n")
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// streamed returns the answer that the events made. A stream without an end is incomplete.
func (s *stream) streamed() (*answer, error) {
	if s.failed != nil {
		return nil, s.failure()
	}
	if len(s.turns) == 0 {
		switch {
		case s.strange:
			return nil, codec.Shapef("events without choices")
		case s.done:
			return nil, &middleware.ModelError{Err: fmt.Errorf("wire: the provider sent a stream without an answer: %w", codec.ErrIncomplete)}
		}
		return nil, codec.ErrIncomplete
	}
	for _, t := range s.turns {
		if t.finish == "" && !s.done {
			return nil, codec.ErrIncomplete
		}
	}
	return s.put(envelopeSize)
}

// failure returns the error that the provider sent, with what it has cost.
func (s *stream) failure() error {
	if s.usage == (middleware.Usage{}) {
		return s.failed
	}
	return codec.WithUsage(s.failed, s.model, s.usage)
}

// chunk reads a chunk of the answer. Servers add chunks without choices: with the figures at
// the end, with the result of a filter at the beginning (Azure), or as a keep-alive. Any other
// object without choices is noted as strange: a stream of only such objects is not an answer
// of this format.
func (s *stream) chunk(u *codec.Unit) error {
	v := u.Value
	failed := s.fail(v)
	failed = s.fail(v.Get("x_groq")) || failed
	if !failed && (u.Name == "error" || v.Get("object").Str() == "error") { // its members are the data itself
		s.failed, failed = modelError(v, v), true
	}
	choices := v.Get("choices")
	switch choices.Kind() {
	case rawjson.Array:
	case rawjson.Invalid, rawjson.Null:
		s.strange = s.strange || !failed
	default:
		return codec.Shapef("choices is of kind %s", choices.Kind())
	}
	if len(s.like) == 0 && choices.Len() > 0 {
		s.like = envelope(v)
	}
	s.id, s.model = cmp.Or(v.Get("id").Str(), s.id), cmp.Or(v.Get("model").Str(), s.model)
	if figures := usagesIn(v); len(figures) > 0 {
		s.usage, s.figures = readUsage(figures[0]), figures[0].Raw()
	}
	for m := range v.Each() {
		if (m.Kind() == rawjson.Object || m.Kind() == rawjson.Array) && !hasKey(rootKeys, m.Key()) && isKept(m) {
			s.root.Put(m.Key(), codec.Canonical(m))
		}
	}
	at := int64(0)
	for c := range choices.Each() {
		if err := s.choice(c, at); err != nil {
			return err
		}
		at++
	}
	if at == 1 {
		s.repeats(u)
	}
	return nil
}

// repeats makes u the pattern for chunks that bring another text, or another piece of the same
// call, and are otherwise the same.
func (s *stream) repeats(u *codec.Unit) {
	pads := []rawjson.Value{u.Value.Get("obfuscation"), u.Value.Get("p")}
	for c := range u.Value.Get("choices").Each() {
		n, ok := indexOf(c)
		if !ok {
			return
		}
		t, delta := s.turns[n], c.Get("delta")
		content, only := delta.Get("content"), ""
		for m := range delta.Each() {
			if k := m.Key(); k != "role" && m.Kind() != rawjson.Null {
				if only != "" {
					return
				}
				only = k
			}
		}
		switch {
		case only == "tool_calls":
			if call, piece := t.pieceOf(delta); call != nil {
				s.RepeatsPiece(u, call.args.AddRaw, piece, pads...)
			}
		case only == "content" && content.Str() != "":
			s.Repeats(u, func(text string) error {
				if t.half != "" { // what follows is not a second half
					t.half, text = "", "\ufffd"+text
				}
				return t.addText(text, s.sinkOf(t))
			}, content, pads...)
		}
	}
}

// sinkOf returns the sink for the texts of t: further choices are not shown.
func (s *stream) sinkOf(t *turn) middleware.Sink {
	if t.index != 0 {
		return nil
	}
	return s.Sink
}

// fail notes the error that v holds, and reports whether it has one.
func (s *stream) fail(v rawjson.Value) bool {
	failed := codec.HoldsError(v)
	if failed && s.failed == nil {
		s.failed = modelError(v, v.Get("error"))
	}
	return failed
}

// choice reads a chunk's part of one choice, the element at of a list.
func (s *stream) choice(v rawjson.Value, at int64) error {
	t, err := s.turn(v, at)
	if err != nil {
		return err
	}
	s.fail(v)
	if word := textOf(v.Get("finish_reason")); word != "" {
		t.finish, t.native, t.extra = word, nativeWord(v), streamedExtra(v)
	}
	delta := t.deltaIn(v)
	if k := delta.Kind(); k != rawjson.Object && k != rawjson.Null && k != rawjson.Invalid {
		return codec.Shapef("a delta is of kind %s", k)
	}
	calls, err := t.add(delta, s.sinkOf(t))
	switch {
	case err != nil || !calls:
	case s.done:
		err = codec.Shapef("a call behind the end of the stream")
	case s.failed != nil:
		err = codec.Shapef("calls beside or behind an error")
	}
	return err
}

// maxIndex bounds the indices of choices.
const maxIndex = 1 << 16

// turn returns the turn that a choice belongs to: by its index or, where that is
// no sensible one, by its place in the list. Choices may come in any order, and
// interleaved.
func (s *stream) turn(choice rawjson.Value, at int64) (*turn, error) {
	if choice.Kind() != rawjson.Object {
		return nil, codec.Shapef("a choice is of kind %s", choice.Kind())
	}
	n, ok := indexOf(choice)
	if !ok {
		n = at
	}
	if n > maxIndex {
		return nil, codec.Shapef("more than %d choices", maxIndex)
	}
	t := s.turns[n]
	if t == nil {
		t = &turn{index: n}
		if s.turns == nil {
			s.turns = map[int64]*turn{}
		}
		s.turns[n] = t
	}
	return t, nil
}

// turn joins the deltas of one choice to a message as it is in history. The rule for a member
// depends on its kind:
//
//   - textKeys: texts are joined
//   - content: texts are joined; a list, of Mistral, is joined element by element,
//     neighbours of one type to one element
//   - reasoning_details: the same, by type, index and id
//   - tool_calls, function_call: see partialCall
//   - audio: its id alone, which is what a provider takes in history
//   - other members: see extraMembers
type turn struct {
	index   int64
	finish  string        // the last finish_reason
	native  string        // the nativeWord beside it
	whole   rawjson.Value // the message of an answer that is one object, while it is read
	known   codec.Tree    // what is written of that
	extra   []lens.Member // the other members of the choice; of a stream, of the chunk with the finish reason
	role    string
	content list
	text    bool   // a delta had a text for content
	half    string // the escaped first half of a letter, with which that text ended
	listed  bool   // a delta had a list
	joined  [len(textKeys)]strings.Builder
	details list
	sound   bool                    // it has audio
	audio   string                  // the id of the audio, as JSON
	more    extraMembers            // members that are not known here
	calls   []*partialCall          // in the order in which they began
	byIndex map[int64]*partialCall  // the last one of each index
	byID    map[string]*partialCall // the last one of each id
	top     int64                   // above every index
	old     *partialCall            // a function_call
}

// These are the known members of a message, of a call and of its function. A member that some
// reader takes for one of them, because it ignores case, is not an extra member.
var (
	messageKeys  = slices.AppendSeq([]string{"name", "tool_call_id", "tool_calls", "function_call"}, maps.Keys(textMembers))
	callKeys     = []string{"index", "id", "type", "function", "custom"}
	functionKeys = []string{"name", "arguments", "input"}
)

// add reads one delta, and reports whether there is a call in it. Reasoning in several members
// is shown once.
func (t *turn) add(delta rawjson.Value, sink middleware.Sink) (calls bool, err error) {
	if err := checkCalls(delta); err != nil {
		return true, err
	}
	t.role = cmp.Or(t.role, delta.Get("role").Str())
	for i, key := range textKeys {
		t.joined[i].WriteString(delta.Get(key).Str())
	}
	if details := delta.Get("reasoning_details"); details.Kind() == rawjson.Array {
		for d := range details.Each() {
			key := map[string]string{"reasoning.text": "text", "reasoning.summary": "summary"}[d.Get("type").Str()]
			t.details.add(d, key, d.Get(key).Str())
		}
	}
	if err := codec.Emit(sink, middleware.PartReasoning, reasoningText(delta)); err != nil {
		return false, err
	}
	if err := t.addContent(delta.Get("content"), sink); err != nil {
		return false, err
	}
	for _, key := range textKeys[reasoningTexts:] {
		if err := codec.Emit(sink, middleware.PartText, delta.Get(key).Str()); err != nil {
			return false, err
		}
	}
	t.hear(delta)
	t.more.add(delta, messageKeys)
	return t.call(delta)
}

// hear reads the audio of a message, or of a delta.
func (t *turn) hear(message rawjson.Value) {
	audio := message.Get("audio")
	t.sound = t.sound || fillsOne(audio, []string{"data", "transcript"})
	if id := audio.Get("id"); t.audio == "" && id.Str() != "" {
		t.audio = id.Raw()
	}
}

// addContent reads the content of a delta.
func (t *turn) addContent(content rawjson.Value, sink middleware.Sink) error {
	switch content.Kind() {
	case rawjson.String:
		return t.addText(t.decoded(content), sink)
	case rawjson.Object: // Cloudflare sends structured output as it is
		return t.addText(content.Raw(), sink)
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
			if err := codec.Emit(sink, kind, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// addText adds a text that is not an element of a list.
func (t *turn) addText(text string, sink middleware.Sink) error {
	if t.text = true; text != "" {
		t.content.add(rawjson.Value{}, "text", text)
	}
	return codec.Emit(sink, middleware.PartText, text)
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
	rest codec.Members // all members but the text
}

// add adds an element with a text under key, which is joined to the one before if that is
// of the same type; with the key "" it comes whole. OpenRouter sends an entry of
// reasoning_details in fragments that repeat its type and its index.
func (l *list) add(v rawjson.Value, key, text string) {
	if key == "" {
		*l = append(*l, &entry{raw: codec.Canonical(v)})
		return
	}
	if n := len(*l); n == 0 || !(*l)[n-1].continues(key, v) {
		*l = append(*l, &entry{key: key})
	}
	e := (*l)[len(*l)-1]
	e.text.WriteString(text)
	for m := range v.Each() {
		if m.Key() != key && (m.Kind() != rawjson.Null || e.rest.Get(m.Key()) == "") {
			e.rest.Put(m.Key(), codec.Canonical(m))
		}
	}
}

// continues reports whether v is the next fragment of e.
func (e *entry) continues(key string, v rawjson.Value) bool {
	id, index := on.Get(v, "id").Raw(), on.Get(v, "index").Raw()
	return e.key == key && e.rest.Get("index") == index && (e.rest.Get("id") == "" || id == "" || e.rest.Get("id") == id)
}

// texts returns the elements as JSON: the type, the other members, and the text.
func (l list) texts() []string {
	out := make([]string, len(l))
	for i, e := range l {
		members := slices.Clone(e.rest.List)
		if e.rest.Get("type") == "" {
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

// extraMembers keeps the members of deltas that are not known here, in the order in which they
// came first. Lists are joined; of several objects the last counts. A text or a number that
// came more than once is a label of the delta, or a piece of a member that no format defines:
// it is left out.
type extraMembers struct {
	list []extraMember
	at   map[string]int // by folded key
}

type extraMember struct {
	key string
	raw []byte // nil for a label
}

// add joins the members of v to those before, but for those that are known.
func (b *extraMembers) add(v rawjson.Value, known []string) {
	for m := range v.Each() {
		if m.Kind() == rawjson.Null || hasKey(known, m.Key()) || !isKept(m) {
			continue
		}
		raw := []byte(codec.Canonical(m))
		folded := rawjson.Fold(m.Key())
		i, ok := b.at[folded]
		if !ok {
			if b.at == nil {
				b.at = map[string]int{}
			}
			b.at[folded] = len(b.list)
			b.list = append(b.list, extraMember{m.Key(), raw})
			continue
		}
		have := &b.list[i].raw
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
func (b extraMembers) members() []lens.Member {
	out := make([]lens.Member, len(b.list))
	for i, f := range b.list {
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
	content := lens.Raw("content", "null")
	switch {
	case t.listed:
		content.Raw = codec.Array(t.content.texts())
	case len(t.content) > 0:
		content.Raw = rawjson.Quote(t.content[0].text.String())
	case t.text:
		content.Raw = `""`
	}
	members := []lens.Member{lens.Text("role", cmp.Or(t.role, "assistant")), content}
	for i, key := range textKeys {
		members = append(members, lens.Word(key, t.joined[i].String()))
	}
	members = append(members, lens.List("reasoning_details", t.details.texts()))
	if t.audio != "" {
		members = append(members, lens.Raw("audio", codec.Object(lens.Raw("id", t.audio))))
	}
	members = append(members, t.more.members()...)
	// clients order calls by index, and calls of one index as they began
	slices.SortStableFunc(t.calls, func(a, b *partialCall) int { return cmp.Compare(a.index, b.index) })
	calls := lens.TextsOf(t.calls, (*partialCall).text)
	if t.old != nil && len(calls) == 0 {
		return codec.Object(append(members, lens.Raw("function_call", t.old.text()))...)
	}
	return codec.Object(append(members, lens.List("tool_calls", calls))...)
}

// deltaIn returns the delta of a choice. Perplexity repeats the text so far in message; a
// choice with only a message has it as its delta.
func (t *turn) deltaIn(choice rawjson.Value) rawjson.Value {
	delta := choice.Get("delta")
	if !delta.Exists() && t.role == "" && !t.text && !t.listed {
		return choice.Get("message")
	}
	return delta
}

// partialCall is a call that comes in deltas.
type partialCall struct {
	index int64
	id    string
	name  string
	kind  middleware.Kind
	typed bool   // kind is known
	word  string // type as written; "" if it never was
	old   bool   // a function_call
	args  codec.Joined
	more  extraMembers // unknown members
	inner extraMembers // unknown members of the function
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
		t.old = &partialCall{old: true}
	}
	return true, t.old.add(delta.Get("function_call"))
}

// pieceOf returns the call of a delta that brings a piece of its arguments and nothing
// else, and the piece; nil for any other delta.
func (t *turn) pieceOf(delta rawjson.Value) (*partialCall, rawjson.Value) {
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
func (t *turn) place(v rawjson.Value) *partialCall {
	id := codec.Text(v.Get("id"))
	named := v.Get("function").Get("name").Str() != "" || v.Get("custom").Get("name").Str() != ""
	var c *partialCall
	n, ok := indexOf(v)
	switch last := len(t.calls) - 1; {
	case ok:
		c = t.byIndex[n]
		if c != nil && named && id != "" && c.id != "" && id != c.id {
			c = nil
		}
	case id != "":
		n, c = t.top, t.byID[id] // after the calls before it
	default:
		n = t.top
		if last >= 0 && !(named && t.calls[last].name != "") {
			c = t.calls[last]
		}
	}
	if c == nil {
		if t.byIndex == nil {
			t.byIndex, t.byID = map[int64]*partialCall{}, map[string]*partialCall{}
		}
		c = &partialCall{index: n}
		t.calls = append(t.calls, c)
		t.byIndex[n] = c
		t.top = max(t.top, c.next())
	}
	if id != "" {
		t.byID[id] = c
	}
	return c
}

// next returns the index after the call's.
func (c *partialCall) next() int64 { return min(c.index, math.MaxInt64-1) + 1 }

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
func (c *partialCall) add(v rawjson.Value) error {
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

// text returns the call as it is in history: without an index, and with the unknown members
// that a server has added.
func (c *partialCall) text() string {
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
