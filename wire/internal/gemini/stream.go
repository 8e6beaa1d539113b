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
	codec.Splitter
	builtin  func(string) bool // see builtinsOf
	a        *answer           // what was read
	chunks   int
	blocked  bool               // the prompt was refused
	cut      bool               // the last event is not whole
	failed   error              // of the provider
	snapshot map[int64][]string // the parts of each candidate at the last Snapshot
}

// These trees have the members of a chunk that are written even if they contain a word for
// calls: text may speak of calls. callPart writes the calls of an answer.
var (
	partTree = spelled(codec.Tree{}, "inlineData", "fileData", "executableCode", "codeExecutionResult", "videoMetadata").Scalars(
		spellings("text", "thought", "thoughtSignature")...)
	candidateTree = spelled(codec.Tree{"content": codec.Tree{"parts": partTree}.Scalars("role")}, "groundingMetadata", "citationMetadata", "safetyRatings",
		"urlContextMetadata", "logprobsResult").Scalars(spellings("index", "finishReason", "finishMessage", "avgLogprobs", "tokenCount")...)
	chunkTree = spelled(codec.Tree{"candidates": candidateTree}, "usageMetadata", "promptFeedback").Scalars(spellings("modelVersion", "responseId", "createTime")...)
	callTree  = codec.Tree{"args": codec.AsSent}.Scalars("id", "name")
)

// spelled returns t with the members of those names, in both spellings.
func spelled(t codec.Tree, names ...string) codec.Tree {
	for _, name := range spellings(names...) {
		t[name] = nil
	}
	return t
}

// spellings returns names in camel case and in snake case.
func spellings(names ...string) []string {
	both := slices.Clone(names)
	for _, name := range names {
		var snake strings.Builder
		for _, c := range []byte(name) {
			if 'A' <= c && c <= 'Z' {
				snake.WriteByte('_')
				c += 'a' - 'A'
			}
			snake.WriteByte(c)
		}
		both = append(both, snake.String())
	}
	return both
}

// NewStream returns a reader of one answer.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	s := &stream{a: &answer{}}
	if req != nil {
		s.builtin = builtinsOf(req.Tools)
	}
	s.Splitter = codec.NewSplitter(Format{}, s, chunkTree, false, req, sink)
	s.Lists = true
	return s
}

// Release returns what becomes of a unit. Calls, errors and ends are held.
func (s *stream) Release(u *codec.Unit) (codec.Release, error) {
	v := u.Value
	switch {
	case s.CutAtEnd(u):
		return codec.ReleaseHold, nil
	case u.Err != nil && strings.HasPrefix(strings.TrimSpace(u.Data), "{"):
		return codec.ReleaseHold, u.Err
	case !v.Exists() && (s.Buf.IsWhole() || s.Buf.IsArray()) && u.Data != "":
		return codec.ReleaseHold, codec.Shapef("an answer that is not an object")
	case s.Buf.IsWhole(), hasFailure(v), blockReason(v) != "":
		return codec.ReleaseHold, nil
	}
	candidates, err := on.List(v, "candidates", rawjson.Object)
	release := codec.ReleaseWithPrevious
	for _, c := range candidates {
		r, err := candidateRelease(c)
		if release = max(release, r); release == codec.ReleaseHold {
			return release, err
		}
	}
	return release, err
}

// candidateRelease is Release for what a unit has of one candidate.
func candidateRelease(c rawjson.Value) (codec.Release, error) {
	if finishWord(on.Get(c, "finishReason"), on.Get(c, "finishMessage").Str()) != "" {
		return codec.ReleaseHold, nil
	}
	parts, err := on.List(on.Get(c, "content"), "parts", rawjson.Object)
	if err != nil {
		return codec.ReleaseHold, err
	}
	release := codec.ReleaseWithPrevious
	for _, p := range parts {
		switch text := on.Get(p, "text"); {
		case on.Get(p, "functionCall").Exists():
			return codec.ReleaseHold, nil
		case text.Kind() == rawjson.String && text.Str() == "":
		case on.Get(p, "thought").Raw() == "true":
			release = max(release, codec.ReleaseAfterText)
		default:
			release = codec.ReleaseNow
		}
	}
	return release, nil
}

// blockReason returns why the prompt was refused; "" if it was not.
func blockReason(root rawjson.Value) string {
	reason := codec.Text(on.Get(on.Get(root, "promptFeedback"), "blockReason"))
	if reason == "0" || reason == "BLOCK_REASON_UNSPECIFIED" {
		return ""
	}
	return reason
}

// Snapshot notes what the client may be shown.
func (s *stream) Snapshot() {
	s.snapshot = map[int64][]string{}
	for _, c := range s.a.candidates {
		s.snapshot[c.index] = c.parts
	}
}

