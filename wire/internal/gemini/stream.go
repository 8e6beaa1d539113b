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

// stream reads an answer: server-sent events, a JSON array, or one object. Each chunk is
// an answer of its own, with some of the parts; the last usage counts:
//
//	{"candidates": [{"content": {"role": "model", "parts": [part, …]}, "index": 0}], "modelVersion": …, "responseId": …}
//	{"candidates": [{"content": {…}, "finishReason": "STOP", "index": 0}], "usageMetadata": {…}, "modelVersion": …, "responseId": …}
type stream struct {
	codec.Units
	req        *middleware.Request // that is answered; nil: not known
	sink       middleware.Sink
	calls      int               // of the conversation before
	builtin    func(string) bool // see builtinsOf
	candidates []*candidate      // in order of their index
	chunks     int
	id         string        // the first responseId, as JSON
	beside     []lens.Member // the candidates: the last value of each member
	figures    bool          // some of them are usage
	blocked    bool          // the prompt was refused
	cut        bool          // the last event is not whole
	failed     error         // of the provider
	shown      map[int64][]string
	a          *answer // set by Close
}

// candidate is one candidate through all chunks.
type candidate struct {
	index  int64
	has    bool     // a content has come
	parts  []string // a call that came in pieces is one part
	finish string   // the last finishReason, as JSON
	beside []lens.Member
	joined *partial // a call that goes on; nil: none does
}

// What is written of a chunk though a word for calls stands in it: text may speak of
// calls. The calls of an answer are written by callPart.
var (
	partTree = spelled("text", "thought", "thoughtSignature", "inlineData", "fileData", "executableCode", "codeExecutionResult", "videoMetadata")
	besides  = spelled("usageMetadata", "modelVersion", "responseId", "promptFeedback", "createTime")
	around   = spelled("finishMessage", "groundingMetadata", "citationMetadata", "safetyRatings", "urlContextMetadata", "logprobsResult", "avgLogprobs", "tokenCount")
	chunk    = codec.Tree{"candidates": {"content": {"role": nil, "parts": partTree}, "index": nil, "finishReason": nil, "finish_reason": nil}}
	callTree = codec.Tree{"id": nil, "name": nil, "args": codec.AsSent}
)

// spelled returns a Tree with the members of those names in both spellings.
func spelled(names ...string) codec.Tree {
	t := codec.Tree{}
	for _, name := range names {
		t[name] = nil
		var snake strings.Builder
		for _, c := range []byte(name) {
			if 'A' <= c && c <= 'Z' {
				snake.WriteByte('_')
				c += 'a' - 'A'
			}
			snake.WriteByte(c)
		}
		t[snake.String()] = nil
	}
	return t
}

// DecodeResponse reads a whole answer.
func (f Format) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	return codec.Decode(f.NewStream(req, nil), body)
}

// NewStream returns a reader of one answer.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	return newStream(req, sink)
}

func newStream(req *middleware.Request, sink middleware.Sink) *stream {
	s := &stream{req: req, sink: sink}
	if req != nil {
		s.calls, s.builtin = codec.Calls(req.Messages), builtinsOf(req.Tools)
	}
	s.Units = codec.NewUnits(s, chunk, false, req != nil && len(req.Tools) > 0)
	s.Lists = true
	return s
}

// object returns the object of a unit; absent for a unit without one. An error in the
// middle of a stream has no field before it.
func object(u *codec.Unit) rawjson.Value {
	if u.Data == "" {
		if text := strings.TrimSpace(u.Text); strings.HasPrefix(text, "{") {
			v, _ := codec.ParseObject(text)
			if isFailure(on.Get(v, "error")) {
				return v
			}
		}
	}
	return u.Value
}

// Fate returns what becomes of a unit. Calls, errors and ends are held.
func (s *stream) Fate(u *codec.Unit) (codec.Fate, error) {
	v := object(u)
	switch {
	case u.Err != nil && s.Closed() && codec.CutShort(u.Err):
		return codec.FateHold, nil
	case u.Err != nil && strings.HasPrefix(strings.TrimSpace(u.Data), "{"):
		return codec.FateHold, u.Err
	case !v.Exists() && (s.Buf.IsWhole() || s.Buf.IsArray()) && u.Data != "":
		return codec.FateHold, codec.Shapef("an answer that is not an object")
	case s.Buf.IsWhole(), isFailure(on.Get(v, "error")), blockReason(v) != "":
		return codec.FateHold, nil
	}
	fate := codec.FatePass
	candidates, err := on.List(v, "candidates", rawjson.Object)
	for _, c := range candidates {
		if finishWord(on.Get(c, "finishReason"), on.Get(c, "finishMessage").Str()) != "" {
			return codec.FateHold, nil
		}
		parts, err := on.List(on.Get(c, "content"), "parts", rawjson.Object)
		if err != nil {
			return codec.FateHold, err
		}
		for _, p := range parts {
			switch text := on.Get(p, "text"); {
			case on.Get(p, "functionCall").Exists():
				return codec.FateHold, nil
			case text.Kind() == rawjson.String && text.Str() == "":
			case on.Get(p, "thought").Raw() != "true":
				fate = codec.FateShow
			case fate == codec.FatePass:
				fate = codec.FateWait
			}
		}
	}
	return fate, err
}

