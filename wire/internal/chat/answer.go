package chat

import (
	"slices"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// answer is an answer as read, which no caller can reach. It holds no parsed text:
// an edit, which is rare, reads it again. An answer that is not a stream is
//
//	{"id": …, "object": "chat.completion", "created": …, "model": …,
//	 "choices": [{"index": 0, "message": {…}, "logprobs": null, "finish_reason": "stop"}],
//	 "usage": {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}}
type answer struct {
	text     string
	streamed bool
	is       *middleware.Response
	word     string // finish_reason of the message
	safe     int    // of a stream: where what comes can be put in
	late     bool   // of a stream: its first choice is not number 0
}

// bom, a byte order mark, may stand before an answer.
const bom = "\ufeff"

// whole reads an answer that is one JSON object. One with an error in it, at its
// root or in a choice, is the error; with a call beside the error it is unreadable,
// because some clients look at the one and some at the other.
func (s *stream) whole(text string) (a *answer, _ error) {
	cut, err := borrowAnswer(withoutMark(text), func(v rawjson.Value) (err error) {
		a, err = s.object(text, v)
		return err
	})
	if cut {
		return nil, codec.ErrIncomplete
	}
	return a, err
}

// withoutMark returns an answer with white space in the place of its byte order mark,
// so that places stay what they are.
func withoutMark(text string) string {
	if rest, ok := strings.CutPrefix(text, bom); ok {
		return "   " + rest
	}
	return text
}

// object reads the object v, which is an answer of that text, and keeps no value of it.
func (s *stream) object(text string, v rawjson.Value) (_ *answer, err error) {
	s.model = v.Get("model").Str()
	if figures := usagesIn(v); len(figures) > 0 {
		s.usage = readUsage(figures[0])
	}
	choices := slices.Collect(v.Get("choices").Each())
	failed, called := s.fail(v), false
	for _, c := range choices {
		failed = s.fail(c) || failed
		m := c.Get("message")
		called = called || m.Get("tool_calls").Len() > 0 || hasFunction(m)
	}
	switch {
	case failed && called:
		return nil, codec.Shapef("calls beside an error")
	case failed:
		return nil, s.failure()
	case len(choices) == 0 || v.Get("choices").Kind() != rawjson.Array:
		return nil, codec.Shapef("an answer without choices")
	}
	a := &answer{text: text, word: wordOf(choices[0].Get("finish_reason"))}
	messages := make([]rawjson.Value, len(choices))
	for i, c := range choices {
		if messages[i], err = inHistory(c); err != nil {
			return nil, err
		}
	}
	if err := s.read(a, messages); err != nil {
		return nil, err
	}
	return a, s.tell(a.is.Message)
}

// inHistory returns the message of a choice as it stands in history: with a
// role, with content that a provider takes, and with sound by its id alone.
// Azure leaves out a message that its filter took.
func inHistory(choice rawjson.Value) (rawjson.Value, error) {
	v := choice.Get("message")
	if !v.Exists() && choice.Get("finish_reason").Str() == string(middleware.FinishFilter) {
		return codec.ParseObject(`{"role":"assistant","content":null}`)
	}
	if v.Kind() != rawjson.Object {
		return v, codec.Shapef("a message is of kind %s", v.Kind())
	}
	if err := bothForms(v); err != nil {
		return v, err
	}
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
		return v, codec.Shapef("a message with a member that appears twice")
	}
	return codec.ParseObject(text)
}

// read reads messages, as they stand in history, into a. The first one is the
// message, the others are further choices. A call in the old form has no id on the
// wire: it is the only one of its message, and takes the next place of the
// conversation.
func (s *stream) read(a *answer, messages []rawjson.Value) error {
	a.is = &middleware.Response{Model: s.model, Usage: s.usage}
	for i, v := range messages {
		m, err := readMessage(v)
		if err != nil {
			return err
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
	}
	a.is.FinishReason = finishOf(a.word, len(a.is.Message.ToolCalls))
	return nil
}

// tell shows what an answer that is not a stream says.
func (s *stream) tell(m middleware.Message) error {
	for _, p := range m.Parts {
		if err := codec.Tell(s.sink, p.Kind, p.Text); err != nil {
			return err
		}
	}
	return nil
}

// readAnswer reads an answer again. Without the request a call in the old form is
// number 1; an id by place is not written, so that this makes no difference.
func readAnswer(raw string) (*answer, error) {
	s := newStream()
	_, err := codec.Decode(s, []byte(raw))
	return s.answer, err
}

// EncodeResponse is part of wire.Codec.
func (f Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	text, _, err := written(resp)
	return []byte(text), err
}

// written returns the body of an answer with what differs set in it, and whether
// that is a stream. Further choices cannot change: a middleware sees them, but
// nothing says which of them a client takes.
func written(resp *middleware.Response) (text string, streamed bool, err error) {
	a, err := lens.Answer(on, resp, readAnswer)
	switch {
	case err != nil:
		return "", false, err
	case codec.SameResponse(a.is, resp):
		return a.text, a.streamed, nil
	case len(a.is.Choices) != len(resp.Choices):
		return "", false, codec.Unencodablef("further choices that came or went")
	}
	for i, m := range resp.Choices {
		if c, err := changed(a.is.Choices[i], m); err != nil || !c.empty() {
			return "", false, codec.Unencodablef("a changed further choice")
		}
	}
	c, err := changed(a.is.Message, resp.Message)
	if err != nil {
		return "", false, err
	}
	if a.streamed {
		text, err = a.writeStream(resp, c)
		return text, true, err
	}
	text, err = a.writeWhole(resp, c)
	return text, false, err
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

// writeWhole returns the body of an answer that is not a stream. c is the change of the
// message as it stands in history; the message of the answer takes it as well, since
// the two differ only in what inHistory sets.
func (a *answer) writeWhole(resp *middleware.Response, c change) (string, error) {
	doc, err := codec.ParseBody(withoutMark(a.text))
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
	return codec.Apply(a.text, edits)
}

// EncodeAnswer is part of wire.Codec.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	return codec.EncodeAnswer(f, path, body, resp, codec.Writing{Streamed: codec.FormEvents, Whole: freshAnswer, Unfold: func(whole string) (string, error) {
		v, err := codec.ParseObject(whole)
		if err != nil {
			return "", err
		}
		return asEvents(v, wantsUsage(body))
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
