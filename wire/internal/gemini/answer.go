package gemini

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// answer is an answer as it was read:
//
//	{"candidates": [{"content": {"role": "model", "parts": [part, …]}, "finishReason": "STOP", "index": 0}],
//	 "usageMetadata": {"promptTokenCount": 10, …}, "modelVersion": "gemini-x", "responseId": "r-1"}
//
// One that was not streamed is one chunk. In a stream each chunk has that form, with
// some of the parts; the last usage counts. Nothing in an answer changes after
// reading: responses share it.
type answer struct {
	raw      string
	chunks   []lens.Chunk
	speakers []*speaker    // the candidates, in order of their index
	blocked  bool          // the prompt was refused
	usage    rawjson.Value // the last one with a figure; absent for none
	usageAt  int           // the chunk of usage
	is       middleware.Response
}

// speaker is one candidate through all chunks.
type speaker struct {
	index    int64
	pieces   []*piece  // of all sections; a call that came in pieces is one of them
	sections []section // one for each chunk that has the candidate
	finish   string    // the word of the last finishReason; "" for none
	joined   *partial  // a call that goes on; nil: none does
	behind   bool      // a call, or the end, stood in a candidate that was not the first of its chunk
}

// section is what one chunk has of a candidate.
type section struct {
	chunk   int           // its place among the chunks
	v       rawjson.Value // the candidate
	content rawjson.Value // of it; absent where the chunk brings no parts
	parts   []string      // the texts of the parts, which rewriter compares
	finish  rawjson.Value // the finishReason, as it is written; absent for none
}

// spot is a part of an answer, and the section that it stands in.
type spot struct {
	raw     string
	section int
}

// main returns the first candidate, nil if there is none.
func (a *answer) main() *speaker {
	if len(a.speakers) == 0 {
		return nil
	}
	return a.speakers[0]
}

// speaker returns the candidate of that index. A stream may have candidates in any
// order, and leave out some.
func (a *answer) speaker(index int64) *speaker {
	at, ok := slices.BinarySearchFunc(a.speakers, index, func(s *speaker, i int64) int { return cmp.Compare(s.index, i) })
	if !ok {
		a.speakers = slices.Insert(a.speakers, at, &speaker{index: index})
	}
	return a.speakers[at]
}

// message returns what the candidate wrote, with the content that it will be in a
// request: that of the answer if it came in one piece, else one with all parts of
// all chunks. Parts are not joined, because a signature belongs to its own part.
// before is how many calls the conversation had.
func (s *speaker) message(before int, builtin func(string) bool) middleware.Message {
	m, _ := spoken(s.pieces, before, builtin)
	parts := texts(s.pieces)
	text := codec.Object(lens.Text("role", "model"), lens.Raw("parts", codec.Array(parts)))
	if len(s.sections) == 1 && s.sections[0].content.Exists() && slices.Equal(parts, s.sections[0].parts) {
		v := s.sections[0].content
		if on.Get(v, "role").Str() == "model" {
			text = v.Raw()
		} else if edited, err := on.Set(v, lens.Text("role", "model")); err == nil {
			text = edited
		}
	}
	m.Native = on.Native(text)
	return m
}

// finishMessage returns what the server says about the end, "" for nothing. Of a
// refused call, it quotes what the model wrote.
func (s *speaker) finishMessage() string {
	for _, sec := range slices.Backward(s.sections) {
		if m := on.Get(sec.v, "finishMessage").Str(); m != "" {
			return m
		}
	}
	return ""
}

// readAnswer reads an answer again that was stored. Its calls are numbered from 1,
// as if there had been no conversation; an id by place is not written anyway.
func readAnswer(body string) (*answer, error) {
	s := newStream(nil, nil)
	_, err := codec.Decode(s, []byte(body))
	return s.a, err
}