// blockReason returns why the prompt was refused; "" if it was not.
func blockReason(root rawjson.Value) string {
	reason := codec.Text(on.Get(on.Get(root, "promptFeedback"), "blockReason"))
	if reason == "0" || reason == "BLOCK_REASON_UNSPECIFIED" {
		return ""
	}
	return reason
}

// Mark notes what the client may be shown.
func (s *stream) Mark() {
	s.shown = map[int64][]string{}
	for _, c := range s.candidates {
		s.shown[c.index] = c.parts
	}
}

// Bounds, far above what a provider sends: candidates that are told apart, of
// which the API has 8, and chunks of a stream.
const (
	maxCandidates = 1000
	maxChunks     = 1 << 18
)

// Read reads a unit. What does not begin an object, in a stream, is
// skipped as clients do it. A candidate without an index has that of its place: the
// server leaves out 0.
func (s *stream) Read(u *codec.Unit) error {
	v := object(u)
	if !v.Exists() {
		s.cut = u.Err != nil && codec.CutShort(u.Err)
		return nil
	}
	if failure := on.Get(v, "error"); isFailure(failure) {
		s.failed = codec.ModelError(codec.StatusOf(codec.Text(on.Get(failure, "code"))), nil, failureOf(failure))
	}
	candidates, err := on.List(v, "candidates", rawjson.Object)
	switch {
	case err != nil:
		return err
	case s.failed != nil && len(candidates) > 0:
		return codec.Shapef("candidates beside or behind an error")
	case s.failed != nil:
		return nil
	case s.chunks == maxChunks:
		return codec.Shapef("more than %d chunks", maxChunks)
	}
	s.chunks++
	s.blocked = s.blocked || blockReason(v) != ""
	for m := range v.Each() {
		switch usage := isName(m.Key(), "usageMetadata"); {
		case m.Kind() == rawjson.Null, isName(m.Key(), "candidates"), isName(m.Key(), "error"), usage && !hasFigures(m), !besides.Has(m.Key()) && (chunk.Knows(m.Key()) || besides.Knows(m.Key()) || !codec.FreeMember(m)):
		default:
			s.figures = s.figures || usage
			s.beside = withMember(s.beside, m)
		}
	}
	if id := on.Get(v, "responseId"); s.id == "" && id.Exists() {
		s.id = id.Raw()
	}
	for i, v := range candidates {
		index := int64(i)
		if n, err := strconv.ParseInt(codec.Text(on.Get(v, "index")), 10, 64); err == nil && n >= 0 {
			index = n
		}
		if err := s.candidate(index).read(v, s.show(index)); err != nil {
			return err
		}
		if len(s.candidates) > maxCandidates {
			return codec.Shapef("more than %d candidates", maxCandidates)
		}
	}
	return nil
}

// show returns what tells the sink of a part: the first candidate is shown.
func (s *stream) show(index int64) func(middleware.Part) error {
	return func(p middleware.Part) error {
		if index != 0 {
			return nil
		}
		return codec.Tell(s.sink, p.Kind, p.Text)
	}
}

// withMember returns members with m, in the place of one of that name.
func withMember(members []lens.Member, m rawjson.Value) []lens.Member {
	key := camel(m.Key())
	i := slices.IndexFunc(members, func(have lens.Member) bool { return strings.EqualFold(have.Key, key) })
	if i < 0 {
		return append(members, lens.Raw(key, codec.Plain(m)))
	}
	members[i].Raw = codec.Plain(m)
	return members
}

// candidate returns the candidate of that index. A stream may have candidates in any
// order, and leave out some.
func (s *stream) candidate(index int64) *candidate {
	at, ok := slices.BinarySearchFunc(s.candidates, index, func(c *candidate, i int64) int { return cmp.Compare(c.index, i) })
	if !ok {
		s.candidates = slices.Insert(s.candidates, at, &candidate{index: index})
	}
	return s.candidates[at]
}

