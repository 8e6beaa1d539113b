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
	text     string // as it came
	streamed bool
	plain    bool   // no reader finds a call in text: unchanged, it passes as it is
	object   string // the answer as one object, in one spelling; this is what an edit changes
	is       *middleware.Response
	word     string // finish_reason of the message
}

// whole reads an answer that is one JSON object. One with an error in it, at its
// root or in a choice, is the error; with a call beside the error it is unreadable,
// because some clients look at the one and some at the other.
func (s *stream) whole(u *codec.Unit) (err error) {
	if err := u.Unreadable(); err != nil {
		return err
	}
	s.answer, err = s.object(s.Text(), u.Value)
	return err
}

// object reads the object v, which is an answer of that text.
func (s *stream) object(text string, v rawjson.Value) (*answer, error) {
	s.id, s.model, s.like = v.Get("id").Str(), v.Get("model").Str(), others(v, "choices", "usage", "error")
	if figures := usagesIn(v); len(figures) > 0 {
		s.usage, s.figures = readUsage(figures[0]), figures[0].Raw()
	}
	failed, called, at := s.fail(v), false, int64(0)
	for c := range v.Get("choices").Each() {
		t, err := s.turn(c, at)
		if err != nil {
			return nil, err
		}
		calls, err := t.read(c)
		if err != nil {
			return nil, err
		}
		failed, called = s.fail(c) || failed, called || calls
		at++
	}
	switch {
	case failed && called:
		return nil, codec.Shapef("calls beside an error")
	case failed:
		return nil, s.failure()
	case at == 0 || v.Get("choices").Kind() != rawjson.Array:
		return nil, codec.Shapef("an answer without choices")
	}
	a, err := s.put(text, false)
	if err != nil {
		return nil, err
	}
	for _, p := range a.is.Message.Parts {
		if err := codec.Tell(s.sink, p.Kind, p.Text); err != nil {
			return nil, err
		}
	}
	return a, nil
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
	keys := message
	switch calls = true; {
	case m.Get("tool_calls").Len() > 0:
		keys = callsMessage
	case hasFunction(m):
		keys = functionMessage
	default:
		calls = false
	}
	t.written = keys.Write(m)
	t.finish, t.beside = wordOf(c.Get("finish_reason")), others(c, "index", "message", "delta", "finish_reason", "error")
	return calls, nil
}

// The members of a call.
var (
	call     = codec.Tree{"id": nil, "type": nil, "index": nil, "function": function, "custom": {"name": nil, "input": codec.AsSent}}
	function = codec.Tree{"name": nil, "arguments": codec.AsSent}

	callsMessage    = message.With("tool_calls", call)
	functionMessage = message.With("function_call", function)
)

// others returns the members of v, each once, that no reader takes for one of known.
func others(v rawjson.Value, known ...string) (out []lens.Member) {
	for m := range v.Each() {
		same := func(key string) bool { return strings.EqualFold(key, m.Key()) }
		if !slices.ContainsFunc(known, same) && !slices.ContainsFunc(out, func(o lens.Member) bool { return same(o.Key) }) && codec.FreeMember(m) {
			out = append(out, lens.Raw(m.Key(), codec.Plain(m)))
		}
	}
	return out
}

// put puts the answer together. The first choice is the message, the others are
// further choices. A call in the old form has no id on the wire: it is the only one
// of its message, and takes the next place of the conversation.
func (s *stream) put(text string, streamed bool) (*answer, error) {
	turns := slices.SortedFunc(maps.Values(s.turns), func(a, b *turn) int { return cmp.Compare(a.index, b.index) })
	a := &answer{text: text, streamed: streamed, plain: s.Plain(), word: turns[0].finish, is: &middleware.Response{ID: s.id, Model: s.model, Usage: s.usage}}
	choices := make([]string, len(turns))
	for i, t := range turns {
		raw := t.raw()
		v, err := codec.ParseObject(raw)
		if err == nil {
			v, err = inHistory(v)
		}
		if err != nil {
			return nil, err
		}
		m, err := readMessage(v)
		if err != nil {
			return nil, err
		}
		m.Role = middleware.RoleAssistant
		if isOldTurn(v) {
			m.ToolCalls[0].ID = codec.PlaceID(s.before + 1)
		}
		if i == 0 {
			a.is.Message = m
		} else {
			a.is.Choices = append(a.is.Choices, m)
		}
		finish := lens.Word("finish_reason", t.finish)
		if finish.Raw == "" {
			finish.Raw = "null"
		}
		choices[i] = codec.Object(append(append([]lens.Member{lens.Raw("index", codec.Count(t.index)), lens.Raw("message", raw)}, t.beside...), finish)...)
	}
	a.is.FinishReason = finishOf(a.word, len(a.is.Message.ToolCalls))
	a.object = codec.Object(append(s.like, lens.Raw("choices", codec.Array(choices)), lens.Raw("usage", s.figures))...)
	return a, nil
}

// inHistory returns the message v of an answer as it is in history: with a role, with
// content that a provider takes, and with sound by its id alone.
func inHistory(v rawjson.Value) (rawjson.Value, error) {
	var members []lens.Member
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
	if len(members) == 0 {
		return v, nil
	}
	text, err := on.Set(v, members...)
	if err != nil {
		return v, err
	}
	return codec.ParseObject(text)
}

