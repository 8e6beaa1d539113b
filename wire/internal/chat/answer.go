package chat

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// answer is an answer as read, which no caller can reach. It holds no parsed text:
// an edit, which is rare, reads it again. Whatever its framing was, it is one object
// then:
//
//	{"id": …, "object": "chat.completion", "created": …, "model": …,
//	 "choices": [{"index": 0, "message": {…}, "logprobs": null, "finish_reason": "stop"}],
//	 "usage": {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}}
type answer struct {
	codec.Answered
	object string // the answer as one object, in one spelling; this is what an edit changes
}

// whole reads an answer that is one JSON object. An object with an error, at its root or in a
// choice, is the error. With a call and an error it is unreadable, because some clients look
// at one and some at the other.
func (s *stream) whole(u *codec.Unit) (err error) {
	if err := u.Unreadable(); err != nil {
		return err
	}
	s.answer, u.Calls, err = s.object(u.Value)
	return err
}

// object reads the object v, which is an answer, and reports whether it has calls.
func (s *stream) object(v rawjson.Value) (a *answer, called bool, err error) {
	s.id, s.model, s.like = v.Get("id").Str(), v.Get("model").Str(), others(v, rootKeys...)
	if figures := usagesIn(v); len(figures) > 0 {
		s.usage, s.figures = readUsage(figures[0]), figures[0].Raw()
	}
	failed, at := s.fail(v), int64(0)
	for c := range v.Get("choices").Each() {
		t, err := s.turn(c, at)
		if err != nil {
			return nil, called, err
		}
		calls, err := t.read(c)
		if err != nil {
			return nil, called, err
		}
		failed, called = s.fail(c) || failed, called || calls
		at++
	}
	switch {
	case failed && called:
		return nil, called, codec.Shapef("calls beside an error")
	case failed:
		return nil, called, s.failure()
	case at == 0 || v.Get("choices").Kind() != rawjson.Array:
		return nil, called, codec.Shapef("an answer without choices")
	case len(s.turns) < int(at):
		return nil, called, codec.Shapef("two choices of one index")
	}
	if a, err = s.put(len(s.Text()) + envelopeSize/4); err == nil {
		err = codec.EmitParts(s.Sink, a.Is.Message.Parts)
	}
	return a, called, err
}

// read reads the choice c of an answer that is one object, and reports whether it has a
// call. A message with calls in both forms is read by its tool_calls.
func (t *turn) read(c rawjson.Value) (calls bool, err error) {
	m := c.Get("message")
	if !m.Exists() && c.Get("finish_reason").Str() == string(middleware.FinishFilter) { // Azure leaves it out
		m, _ = codec.ParseObject(`{"content":null}`)
	}
	if m.Kind() != rawjson.Object {
		return false, codec.Shapef("a message is of kind %s", m.Kind())
	}
	if err := checkCalls(m); err != nil {
		return false, err
	}
	t.whole, t.known = m, message
	t.hear(m)
	switch calls = true; {
	case m.Get("tool_calls").Len() > 0:
		t.known = callsMessage
	case hasFunction(m):
		t.known = functionMessage
	default:
		calls = false
	}
	t.finish, t.native, t.extra = textOf(c.Get("finish_reason")), nativeWord(c), others(c, choiceKeys...)
	return calls, nil
}

// The members of a call.
var (
	call     = codec.Tree{"function": function, "custom": codec.Tree{"input": codec.AsSent}.Scalars("name")}.Scalars("id", "type", "index")
	function = codec.Tree{"arguments": codec.AsSent}.Scalars("name")

	callsMessage    = message.With(call, "tool_calls")
	functionMessage = message.With(function, "function_call")
)

// The known members of an answer, and of a choice.
var (
	rootKeys   = []string{"choices", "usage", "error"}
	choiceKeys = []string{"index", "message", "delta", "finish_reason", "error"}
)

// streamedExtra returns the other members of a choice that a stream has beside its finish reason.
func streamedExtra(choice rawjson.Value) []lens.Member {
	return others(choice, append(choiceKeys[:len(choiceKeys):len(choiceKeys)], "logprobs")...)
}