// read reads what one chunk has of the candidate. Parts are not joined, because a
// signature belongs to its own part.
func (c *candidate) read(v rawjson.Value, show func(middleware.Part) error) error {
	content, err := on.Kind(v, "content", rawjson.Object)
	if err != nil {
		return err
	}
	list, err := on.List(content, "parts", rawjson.Object)
	if err != nil {
		return err
	}
	c.has = c.has || content.Exists()
	for _, part := range list {
		p, err := readPart(part, true)
		if err != nil {
			return err
		}
		if p.call != nil || c.joined != nil {
			if err := c.call(callPart(part)); err != nil {
				return err
			}
			continue
		}
		c.parts = append(c.parts, partTree.Write(part))
		if err := show(p.part); err != nil {
			return err
		}
	}
	for m := range v.Each() {
		switch key := m.Key(); {
		case m.Kind() == rawjson.Null, isName(key, "content"), isName(key, "index"):
		case isName(key, "finishReason"):
			if finishWord(m, on.Get(v, "finishMessage").Str()) != "" {
				c.finish = codec.Plain(m)
			}
		case around.Has(key), !around.Knows(key) && !chunk["candidates"].Knows(key) && codec.FreeMember(m):
			c.beside = withMember(c.beside, m)
		}
	}
	return nil
}

// callPart returns a part with a functionCall as it is written: in the spelling of the
// server, and with what stands beside the call, such as its signature.
func callPart(v rawjson.Value) string {
	var members []lens.Member
	for m := range v.Each() {
		switch key := m.Key(); {
		case isName(key, "functionCall"):
			call := on.Get(v, "functionCall")
			if call.Exists() && !slices.ContainsFunc(members, func(m lens.Member) bool { return m.Key == "functionCall" }) {
				members = append(members, lens.Raw("functionCall", callTree.Write(call)))
			}
		case v.Get(key) == m && (partTree.Has(key) || !partTree.Knows(key) && !strings.EqualFold(camel(key), "functionCall") && codec.FreeMember(m)):
			members = withMember(members, m)
		}
	}
	return codec.Object(members...)
}

// object returns the candidate as it is in an answer that is one object.
func (c *candidate) object() string {
	var content lens.Member
	if c.has {
		content = lens.Raw("content", freshContent("model", c.parts))
	}
	return codec.Object(append([]lens.Member{content, lens.Raw("finishReason", c.finish), lens.Raw("index", codec.Count(c.index))}, c.beside...)...)
}

// Response returns the answer after the last unit. An answer is whole when it says why it ended.
func (s *stream) Response() (*middleware.Response, error) {
	if err := s.whole(); err != nil {
		return nil, err
	}
	a, err := s.put()
	if err != nil {
		return nil, err
	}
	sp := a.first()
	if len(a.is.Message.ToolCalls) == 0 && sp != nil && slices.Contains(refusalWords, sp.finish) {
		refused := codec.ModelError(0, nil, codec.Failure{Code: sp.finish, Refused: true, Output: cmp.Or(on.Get(sp.v, "finishMessage").Str(), a.is.Message.Text())})
		return nil, codec.WithUsage(refused, a.is.Model, a.is.Usage)
	}
	if err := codec.Unasked(s.req, dialect, &a.is, "generationConfig", "candidateCount"); err != nil {
		return nil, err
	}
	a.speakers = nil // of a parsed text, which is not kept
	s.a = a
	resp := a.is.Clone()
	resp.Native = on.Remember(a.raw, a)
	return resp, nil
}

// whole returns what is wrong with the answer as a whole: an error of the provider,
// or an end that is missing.
func (s *stream) whole() error {
	if s.failed != nil {
		return s.failed
	}
	if s.Buf.IsArray() {
		if _, err := codec.Parse(s.Text()); err != nil {
			if codec.CutShort(err) {
				return codec.ErrIncomplete
			}
			return err
		}
	}
	var first *candidate
	if len(s.candidates) > 0 {
		first = s.candidates[0]
	}
	switch {
	case s.cut:
		return codec.ErrIncomplete
	case s.blocked && (first == nil || first.joined == nil):
		return nil
	case first == nil && s.Buf.IsWhole() && s.chunks > 0 && !s.figures:
		return codec.Shapef("an object without candidates")
	case first == nil || first.finish == "":
		return codec.ErrIncomplete
	case first.joined != nil:
		return codec.Shapef("a call that does not end")
	}
	return nil
}

