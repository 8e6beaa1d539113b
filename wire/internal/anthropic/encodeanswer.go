package anthropic

import (
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// EncodeAnswer is part of wire.Codec.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	w := codec.Writing{Objects: true, Whole: freshAnswer, Stream: freshStream}
	if f.WantsStream(path, body) {
		w.Form = codec.FormEvents
	}
	return codec.EncodeAnswer(f, resp, codec.ModelOf(path, body), w)
}

// freshAnswer writes a response as one object.
func freshAnswer(resp *middleware.Response) (string, error) {
	a, now, err := begun(resp)
	if err != nil {
		return "", err
	}
	return a.write(now)
}

// freshStream writes a response as a stream; whole is its body if it came as one
// object.
func freshStream(resp *middleware.Response, whole string) (string, error) {
	a, err := codec.Handle(resp.Native, dialect, readAnswer)
	if err != nil {
		return "", err
	}
	if whole == "" {
		if a, resp, err = begun(resp); err != nil {
			return "", err
		}
	}
	items, err := a.items(resp)
	if err != nil {
		return "", err
	}
	return a.asStream(resp, items)
}

// begun returns an answer without content and resp as a change of it. Reasoning
// of another provider is left out: the provider would refuse it, unsigned, in
// the next request.
func begun(resp *middleware.Response) (*answer, *middleware.Response, error) {
	u := codec.FiguresOf(resp)
	usage := []member{kv("input_tokens", codec.Count(u.Input-u.Cached-u.CacheWrite)),
		kv("cache_creation_input_tokens", codec.Count(u.CacheWrite)), kv("cache_read_input_tokens", codec.Count(u.Cached)),
		kv("output_tokens", codec.Count(u.Output))}
	if u.Reasoning > 0 {
		usage = append(usage, kv("output_tokens_details", codec.Object(kv("thinking_tokens", codec.Count(u.Reasoning)))))
	}
	a, err := readAnswer(codec.Object(kv("id", quote(codec.NewID("msg_"))), kv("type", `"message"`), kv("role", `"assistant"`),
		kv("model", quote(resp.Model)), kv("content", "[]"), kv("stop_reason", "null"), kv("stop_sequence", "null"),
		kv("usage", codec.Object(usage...))))
	if err != nil {
		return nil, nil, err
	}
	now := *resp
	now.Native, now.FinishReason, now.Usage = &a.native, codec.FinishOf(resp), u
	now.Message = codec.WithCallIDs(resp.Message, "toolu_")
	now.Message.Parts = nil
	for _, p := range resp.Message.Parts {
		own := p.Native != nil && p.Native.Dialect == dialect
		if !own && (p.Kind == middleware.PartReasoning || p.Kind == middleware.PartText && p.Text == "") {
			continue
		}
		now.Message.Parts = append(now.Message.Parts, p)
	}
	return a, &now, nil
}
