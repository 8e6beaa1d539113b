package chat

import (
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// EncodeAnswer is part of wire.Codec.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	w := codec.Writing{Whole: freshAnswer}
	if f.WantsStream(path, body) {
		w.Form = codec.FormEvents
		w.Stream = func(resp *middleware.Response, whole string) (string, error) {
			return freshStream(resp, whole, wantsUsage(body))
		}
	}
	return codec.EncodeAnswer(f, resp, codec.ModelOf(path, body), w)
}

// wantsUsage reports whether a request asks for a last chunk with figures. A
// client that does not may fail on a chunk without choices.
func wantsUsage(body []byte) bool {
	v, err := codec.ParseObject(string(body))
	return err == nil && v.Get("stream_options").Get("include_usage").Raw() == "true"
}

// freshStream writes a response as a stream.
func freshStream(resp *middleware.Response, whole string, usage bool) (string, error) {
	if whole == "" {
		var err error
		if whole, err = freshAnswer(resp); err != nil {
			return "", err
		}
	}
	if !usage {
		v, err := codec.ParseObject(whole)
		if err != nil {
			return "", err
		}
		edits, err := codec.SetAll(v, codec.Member{Key: "usage"})
		if err != nil {
			return "", err
		}
		if whole, err = codec.Within(v, edits); err != nil {
			return "", err
		}
	}
	return asEvents(whole)
}

// freshAnswer writes a response as one object.
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
		choices = append(choices, codec.Object(codec.Member{Key: "index", Raw: codec.Count(int64(i))},
			codec.Member{Key: "message", Raw: text}, codec.Member{Key: "logprobs", Raw: "null"},
			codec.Member{Key: "finish_reason", Raw: rawjson.Quote(string(codec.FinishOf(like)))}))
	}
	return codec.Object(
		codec.Member{Key: "id", Raw: rawjson.Quote(codec.NewID("chatcmpl-"))},
		codec.Member{Key: "object", Raw: `"chat.completion"`},
		codec.Member{Key: "created", Raw: codec.Count(time.Now().Unix())},
		codec.Member{Key: "model", Raw: rawjson.Quote(resp.Model)},
		codec.Member{Key: "choices", Raw: codec.Array(choices)},
		codec.Member{Key: "usage", Raw: freshUsage(codec.FiguresOf(resp))}), nil
}

// answerText writes the message of an answer. Reasoning of another provider
// stands in reasoning_content, as servers of open models have it.
func answerText(m middleware.Message) (string, error) {
	if err := codec.AnswerOnly(m); err != nil {
		return "", err
	}
	var reasoning strings.Builder
	for _, p := range m.Parts {
		if h, err := handleOf(p); err == nil && h == nil && p.Kind == middleware.PartReasoning {
			reasoning.WriteString(p.Text)
		}
	}
	text, err := messageText(m, nil)
	if err != nil || reasoning.Len() == 0 {
		return text, err
	}
	v, err := codec.ParseObject(text)
	if err != nil {
		return "", err
	}
	edits, err := codec.SetAll(v, codec.Member{Key: "reasoning_content", Raw: rawjson.Quote(reasoning.String())})
	if err != nil {
		return "", err
	}
	return codec.Within(v, edits)
}

func freshUsage(u middleware.Usage) string {
	details := func(key string, members ...codec.Member) codec.Member {
		if raw := codec.Object(members...); raw != "{}" {
			return codec.Member{Key: key, Raw: raw}
		}
		return codec.Member{}
	}
	return codec.Object(
		codec.Member{Key: "prompt_tokens", Raw: codec.Count(u.Input)},
		codec.Member{Key: "completion_tokens", Raw: codec.Count(u.Output)},
		codec.Member{Key: "total_tokens", Raw: codec.Count(u.Input + u.Output)},
		details("prompt_tokens_details", codec.Figure("cached_tokens", u.Cached), codec.Figure("cache_write_tokens", u.CacheWrite)),
		details("completion_tokens_details", codec.Figure("reasoning_tokens", u.Reasoning)))
}
