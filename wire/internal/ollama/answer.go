package ollama

import (
	"slices"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// answer is an answer as it was read.
type answer struct {
	lens.Answered
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
	message := s.message()
	turn, err := codec.ParseObject(message)
	if err != nil {
		return nil, err
	}
	c := conversation{calls: s.before}
	m, _, err := c.read(turn)
	if err != nil {
		return nil, err
	}
	object, err := on.SetIn(s.end, lens.Word("model", s.model), lens.Raw("message", message))
	if err != nil {
		return nil, err
	}
	is := middleware.Response{Message: m, FinishReason: finishReason(s.reason, len(m.ToolCalls)), Model: s.model, Usage: s.usage}
	streamed := !s.Buf.IsWhole() && strings.Contains(strings.TrimSpace(s.Text()), "\n")
	return on.Response(&answer{lens.Answered{Text: s.Text(), Unchanged: s.Unchanged(), Streamed: streamed, Is: is}, object}), nil
}

// readAnswer reads an answer again.
func readAnswer(body string) (*answer, error) {
	resp, err := codec.Decode(Format{}.NewStream(nil, nil), []byte(body))
	if err != nil {
		return nil, err
	}
	return lens.Answer(on, resp, readAnswer)
}

// EncodeResponse writes an answer in the framing in which it came.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	return lens.EncodeResponse(on, resp, readAnswer)
}

// Stream writes resp as the lines that follow what is shown.
func (a *answer) Stream(resp *middleware.Response, shown content, own bool) (string, error) {
	object, err := a.Whole(resp)
	if err != nil {
		return "", err
	}
	return asLines(object, shown, own)
}

// Whole writes resp as one object.
func (a *answer) Whole(resp *middleware.Response) (string, error) {
	if codec.SameResponse(&a.Is, resp) {
		return a.object, nil
	}
	v, err := codec.ParseObject(a.object)
	if err != nil {
		return "", err
	}
	was, err := answerMembers(v, &a.Is)
	if err != nil {
		return "", err
	}
	now, err := answerMembers(v, resp)
	if err != nil {
		return "", err
	}
	return on.Write(v, was, now)
}

// answerMembers projects an answer onto v. One figure is written beside the other, but into
// an answer that has none usage is not invented.
func answerMembers(v rawjson.Value, resp *middleware.Response) ([]lens.Member, error) {
	if err := codec.OneMessage(resp); err != nil {
		return nil, err
	}
	content, err := contentOf(resp.Message.Parts, true)
	if err != nil {
		return nil, err
	}
	calls, err := callTexts(resp.Message.ToolCalls, true)
	if err != nil {
		return nil, err
	}
	members := []lens.Member{lens.Text("model", resp.Model), lens.Text("message/content", content.text), lens.Word("message/thinking", content.thinking),
		lens.List("message/images", content.images), lens.List("message/tool_calls", calls), lens.Word("done_reason", doneReason(resp.FinishReason))}
	if slices.ContainsFunc(figures, func(p codec.Place) bool { return v.Get(p.Keys[0]).Exists() }) {
		members = append(members, figures.Members(v, resp.Usage)...)
	}
	return members, nil
}

// EncodeAnswer writes an answer that the provider did not send to this request.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	return codec.EncodeAnswer(f, path, body, resp, codec.Writing{Streamed: codec.FormLines, Objects: true, Whole: freshAnswer, Unfold: func(whole string) (string, error) {
		return asLines(whole, content{}, true)
	}})
}

// freshAnswer writes a response as one object, as the server does without a stream: as a
// change of an answer that says nothing. Of usage there are input and output.
func freshAnswer(resp *middleware.Response) (string, error) {
	now := *resp
	now.FinishReason, now.Usage = codec.FinishOf(resp), codec.FiguresOf(resp)
	begun := answer{Answered: lens.Answered{Is: middleware.Response{Message: middleware.Message{Role: middleware.RoleAssistant}}}}
	begun.object = on.Object(append([]lens.Member{lens.Text("model", ""), lens.Text("created_at", time.Now().UTC().Format(time.RFC3339Nano)),
		lens.Raw("message", `{"role":"assistant","content":""}`), lens.Raw("done", "true")}, figures.Members(rawjson.Value{}, middleware.Usage{})...)...)
	return begun.Whole(&now)
}

// figures are the places of the figures in the last line. Those for cached tokens and for
// reasoning have no place in this format.
var figures = codec.Figures{
	{Of: codec.InputOf, Keys: []string{"prompt_eval_count"}},
	{Of: codec.OutputOf, Keys: []string{"eval_count"}},
}

// finishReason is the neutral word for a done_reason. This format says stop
// after calls too.
func finishReason(reason string, calls int) middleware.FinishReason {
	f := middleware.FinishReason(reason)
	if calls > 0 && (f == middleware.FinishStop || f == "") {
		return middleware.FinishToolCalls
	}
	return f
}

// doneReason is the wire's word for a neutral one. Others than stop stay as they
// are: length is the same word, and the server has some of its own, such as load.
func doneReason(f middleware.FinishReason) string {
	if f == middleware.FinishToolCalls {
		f = middleware.FinishStop
	}
	return string(f)
}