// others returns the members of v, each once, that no reader takes for one of known.
func others(v rawjson.Value, known ...string) []lens.Member {
	var out codec.Members
	for m := range v.Each() {
		if !hasKey(known, m.Key()) && isKept(m) {
			out.Put(m.Key(), codec.Canonical(m))
		}
	}
	return out.List
}

// envelopeSize is about how many bytes an answer has in addition to its message.
const envelopeSize = 256

// put puts the answer together. The first choice is the message, the others are
// further choices. A call in the old form has no id on the wire: it is the only one
// of its message, and takes the next place of the conversation. size is about how long the
// answer is, without the message of a stream.
func (s *stream) put(size int) (*answer, error) {
	turns := slices.SortedFunc(maps.Values(s.turns), func(a, b *turn) int { return cmp.Compare(a.index, b.index) })
	a := &answer{Answered: codec.Answered{Is: middleware.Response{ID: s.id, Model: s.model, Usage: s.usage}}}
	var b strings.Builder
	b.Grow(size)
	object := codec.ObjectWriter{B: &b}
	var root codec.Members
	for _, m := range slices.Concat(s.like, s.root.List) {
		root.Put(m.Key, m.Raw)
	}
	object.Put(root.List...)
	object.Key("choices")
	before := byte('[')
	for i, t := range turns {
		b.WriteByte(before)
		choice := codec.ObjectWriter{B: &b}
		choice.Put(lens.Raw("index", codec.Count(t.index)))
		choice.Key("message")
		m, err := s.inHistory(t.write(&b))
		if err != nil {
			return nil, err
		}
		if t.sound && t.audio == "" { // content that history cannot have
			m.Parts = append(m.Parts, ownPart(middleware.PartOpaque, ""))
		}
		if i == 0 {
			a.Is.Message = m
		} else {
			a.Is.Choices = append(a.Is.Choices, m)
		}
		choice.Put(t.extra...)
		choice.Put(lens.Raw("finish_reason", cmp.Or(lens.Word("", t.finish).Raw, "null")))
		choice.End()
		before = ','
	}
	b.WriteByte(']')
	object.Put(lens.Raw("usage", s.figures))
	object.End()
	if a.Is.FinishReason = codec.Finish(cmp.Or(turns[0].native, turns[0].finish), len(a.Is.Message.ToolCalls) > 0); a.Is.FinishReason == middleware.FinishStop && turns[0].stoppedEarly() {
		a.Is.FinishReason = middleware.FinishStopSequence
	}
	a.object = b.String()
	return a, nil
}

// stoppedEarly reports whether the choice names the text at which it stopped: in stop_reason
// (vLLM) or in matched_stop (SGLang). A token there may be one that ends every answer of the
// model.
func (t *turn) stoppedEarly() bool {
	return slices.ContainsFunc(t.extra, func(m lens.Member) bool {
		return (m.Key == "stop_reason" || m.Key == "matched_stop") && strings.HasPrefix(m.Raw, `"`) && m.Raw != `""`
	})
}

// write writes the message to b, and returns it, and as it was parsed if it came in that
// spelling.
func (t *turn) write(b *strings.Builder) (raw string, parsed rawjson.Value) {
	if !t.whole.Exists() {
		raw = t.raw()
		b.Grow(len(raw) + envelopeSize)
		b.WriteString(raw)
		return raw, parsed
	}
	at := b.Len()
	t.known.WriteTo(b, t.whole)
	if raw = b.String()[at:]; raw == t.whole.Raw() {
		parsed = t.whole
	}
	t.whole = rawjson.Value{} // it must not be kept
	return raw, parsed
}

// inHistory reads the message of an answer as it is in history: with a role, with
// content that a provider takes, and with sound by its id alone. parsed is message, if it
// was parsed already.
func (s *stream) inHistory(message string, parsed rawjson.Value) (m middleware.Message, err error) {
	read := func(v rawjson.Value) error {
		if changed := historyMembers(v); len(changed) > 0 {
			text, err := on.Set(v, changed...)
			if err != nil {
				return err
			}
			if v, err = codec.ParseObject(text); err != nil {
				return err
			}
		}
		if m, err = readMessage(v); err != nil {
			return err
		}
		m.Role = middleware.RoleAssistant
		if isOldTurn(v) {
			m.ToolCalls[0].ID = codec.PlaceID(codec.Calls(s.Req) + 1)
		}
		return nil
	}
	if parsed.Exists() {
		err = read(parsed)
	} else {
		err = codec.Borrow(message, read)
	}
	return m, err
}