// Bounds, far above what a provider sends: candidates that are told apart, of
// which the API has 8, and chunks of a stream.
const (
	maxCandidates = 1000
	maxChunks     = 1 << 18
)

// Read reads a unit. In a stream, data that does not begin an object is skipped, as clients
// do. A candidate without an index has its place as its index: the server leaves out 0.
func (s *stream) Read(u *codec.Unit) error {
	v := u.Value
	if !v.Exists() {
		s.cut = u.Err != nil && codec.CutShort(u.Err)
		return nil
	}
	if failure := on.Get(v, "error"); hasFailure(v) {
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
	s.readEnvelope(v)
	for i, c := range candidates {
		if err := s.readCandidate(c, int64(i)); err != nil {
			return err
		}
	}
	return nil
}

// Response returns the answer after the last unit. An answer is complete with a finish reason.
func (s *stream) Response() (codec.Written, error) {
	if err := s.whole(); err != nil {
		return nil, err
	}
	a := s.a
	a.Is.Message, a.Is.FinishReason = middleware.Message{Role: middleware.RoleAssistant}, middleware.FinishFilter
	for i, c := range a.candidates {
		if n := len(c.parts) - 1; n > 0 && c.contents > 1 && c.parts[n] == emptyPart {
			c.parts = c.parts[:n]
		}
		if c.contents > 0 && len(c.parts) == 0 { // as it is written
			c.parts = []string{emptyPart}
		}
		pieces, err := c.pieces()
		if err != nil {
			return nil, err
		}
		before := 0
		if slices.ContainsFunc(pieces, func(p *piece) bool { return p.call != nil && p.call.ID == "" }) {
			before = codec.Calls(s.Req)
		}
		m, _ := modelMessage(pieces, before, s.builtin)
		m.Native = on.Native(freshContent("model", c.parts))
		switch {
		case i > 0:
			a.Is.Choices = append(a.Is.Choices, m)
			continue
		case c.word != "":
			a.Is.FinishReason = codec.Finish(c.word, len(m.ToolCalls) > 0)
		}
		a.Is.Message, a.Is.Unpaired, s.Unread = m, unpaired(pieces), c.message
	}
	if err := codec.RejectExtraChoices(s.Req, dialect, &a.Is, "generationConfig/candidateCount"); err != nil {
		return nil, err
	}
	return a, nil
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
	if len(s.a.candidates) > 0 {
		first = s.a.candidates[0]
	}
	switch {
	case s.cut:
		return codec.ErrIncomplete
	case s.blocked && (first == nil || first.joined == nil):
		return nil
	case first == nil && s.Buf.IsWhole() && s.chunks > 0 && s.a.usage == "":
		return codec.Shapef("an object without candidates")
	case first == nil || first.finish == "":
		return codec.ErrIncomplete
	case first.joined != nil:
		return codec.Shapef("a call that does not end")
	}
	return nil
}

// readEnvelope reads the members of a chunk other than its candidates.
func (s *stream) readEnvelope(v rawjson.Value) {
	for m := range v.Each() {
		switch key := m.Key(); {
		case m.Kind() == rawjson.Null, isName(key, "candidates"), isName(key, "error"):
		case isName(key, "usageMetadata"):
			if u := usageOf(m); m.Kind() == rawjson.Object && (u != middleware.Usage{} || s.a.usage == "") { // a later one without figures is ignored
				s.a.usage, s.a.Is.Usage = codec.Canonical(m), u
			}
		case isName(key, "modelVersion"):
			s.a.model, s.a.Is.Model = chunkTree.Value(m), m.Str()
		case isName(key, "responseId"):
			s.a.id, s.a.Is.ID = cmp.Or(s.a.id, chunkTree.Value(m)), cmp.Or(s.a.Is.ID, m.Str())
		case chunkTree.Keeps(m):
			s.a.extra.Put(camel(key), chunkTree.Value(m))
		}
	}
}

// readCandidate reads what a chunk has of the candidate in that place.
func (s *stream) readCandidate(v rawjson.Value, index int64) error {
	if n, err := strconv.ParseInt(codec.Text(on.Get(v, "index")), 10, 64); err == nil && n >= 0 {
		index = n
	}
	sink := s.Sink
	if index > 0 { // only the first candidate is shown
		sink = nil
	}
	err := s.candidate(index).read(v, sink)
	if err == nil && len(s.a.candidates) > maxCandidates {
		err = codec.Shapef("more than %d candidates", maxCandidates)
	}
	return err
}

// candidate returns the candidate of that index. A stream may have candidates in any
// order, and leave out some.
func (s *stream) candidate(index int64) *candidate {
	at, ok := slices.BinarySearchFunc(s.a.candidates, index, func(c *candidate, i int64) int { return cmp.Compare(c.index, i) })
	if !ok {
		s.a.candidates = slices.Insert(s.a.candidates, at, &candidate{index: index})
	}
	return s.a.candidates[at]
}

// read reads what one chunk has of the candidate. Parts are not joined, because a
// signature belongs to its own part.
func (c *candidate) read(v rawjson.Value, sink middleware.Sink) error {
	r := on.Reader()
	content := r.Kind(v, "content", rawjson.Object)
	list := r.Objects(content, "parts")
	if r.Err != nil {
		return r.Err
	}
	if content.Exists() {
		c.contents++
	}
	for _, part := range list {
		p, err := readPart(part, true)
		switch {
		case err != nil:
		case p.call != nil:
			err = c.call(p)
		case c.joined != nil:
			err = codec.Shapef("a part inside a call that goes on")
		default:
			c.parts = append(c.parts, partTree.Write(part))
			err = codec.Emit(sink, p.part.Kind, p.part.Text)
		}
		if err != nil {
			return err
		}
	}
	c.message = cmp.Or(on.Get(v, "finishMessage").Str(), c.message)
	for m := range v.Each() {
		switch key := m.Key(); {
		case m.Kind() == rawjson.Null, isName(key, "content"), isName(key, "index"):
		case isName(key, "finishReason"):
			if word := finishWord(m, c.message); word != "" {
				if c.finish, c.word = candidateTree.Value(m), word; c.finish == "null" { // a list that holds a call
					c.finish, c.word = `"OTHER"`, "OTHER"
				}
			}
		case candidateTree.Keeps(m):
			c.extra.Put(camel(key), candidateTree.Value(m))
		}
	}
	return nil
}

// callPart returns a part with a functionCall as it is written: in the spelling of the server,
// and with the other members of the part, such as its signature.
func callPart(v rawjson.Value) string {
	var members codec.Members
	for m := range v.Each() {
		switch key := m.Key(); {
		case isName(key, "functionCall"):
			members.Put("functionCall", callTree.Write(on.Get(v, "functionCall")))
		case !strings.EqualFold(camel(key), "functionCall") && partTree.Keeps(m):
			members.Put(camel(key), partTree.Value(m))
		}
	}
	return codec.Object(members.List...)
}

// partialCall is a call whose arguments come in several parts, each with values and
// the paths that they belong to:
//
//	{"functionCall": {"name": "wind", "willContinue": true}}
//	{"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "Ber", "willContinue": true}], "willContinue": true}}
//	{"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "gen"}]}}
//
// A middleware sees one call with whole arguments, and so does the client. If the parts
// leave a doubt about the whole, the error wraps ErrShape.
// Source: FunctionCall.partial_args and will_continue of Vertex AI v1.
type partialCall struct {
	id   string // of the call
	head string // the first part, as it is written
	sign string // the first thoughtSignature, which any of the parts may bring
	args node
}

// node is an argument in the making.
type node struct {
	kind rawjson.Kind // Object, Array, String, or any other for raw; Invalid for none yet
	raw  string
	text *strings.Builder // of a string
	more bool             // the string goes on
	keys []string         // of an object or, as numbers, of an array, in the order in which they came
	kids map[string]*node // by their keys
}

const signKey = "thoughtSignature"

// maxPath bounds how deep arguments are nested that come in pieces.
const maxPath = 64

// call adds a part with a call: whole, or a piece of one.
func (c *candidate) call(p *piece) error {
	fc := on.Get(p.v, "functionCall")
	r := on.Reader()
	continues, pieces := r.Kind(fc, "willContinue", rawjson.Bool).Raw() == "true", r.Objects(fc, "partialArgs")
	whole := on.Get(fc, "args")
	switch {
	case r.Err != nil:
		return r.Err
	case c.joined == nil && !continues && len(pieces) == 0:
		c.parts = append(c.parts, callPart(p.v))
		return nil
	case c.joined == nil:
		c.joined = &partialCall{id: p.call.ID, head: callPart(p.v), args: node{kind: rawjson.Object}}
	case p.call.Name != "" || p.call.ID != "" && p.call.ID != c.joined.id:
		return codec.Shapef("a call inside a call that goes on")
	}
	if whole.Exists() && !whole.Empty() {
		return codec.Shapef("arguments beside pieces of them")
	}
	j := c.joined
	j.sign = cmp.Or(j.sign, on.Get(p.v, signKey).Raw())
	for _, piece := range pieces {
		if err := j.args.put(piece); err != nil {
			return err
		}
	}
	if continues {
		return nil
	}
	c.joined = nil
	// args replace the pieces. The signature may have come with any of them.
	text, err := on.SetIn(j.head, lens.Raw("functionCall/args", j.args.json()), lens.None("functionCall/partialArgs"), lens.None("functionCall/willContinue"), lens.Raw(signKey, j.sign))
	c.parts = append(c.parts, text)
	return err
}

// put puts one value in its place.
func (n *node) put(arg rawjson.Value) error {
	path, err := on.Text(arg, "jsonPath")
	if err != nil {
		return err
	}
	left, ok := strings.CutPrefix(path, "$")
	if !ok || left == "" {
		return codec.Shapef("a path that does not begin at the arguments")
	}
	for depth := 0; left != ""; depth++ {
		if depth == maxPath {
			return codec.Shapef("a path of more than %d steps", maxPath)
		}
		key, kind, rest, ok := nextKey(left)
		if ok {
			n, ok = n.child(key, kind)
		}
		if !ok {
			return codec.Shapef("a path that leads nowhere")
		}
		left = rest
	}
	return n.set(arg)
}

// nextKey reads one step of a path: .name or ['name'] into an object, or [0] into an array.
// It is false for anything else that JSONPath has, such as * and filters: those name
// several places.
// Source: RFC 9535, of which this is the part that names one place.
func nextKey(path string) (key string, kind rawjson.Kind, rest string, ok bool) {
	if path[0] == '.' {
		end := strings.IndexAny(path[1:], ".[")
		if end < 0 {
			end = len(path) - 1
		}
		return path[1 : end+1], rawjson.Object, path[end+1:], end > 0
	}
	if path[0] != '[' || len(path) < 3 {
		return "", 0, "", false
	}
	if q := path[1]; q == '\'' || q == '"' {
		key, rest, ok = strings.Cut(path[2:], string(q)+"]")
		return key, rawjson.Object, rest, ok && !strings.ContainsAny(key, `\`+string(q))
	}
	key, rest, ok = strings.Cut(path[1:], "]")
	_, err := strconv.ParseUint(key, 10, 31)
	return key, rawjson.Array, rest, ok && err == nil
}

// child returns what a step leads to; the next element of a list is made. It is
// false for a step into a value of another kind, and for one past the next element: a
// list with gaps is read in different ways.
func (n *node) child(key string, kind rawjson.Kind) (*node, bool) {
	if n.kind == rawjson.Invalid {
		n.kind = kind
	}
	kid := n.kids[key]
	switch {
	case n.kind != kind, kid == nil && kind == rawjson.Array && key != strconv.Itoa(len(n.keys)):
		return nil, false
	case kid != nil:
		return kid, true
	case n.kids == nil:
		n.kids = map[string]*node{}
	}
	n.kids[key], n.keys = &node{}, append(n.keys, key)
	return n.kids[key], true
}

// set gives a place its value; a string may continue if it announced that. A second value for
// a place is an error: one client takes the first, another one the last.
func (n *node) set(arg rawjson.Value) error {
	more := on.Get(arg, "willContinue").Raw() == "true"
	if v := on.Get(arg, "stringValue"); v.Kind() == rawjson.String {
		if n.kind != rawjson.Invalid && !n.more {
			return codec.Shapef("a second value for an argument")
		}
		if n.text == nil {
			n.kind, n.text = rawjson.String, &strings.Builder{}
		}
		n.text.WriteString(v.Str())
		n.more = more
		return nil
	}
	if n.kind != rawjson.Invalid {
		return codec.Shapef("a second value for an argument")
	}
	switch number, flag := on.Get(arg, "numberValue"), on.Get(arg, "boolValue"); {
	case number.Kind() == rawjson.Number:
		n.kind, n.raw = rawjson.Number, number.Raw()
	case flag.Kind() == rawjson.Bool:
		n.kind, n.raw = rawjson.Bool, flag.Raw()
	case on.Has(arg, "nullValue"):
		n.kind, n.raw = rawjson.Null, "null"
	default:
		return codec.Shapef("an argument without a value")
	}
	return nil
}

// json returns n as JSON. It goes no deeper than maxPath. Numbers are written as they
// came, so that none is rounded.
func (n *node) json() string {
	members, items := make([]lens.Member, len(n.keys)), make([]string, len(n.keys))
	for i, key := range n.keys {
		items[i] = n.kids[key].json()
		members[i] = lens.Raw(key, items[i])
	}
	switch n.kind {
	case rawjson.Object:
		return codec.Object(members...)
	case rawjson.Array:
		return codec.Array(items)
	case rawjson.String:
		return rawjson.Quote(n.text.String())
	}
	return n.raw
}
