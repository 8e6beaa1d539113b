package gemini

import (
	"math"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// EncodeResponse is part of wire.Codec. Each part is written into the chunk
// that it came in, a new one into that of its neighbour: all else stays.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	a, err := answerOf(resp)
	if err != nil {
		return nil, err
	}
	w := &rewriter{a: a, edits: make([][]rawjson.Edit, len(a.chunks))}
	for _, step := range []func(*middleware.Response) error{w.message, w.finish, w.model, w.usage} {
		if err := step(resp); err != nil {
			return nil, err
		}
	}
	body, err := w.body()
	return []byte(body), err
}

// answerOf returns the handle behind resp.
func answerOf(resp *middleware.Response) (*answer, error) {
	a, err := codec.Handle(resp.Native, dialect, readAnswer)
	if err != nil {
		return nil, codec.Unencodablef("a Native that is no answer")
	}
	if a == nil {
		return nil, codec.Unencodablef("a response that did not come from this format")
	}
	return a, nil
}

// readAnswer reads an answer again that was stored.
func readAnswer(body string) (*answer, error) {
	resp, err := Format{}.DecodeResponse(nil, []byte(body))
	if err != nil {
		return nil, err
	}
	return resp.Native.Ref.(*answer), nil
}

// rewriter collects edits, by chunk.
type rewriter struct {
	a     *answer
	edits [][]rawjson.Edit
}

func (w *rewriter) add(chunk int, edits []rawjson.Edit, err error) error {
	w.edits[chunk] = append(w.edits[chunk], edits...)
	return err
}

func (w *rewriter) body() (string, error) {
	var all []rawjson.Edit
	for i, edits := range w.edits {
		if len(edits) == 0 {
			continue
		}
		c := w.a.chunks[i]
		if err := unambiguous(c.doc, edits); err != nil {
			return "", err
		}
		edits, err := c.event.Edits(edits)
		if err != nil {
			return "", err
		}
		all = append(all, edits...)
	}
	return codec.Apply(w.a.native.Raw, all)
}

// message writes the parts and calls.
func (w *rewriter) message(resp *middleware.Response) error {
	was, now := w.a.was, resp.Message
	if !slices.EqualFunc(resp.Choices, was.Choices, unchanged) {
		return codec.Unencodablef("further candidates have changed")
	}
	if codec.SameMessage(now, was.Message) {
		return nil
	}
	if now.Role != middleware.RoleAssistant || now.ToolCallID != "" || now.ToolName != "" || now.IsError {
		return codec.Unencodablef("an answer that is no assistant message")
	}
	sp := w.a.main()
	if sp == nil {
		return codec.Unencodablef("an answer without a candidate")
	}
	f := &finder{home: sp.content}
	parts, err := partItems(now.Parts, f)
	if err != nil {
		return err
	}
	calls, err := callItems(now.ToolCalls, f, true)
	if err != nil {
		return err
	}
	return w.parts(sp, merge(parts, calls, sp.content.firstCall()))
}

// parts writes the parts of a candidate, in order, into its sections.
func (w *rewriter) parts(sp *speaker, items []item) error {
	texts := make([][]string, len(sp.sections))
	for _, it := range items {
		at := 0
		switch {
		case it.at == math.MaxInt:
			at = len(texts) - 1
		case it.at != anew:
			at = sp.places[it.at]
		}
		texts[at] = append(texts[at], it.raw)
	}
	for i, sec := range sp.sections {
		if slices.Equal(texts[i], sec.parts) {
			continue
		}
		edits, err := sec.write(texts[i])
		if err := w.add(sec.chunk, edits, err); err != nil {
			return err
		}
	}
	return nil
}

// write returns the edits that make parts those of the section.
func (sec section) write(parts []string) ([]rawjson.Edit, error) {
	switch {
	case sec.list.Exists():
		return spliced(sec.list, parts), nil
	case sec.content.Exists():
		return setAll(sec.content, codec.Member{Key: "parts", Raw: codec.Array(parts)})
	}
	return setAll(sec.v, codec.Member{Key: "content", Raw: codec.Object(
		codec.Member{Key: "parts", Raw: codec.Array(parts)}, codec.Member{Key: "role", Raw: `"model"`})})
}

// finish writes the finish reason: where it was changed, and where it speaks
// of a refused call that is no longer there as it was.
func (w *rewriter) finish(resp *middleware.Response) error {
	was := w.a.was
	sp := w.a.main()
	word := wordFor(resp.FinishReason)
	switch {
	case sp != nil && slices.Contains(refusalWords, sp.finish) && resp.FinishReason == middleware.FinishToolCalls &&
		!slices.EqualFunc(resp.Message.ToolCalls, was.Message.ToolCalls, codec.SameCall):
	case resp.FinishReason == was.FinishReason, sp != nil && word == sp.finish:
		return nil
	}
	if sp == nil || sp.finish == "" {
		return codec.Unencodablef("a finish reason where the prompt was blocked")
	}
	for _, sec := range sp.sections {
		if finishWord(sec.finish, "") == "" {
			continue
		}
		text, err := finishText(sec.finish, word)
		if err := w.add(sec.chunk, []rawjson.Edit{codec.Replace(sec.finish, text)}, err); err != nil {
			return err
		}
	}
	return nil
}

// model writes the model that answered, in every chunk.
func (w *rewriter) model(resp *middleware.Response) error {
	if resp.Model == w.a.was.Model {
		return nil
	}
	if w.a.was.Model == "" || resp.Model == "" {
		return codec.Unencodablef("the answer does not say its model")
	}
	for i, c := range w.a.chunks {
		v := get(c.doc.Root(), "modelVersion")
		if !v.Exists() {
			continue
		}
		if err := w.add(i, []rawjson.Edit{codec.Replace(v, rawjson.Quote(resp.Model))}, nil); err != nil {
			return err
		}
	}
	return nil
}

// usage writes the figures where the body has them last.
func (w *rewriter) usage(resp *middleware.Response) error {
	if resp.Usage == w.a.was.Usage || !w.a.usage.Exists() {
		return nil
	}
	set, err := usageMembers(w.a.usage, resp.Usage)
	if err != nil {
		return err
	}
	edits, err := setAll(w.a.usage, set...)
	return w.add(w.a.usageAt, edits, err)
}