// historyMembers returns the members that the message of an answer has otherwise in history.
func historyMembers(v rawjson.Value) (members []lens.Member) {
	if v.Get("role").Str() == "" {
		members = append(members, lens.Text("role", "assistant"))
	}
	if k := v.Get("content").Kind(); k == rawjson.Number || k == rawjson.Bool {
		members = append(members, lens.Raw("content", "null"))
	}
	if audio := v.Get("audio"); audio.Kind() == rawjson.Object {
		m := lens.None("audio")
		if id := audio.Get("id"); id.Str() != "" {
			m.Raw = codec.Object(lens.Raw("id", id.Raw()))
		}
		members = append(members, m)
	}
	return members
}

// Whole returns the answer as one object with what differs in resp.
func (a *answer) Whole(resp *middleware.Response) (string, error) {
	if codec.SameResponse(&a.Is, resp) {
		return a.object, nil
	}
	if len(a.Is.Choices) != len(resp.Choices) {
		return "", codec.Unencodablef("further choices that came or went")
	}
	v, err := codec.ParseObject(a.object)
	if err != nil {
		return "", err
	}
	was, now := append([]middleware.Message{a.Is.Message}, a.Is.Choices...), append([]middleware.Message{resp.Message}, resp.Choices...)
	choices := slices.Collect(v.Get("choices").Each())
	texts := make([]string, len(choices))
	for i, c := range choices {
		finish := codec.Finish(finishIn(c), len(was[i].ToolCalls) > 0)
		if i == 0 {
			finish = resp.FinishReason
		}
		if texts[i], err = editChoice(c, was[i], now[i], finish); err != nil {
			return "", err
		}
	}
	root := on.Edit(v)
	root.Elements("choices", texts)
	if resp.Model != a.Is.Model {
		root.Put(lens.Text("model", resp.Model))
	}
	for _, u := range usagesIn(v) {
		root.Add(usageEdits(u, a.Is.Usage, resp.Usage))
	}
	return root.Text()
}

// editChoice returns a choice with another message and finish reason. A change of the text
// removes its logprobs, which spell it out.
func editChoice(v rawjson.Value, was, now middleware.Message, finish middleware.FinishReason) (string, error) {
	if err := codec.AnswerOnly(now); err != nil {
		return "", err
	}
	message, err := editMessage(v.Get("message"), was, now)
	if err != nil {
		return "", err
	}
	members := []lens.Member{lens.Raw("message", message)}
	if probs := v.Get("logprobs"); probs.Exists() && !probs.Empty() && !slices.EqualFunc(was.Parts, now.Parts, samePart) {
		members = append(members, lens.Raw("logprobs", "null"))
	}
	if word, ok := finishWord(finishIn(v), len(was.ToolCalls), len(now.ToolCalls), finish); ok {
		members = append(members, lens.Text("finish_reason", word))
	}
	return on.Set(v, members...)
}

// EncodeAnswer writes an answer that the provider did not send to this request.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	return codec.EncodeAnswer(f, path, body, resp, codec.Writing{Streamed: codec.FormEvents, Whole: freshAnswer, Unfold: func(whole string) (string, error) {
		// A client that does not ask for a last chunk with figures may fail on a chunk without choices.
		asked, _ := codec.ParseObject(string(body))
		return events(whole, nil, nil, true, asked.Get("stream_options").Get("include_usage").Raw() == "true")
	}})
}

