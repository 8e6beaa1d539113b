package gemini

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// stream reads an answer: server-sent events, a JSON array, or one object.
type stream struct {
	codec.Reader
	req     *middleware.Request // that is answered; nil: not known
	sink    middleware.Sink
	calls   int               // of the conversation before
	builtin func(string) bool // see builtinsOf
	a       *answer           // as far as it was read
	cut     bool              // the last event is not whole
	failed  error             // of the provider
}

// DecodeResponse is part of wire.Codec.
func (f Format) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	return codec.Decode(f.NewStream(req, nil), body)
}

// NewStream is part of wire.Codec.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	return newStream(req, sink)
}

func newStream(req *middleware.Request, sink middleware.Sink) *stream {
	s := &stream{req: req, sink: sink, a: &answer{}}
	if req != nil {
		s.calls, s.builtin = codec.Calls(req.Messages), builtinsOf(req.Tools)
	}
	s.Reader = codec.NewReader(codec.NewBuffer(false), s.event, s.response)
	return s
}

// envelope is the way from a chunk of an answer to its calls. A chunk with one of
// these members twice, or in another case, is read in different ways by different
// clients: it is unreadable.
var envelope = codec.Envelope{{Key: "error"}, {Key: "candidates", In: codec.Envelope{{Key: "index"}, {Key: "finishReason", Other: "finish_reason"},
	{Key: "content", In: codec.Envelope{{Key: "role"}, {Key: "parts", In: partEnvelope}}}}}}

var partEnvelope = codec.Envelope{{Key: "text"}, {Key: "functionCall", Other: "function_call", In: codec.Envelope{
	{Key: "id"}, {Key: "name"}, {Key: "args"}, {Key: "willContinue", Other: "will_continue"},
	{Key: "partialArgs", Other: "partial_args", In: codec.Envelope{
		{Key: "jsonPath", Other: "json_path"}, {Key: "willContinue", Other: "will_continue"}, {Key: "stringValue", Other: "string_value"},
		{Key: "numberValue", Other: "number_value"}, {Key: "boolValue", Other: "bool_value"}, {Key: "nullValue", Other: "null_value"}}}}}}

// event reads one chunk. Nothing from a call, an error or the end on is safe. What
// does not begin an object, in a stream, is skipped as clients do it.
func (s *stream) event(e codec.Event) (hold bool, err error) {
	data := e.Data
	if data == "" {
		data = strings.TrimSpace(e.Text) // an error in the middle has no field before it
	}
	if !strings.HasPrefix(strings.TrimLeft(data, " \t\r\n"), "{") {
		if data != "" && (s.Buf.IsWhole() || s.Buf.IsArray()) {
			return true, codec.Shapef("an answer that is not an object")
		}
		return false, nil
	}
	doc, err := codec.Parse(data)
	if err != nil {
		if s.Closed() && codec.CutShort(err) {
			s.cut = true
			return true, nil
		}
		return true, err
	}
	if err := envelope.Check(doc.Root()); err != nil {
		return true, err
	}
	if failure := on.Get(doc.Root(), "error"); isFailure(failure) {
		s.failed = codec.ModelError(codec.StatusOf(codec.Text(on.Get(failure, "code"))), nil, failureOf(failure))
	}
	if s.failed != nil {
		if on.Get(doc.Root(), "candidates").Len() > 0 {
			return true, codec.Shapef("candidates beside or behind an error")
		}
		return true, nil
	}
	if e.Data == "" {
		return false, nil
	}
	return s.a.read(e, doc, s.show)
}

// Bounds, far above what a provider sends: candidates that are told apart, of
// which the API has 8, and chunks of a stream.
const (
	maxCandidates = 1000
	maxChunks     = 1 << 18
)

// read takes one chunk. hold says that it must not be shown yet. A candidate without
// an index has that of its place: the server leaves out 0.
func (a *answer) read(event codec.Event, doc *rawjson.Doc, show func(middleware.Part) error) (hold bool, err error) {
	root := doc.Root()
	at := len(a.chunks)
	if at == maxChunks {
		return true, codec.Shapef("more than %d chunks", maxChunks)
	}
	a.chunks = append(a.chunks, lens.Chunk{Event: event, Doc: doc})
	if a.is.Model == "" {
		a.is.Model = on.Get(root, "modelVersion").Str()
	}
	if usage := on.Get(root, "usageMetadata"); hasFigures(usage) {
		a.usage, a.usageAt, a.is.Usage = usage, at, usageOf(usage)
	}
	if reason := codec.Text(on.Get(on.Get(root, "promptFeedback"), "blockReason")); reason != "" && reason != "0" && reason != "BLOCK_REASON_UNSPECIFIED" {
		a.blocked, hold = true, true
	}
	candidates, err := on.List(root, "candidates", rawjson.Object)
	if err != nil {
		return true, err
	}
	for i, v := range candidates {
		index := int64(i)
		if n, err := strconv.ParseInt(codec.Text(on.Get(v, "index")), 10, 64); err == nil && n >= 0 {
			index = n
		}
		s := a.speaker(index)
		if n := len(s.sections); n > 0 && s.sections[n-1].chunk == at {
			return true, codec.Shapef("two candidates with one index") // many clients read the first one only
		}
		if len(a.speakers) > maxCandidates {
			return true, codec.Shapef("more than %d candidates", maxCandidates)
		}
		held, err := s.read(v, at, index == 0, show)
		if err != nil {
			return true, err
		}
		s.behind = s.behind || held && i > 0
		hold = hold || held
	}
	return hold, nil
}