// EncodeResponse is part of wire.Codec. Each part is written into the chunk that it
// came in, and a new one into that of its neighbour.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	a, err := lens.Answer(on, resp, readAnswer)
	if err != nil {
		return nil, err
	}
	if codec.SameResponse(&a.is, resp) {
		return []byte(a.raw), nil
	}
	w := &rewriter{was: a, chunks: make([]*lens.Chunk, len(a.chunks))}
	for i := range a.chunks {
		chunk := a.chunks[i]
		w.chunks[i] = &chunk
	}
	for _, step := range []func(*middleware.Response) error{w.message, w.finish, w.model, w.usage} {
		if err := step(resp); err != nil {
			return nil, err
		}
	}
	body, err := lens.ApplyAll(a.raw, w.chunks)
	return []byte(body), err
}

// rewriter collects edits of an answer in chunks of its own, since the answer may be
// encoded again, with other changes.
type rewriter struct {
	was    *answer
	chunks []*lens.Chunk
	called bool // calls of the first candidate have changed
}

// message writes the parts and calls of the first candidate. Each goes into the
// section that it came in, and sections that hold what they did stay.
func (w *rewriter) message(resp *middleware.Response) error {
	if !slices.EqualFunc(resp.Choices, w.was.is.Choices, codec.SameMessage) {
		return codec.Unencodablef("further candidates have changed")
	}
	if codec.SameMessage(resp.Message, w.was.is.Message) {
		return nil
	}
	if err := codec.AnswerOnly(resp.Message); err != nil {
		return err
	}
	sp := w.was.main()
	if sp == nil {
		return codec.Unencodablef("an answer without a candidate")
	}
	out, items, err := saidTexts(resp.Message, sp.pieces, true)
	if err != nil {
		return err
	}
	now := make([][]string, len(sp.sections)) // the parts of each section
	w.called = len(resp.Message.ToolCalls) != len(w.was.is.Message.ToolCalls)
	for i, it := range items {
		w.called = w.called || it.Second && (!it.Stays() || out[i] != sp.pieces[it.Was].v.Raw())
		for _, s := range sp.spots(it, out[i]) {
			now[s.section] = append(now[s.section], s.raw)
		}
	}
	for i, sec := range sp.sections {
		if slices.Equal(now[i], sec.parts) {
			continue
		}
		edits, err := sec.write(now[i])
		if err := w.chunks[sec.chunk].Add(edits, err); err != nil {
			return err
		}
	}
	return nil
}

// spots returns the parts that an item becomes: itself, or those that a call in
// pieces came in, if it is as it was. A new or moved item stands in the last section
// of what it follows; at the front it is in the first one, behind all in the last.
func (s *speaker) spots(it lens.Item, text string) []spot {
	if it.At < 0 || it.At == math.MaxInt {
		return []spot{{text, max(0, min(it.At, len(s.sections)-1))}}
	}
	was := s.pieces[it.At]
	switch n := len(was.wire); {
	case n > 0 && !it.Stays():
		return []spot{{text, was.wire[n-1].section}}
	case n > 0 && text == was.v.Raw():
		return was.wire
	}
	return []spot{{text, was.at}}
}

// write returns the edits that make parts those of the section. A candidate may come
// without content, as one that a filter took: then the content is made.
func (sec section) write(parts []string) ([]rawjson.Edit, error) {
	if sec.content.Exists() {
		return on.Elements(sec.content, "parts", parts)
	}
	return on.Put(sec.v, lens.Raw("content/parts", codec.Array(parts)), lens.Text("content/role", "model"))
}

// finish writes the finish reason: where it was changed, and where it speaks of a
// refused call that is no longer there as it was.
func (w *rewriter) finish(resp *middleware.Response) error {
	sp, word := w.was.main(), wordFor(resp.FinishReason)
	switch {
	case w.called && slices.Contains(refusalWords, sp.finish) && resp.FinishReason == middleware.FinishToolCalls:
	case resp.FinishReason == w.was.is.FinishReason, sp != nil && word == sp.finish:
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
		if err := w.chunks[sec.chunk].Add([]rawjson.Edit{codec.Replace(sec.finish, text)}, err); err != nil {
			return err
		}
	}
	return nil
}