// freshAnswer writes a response as one object: as a change of an empty answer. A response has
// one finish reason: the reason of a further choice follows its calls.
func freshAnswer(resp *middleware.Response) (string, error) {
	now, begun := *resp, answer{}
	now.Message, now.FinishReason, now.Usage = answerMessage(resp.Message), codec.FinishOf(resp), codec.FiguresOf(resp)
	now.Choices = make([]middleware.Message, len(resp.Choices))
	begun.Is.Choices = make([]middleware.Message, len(resp.Choices))
	choices := make([]string, 1+len(resp.Choices))
	for i := range choices {
		choices[i] = codec.Object(lens.Raw("index", codec.Count(int64(i))), lens.Raw("message", `{"role":"assistant","content":null}`),
			lens.Raw("logprobs", "null"), lens.Text("finish_reason", "stop"))
		if i > 0 {
			now.Choices[i-1], begun.Is.Choices[i-1].Role = answerMessage(resp.Choices[i-1]), middleware.RoleAssistant
		}
	}
	begun.Is.Message.Role = middleware.RoleAssistant
	begun.object = codec.Object(lens.Text("id", codec.NewID("chatcmpl-")), lens.Text("object", "chat.completion"),
		lens.Raw("created", codec.Count(time.Now().Unix())), lens.Text("model", ""),
		lens.Raw("choices", codec.Array(choices)), lens.Raw("usage", `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`))
	return begun.Whole(&now)
}

// answerMessage returns m as an answer of this format has it: with an id for each call, and
// with reasoning of another provider in reasoning_content, as servers of open models have it.
func answerMessage(m middleware.Message) middleware.Message {
	m = codec.WithCallIDs(m, "call_")
	reasoning := ""
	m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p middleware.Part) bool {
		foreign := p.Kind == middleware.PartReasoning && on.Raw(p.Native) == ""
		if foreign {
			reasoning += p.Text
		}
		return foreign
	})
	if reasoning != "" {
		m.Parts = append(m.Parts, ownPart(middleware.PartReasoning, reasoning, lens.Text("reasoning_content", reasoning)))
	}
	return m
}

// Stream returns the chunks with what of the answer, with what differs in resp, the client does
// not have. A later answer follows as further chunks.
func (a *answer) Stream(resp *middleware.Response, client *codec.Client) (string, error) {
	object, err := a.Whole(resp)
	if err != nil {
		return "", err
	}
	has := client.Has.(*stream)
	return events(object, has.like, has.snapshot, client.Own, true)
}

// shown is what a client has of a choice.
type shown struct {
	role    bool   // its role: a stream has it once
	message string // "" for nothing
}

// events writes an answer that is one object as a stream after the part that the client has,
// of this answer if own, else of an earlier one: for each choice the message, its calls and
// the end, and then, if usage is set, the figures. Each is one chunk, because a client joins
// chunks of any size. The chunks take the members of the first ones, like, as clients drop
// chunks of another id.
func events(object string, like []lens.Member, client map[int64]shown, own, usage bool) (string, error) {
	v, err := codec.ParseObject(object)
	if err != nil {
		return "", err
	}
	if len(like) == 0 {
		like = envelope(v)
	}
	root := slices.DeleteFunc(others(v, rootKeys...), func(m lens.Member) bool {
		return m.Raw[0] != '[' && m.Raw[0] != '{' || slices.ContainsFunc(like, func(l lens.Member) bool { return strings.EqualFold(l.Key, m.Key) })
	})
	var out strings.Builder
	write := func(members ...lens.Member) {
		out.WriteString(eventText(codec.Object(append(slices.Clone(like), members...)...)))
	}
	for c := range v.Get("choices").Each() {
		n, _ := indexOf(c)
		choice := func(delta, finish string, more ...lens.Member) lens.Member {
			return lens.Raw("choices", "["+codec.Object(append([]lens.Member{lens.Raw("index", codec.Count(n)), lens.Raw("delta", delta), lens.Raw("finish_reason", finish)}, more...)...)+"]")
		}
		left, calls, err := client[n].missingDelta(c.Get("message"), own)
		if err != nil {
			return "", err
		}
		if left != "{}" {
			write(choice(left, "null"))
		}
		if len(calls) > 0 {
			write(choice(codec.Object(lens.List("tool_calls", calls)), "null"))
		}
		if finish := c.Get("finish_reason"); finish.Str() != "" {
			write(append(root, choice("{}", finish.Raw(), streamedExtra(c)...))...)
		}
	}
	if figures := v.Get("usage"); usage && figures.Kind() == rawjson.Object {
		write(lens.Raw("choices", "[]"), lens.Raw("usage", figures.Raw()))
	}
	return out.String() + eventText("[DONE]"), nil
}