// read takes what one chunk has of the candidate. first says that it is the one
// whose text is shown.
func (s *speaker) read(v rawjson.Value, chunk int, first bool, show func(middleware.Part) error) (hold bool, err error) {
	sec := section{chunk: chunk, v: v, finish: on.Get(v, "finishReason")}
	if sec.content, err = on.Kind(v, "content", rawjson.Object); err != nil {
		return true, err
	}
	list, err := on.List(sec.content, "parts", rawjson.Object)
	if err != nil {
		return true, err
	}
	sec.parts = lens.Raws(list)
	for _, part := range list {
		p, err := readPart(part, true)
		if err != nil {
			return true, err
		}
		p.at = len(s.sections)
		if hold = hold || p.call != nil; p.call != nil || s.joined != nil {
			if err := s.call(p); err != nil {
				return true, err
			}
			continue
		}
		s.pieces = append(s.pieces, p)
		if first {
			if err := show(p.part); err != nil {
				return true, err
			}
		}
	}
	s.sections = append(s.sections, sec)
	if word := finishWord(sec.finish, on.Get(v, "finishMessage").Str()); word != "" {
		s.finish, hold = word, true
	}
	return hold, nil
}

// show sends a piece of text to the sink. Media and opaque parts are not shown.
func (s *stream) show(p middleware.Part) error { return codec.Tell(s.sink, p.Kind, p.Text) }

// response puts the answer together. It is whole when it says why it ended.
func (s *stream) response() (*middleware.Response, error) {
	a := s.a
	a.raw = s.Text()
	if err := s.whole(); err != nil {
		return nil, err
	}
	for i, sp := range a.speakers {
		m := sp.message(s.calls, s.builtin)
		if i > 0 {
			a.is.Choices = append(a.is.Choices, m)
			continue
		}
		a.is.Message = m
		a.is.FinishReason = finishReason(sp.finish, len(m.ToolCalls) > 0)
	}
	sp := a.main()
	switch {
	case sp == nil:
		a.is.Message = middleware.Message{Role: middleware.RoleAssistant}
		fallthrough
	case sp.finish == "":
		a.is.FinishReason = middleware.FinishFilter
	case len(a.is.Message.ToolCalls) == 0 && slices.Contains(refusalWords, sp.finish):
		refused := codec.ModelError(0, nil, codec.Failure{Code: sp.finish, Refused: true, Output: cmp.Or(sp.finishMessage(), a.is.Message.Text())})
		return nil, codec.WithUsage(refused, a.is.Model, a.is.Usage)
	}
	if err := codec.Unasked(s.req, dialect, &a.is, "generationConfig", "candidateCount"); err != nil {
		return nil, err
	}
	resp := a.is.Clone()
	resp.Native = on.Remember(a.raw, a)
	return resp, nil
}

// whole returns what is wrong with the answer as a whole: an error of the provider,
// an end that is missing, or calls that not every client reads.
func (s *stream) whole() error {
	if s.failed != nil {
		return s.failed
	}
	a := s.a
	if s.Buf.IsArray() {
		if _, err := codec.Parse(a.raw); err != nil {
			if codec.CutShort(err) {
				return codec.ErrIncomplete
			}
			return err
		}
	}
	sp := a.main()
	switch {
	case s.cut:
		return codec.ErrIncomplete
	case a.blocked && (sp == nil || sp.joined == nil):
		return nil
	case sp == nil && s.Buf.IsWhole() && len(a.chunks) > 0 && !a.usage.Exists():
		return codec.Shapef("an object without candidates")
	case sp == nil || sp.finish == "":
		return codec.ErrIncomplete
	case sp.behind && slices.ContainsFunc(sp.pieces, func(p *piece) bool { return p.call != nil }):
		return codec.Shapef("a call in a candidate behind another one") // many clients read the first one of each chunk
	case sp.joined != nil:
		return codec.Shapef("a call that does not end")
	}
	return nil
}

// Rest is part of codec.Stream. Each chunk stands for itself, so those of a later
// answer follow what was shown, under the first one's responseId.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	shown := s.Text()
	if sent < 0 || sent > len(shown) {
		return nil, codec.Unencodablef("more was sent than was received")
	}
	body, err := Format{}.EncodeResponse(resp)
	if err != nil {
		return nil, err
	}
	switch own := on.Raw(resp.Native) == shown; {
	case own && !strings.HasPrefix(string(body), shown[:sent]):
		return nil, codec.Unencodablef("the change is in what was shown already")
	case own || sent == 0:
		return body[sent:], nil
	}
	return s.follow(shown[:sent], string(body))
}

// follow frames the chunks of body as those of s, to stand behind shown. Its line ends
// are those of shown: a client may look for one kind only.
func (s *stream) follow(shown, body string) ([]byte, error) {
	later, err := readAnswer(body)
	if err != nil {
		return nil, codec.Unencodablef("what was written is not an answer: %v", err)
	}
	id, end := "", "\n\n"
	if len(s.a.chunks) > 0 {
		id = on.Get(s.a.chunks[0].Root(), "responseId").Raw()
	}
	if strings.Contains(shown, "\r\n") {
		end = "\r\n\r\n"
	}
	var b strings.Builder
	for _, c := range later.chunks {
		text := c.Root().Raw()
		if old := on.Get(c.Root(), "responseId"); id != "" && old.Exists() {
			if text, err = on.Set(c.Root(), lens.Raw("responseId", id)); err != nil {
				return nil, err
			}
		}
		if s.Buf.IsArray() { // of which an element was shown
			b.WriteString(",\r\n" + text)
		} else {
			b.WriteString("data: " + codec.OneLine(text) + end)
		}
	}
	if s.Buf.IsArray() {
		b.WriteString("\n]")
	}
	return []byte(b.String()), nil
}
