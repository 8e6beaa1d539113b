package ollama

import (
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// answer is an answer as it was read.
type answer struct {
	is     middleware.Response
	plain  bool   // no word for calls is in it: unchanged, it passes as it came
	lines  bool   // it was streamed
	object string // the answer as one object, in one spelling; this is what an edit changes
}

// Response returns the answer after the last unit. An answer ends with a line that says done. The
// message is read as one of the history is, after those of the request, so that calls
// without ids get their place in the conversation.
func (s *stream) Response() (*middleware.Response, error) {
	switch {
	case s.failure != nil:
		return nil, codec.ModelError(codec.StatusOf(s.failure.Code), nil, *s.failure)
	case !s.done && !s.known && s.unknown:
		return nil, codec.Shapef("neither message nor done")
	case !s.done:
		return nil, codec.ErrIncomplete
	}
	message := s.folded()
	turn, err := codec.ParseObject(message)
	if err != nil {
		return nil, err
	}
	c := conversation{calls: s.before}
	m, _, err := c.read(turn)
	if err != nil {
		return nil, err
	}
	end, err := codec.ParseObject(s.end)
	if err != nil {
		return nil, err
	}
	var members []lens.Member
	if end.Get("model").Str() != s.model {
		members = append(members, lens.Text("model", s.model))
	}
	if s.messages == 1 {
		message = s.message
	}
	if s.messages > 0 {
		members = append(members, lens.Raw("message", message))
	}
	object, err := on.Set(end, members...)
	if err != nil {
		return nil, err
	}
	resp := &middleware.Response{Message: m, FinishReason: finishReason(s.reason, len(m.ToolCalls)), Model: s.model, Usage: s.usage}
	a := &answer{is: *resp.Clone(), plain: s.Plain(), lines: !s.Buf.IsWhole() && s.count() > 1, object: object}
	resp.Native = on.Remember(s.Text(), a)
	return resp, nil
}

// count returns the number of lines that say something.
func (s *stream) count() int { return strings.Count(strings.TrimSpace(s.Text()), "\n") + 1 }

// DecodeResponse reads a whole answer.
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

// EncodeResponse writes an answer in the framing in which it came.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	a, err := lens.Answer(on, resp, readAnswer)
	if err != nil {
		return nil, err
	}
	if a.plain && codec.SameResponse(&a.is, resp) {
		return []byte(resp.Native.Raw), nil
	}
	out, err := a.write(resp)
	if err == nil && a.lines {
		out, err = asLines(out, content{}, true)
	}
	return []byte(out), err
}

// write returns the answer as one object with what differs set in it.
func (a *answer) write(resp *middleware.Response) (string, error) {
	if err := answerOnly(resp); err != nil {
		return "", err
	}
	if codec.SameResponse(&a.is, resp) {
		return a.object, nil
	}
	doc, err := codec.ParseBody(a.object)
	if err != nil {
		return "", err
	}
	root := doc.Root()
	edit := on.Edit(root)
	if resp.Model != a.is.Model {
		edit.Put(lens.Text("model", resp.Model))
	}
	if resp.FinishReason != a.is.FinishReason {
		edit.Put(lens.Text("done_reason", doneReason(resp.FinishReason)))
	}
	if hasFigures(root) {
		edit.Put(lens.Differ(figures(a.is.Usage), figures(resp.Usage))...)
	}
	if err := a.writeMessage(edit, root.Get("message"), resp.Message); err != nil {
		return "", err
	}
	edits, err := edit.Edits()
	if err != nil {
		return "", err
	}
	return codec.Apply(a.object, edits)
}

// writeMessage sets text, reasoning and calls. Images stay as they are: a model does not
// write them, and this format has them in answers only where a client put them.
func (a *answer) writeMessage(edit *lens.Edit, message rawjson.Value, m middleware.Message) error {
	was, err := contentOf(a.is.Message.Parts, true)
	if err != nil {
		return err
	}
	now, err := contentOf(m.Parts, true)
	if err != nil {
		return err
	}
	if strings.Join(was.images, ",") != strings.Join(now.images, ",") {
		return codec.Unencodablef("an image in an answer")
	}
	if was.text != now.text {
		edit.Put(lens.Text("message/content", now.text))
	}
	if was.thinking != now.thinking {
		edit.Put(lens.Text("message/thinking", now.thinking))
	}
	calls, err := callTexts(m.ToolCalls, true)
	if err != nil {
		return err
	}
	if calls, err = renumbered(calls); err != nil {
		return err
	}
	switch {
	case len(calls) == 0 && message.Get("tool_calls").Exists():
		edit.Put(lens.None("message/tool_calls"))
	case len(calls) > 0 && message.Get("tool_calls").Kind() == rawjson.Array:
		edit.Elements("message/tool_calls", calls)
	case len(calls) > 0:
		edit.Put(lens.List("message/tool_calls", calls))
	}
	return nil
}

// answerOnly returns an error if resp is more, or something else, than one message
// of an assistant.
func answerOnly(resp *middleware.Response) error {
	if len(resp.Choices) > 0 {
		return codec.Unencodablef("a second choice")
	}
	return codec.AnswerOnly(resp.Message)
}

// piece returns a line of a stream without text, of the same time as root.
func piece(root rawjson.Value) string {
	return codec.OneLine(on.Object(lens.Raw("model", root.Get("model").Raw()), lens.Raw("created_at", root.Get("created_at").Raw()),
		lens.Text("message/role", "assistant"), lens.Text("message/content", ""), lens.Raw("done", "false"))) + "\n"
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

// EncodeAnswer writes an answer that the provider did not send to this request.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	return codec.EncodeAnswer(f, path, body, resp, codec.Writing{Streamed: codec.FormLines, Objects: true, Whole: freshAnswer, Unfold: func(whole string) (string, error) {
		return asLines(whole, content{}, true)
	}})
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
