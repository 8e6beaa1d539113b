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
	codec.Answered
	object string // the answer as one object, in one spelling; this is what an edit changes
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

// answerMembers projects an answer onto v. If v has one figure, all are written. Usage is not
// invented for an answer without figures.
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
	return codec.EncodeAnswer(f, path, body, resp, codec.Writing{Streamed: codec.FormLines, Objects: true, Whole: freshAnswer})
}

// freshAnswer writes a response as one object, as the server does without a stream: as a
// change of an empty answer. Usage has input and output.
func freshAnswer(resp *middleware.Response) (string, error) {
	now := *resp
	now.FinishReason, now.Usage = codec.FinishOf(resp), codec.FiguresOf(resp)
	begun := answer{Answered: codec.Answered{Is: middleware.Response{Message: middleware.Message{Role: middleware.RoleAssistant}}}}
	begun.object = on.Object(append([]lens.Member{lens.Text("model", ""), lens.Text("created_at", time.Now().UTC().Format(time.RFC3339Nano)),
		lens.Raw("message", `{"role":"assistant","content":""}`), lens.Raw("done", "true")}, figures.Members(rawjson.Value{}, middleware.Usage{})...)...)
	return begun.Whole(&now)
}

// Stream writes resp as the lines that follow what the client has. The lines of a later answer
// follow them too: a client joins them like any others.
func (a *answer) Stream(resp *middleware.Response, client *codec.Client) (string, error) {
	object, err := a.Whole(resp)
	if err != nil {
		return "", err
	}
	return asLines(object, client.Has.(*stream).snapshot, client.Own)
}

// asLines writes an answer that is one object as lines after the shown ones, of this answer if
// own, else of an earlier one: the text, the calls, and the end. If the client has reasoning
// of an earlier answer, the later one brings none.
func asLines(object string, shown content, own bool) (string, error) {
	v, err := codec.ParseObject(object)
	if err != nil {
		return "", err
	}
	message := v.Get("message")
	text, thinking, ok, ok2 := message.Get("content").Str(), message.Get("thinking").Str(), true, true
	switch {
	case own:
		text, ok = strings.CutPrefix(text, shown.text)
		thinking, ok2 = strings.CutPrefix(thinking, shown.thinking)
	case shown.thinking != "":
		thinking = ""
	}
	if !ok || !ok2 {
		return "", codec.ErrShown
	}
	var further []lens.Member
	for m := range message.Each() {
		if !messageTree.Knows(m.Key()) || m.Key() == "images" {
			further = append(further, lens.Raw(m.Key(), m.Raw()))
		}
	}
	var out strings.Builder
	if text != "" || thinking != "" || len(further) > 0 {
		out.WriteString(line(v, text, append([]lens.Member{lens.Word("thinking", thinking)}, further...)...))
	}
	if calls := message.Get("tool_calls"); calls.Len() > 0 {
		out.WriteString(line(v, "", lens.Raw("tool_calls", calls.Raw())))
	}
	end, err := on.Set(v, lens.Raw("message", `{"role":"assistant","content":""}`))
	return out.String() + codec.OneLine(end) + "\n", err
}

// line returns a line of a stream, of the same time as root, with a piece of the message.
func line(root rawjson.Value, text string, members ...lens.Member) string {
	message := append([]lens.Member{lens.Text("role", string(middleware.RoleAssistant)), lens.Text("content", text)}, members...)
	return codec.OneLine(codec.Object(lens.Raw("model", root.Get("model").Raw()), lens.Raw("created_at", root.Get("created_at").Raw()),
		lens.Raw("message", codec.Object(message...)), lens.Raw("done", "false"))) + "\n"
}

// figures are the places of the figures in the last line. Those for cached tokens and for
// reasoning have no place in this format.
var figures = codec.Figures{
	{Of: codec.InputOf, Keys: []string{"prompt_eval_count"}},
	{Of: codec.OutputOf, Keys: []string{"eval_count"}},
}

// doneReason is the wire's word for a neutral one. Others than stop stay as they
// are: length is the same word, and the server has some of its own, such as load.
func doneReason(f middleware.FinishReason) string {
	if f == middleware.FinishToolCalls {
		f = middleware.FinishStop
	}
	return string(f)
}
