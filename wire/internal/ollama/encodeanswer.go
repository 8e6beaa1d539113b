package ollama

import (
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// EncodeAnswer is part of wire.Codec.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	w := codec.Writing{Objects: true, Whole: freshAnswer, Stream: freshStream}
	if f.WantsStream(path, body) {
		w.Form = codec.FormLines
	}
	return codec.EncodeAnswer(f, resp, codec.ModelOf(path, body), w)
}

// freshAnswer writes a response as one object. Of its usage this format has
// input and output.
func freshAnswer(resp *middleware.Response) (string, error) {
	m := resp.Message
	if err := codec.AnswerOnly(m); err != nil {
		return "", err
	}
	if len(resp.Choices) > 0 {
		return "", codec.Unencodablef("a second choice")
	}
	content, err := contentOf(m.Parts, true)
	if err != nil {
		return "", err
	}
	calls := make([]string, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		if calls[i], _, err = writeCall(c, true); err != nil {
			return "", err
		}
	}
	reason := codec.FinishOf(resp)
	if reason == middleware.FinishToolCalls {
		reason = middleware.FinishStop
	}
	u := codec.FiguresOf(resp)
	return codec.Object(
		codec.Member{Key: "model", Raw: rawjson.Quote(resp.Model)},
		codec.Member{Key: "created_at", Raw: rawjson.Quote(time.Now().UTC().Format(time.RFC3339Nano))},
		codec.Member{Key: "message", Raw: codec.Object(
			codec.Member{Key: "role", Raw: `"assistant"`}, codec.Member{Key: "content", Raw: rawjson.Quote(content.text)},
			quoted("thinking", content.thinking), listed("images", content.images), listed("tool_calls", calls))},
		codec.Member{Key: "done", Raw: "true"}, quoted("done_reason", string(reason)),
		codec.Member{Key: inputKey, Raw: codec.Count(u.Input)}, codec.Member{Key: outputKey, Raw: codec.Count(u.Output)}), nil
}

// endKeys are the members that only the last line of a stream has.
var endKeys = []string{"done_reason", "total_duration", "load_duration", inputKey, "prompt_eval_duration", outputKey, "eval_duration"}

// freshStream writes a response as the server does: a line with the message,
// and one that ends it. whole is its body if it came as one object.
func freshStream(resp *middleware.Response, whole string) (string, error) {
	if whole == "" {
		var err error
		if whole, err = freshAnswer(resp); err != nil {
			return "", err
		}
	}
	v, err := object(whole)
	if err != nil {
		return "", err
	}
	said, end := codec.NewPatch(v), codec.NewPatch(v)
	said.Set("done", "false")
	for _, key := range endKeys {
		if v.Get(key).Exists() {
			said.Unset(key)
		}
	}
	end.Set("message", `{"role":"assistant","content":""}`)
	first, err := said.Text()
	if err != nil {
		return "", err
	}
	last, err := end.Text()
	return codec.OneLine(first) + "\n" + codec.OneLine(last) + "\n", err
}
