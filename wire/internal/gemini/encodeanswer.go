package gemini

import (
	"net/url"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// EncodeAnswer is part of wire.Codec. Without alt=sse a stream is an array.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	w := codec.Writing{Objects: true, Whole: freshAnswer, Stream: freshArray}
	if f.WantsStream(path, body) {
		w.Form = codec.FormArray
		_, query, _ := strings.Cut(path, "?")
		if v, err := url.ParseQuery(query); err == nil && (v.Get("alt") == "sse" || v.Get("$alt") == "sse") {
			w.Form, w.Stream = codec.FormEvents, freshEvents
		}
	}
	return codec.EncodeAnswer(f, resp, codec.ModelOf(path, body), w)
}

func freshArray(resp *middleware.Response, whole string) (string, error) {
	whole, err := wholeOf(resp, whole)
	return "[" + whole + "]", err
}

func freshEvents(resp *middleware.Response, whole string) (string, error) {
	whole, err := wholeOf(resp, whole)
	return "data: " + codec.OneLine(whole) + "\r\n\r\n", err
}

func wholeOf(resp *middleware.Response, whole string) (string, error) {
	if whole != "" {
		return whole, nil
	}
	return freshAnswer(resp)
}

// freshAnswer writes a response as one object.
func freshAnswer(resp *middleware.Response) (string, error) {
	var candidates []string
	for i, m := range append([]middleware.Message{resp.Message}, resp.Choices...) {
		parts, err := answerParts(m)
		if err != nil {
			return "", err
		}
		like := &middleware.Response{Message: m}
		if i == 0 {
			like.FinishReason = resp.FinishReason
		}
		candidates = append(candidates, codec.Object(
			codec.Member{Key: "content", Raw: freshContent("model", parts)},
			codec.Member{Key: "finishReason", Raw: rawjson.Quote(wordFor(codec.FinishOf(like)))},
			codec.Member{Key: "index", Raw: codec.Count(int64(i))}))
	}
	u := codec.FiguresOf(resp)
	return codec.Object(
		codec.Member{Key: "candidates", Raw: codec.Array(candidates)},
		codec.Member{Key: "usageMetadata", Raw: codec.Object(
			codec.Member{Key: promptKey, Raw: codec.Count(u.Input)}, codec.Figure(cachedKey, u.Cached),
			codec.Member{Key: answerKey, Raw: codec.Count(u.Output - u.Reasoning)}, codec.Figure(thoughtKey, u.Reasoning),
			codec.Member{Key: totalKey, Raw: codec.Count(u.Input + u.Output)})},
		codec.Member{Key: "modelVersion", Raw: quoteOrNone(resp.Model)},
		codec.Member{Key: "responseId", Raw: rawjson.Quote(codec.NewID(""))}), nil
}

// answerParts writes the parts and calls of an answer. Reasoning of another
// provider is a thought without a signature.
func answerParts(m middleware.Message) ([]string, error) {
	if err := codec.AnswerOnly(m); err != nil {
		return nil, err
	}
	var items []item
	for _, p := range m.Parts {
		text, ok, _, err := writePart(p, nil)
		switch {
		case err != nil:
			return nil, err
		case ok:
			items = append(items, item{text, anew})
		case p.Text != "":
			items = append(items, item{codec.Object(codec.Member{Key: "text", Raw: rawjson.Quote(p.Text)}, codec.Member{Key: "thought", Raw: "true"}), anew})
		}
	}
	calls, err := callItems(m.ToolCalls, nil, true)
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, it := range append(items, calls...) {
		parts = append(parts, it.raw)
	}
	return parts, nil
}