// missingDelta returns the delta with the missing part of a message, without its calls, and
// the calls with their index. After a part of an earlier answer the whole message follows, but
// no second reasoning: a provider that signs reasoning accepts it from one answer only.
func (g shown) missingDelta(message rawjson.Value, own bool) (delta string, calls []string, err error) {
	sent, _ := codec.ParseObject(g.message)
	reasoned := !own && hasReasoning(sent)
	had := map[string]rawjson.Value{}
	for m := range sent.Each() {
		if own {
			had[m.Key()] = m
		}
	}
	var left []lens.Member
	for m := range message.Each() {
		switch key := m.Key(); {
		case key == "tool_calls":
			for c := range m.Each() {
				members := []lens.Member{lens.Raw("index", codec.Count(int64(len(calls))))}
				for f := range c.Each() {
					if f.Key() != "index" {
						members = append(members, lens.Raw(f.Key(), f.Raw()))
					}
				}
				calls = append(calls, codec.Object(members...))
			}
		case key == "role" && g.role: // openai-python adds up the roles of a stream as if they were text
		case m.Kind() == rawjson.Null && g.role, reasoned && strings.HasPrefix(key, "reasoning"):
		default:
			rest, err := suffix(m, had[key])
			if err != nil {
				return "", nil, err
			}
			left = append(left, lens.Raw(key, rest))
		}
	}
	return codec.Object(left...), calls, nil
}

// suffix returns the text of v, a member of a message, after sent, its beginning; "" if they
// are equal.
func suffix(v, sent rawjson.Value) (string, error) {
	switch kind := v.Kind(); {
	case v.Raw() == sent.Raw():
		return "", nil
	case kind == rawjson.String && sent.Kind() == kind:
		rest, ok := strings.CutPrefix(v.Str(), sent.Str())
		if !ok {
			return "", codec.ErrShown
		}
		return lens.Word("", rest).Raw, nil
	case kind == rawjson.Array && sent.Kind() == kind && v.Len() >= sent.Len():
		return listSuffix(v, sent)
	case v.Key() == "content" && kind != rawjson.Null && sent.Exists() && sent.Kind() != rawjson.Null:
		return "", codec.ErrShown
	}
	return v.Raw(), nil
}

// listSuffix is suffix for lists. The last element that was sent may continue, if it is a
// text.
func listSuffix(v, sent rawjson.Value) (string, error) {
	had, i := slices.Collect(sent.Each()), 0
	var rest []string
	for e := range v.Each() {
		raw := e.Raw()
		switch {
		case i >= len(had):
			rest = append(rest, raw)
		case raw == had[i].Raw():
		case i < len(had)-1 || e.Get("text").Kind() != rawjson.String:
			return "", codec.ErrShown
		default:
			text, err := suffix(e.Get("text"), had[i].Get("text"))
			if err == nil {
				raw, err = on.Set(e, lens.Raw("text", cmp.Or(text, `""`)))
			}
			if err != nil {
				return "", err
			}
			rest = append(rest, raw)
		}
		i++
	}
	return lens.List("", rest).Raw, nil
}

// eventText writes an event.
func eventText(data string) string { return "data: " + codec.OneLine(data) + "\n\n" }

// envelope returns what every chunk of a stream repeats: the plain members, such as
// id, created and model, but for what pads a chunk. openai-python skips chunks without an
// object. OpenAI adds obfuscation, and
// Mistral p, so that an eavesdropper cannot tell tokens by the size of a chunk.
func envelope(like rawjson.Value) []lens.Member {
	var members codec.Members
	for _, m := range others(like, "choices", "usage", "error", "obfuscation", "p") {
		if m.Raw != "null" && m.Raw[0] != '[' && m.Raw[0] != '{' {
			members.Put(m.Key, m.Raw)
		}
	}
	members.Put("object", `"chat.completion.chunk"`)
	return members.List
}