// Rest returns what completes a stream of which the client has a part. Each chunk stands for itself, so what the client lacks of
// the answer, or a later one, follows as one more chunk, under the first one's responseId.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	out, safe, _ := s.Shown()
	if sent < 0 || sent > len(out) {
		return nil, codec.Unencodablef("more was sent than was received")
	}
	a, err := lens.Answer(on, resp, readAnswer)
	if err != nil {
		return nil, err
	}
	own := on.Raw(resp.Native) == s.Text()
	switch {
	case own && a.plain && codec.SameResponse(&a.is, resp):
		return []byte(s.Text()[sent:]), nil
	case sent == 0:
		return Format{}.EncodeResponse(resp)
	}
	text, err := a.write(resp)
	if err != nil {
		return nil, err
	}
	given := s
	if sent != safe || !s.Marked() {
		given = newStream(nil, nil)
		if _, err := given.Write([]byte(out[:sent])); err != nil {
			return nil, err
		}
		given.Mark()
	}
	if text, err = given.lacking(text, own); err != nil {
		return nil, err
	}
	switch {
	case !s.Buf.IsArray():
		return []byte(asEvent(text, out)), nil
	case strings.Trim(out[:sent], "[ \t\r\n") == "": // no element was shown
		return []byte(text + "\n]"), nil
	}
	return []byte(",\r\n" + text + "\n]"), nil
}

// asEvent writes text as a server-sent event, with the line ends of the stream like: a
// client may look for one kind only.
func asEvent(text, like string) string {
	end := "\n\n"
	if strings.Contains(like, "\r\n") {
		end = "\r\n\r\n"
	}
	return "data: " + codec.OneLine(text) + end
}

// lacking returns an answer that is one object without the parts that s has shown, of
// this answer if own, else of an earlier one. Behind an answer that was given up its
// reasoning is the only one.
func (s *stream) lacking(text string, own bool) (string, error) {
	root, err := codec.ParseObject(text)
	if err != nil {
		return "", err
	}
	var candidates []string
	for c := range root.Get("candidates").Each() {
		shown := s.shown[codec.Int(c.Get("index"))]
		parts := lens.Raws(slices.Collect(c.Get("content").Get("parts").Each()))
		if own {
			if parts, err = behind(parts, shown); err != nil {
				return "", err
			}
		} else if len(shown) > 0 {
			parts = slices.DeleteFunc(parts, func(p string) bool {
				v, _ := codec.ParseObject(p)
				return on.Get(v, "thought").Raw() == "true"
			})
		}
		if len(parts) == 0 {
			parts = []string{`{"text":""}`}
		}
		text := c.Raw()
		if c.Get("content").Exists() {
			if text, err = on.Set(c, lens.Raw("content", freshContent("model", parts))); err != nil {
				return "", err
			}
		}
		candidates = append(candidates, text)
	}
	var id lens.Member
	if s.id != "" {
		id = lens.Raw("responseId", s.id)
	}
	return on.Set(root, lens.List("candidates", candidates), id)
}

// behind returns what follows shown in parts: the parts behind equal ones, or, if a
// middleware has joined texts, what the texts of shown do not have.
func behind(parts, shown []string) ([]string, error) {
	for len(parts) > 0 && len(shown) > 0 && parts[0] == shown[0] {
		parts, shown = parts[1:], shown[1:]
	}
	var texts [2]string // that were shown: text, and thoughts
	for _, s := range shown {
		kind, text, _, err := textOf(s)
		if err != nil {
			return nil, err
		}
		texts[kind] += text
	}
	var out []string
	for _, p := range parts {
		kind, text, v, err := textOf(p)
		if err != nil {
			out = append(out, p)
			continue
		}
		n := min(len(text), len(texts[kind]))
		if text[:n] != texts[kind][:n] {
			return nil, codec.Unencodablef("the change is in what was shown already")
		}
		texts[kind] = texts[kind][n:]
		if n > 0 && n == len(text) {
			continue
		}
		if n > 0 {
			if p, err = on.Set(v, lens.Text("text", text[n:])); err != nil {
				return nil, err
			}
		}
		out = append(out, p)
	}
	if texts != [2]string{} {
		return nil, codec.Unencodablef("the change is in what was shown already")
	}
	return out, nil
}

// textOf returns the text of a part, and 1 for that of a thought. The error says that it
// is a part of another kind.
func textOf(part string) (kind int, text string, v rawjson.Value, err error) {
	if v, err = codec.ParseObject(part); err != nil {
		return 0, "", v, err
	}
	p, err := readPart(v, true)
	switch {
	case err != nil:
	case p.part.Kind == middleware.PartReasoning:
		kind = 1
	case p.part.Kind != middleware.PartText:
		err = codec.Unencodablef("a part that was shown and is not text")
	}
	if err == nil {
		text = p.part.Text
	}
	return kind, text, v, err
}
