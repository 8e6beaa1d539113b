package chat

import (
	"errors"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// answer is the handle of a response.
type answer struct {
	native  middleware.Native
	text    string
	body    rawjson.Value // of one that is no stream
	main    *turn         // of one that is: its message, without texts
	usageAt int           // the event with the final figures; 0 for none
	safe    int           // where what comes can be put in
	word    string        // finish_reason of the message
	finish  middleware.FinishReason
	model   string
	usage   middleware.Usage
	message *message
	others  []*message
}

// whole reads an answer that is one JSON object.
func (s *stream) whole(text string) (*middleware.Response, error) {
	plain := text
	if rest, ok := strings.CutPrefix(text, bom); ok {
		plain = "   " + rest // so that places stay what they are
	}
	v, err := parseAnswer(plain)
	if err != nil {
		var syntax *rawjson.Error
		if errors.As(err, &syntax) && syntax.AtEnd {
			return nil, codec.ErrIncomplete
		}
		return nil, err
	}
	s.model = v.Get("model").Str()
	if figures := usageIn(v); len(figures) > 0 {
		s.usage = readUsage(figures[0])
	}
	choices := slices.Collect(v.Get("choices").Each())
	failed, called := s.fail(v), false
	for _, c := range choices {
		failed = s.fail(c) || failed
		m := readFields(c.Get("message"))
		called = called || m.calls.Len() > 0 || m.hasFunction()
	}
	switch {
	case failed && called:
		return nil, codec.Shapef("calls beside an error")
	case failed:
		return nil, s.failure()
	case len(choices) == 0 || v.Get("choices").Kind() != rawjson.Array:
		return nil, codec.Shapef("an answer without choices")
	}
	a := &answer{text: text, body: v, word: wordOf(choices[0].Get("finish_reason")), model: s.model, usage: s.usage}
	return a.response(s.calls, len(choices), func(i int) (rawjson.Value, error) { return inHistory(choices[i]) })
}

// wordOf returns a finish_reason, which some server may write as anything.
func wordOf(v rawjson.Value) string {
	if isText(v) {
		return v.Str()
	}
	return v.Raw()
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
	f := readFields(v)
	if err := bothForms(&f); err != nil {
		return v, err
	}
	var members []codec.Member
	if f.role.Str() == "" {
		members = append(members, codec.Member{Key: "role", Raw: `"assistant"`})
	}
	if k := f.content.Kind(); k == rawjson.Number || k == rawjson.Bool {
		members = append(members, codec.Member{Key: "content", Raw: "null"})
	}
	if audio := v.Get("audio"); audio.Kind() == rawjson.Object {
		m := codec.Member{Key: "audio"}
		if id := audio.Get("id"); id.Str() != "" {
			m.Raw = codec.Object(codec.Member{Key: "id", Raw: id.Raw()})
		}
		members = append(members, m)
	}
	if len(members) == 0 {
		return v, nil
	}
	edits, err := codec.SetAll(v, members...)
	if err != nil {
		return v, codec.Shapef("a message with a member that stands there twice")
	}
	text, err := codec.Within(v, edits)
	if err != nil {
		return v, codec.Shapef("a message with a member that stands there twice")
	}
	return codec.ParseObject(text)
}

// response decodes the choices, of which the first is the message.
func (a *answer) response(calls, choices int, history func(i int) (rawjson.Value, error)) (*middleware.Response, error) {
	resp := &middleware.Response{Model: a.model, Usage: a.usage}
	for i := range choices {
		v, err := history(i)
		if err != nil {
			return nil, err
		}
		m, err := readMessage(v)
		if err != nil {
			return nil, err
		}
		if m.Role != middleware.RoleAssistant {
			m.Role = middleware.RoleAssistant
			m.Native.Ref.(*message).snap.Role = m.Role
		}
		if oldCall(m) {
			m.ToolCalls[0].ID = codec.PlaceID(calls + 1)
		}
		if i == 0 {
			resp.Message, a.message = m, m.Native.Ref.(*message)
			continue
		}
		resp.Choices, a.others = append(resp.Choices, m), append(a.others, m.Native.Ref.(*message))
	}
	a.finish = finishOf(a.word, len(resp.Message.ToolCalls))
	resp.FinishReason = a.finish
	a.native = middleware.Native{Dialect: dialect, Raw: a.text, Ref: a}
	resp.Native = &a.native
	return resp, nil
}

// finishOf reads a finish_reason. Some servers say stop, or nothing, where the
// message has calls.
func finishOf(word string, calls int) middleware.FinishReason {
	switch word {
	case "stop", "eos", "eos_token", "stop_sequence", "end_turn":
		word = "stop"
	case "tool_calls", "function_call":
		return middleware.FinishToolCalls
	case "length", "model_length", "max_tokens":
		return middleware.FinishLength
	}
	if calls > 0 && (word == "stop" || word == "") {
		return middleware.FinishToolCalls
	}
	return middleware.FinishReason(word)
}

// finishWord returns the finish_reason to write; false if the one that stands
// there is right.
func (a *answer) finishWord(resp *middleware.Response) (string, bool) {
	had, has := len(a.message.snap.ToolCalls), len(resp.Message.ToolCalls)
	want := resp.FinishReason
	came, went := had == 0 && has > 0, had > 0 && has == 0
	switch {
	case went && want == middleware.FinishToolCalls:
		want = middleware.FinishStop
	case came && (want == middleware.FinishStop || want == ""):
		want = middleware.FinishToolCalls
	}
	if want == finishOf(a.word, has) && !(came && a.word == "stop") {
		return "", false
	}
	return string(want), true
}

// EncodeResponse is part of wire.Codec.
func (f Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	text, err := written(resp)
	if err != nil {
		return nil, err
	}
	return []byte(text), nil
}

// written returns the body of an answer: the text itself of one that did not
// change.
func written(resp *middleware.Response) (string, error) {
	a, err := answerOf(resp)
	if err != nil {
		return "", err
	}
	if len(resp.Choices) != len(a.others) {
		return "", codec.Unencodablef("further choices that came or went")
	}
	for i, m := range resp.Choices {
		if !a.others[i].same(m) {
			return "", codec.Unencodablef("a changed further choice")
		}
	}
	var edits []rawjson.Edit
	if a.main != nil {
		edits, err = a.streamEdits(resp)
	} else {
		edits, err = a.edits(resp)
	}
	if err != nil {
		return "", err
	}
	return codec.Apply(a.text, edits)
}

// answerOf returns the handle of resp.
func answerOf(resp *middleware.Response) (*answer, error) {
	a, err := codec.Handle(resp.Native, dialect, func(raw string) (*answer, error) {
		again, err := Format{}.DecodeResponse(nil, []byte(raw))
		if err != nil {
			return nil, err
		}
		return again.Native.Ref.(*answer), nil
	})
	if err == nil && a == nil {
		err = codec.Unencodablef("a response that was not decoded from this format")
	}
	return a, err
}

// unspelled returns the edits that take the logprobs from a choice, which spell
// out what it said before a change.
func unspelled(choice rawjson.Value) ([]rawjson.Edit, error) {
	if choice.Get("logprobs").Empty() || !choice.Get("logprobs").Exists() {
		return nil, nil
	}
	return codec.SetAll(choice, codec.Member{Key: "logprobs", Raw: "null"})
}

// edits returns the edits of a whole answer.
func (a *answer) edits(resp *middleware.Response) ([]rawjson.Edit, error) {
	var edits []rawjson.Edit
	add := func(more []rawjson.Edit, err error) error {
		edits = append(edits, more...)
		return err
	}
	var choice rawjson.Value
	for c := range a.body.Get("choices").Each() {
		choice = c
		break
	}
	if !a.message.same(resp.Message) {
		if _, err := codec.Only(choice, "message"); err != nil {
			return nil, err
		}
		if err := add(messageEdits(choice.Get("message"), a.message, resp.Message)); err != nil {
			return nil, err
		}
		if !slices.EqualFunc(resp.Message.Parts, a.message.snap.Parts, samePart) {
			if err := add(unspelled(choice)); err != nil {
				return nil, err
			}
		}
	}
	if word, changed := a.finishWord(resp); changed {
		if err := add(codec.SetAll(choice, codec.Member{Key: "finish_reason", Raw: rawjson.Quote(word)})); err != nil {
			return nil, err
		}
	}
	for _, u := range usageIn(a.body) {
		if err := add(usageEdits(u, a.usage, resp.Usage)); err != nil {
			return nil, err
		}
	}
	if resp.Model != a.model {
		if err := add(codec.SetAll(a.body, codec.Member{Key: "model", Raw: rawjson.Quote(resp.Model)})); err != nil {
			return nil, err
		}
	}
	return edits, nil
}