// figures are the places in a usage object. Servers that added a figure before OpenAI did
// have kept their own place for it: DeepSeek, Mistral and Moonshot for cached tokens,
// OpenRouter and Vercel for tokens written to the cache, Together and Perplexity for
// reasoning. All places of an object hold the same figure, so a change is written to each.
var figures = codec.Figures{
	{Of: codec.InputOf, Keys: []string{"prompt_tokens"}},
	{Of: codec.CachedOf, Keys: []string{"prompt_tokens_details/cached_tokens", "prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens"}},
	{Of: codec.CacheWriteOf, Keys: []string{"prompt_tokens_details/cache_write_tokens", "cache_creation_input_tokens"}},
	{Of: codec.ReasoningOf, Keys: []string{"completion_tokens_details/reasoning_tokens", "reasoning_tokens"}},
	{Of: codec.OutputOf, Keys: []string{"completion_tokens"}},
}

// readUsage reads a usage object. Cached and CacheWrite are parts of Input, and
// Reasoning is one of Output, as in the neutral form.
func readUsage(v rawjson.Value) middleware.Usage {
	u := figures.Read(v)
	if apart(v) {
		u.OutputTokens += u.Reasoning
	}
	return u
}

// apart reports whether reasoning is not included in the output, as xAI counts: only the total
// shows it.
func apart(v rawjson.Value) bool {
	u, total := figures.Read(v), codec.Int(v.Get("total_tokens"))
	return u.Reasoning > 0 && total > u.Reasoning && total-u.Reasoning == u.InputTokens+u.OutputTokens
}

// usagesIn returns the usage objects of a body or a chunk; Groq has two.
func usagesIn(v rawjson.Value) []rawjson.Value {
	var out []rawjson.Value
	for _, u := range []rawjson.Value{v.Get("usage"), v.Get("x_groq").Get("usage")} {
		if u.Kind() == rawjson.Object && !u.Empty() {
			out = append(out, u)
		}
	}
	return out
}

// usageEdits returns the edits that change the usage object v from was to now. Unchanged
// figures are not touched.
func usageEdits(v rawjson.Value, was, now middleware.Usage) ([]rawjson.Edit, error) {
	if was == now {
		return nil, nil
	}
	if apart(v) && now.OutputTokens < now.Reasoning {
		return nil, codec.Unencodablef("reasoning of more tokens than the output has")
	}
	return on.Put(v, lens.Differ(usageMembers(v, was), usageMembers(v, now))...)
}

// usageMembers projects figures. The total is v's own with what u has more: some servers
// count things in it that no other figure has.
func usageMembers(v rawjson.Value, u middleware.Usage) []lens.Member {
	own, sum := readUsage(v), u.InputTokens+u.OutputTokens
	if apart(v) {
		u.OutputTokens -= u.Reasoning
	}
	out := figures.Members(v, u)
	if total := v.Get("total_tokens"); total.Exists() {
		out = append(out, lens.Raw("total_tokens", codec.Count(codec.Int(total)-own.InputTokens-own.OutputTokens+sum)))
	}
	if v.Get("prompt_cache_miss_tokens").Exists() {
		out = append(out, lens.Raw("prompt_cache_miss_tokens", codec.Count(u.InputTokens-u.Cached)))
	}
	return out
}

// finishIn returns the finish word of a choice.
func finishIn(choice rawjson.Value) string {
	return cmp.Or(nativeWord(choice), choice.Get("finish_reason").Str())
}

// finishWord returns the finish_reason to write for want; false if word, the present one, is
// right. If calls were added or removed, and the neutral reason is unchanged, the reason
// follows the calls: many clients run calls only with tool_calls, and wait for calls after it.
func finishWord(word string, had, has int, want middleware.FinishReason) (string, bool) {
	came, went := had == 0 && has > 0, had > 0 && has == 0
	switch {
	case want == middleware.FinishStopSequence && !came:
		want = middleware.FinishStop
	case went && want == middleware.FinishToolCalls:
		want = middleware.FinishStop
	case came && (want == middleware.FinishStop || want == middleware.FinishStopSequence || want == ""):
		want = middleware.FinishToolCalls
	}
	return string(want), want != codec.Finish(word, has > 0) || came && word == "stop" || has > 0 && codec.IsUnread(word)
}
