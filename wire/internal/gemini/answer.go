package gemini

import (
	"net/url"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// answer is an answer as it was read. Whatever its framing was, it is one object then:
//
//	{"candidates": [{"content": {"role": "model", "parts": [part, …]}, "finishReason": "STOP", "index": 0}],
//	 "usageMetadata": {"promptTokenCount": 10, …}, "modelVersion": "gemini-x", "responseId": "r-1"}
type answer struct {
	raw      string
	plain    bool   // no reader finds a call in raw: unchanged, it passes as it came
	object   string // the answer as one object, in one spelling; this is what an edit changes
	events   bool   // raw is a stream of events
	list     bool   // raw is a JSON array
	speakers []speaker
	is       middleware.Response
}

// speaker is one candidate of the object.
type speaker struct {
	v, content rawjson.Value
	pieces     []*piece
	finish     string // the word of the finishReason; "" for none
}

// put puts the answer together.
func (s *stream) put() (*answer, error) {
	candidates := make([]string, len(s.candidates))
	for i, c := range s.candidates {
		candidates[i] = c.object()
	}
	a := &answer{raw: s.Text(), plain: s.Plain(), events: s.Buf.IsEvents(), list: s.Buf.IsArray()}
	a.object = codec.Object(append([]lens.Member{lens.List("candidates", candidates)}, s.beside...)...)
	root, err := a.read()
	if err != nil {
		return nil, err
	}
	a.is.ID, a.is.Model = on.Get(root, "responseId").Str(), on.Get(root, "modelVersion").Str()
	a.is.Usage = usageOf(on.Get(root, "usageMetadata"))
	a.is.Message, a.is.FinishReason = middleware.Message{Role: middleware.RoleAssistant}, middleware.FinishFilter
	for i, sp := range a.speakers {
		m := sp.message(s.calls, s.builtin)
		if i > 0 {
			a.is.Choices = append(a.is.Choices, m)
			continue
		}
		a.is.Message = m
		if sp.finish != "" {
			a.is.FinishReason = finishReason(sp.finish, len(m.ToolCalls) > 0)
		}
	}
	return a, nil
}

// read reads the candidates of the object.
func (a *answer) read() (root rawjson.Value, err error) {
	if root, err = codec.ParseObject(a.object); err != nil {
		return root, err
	}
	a.speakers = nil
	for v := range root.Get("candidates").Each() {
		sp := speaker{v: v, content: v.Get("content"), finish: finishWord(v.Get("finishReason"), v.Get("finishMessage").Str())}
		for part := range sp.content.Get("parts").Each() {
			p, err := readPart(part, true)
			if err != nil {
				return root, err
			}
			sp.pieces = append(sp.pieces, p)
		}
		a.speakers = append(a.speakers, sp)
	}
	return root, nil
}

// first returns the first candidate, nil if there is none.
func (a *answer) first() *speaker {
	if len(a.speakers) == 0 {
		return nil
	}
	return &a.speakers[0]
}

// message returns what the candidate wrote, with the content that it will be in a
// request. before is how many calls the conversation had.
func (sp *speaker) message(before int, builtin func(string) bool) middleware.Message {
	m, _ := spoken(sp.pieces, before, builtin)
	text := sp.content.Raw()
	if text == "" {
		text = freshContent("model", nil)
	}
	m.Native = on.Native(text)
	return m
}

// readAnswer reads an answer again that was stored. Its calls are numbered from 1,
// as if there had been no conversation; an id by place is not written anyway.
func readAnswer(body string) (*answer, error) {
	s := newStream(nil, nil)
	_, err := codec.Decode(s, []byte(body))
	return s.a, err
}

// EncodeResponse writes an answer in the framing in which it came.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	a, err := lens.Answer(on, resp, readAnswer)
	if err != nil {
		return nil, err
	}
	if a.plain && codec.SameResponse(&a.is, resp) {
		return []byte(a.raw), nil
	}
	out, err := a.write(resp)
	switch {
	case err != nil:
		return nil, err
	case a.events:
		out = asEvent(out, a.raw)
	case a.list:
		out = "[" + out + "]"
	}
	return []byte(out), nil
}

// write returns the answer as one object with what differs set in it.
func (a *answer) write(resp *middleware.Response) (string, error) {
	if codec.SameResponse(&a.is, resp) {
		return a.object, nil
	}
	was := *a // since the answer may be encoded again, with other changes
	root, err := was.read()
	if err != nil {
		return "", err
	}
	w := &rewriter{was: &was, root: root}
	for _, write := range []func(*middleware.Response) error{w.message, w.finish, w.model, w.usage} {
		if err := write(resp); err != nil {
			return "", err
		}
	}
	return codec.Apply(a.object, w.edits)
}

// rewriter collects edits of the object of an answer.
type rewriter struct {
	was    *answer
	root   rawjson.Value
	edits  []rawjson.Edit
	called bool // calls of the first candidate have changed
}

func (w *rewriter) add(edits []rawjson.Edit, err error) error {
	w.edits = append(w.edits, edits...)
	return err
}

// message writes the parts and calls of the first candidate.
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
	sp := w.was.first()
	if sp == nil {
		return codec.Unencodablef("an answer without a candidate")
	}
	parts, items, err := saidTexts(resp.Message, sp.pieces, true)
	if err != nil {
		return err
	}
	w.called = len(resp.Message.ToolCalls) != len(w.was.is.Message.ToolCalls)
	for i, it := range items {
		w.called = w.called || it.Second && (!it.Stays() || parts[i] != sp.pieces[it.Was].v.Raw())
	}
	if sp.content.Exists() {
		return w.add(on.Elements(sp.content, "parts", parts))
	}
	return w.add(on.Put(sp.v, lens.Raw("content", freshContent("model", parts)))) // a filter took it
}

// finish writes the finish reason: where it was changed, and where it speaks of a
// refused call that is no longer there as it was.
func (w *rewriter) finish(resp *middleware.Response) error {
	sp, word := w.was.first(), wordFor(resp.FinishReason)
	switch {
	case w.called && slices.Contains(refusalWords, sp.finish) && resp.FinishReason == middleware.FinishToolCalls:
	case resp.FinishReason == w.was.is.FinishReason, sp != nil && word == sp.finish:
		return nil
	}
	if sp == nil || sp.finish == "" {
		return codec.Unencodablef("a finish reason where the prompt was blocked")
	}
	reason := sp.v.Get("finishReason")
	text, err := finishText(reason, word)
	return w.add([]rawjson.Edit{codec.Replace(reason, text)}, err)
}

// model writes the model that answered.
func (w *rewriter) model(resp *middleware.Response) error {
	if resp.Model == w.was.is.Model {
		return nil
	}
	if w.was.is.Model == "" || resp.Model == "" {
		return codec.Unencodablef("the answer does not say its model")
	}
	return w.add([]rawjson.Edit{codec.Replace(w.root.Get("modelVersion"), rawjson.Quote(resp.Model))}, nil)
}

// usage writes the figures. A body without figures gets none.
func (w *rewriter) usage(resp *middleware.Response) error {
	was, v := w.was.is.Usage, w.root.Get("usageMetadata")
	switch u := resp.Usage; {
	case u == was || !v.Exists():
		return nil
	case u.CacheWrite != 0 || u.Reasoning > u.Output || u.Input < 0 || u.Output < 0:
		return codec.Unencodablef("figures that this format has no place for")
	}
	return w.add(on.Put(v, lens.Differ(usageMembers(v, was), usageMembers(v, resp.Usage))...))
}

// EncodeAnswer writes an answer that the provider did not send to this request. A stream is one chunk: without alt=sse an
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