// model writes the model that answered, in every chunk.
func (w *rewriter) model(resp *middleware.Response) error {
	if resp.Model == w.was.is.Model {
		return nil
	}
	if w.was.is.Model == "" || resp.Model == "" {
		return codec.Unencodablef("the answer does not say its model")
	}
	for _, c := range w.chunks {
		if v := on.Get(c.Root(), "modelVersion"); v.Exists() {
			_ = c.Add([]rawjson.Edit{codec.Replace(v, rawjson.Quote(resp.Model))}, nil)
		}
	}
	return nil
}

// usage writes the figures where the body has them last. Earlier ones are those of
// the moment. A body without figures gets none.
func (w *rewriter) usage(resp *middleware.Response) error {
	was, v := w.was.is.Usage, w.was.usage
	switch u := resp.Usage; {
	case u == was || !v.Exists():
		return nil
	case u.CacheWrite != 0 || u.Reasoning > u.Output || u.Input < 0 || u.Output < 0:
		return codec.Unencodablef("figures that this format has no place for")
	}
	edits, err := on.Put(v, lens.Differ(usageMembers(v, was), usageMembers(v, resp.Usage))...)
	return w.chunks[w.was.usageAt].Add(edits, err)
}

// EncodeAnswer is part of wire.Codec. A stream is one chunk: without alt=sse an
// array of it.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	w := codec.Writing{Streamed: codec.FormArray, Objects: true, Whole: freshAnswer}
	w.Unfold = func(whole string) (string, error) { return "[" + whole + "]", nil }
	_, query, _ := strings.Cut(path, "?")
	if v, err := url.ParseQuery(query); err == nil && (v.Get("alt") == "sse" || v.Get("$alt") == "sse") {
		w.Streamed = codec.FormEvents
		w.Unfold = func(whole string) (string, error) { return "data: " + codec.OneLine(whole) + "\r\n\r\n", nil }
	}
	return codec.EncodeAnswer(f, path, body, resp, w)
}

// freshAnswer writes a response as one object. A response has one finish reason: that
// of a further choice follows its calls.
func freshAnswer(resp *middleware.Response) (string, error) {
	var candidates []string
	for i, m := range append([]middleware.Message{resp.Message}, resp.Choices...) {
		parts, err := freshParts(m)
		if err != nil {
			return "", err
		}
		like := &middleware.Response{Message: m}
		if i == 0 {
			like.FinishReason = resp.FinishReason
		}
		candidates = append(candidates, codec.Object(
			lens.Raw("content", freshContent("model", parts)),
			lens.Text("finishReason", wordFor(codec.FinishOf(like))),
			lens.Raw("index", codec.Count(int64(i)))))
	}
	u := codec.FiguresOf(resp)
	return on.Object(
		lens.List("candidates", candidates),
		lens.Raw("usageMetadata/"+promptKey, codec.Count(u.Input)),
		lens.Count("usageMetadata/"+cachedKey, u.Cached),
		lens.Raw("usageMetadata/"+answerKey, codec.Count(u.Output-u.Reasoning)),
		lens.Count("usageMetadata/"+thoughtKey, u.Reasoning),
		lens.Raw("usageMetadata/"+totalKey, codec.Count(u.Input+u.Output)),
		lens.Word("modelVersion", resp.Model),
		lens.Text("responseId", codec.NewID(""))), nil
}

// freshParts returns the parts and calls of an answer as texts. Reasoning of
// another provider is a thought without a signature.
func freshParts(m middleware.Message) ([]string, error) {
	if err := codec.AnswerOnly(m); err != nil {
		return nil, err
	}
	var out []string
	for _, p := range m.Parts {
		text, err := partText(p, nil)
		if text == "" && p.Text != "" && err == nil {
			text = codec.Object(lens.Text("text", p.Text), lens.Flag("thought", true))
		}
		if err != nil {
			return nil, err
		}
		if text != "" {
			out = append(out, text)
		}
	}
	for _, c := range m.ToolCalls {
		text, err := callText(c, nil, true)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}
