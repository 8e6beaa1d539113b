package ollama

import (
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// answer is an answer as it was read: what it said, but not where. The body is
// read again where something has changed.
type answer struct {
	is    middleware.Response
	whole bool // several lines that are one text
	alone bool // one message, nothing but a stream of one
}

// response puts together what was read. An answer ends with a line that says done.
// The message is read as one of the history is, after those of the request, so
// that calls without ids get their place in the conversation.
func (s *stream) response() (*middleware.Response, error) {
	switch {
	case s.failure != nil:
		return nil, codec.ModelError(codec.StatusOf(s.failure.Code), nil, *s.failure)
	case !s.done && !s.seen && s.strange:
		return nil, codec.Shapef("neither message nor done")
	case !s.done:
		return nil, codec.ErrIncomplete
	}
	turn, err := s.turn()
	if err != nil {
		return nil, err
	}
	c := conversation{calls: s.before}
	m, _, err := c.read(turn)
	if err != nil {
		return nil, err
	}
	resp := &middleware.Response{Message: m, FinishReason: finishReason(s.reason, len(m.ToolCalls)), Model: s.model, Usage: s.usage}
	a := &answer{*resp.Clone(), s.Buf.IsWhole(), s.messages <= 1}
	resp.Native = on.Remember(s.Text(), a)
	return resp, nil
}

// DecodeResponse is part of wire.Codec.
func (f Format) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	return codec.Decode(f.NewStream(req, nil), body)
}

// readAnswer reads an answer again.
func readAnswer(body string) (*answer, error) {
	resp, err := Format{}.DecodeResponse(nil, []byte(body))
	if err != nil {
		return nil, err
	}
	return lens.Answer(on, resp, readAnswer)
}

// EncodeResponse is part of wire.Codec. It edits the lines of the recorded answer.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	a, err := lens.Answer(on, resp, readAnswer)
	if err != nil {
		return nil, err
	}
	body, err := a.text(resp)
	return []byte(body), err
}

// text returns the answer with the changes that resp has. Each is made in the
// lines in which the value stands, and all else keeps its bytes:
//
//	{"message":{"content":"We"},"done":false}      {"message":{"content":"So"},"done":false}
//	{"message":{"content":"ll"},"done":false}  →   {"message":{"content":""},"done":false}
//	{"message":{"content":""},"done":true}         {"message":{"content":""},"done":true}
func (a *answer) text(resp *middleware.Response) (string, error) {
	if err := answerOnly(resp); err != nil {
		return "", err
	}
	if codec.SameResponse(&a.is, resp) {
		return resp.Native.Raw, nil
	}
	lines, chunks, err := readLines(resp.Native.Raw)
	if err != nil {
		return "", err
	}
	a.tellEnd(lines, resp)
	if err := a.tellParts(lines, resp.Message.Parts); err != nil {
		return "", err
	}
	more, err := a.tellCalls(lines, resp)
	if err != nil {
		return "", err
	}
	for _, l := range lines {
		if err := l.chunk.Add(l.Edits()); err != nil {
			return "", err
		}
	}
	return lens.ApplyAll(resp.Native.Raw, chunks, more...)
}

// answerOnly returns an error if resp is more, or something else, than one message
// of an assistant.
func answerOnly(resp *middleware.Response) error {
	if len(resp.Choices) > 0 {
		return codec.Unencodablef("a second choice")
	}
	return codec.AnswerOnly(resp.Message)
}

// tellEnd sets the model in every line that names it, and the finish reason and the
// usage in the last one.
func (a *answer) tellEnd(lines []line, resp *middleware.Response) {
	for _, l := range lines {
		if resp.Model != a.is.Model && (l.done || l.root.Get("model").Exists()) {
			l.Put(lens.Text("model", resp.Model))
		}
		if l.done && resp.FinishReason != a.is.FinishReason {
			l.Put(lens.Text("done_reason", doneReason(resp.FinishReason)))
		}
		if l.done && hasFigures(l.root) {
			l.Put(lens.Differ(figures(a.is.Usage), figures(resp.Usage))...)
		}
	}
}

// tellParts sets text and reasoning. Images stay as they are: a model does not
// write them, and this format has them in answers only where a client put them.
func (a *answer) tellParts(lines []line, parts []middleware.Part) error {
	was, err := contentOf(a.is.Message.Parts, true)
	if err != nil {
		return err
	}
	now, err := contentOf(parts, true)
	if err != nil {
		return err
	}
	if strings.Join(was.images, ",") != strings.Join(now.images, ",") {
		return codec.Unencodablef("an image in an answer")
	}
	if err := tellText(lines, "content", was.text, now.text); err != nil {
		return err
	}
	return tellText(lines, "thinking", was.thinking, now.thinking)
}

