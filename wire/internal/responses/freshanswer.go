package responses

import (
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// EncodeAnswer is part of wire.Codec.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	w := codec.Writing{Whole: freshAnswer, Stream: freshStream}
	if f.WantsStream(path, body) {
		w.Form = codec.FormEvents
	}
	out, kind, err := codec.EncodeAnswer(f, resp, codec.ModelOf(path, body), w)
	return out, kind, unencodable(err)
}

// freshStream writes a response as a stream; body is its body if it came as one
// object.
func freshStream(resp *middleware.Response, body string) (string, error) {
	if body == "" {
		var err error
		if body, err = freshAnswer(resp); err != nil {
			return "", err
		}
	}
	_, a, err := whole(body)
	if err != nil {
		return "", err
	}
	t := &tape{named: true, numbered: true, next: -1}
	err = t.object(a, false, nil)
	return t.out.String(), err
}

// freshAnswer writes a response as one object, with the members that the
// provider's SDKs demand. Reasoning of another provider is left out: the
// provider would refuse it in the next request.
func freshAnswer(resp *middleware.Response) (string, error) {
	if err := codec.AnswerOnly(resp.Message); err != nil {
		return "", err
	}
	if len(resp.Choices) > 0 {
		return "", codec.Unencodablef("further choices")
	}
	id := codec.NewID("")
	m := codec.WithCallIDs(resp.Message, "call_")
	m.Native = nil
	items, err := writer{answer: true, seed: id}.assistant(m, nil)
	if err != nil {
		return "", err
	}
	status, details := ended(codec.FinishOf(resp))
	null := func(key string) codec.Member { return codec.Member{Key: key, Raw: "null"} }
	return codec.Object(
		member("id", "resp_"+id), member("object", "response"),
		codec.Member{Key: "created_at", Raw: codec.Count(time.Now().Unix())},
		member("status", status), null("error"), codec.Member{Key: "incomplete_details", Raw: details}, null("instructions"),
		member("model", resp.Model), codec.Member{Key: "output", Raw: codec.Array(texts(items))},
		codec.Member{Key: "parallel_tool_calls", Raw: "true"}, null("previous_response_id"), codec.Member{Key: "store", Raw: "false"},
		null("temperature"), member("tool_choice", "auto"), codec.Member{Key: "tools", Raw: "[]"}, null("top_p"),
		codec.Member{Key: "usage", Raw: freshUsage(codec.FiguresOf(resp))}, codec.Member{Key: "metadata", Raw: "{}"}), nil
}

// ended returns status and incomplete_details for a finish reason. One that the
// format has no word for is the reason of an incomplete answer.
func ended(f middleware.FinishReason) (status, details string) {
	reason := string(f)
	switch f {
	case middleware.FinishStop, middleware.FinishToolCalls:
		return "completed", "null"
	case middleware.FinishLength:
		reason = "max_output_tokens"
	}
	return "incomplete", codec.Object(codec.Member{Key: "reason", Raw: rawjson.Quote(reason)})
}

func freshUsage(u middleware.Usage) string {
	return codec.Object(
		codec.Member{Key: "input_tokens", Raw: codec.Count(u.Input)},
		codec.Member{Key: "input_tokens_details", Raw: codec.Object(codec.Member{Key: "cached_tokens", Raw: codec.Count(u.Cached)},
			codec.Member{Key: "cache_write_tokens", Raw: codec.Count(u.CacheWrite)})},
		codec.Member{Key: "output_tokens", Raw: codec.Count(u.Output)},
		codec.Member{Key: "output_tokens_details", Raw: codec.Object(codec.Member{Key: "reasoning_tokens", Raw: codec.Count(u.Reasoning)})},
		codec.Member{Key: "total_tokens", Raw: codec.Count(u.Input + u.Output)})
}