// readAnswer reads an answer again. Without the request a call in the old form is
// number 1; an id by place is not written, so that this makes no difference.
func readAnswer(raw string) (*answer, error) {
	s := newStream(false)
	_, err := codec.Decode(s, []byte(raw))
	return s.answer, err
}

// EncodeResponse writes an answer in the framing in which it came.
func (f Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	a, err := lens.Answer(on, resp, readAnswer)
	if err != nil {
		return nil, err
	}
	if a.plain && codec.SameResponse(a.is, resp) {
		return []byte(a.text), nil
	}
	out, err := a.write(resp)
	if err == nil && a.streamed {
		out, err = events(out, nil, nil, true, true)
	}
	return []byte(out), err
}

// changed returns how the message of an answer has changed, compared with the text
// that it has in history.
func changed(was, now middleware.Message) (change, error) {
	if err := codec.AnswerOnly(now); err != nil {
		return change{}, err
	}
	v, err := on.Value(was.Native)
	if err != nil {
		return change{}, err
	}
	return changeOf(v, was, now)
}

// spelled reports whether a choice has logprobs, which spell out what it says and
// go when that changes.
func spelled(choice rawjson.Value) bool {
	v := choice.Get("logprobs")
	return v.Exists() && !v.Empty()
}

// write returns the answer as one object with what differs set in it. Further choices
// cannot change: a middleware sees them, but nothing says which of them a client takes.
func (a *answer) write(resp *middleware.Response) (string, error) {
	if codec.SameResponse(a.is, resp) {
		return a.object, nil
	}
	if len(a.is.Choices) != len(resp.Choices) {
		return "", codec.Unencodablef("further choices that came or went")
	}
	for i, m := range resp.Choices {
		if c, err := changed(a.is.Choices[i], m); err != nil || !c.empty() {
			return "", codec.Unencodablef("a changed further choice")
		}
	}
	c, err := changed(a.is.Message, resp.Message)
	if err != nil {
		return "", err
	}
	doc, err := codec.ParseBody(a.object)
	if err != nil {
		return "", err
	}
	root := on.Edit(doc.Root())
	for v := range doc.Root().Get("choices").Each() {
		e := on.Edit(v)
		c.edit(e, "message/")
		if c.said && spelled(v) {
			e.Put(lens.Raw("logprobs", "null"))
		}
		if word, ok := finishWord(a.word, a.is, resp); ok {
			e.Put(lens.Text("finish_reason", word))
		}
		root.Add(e.Edits())
		break
	}
	if resp.Model != a.is.Model {
		root.Put(lens.Text("model", resp.Model))
	}
	for _, u := range usagesIn(doc.Root()) {
		root.Add(usageEdits(u, a.is.Usage, resp.Usage))
	}
	edits, err := root.Edits()
	if err == nil {
		err = lens.Clear(doc, edits)
	}
	if err != nil {
		return "", err
	}
	return codec.Apply(a.object, edits)
}

// EncodeAnswer writes an answer that the provider did not send to this request.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	return codec.EncodeAnswer(f, path, body, resp, codec.Writing{Streamed: codec.FormEvents, Whole: freshAnswer, Unfold: func(whole string) (string, error) {
		return events(whole, nil, nil, true, wantsUsage(body))
	}})
}

// wantsUsage reports whether a request asks for a last chunk with figures. A
// client that does not may fail on a chunk without choices.
func wantsUsage(body []byte) bool {
	v, err := codec.ParseObject(string(body))
	return err == nil && v.Get("stream_options").Get("include_usage").Raw() == "true"
}

// freshAnswer writes a response as one object. A response has one finish reason: that
// of a further choice follows its calls.
func freshAnswer(resp *middleware.Response) (string, error) {
	choices := make([]string, 0, 1+len(resp.Choices))
	for i, m := range append([]middleware.Message{resp.Message}, resp.Choices...) {
		text, err := answerText(codec.WithCallIDs(m, "call_"))
		if err != nil {
			return "", err
		}
		like := &middleware.Response{Message: m}
		if i == 0 {
			like.FinishReason = resp.FinishReason
		}
		choices = append(choices, codec.Object(lens.Raw("index", codec.Count(int64(i))), lens.Raw("message", text),
			lens.Raw("logprobs", "null"), lens.Text("finish_reason", string(codec.FinishOf(like)))))
	}
	return codec.Object(lens.Text("id", codec.NewID("chatcmpl-")), lens.Text("object", "chat.completion"),
		lens.Raw("created", codec.Count(time.Now().Unix())), lens.Text("model", resp.Model),
		lens.Raw("choices", codec.Array(choices)), lens.Raw("usage", freshUsage(codec.FiguresOf(resp)))), nil
}

// answerText writes the message of an answer. Reasoning of another provider
// stands in reasoning_content, as servers of open models have it.
func answerText(m middleware.Message) (string, error) {
	if err := codec.AnswerOnly(m); err != nil {
		return "", err
	}
	reasoning := ""
	for _, p := range m.Parts {
		if p.Kind == middleware.PartReasoning && on.Raw(p.Native) == "" {
			reasoning += p.Text
		}
	}
	text, err := messageText(m, nil)
	if err != nil || reasoning == "" {
		return text, err
	}
	v, err := codec.ParseObject(text)
	if err != nil {
		return "", err
	}
	return on.Set(v, lens.Text("reasoning_content", reasoning))
}