// tellText sets a text that stands in pieces in several lines: the first one gets
// all, the others none; where there is none, the last line gets it.
func tellText(lines []line, key, was, now string) error {
	told := was == now
	for _, l := range lines {
		old := l.message.Get(key).Str()
		if was == now || old == "" && (told || !l.done || l.message.Kind() != rawjson.Object) {
			continue
		}
		l.Put(lens.Text("message/"+key, now))
		now, told = "", true
	}
	if !told {
		return codec.Unencodablef("an answer without a line for it")
	}
	return nil
}

// tellCalls sets the calls: each where it stood or, after calls came or went, all
// in the first line that had any. In a stream without any they get a line of
// their own, which it returns.
func (a *answer) tellCalls(lines []line, resp *middleware.Response) ([]rawjson.Edit, error) {
	was, now := a.is.Message.ToolCalls, resp.Message.ToolCalls
	calls, err := callTexts(now, true)
	if err != nil {
		return nil, err
	}
	inPlace, same := len(was) == len(now), len(was) == len(now)
	for i := range min(len(was), len(now)) {
		inPlace = inPlace && codec.SameNative(was[i].Native, now[i].Native)
		same = same && calls[i] == was[i].Native.Raw
	}
	if same {
		return nil, nil
	}
	if !inPlace {
		if calls, err = renumbered(calls); err != nil {
			return nil, err
		}
	}
	for _, l := range lines {
		const path = "message/tool_calls"
		switch n := l.message.Get("tool_calls").Len(); {
		case n > 0 && inPlace:
			l.Elements(path, calls[:n])
			calls = calls[n:]
		case n > 0 && len(calls) > 0:
			l.Elements(path, calls)
			calls = nil
		case n > 0:
			l.Put(lens.None(path))
		case !l.done || len(calls) == 0:
		case a.alone && l.message.Kind() == rawjson.Object:
			l.Put(lens.List(path, calls))
			calls = nil
		case !a.alone:
			model := l.root.Get("model").Raw()
			if resp.Model != a.is.Model {
				model = rawjson.Quote(resp.Model)
			}
			at := l.chunk.Event.Start
			return []rawjson.Edit{{Start: at, End: at, Text: piece(l.root, model, calls)}}, nil
		}
	}
	if len(calls) > 0 {
		return nil, codec.Unencodablef("an answer without a line for its calls")
	}
	return nil, nil
}

// piece returns a line of a stream with calls, of the same time as root.
func piece(root rawjson.Value, model string, calls []string) string {
	return codec.OneLine(on.Object(lens.Raw("model", model), lens.Raw("created_at", root.Get("created_at").Raw()),
		lens.Text("message/role", "assistant"), lens.Text("message/content", ""), lens.List("message/tool_calls", calls),
		lens.Raw("done", "false"))) + "\n"
}

// renumbered gives the calls that have an index the one of their place: clients
// put calls of a stream together by it.
func renumbered(calls []string) ([]string, error) {
	for i, raw := range calls {
		v, err := codec.ParseObject(raw)
		if err != nil {
			return nil, err
		}
		if index := v.Get("function").Get("index"); index.Exists() && index.Raw() != codec.Count(int64(i)) {
			if calls[i], err = on.Set(v, lens.Raw("function/index", codec.Count(int64(i)))); err != nil {
				return nil, err
			}
		}
	}
	return calls, nil
}

// EncodeAnswer is part of wire.Codec.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	return codec.EncodeAnswer(f, path, body, resp, codec.Writing{Streamed: codec.FormLines, Objects: true, Whole: freshAnswer, Unfold: asLines})
}

// freshAnswer writes a response as one object, as the server does without a
// stream. Its message is that of the history. Of usage there are input and output.
func freshAnswer(resp *middleware.Response) (string, error) {
	if err := answerOnly(resp); err != nil {
		return "", err
	}
	said, err := contentOf(resp.Message.Parts, true)
	if err != nil {
		return "", err
	}
	calls, err := callTexts(resp.Message.ToolCalls, true)
	if err != nil {
		return "", err
	}
	message := append(said.members(middleware.RoleAssistant), lens.List("images", said.images), lens.List("tool_calls", calls))
	members := []lens.Member{
		lens.Text("model", resp.Model), lens.Text("created_at", time.Now().UTC().Format(time.RFC3339Nano)), lens.Raw("message", on.Object(message...)),
		lens.Raw("done", "true"), lens.Word("done_reason", doneReason(codec.FinishOf(resp))),
	}
	return on.Object(append(members, figures(codec.FiguresOf(resp))...)...), nil
}

// asLines writes an answer that is one object as the server streams it: a line with
// the message, and one that ends it.
func asLines(whole string) (string, error) {
	v, err := codec.ParseObject(whole)
	if err != nil {
		return "", err
	}
	members := []lens.Member{lens.Raw("done", "false")}
	for _, key := range endKeys {
		if v.Get(key).Exists() {
			members = append(members, lens.None(key))
		}
	}
	first, err := on.Set(v, members...)
	if err != nil {
		return "", err
	}
	last, err := on.Set(v, lens.Raw("message", `{"role":"assistant","content":""}`))
	return codec.OneLine(first) + "\n" + codec.OneLine(last) + "\n", err
}
