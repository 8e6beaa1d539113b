package gemini

import (
	"cmp"
	"encoding/base64"
	"math"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// content is one content as it was read: a role and parts.
type content struct {
	v      rawjson.Value // absent for one that is to be written
	pieces []*piece
}

// readContent reads the parts of a content. model means that the content is the model's: only
// then a functionCall is a call, and only otherwise a functionResponse is a result.
func readContent(v rawjson.Value, model bool) (content, error) {
	list, err := on.List(v, "parts", rawjson.Object)
	if err != nil {
		return content{}, err
	}
	pieces, err := lens.Convert(list, func(part rawjson.Value) (*piece, error) { return readPart(part, model) })
	return content{v, pieces}, err
}

// texts returns the texts of the parts.
func texts(pieces []*piece) []string {
	return lens.TextsOf(pieces, func(p *piece) string { return p.v.Raw() })
}

// first returns the index of the first of items that is so, none if there is none.
func first[T any](items []T, none int, is func(T) bool) int {
	if i := slices.IndexFunc(items, is); i >= 0 {
		return i
	}
	return none
}

// share returns the content with only the given parts: the Native of one of the messages of
// the content, so that a message that moves into another request keeps its role.
func (c content) share(parts []string) string {
	if len(parts) == len(c.pieces) {
		return c.v.Raw()
	}
	return freshContent(cmp.Or(on.Get(c.v, "role").Str(), "user"), parts)
}

// emptyPart is the part of a content without other parts, such as a message whose only part
// was removed: the server refuses a content without parts.
const emptyPart = `{"text":""}`

// freshContent returns a content that is not of the request. It has a part at least.
func freshContent(role string, parts []string) string {
	if len(parts) == 0 {
		parts = []string{emptyPart}
	}
	return codec.Object(lens.Text("role", role), lens.List("parts", parts))
}

// reader makes messages of contents, in order. It counts calls, because those without
// ids are numbered through the whole conversation. The zero reader is at the beginning
// of one.
type reader struct {
	pairs
	builtin func(name string) bool // calls that the client answers in a form of its own
	calls   int                    // of the conversation so far
}

// read returns a content and its messages.
func (r *reader) read(v rawjson.Value) (content, []middleware.Message, error) {
	role, err := on.Text(v, "role")
	if err != nil {
		return content{}, nil, err
	}
	c, err := readContent(v, role == "model")
	if err != nil || role != "model" {
		return c, r.userMessages(c), err
	}
	m, wireIDs := modelMessage(c.pieces, r.calls, r.builtin)
	m.Native = on.Native(v.Raw())
	r.calls += len(m.ToolCalls)
	r.add(m.ToolCalls, wireIDs)
	return c, []middleware.Message{m}, nil
}

// modelMessage returns the message that a content of the model is, without a Native. A call
// without an id is numbered by its place in the conversation, which had before calls until
// here. builtin may be nil. wireIDs reports whether a call has an id on the wire.
func modelMessage(pieces []*piece, before int, builtin func(string) bool) (m middleware.Message, wireIDs bool) {
	m.Role = middleware.RoleAssistant
	for _, p := range pieces {
		if p.call == nil {
			m.Parts = append(m.Parts, p.part)
			continue
		}
		c := *p.call
		before++
		wireIDs = wireIDs || c.ID != ""
		if c.ID == "" {
			c.ID = codec.PlaceID(before)
		}
		if builtin != nil && builtin(c.Name) {
			c.Kind = middleware.KindBuiltin
		}
		m.ToolCalls = append(m.ToolCalls, c)
	}
	return m, wireIDs
}

// userMessages returns the messages that a content for the model is: results, and a message
// of all other parts, which is there also for a content without parts.
func (r *reader) userMessages(c content) (out []middleware.Message) {
	r.begun = false
	rest := middleware.Message{Role: middleware.RoleUser}
	var others []string
	for _, p := range c.pieces {
		if p.reply == nil {
			rest.Parts, others = append(rest.Parts, p.part), append(others, p.v.Raw())
			continue
		}
		m := p.reply.is
		m.ToolCallID = r.callOf(m.ToolCallID, m.ToolName)
		m.Native = on.Native(c.share([]string{p.v.Raw()}))
		out = append(out, m)
	}
	if len(out) == 0 || len(others) > 0 {
		rest.Native = on.Native(c.share(others))
		out = append(out, rest)
	}
	return out
}

// joins reports whether m goes into a content with the messages before it: all
// results of a turn do.
func joins(begun []middleware.Message, m middleware.Message) bool {
	return begun[0].Role == middleware.RoleTool && m.Role == middleware.RoleTool
}

// writer writes the contents of a request, in order.
type writer struct {
	of    *request            // that is edited, or one with nothing in it
	calls map[string]wireCall // the last one of each neutral id
	pairs                     // as the server makes them of what was written so far
}

// content returns the text of a run of messages that makes one content: the content
// that they came from with what has changed, or a fresh one.
func (w *writer) content(run lens.Run) (string, error) {
	m := run.Messages[0]
	role := map[middleware.Role]string{middleware.RoleAssistant: "model", middleware.RoleTool: w.of.replyRole, middleware.RoleUser: "user"}[m.Role]
	if role == "" {
		return "", codec.Unencodablef("a message of role %q behind others: put system messages first", m.Role)
	}
	w.begun = w.begun && m.Role == middleware.RoleAssistant
	if run.Same {
		return w.unchanged(run)
	}
	c, err := w.base(run)
	if err != nil {
		return "", err
	}
	var parts []string
	if m.Role == middleware.RoleAssistant {
		if err := w.addCalls(m.ToolCalls); err != nil {
			return "", err
		}
		parts, err = modelTexts(m, c.pieces, false)
	} else {
		parts, err = w.userTexts(run, c.pieces)
	}
	switch {
	case err != nil:
		return "", err
	case !c.v.Exists():
		return freshContent(role, parts), nil
	}
	edit := on.Edit(c.v)
	edit.Elements("parts", parts)
	return edit.Text()
}

// unchanged returns the text of a content that did not change. Its calls and results are
// checked all the same: what changed in front of it may have moved the pairs.
func (w *writer) unchanged(run lens.Run) (string, error) {
	c, n := w.of.contents[run.Group], 0
	for _, p := range c.pieces {
		if p.reply == nil {
			continue
		}
		if err := w.checkResult(run.Messages[n], p.reply.is.ToolCallID); err != nil {
			return "", err
		}
		n++ // results lead the messages of a content
	}
	return c.v.Raw(), w.addCalls(run.Messages[0].ToolCalls)
}

// base returns the content to edit: one of the request, or the content of the first message in
// another request or an answer. It is empty for fresh messages.
func (w *writer) base(run lens.Run) (content, error) {
	if run.Group >= 0 {
		return w.of.contents[run.Group], nil
	}
	v, err := on.Value(run.Messages[0].Native)
	if err != nil || !v.Exists() {
		return content{}, err
	}
	c, was, err := new(reader).read(v)
	if err != nil {
		return content{}, codec.Unencodablef("what was stored is not content: %v", err)
	}
	if len(was) != 1 || was[0].Role != run.Messages[0].Role {
		return content{}, nil
	}
	return c, nil
}

// modelTexts returns the parts and calls of the model as texts, in the order of the wire;
// pieces are what it had. Reasoning of another provider is left out of a history, and is a
// thought without a signature in an answer.
func modelTexts(m middleware.Message, pieces []*piece, answer bool) ([]string, error) {
	from := first(pieces, math.MaxInt, func(p *piece) bool { return p.call != nil })
	return on.Arrange(m, texts(pieces), from, func(p middleware.Part, _ int) (string, error) {
		text, err := partText(p)
		if err == nil && text == "" && answer && p.Text != "" {
			text = codec.Object(lens.Text("text", p.Text), lens.Flag("thought", true))
		}
		return text, err
	}, func(c middleware.ToolCall, _ int) (string, error) { return callText(c, answer) })
}

// userTexts returns the texts of parts that are for the model: results in their own order, and
// all other parts in their places. To order them like parts and calls, it puts them into one
// message as such.
func (w *writer) userTexts(run lens.Run, pieces []*piece) ([]string, error) {
	var order middleware.Message // parts and, as if they were calls, results
	for i, m := range run.Messages {
		if len(m.ToolCalls) > 0 {
			return nil, codec.Unencodablef("tool calls in a message of role %q: drop them", m.Role)
		}
		if m.Role != middleware.RoleTool {
			order.Parts = append(order.Parts, m.Parts...)
			continue
		}
		was := ""
		if run.At[i] >= 0 {
			was = w.of.is.Messages[w.of.lead+run.At[i]].ToolCallID
		}
		text, part, err := w.result(m, was)
		if err != nil {
			return nil, err
		}
		order.ToolCalls = append(order.ToolCalls, middleware.ToolCall{Native: part, Arguments: text})
	}
	from := first(pieces, -1, func(p *piece) bool { return p.reply != nil })
	return on.Arrange(order, texts(pieces), from,
		func(p middleware.Part, _ int) (string, error) { return partText(p) },
		func(result middleware.ToolCall, _ int) (string, error) { return result.Arguments, nil })
}

// result returns the text of a result, and the part that it was; nil for a new one.
// It has an id where its call has one. was is the call that it was for: as long as
// it is for that one, the id on the wire stays, which may be the client's own.
func (w *writer) result(m middleware.Message, was string) (text string, part *middleware.Native, err error) {
	call, known := w.calls[m.ToolCallID]
	if !known && !codec.IsPlaceID(m.ToolCallID) {
		call.id = m.ToolCallID
	}
	id := call.id
	old, err := replyOf(m.Native)
	if err != nil {
		return "", nil, err
	}
	switch {
	case old == nil && m.ToolName == "":
		m.ToolName = call.name
	case old == nil:
	case m.ToolCallID == was, m.ToolCallID == old.reply.is.ToolCallID, old.reply.is.ToolCallID == "" && codec.IsPlaceID(m.ToolCallID):
		id = old.reply.is.ToolCallID
	}
	if err := w.checkResult(m, id); err != nil {
		return "", nil, err
	}
	text, err = replyText(m, old, id)
	if old != nil {
		part = on.Native(old.v.Raw())
	}
	return text, part, err
}

// pairs knows the calls of the last turn, and which of them results belong to. The
// reader uses it to find the call of a result, and the writer to make sure that the
// server will find the same one.
type pairs struct {
	open    []middleware.ToolCall
	wireIDs bool // some of them have an id on the wire
	begun   bool // the turn goes on: nothing for the model came since
	paired  bool // pairing has all of open
	pairing codec.Pairing
}

// add adds calls. A turn may be cut into several contents: as long as the model goes
// on, their calls are answered together.
func (p *pairs) add(calls []middleware.ToolCall, wireIDs bool) {
	if len(calls) == 0 {
		return
	}
	if !p.begun {
		p.open, p.wireIDs = nil, false
	}
	p.open, p.wireIDs = append(p.open, calls...), p.wireIDs || wireIDs
	p.begun, p.paired = true, false
}

// callOf returns the id of the call that a result is for. A client may make up
// ids where the model gave none: then its name and its place tell.
func (p *pairs) callOf(id, name string) string {
	if !p.paired {
		p.pairing.Turn(p.open)
		p.paired = true
	}
	i := p.pairing.Result(id, name)
	if i < 0 && id != "" && !p.wireIDs {
		i = p.pairing.Result("", name)
	}
	if i < 0 {
		return id
	}
	return p.open[i].ID
}

// wireCall is a call as the wire has it. id is "" for a call that goes by its place.
type wireCall struct{ id, name string }

// addCalls adds calls and their ids on the wire, for the results that follow.
func (w *writer) addCalls(calls []middleware.ToolCall) error {
	wireIDs := false
	for _, c := range calls {
		id, err := wireID(c)
		if err != nil {
			return err
		}
		w.calls[c.ID] = wireCall{id, c.Name}
		wireIDs = wireIDs || id != ""
	}
	w.add(calls, wireIDs)
	return nil
}

// checkResult returns an error if the server takes the result m, which has that id on the
// wire, for the result of another call. That happens if calls have no ids, and results come in
// another order, or some are missing. A result for a call that is not in the history belongs
// to no response, and passes.
func (w *writer) checkResult(m middleware.Message, id string) error {
	call := w.callOf(id, m.ToolName)
	if _, known := w.calls[m.ToolCallID]; known && call != m.ToolCallID && call != id {
		return codec.Unencodablef("the calls have no ids: give each a result, in the order of the calls")
	}
	return nil
}

// piece is one part of a content as it was read: a call, a result, or any other part. One of
// its members decides which, and others may be added, such as the signature of a thought:
//
//	{"text": "Let me see."}
//	{"text": "The user wants …", "thought": true}
//	{"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
//	{"functionCall": {"name": "wind", "args": {"city": "Bergen"}}, "thoughtSignature": "c2ln"}
//	{"functionResponse": {"name": "wind", "response": {"output": "6 m/s"}}}
type piece struct {
	v     rawjson.Value
	part  middleware.Part      // opaque for a call and a result
	call  *middleware.ToolCall // without the id that its place gives it
	reply *reply
}

// reply is a functionResponse.
type reply struct {
	is    middleware.Message // its ToolCallID is the id on the wire
	key   string             // the one member of response, whose string is the text; "": the text is all of response
	text  string
	media []string
}

// textKeys are the members of response that are its text if they are its only member. The
// server gives a meaning to the first two; clients write the others. A middleware sees the
// text alone, so that it can shorten it without knowing about the object.
var textKeys = []string{"output", "error", "result", "return_value", "response", "content"}

// known are the members of a part that are read, and their kinds.
var known = [...]struct {
	name string
	kind rawjson.Kind
}{
	{"functionCall", rawjson.Object}, {"functionResponse", rawjson.Object}, {"text", rawjson.String},
	{"inlineData", rawjson.Object}, {"fileData", rawjson.Object}, {"thought", rawjson.Bool},
}

// readPart reads one part of a content. Calls count only where the model speaks,
// results only where it does not; anywhere else they are opaque. So is a part with
// a member of another kind, if it is neither a call nor a result.
func readPart(v rawjson.Value, model bool) (*piece, error) {
	var got [len(known)]rawjson.Value
	odd := false
	for m := range v.Each() {
		for i, k := range known {
			switch {
			case !isName(m.Key(), k.name):
				continue
			case m.Kind() == k.kind:
				got[i] = m
			case m.Kind() == rawjson.Null:
				got[i] = rawjson.Value{}
			case i < 2:
				return nil, codec.Shapef("%s is of kind %s", k.name, m.Kind())
			default:
				odd = true
			}
			break
		}
	}
	call, response, text, inline, file, thought := got[0], got[1], got[2], got[3], got[4], got[5].Raw() == "true"
	p := &piece{v: v, part: opaque(v)}
	var err error
	switch {
	case call.Exists() && model:
		p.call = &middleware.ToolCall{ID: codec.Text(on.Get(call, "id")), Arguments: call.Get("args").Raw(), Native: on.Native(v.Raw())}
		p.call.Name, err = on.Text(call, "name")
	case response.Exists() && !model:
		p.reply, err = readReply(response)
	case odd, call.Exists(), response.Exists():
	case text.Exists() && thought:
		p.part.Kind, p.part.Text = middleware.PartReasoning, text.Str()
	case text.Exists():
		p.part.Kind, p.part.Text = middleware.PartText, text.Str()
	case isSignature(v):
		p.part.Kind = middleware.PartText
	case !thought:
		p.readMedia(inline, file)
	}
	return p, err
}

// isSignature reports whether a part has no content: it is empty, or has the signature of a
// thought only.
func isSignature(v rawjson.Value) bool {
	for m := range v.Each() {
		if !isName(m.Key(), "thoughtSignature") && m.Kind() != rawjson.Null {
			return false
		}
	}
	return true
}

// opaque returns a part without a neutral meaning, such as executableCode.
func opaque(v rawjson.Value) middleware.Part {
	return middleware.Part{Kind: middleware.PartOpaque, Native: on.Native(v.Raw())}
}

// unpaired reports whether a call of a tool that the provider runs is without its result, or
// the reverse.
func unpaired(pieces []*piece) bool {
	balances := map[string]int{}
	for _, p := range pieces {
		for m := range p.v.Each() {
			switch key := m.Key(); {
			case isName(key, "executableCode"), isName(key, "toolCall"):
				balances[codec.Text(on.Get(m, "id"))]++
			case isName(key, "codeExecutionResult"), isName(key, "toolResponse"):
				balances[codec.Text(on.Get(m, "id"))]--
			}
		}
	}
	return codec.Unpaired(balances)
}

// readMedia reads inline data, or a file by its address. Data that is not base64,
// or no text, stays opaque.
func (p *piece) readMedia(inline, file rawjson.Value) {
	from, key := inline, "data"
	if !from.Exists() {
		from, key = file, "fileUri"
	}
	r := on.Reader()
	is := middleware.Part{Kind: middleware.PartMedia, MediaType: r.Text(from, "mimeType"), URL: r.Text(from, key), Native: p.part.Native}
	if inline.Exists() && r.Err == nil {
		is.Data, r.Err = unbase64(is.URL)
		is.URL = ""
	}
	if r.Err == nil && from.Exists() {
		p.part = is
	}
}

// unbase64 reads either alphabet, padded or not, as JSON of protocol buffers allows.
func unbase64(s string) ([]byte, error) {
	s = strings.TrimRight(s, "=")
	if strings.ContainsAny(s, "-_") {
		return base64.RawURLEncoding.DecodeString(s)
	}
	return base64.RawStdEncoding.DecodeString(s)
}

// readReply reads a functionResponse. Its response is an object that the client made. An
// object with a single text, such as {"output": "6 m/s"}, is read as that text; any other is
// the JSON text of the whole. Media are in parts of their own.
func readReply(fr rawjson.Value) (*reply, error) {
	in := on.Reader()
	r := &reply{is: middleware.Message{Role: middleware.RoleTool, ToolCallID: in.Text(fr, "id"), ToolName: in.Text(fr, "name")}}
	response, parts := in.Kind(fr, "response", rawjson.Object), in.Objects(fr, "parts")
	if in.Err != nil {
		return nil, in.Err
	}
	if response.Exists() && !response.Empty() {
		r.text = response.Raw()
	}
	if response.Len() == 1 {
		for m := range response.Each() {
			r.is.IsError = m.Key() == "error"
			if m.Kind() == rawjson.String && slices.Contains(textKeys, m.Key()) {
				r.key, r.text = m.Key(), m.Str()
			}
		}
	}
	if r.text != "" {
		r.is.Parts = []middleware.Part{{Text: r.text}}
	}
	for _, v := range parts {
		p, err := readPart(v, true)
		if err != nil {
			return nil, err
		}
		if p.part.Kind != middleware.PartMedia { // the text is in response
			p.part = opaque(v)
		}
		r.is.Parts, r.media = append(r.is.Parts, p.part), append(r.media, v.Raw())
	}
	return r, nil
}

// pieceOf decodes n. It is nil if n is nil or of another dialect.
func pieceOf(n *middleware.Native) (*piece, error) {
	v, err := on.Value(n)
	if err != nil || !v.Exists() {
		return nil, err
	}
	p, err := readPart(v, true)
	if err != nil {
		return nil, codec.Unencodablef("what was stored is not a part: %v", err)
	}
	return p, nil
}

// partText returns a part as a text. It is "" for the reasoning of another provider, which is
// left out, because no provider takes it. A part that became one of another kind, such as an
// image that a text describes now, is written afresh: its other members, such as the
// resolution, belong to the old one.
func partText(p middleware.Part) (string, error) {
	was, err := pieceOf(p.Native)
	switch {
	case err != nil, was == nil && p.Kind == middleware.PartReasoning:
		return "", err
	case was == nil:
		members, err := partMembers(p)
		return on.Object(members...), err
	case codec.SamePart(p, middleware.Part{Kind: middleware.PartOpaque}):
		return was.v.Raw(), nil
	case was.call != nil, was.reply != nil:
		return "", codec.Unencodablef("a call or a result in the place of a part")
	case codec.SamePart(p, was.part):
		return was.v.Raw(), nil
	}
	now, err := partMembers(p)
	switch {
	case err != nil:
		return "", err
	case p.Kind == was.part.Kind && (p.URL == "") == (was.part.URL == ""):
		before, _ := partMembers(was.part) // without any where it could not be written
		return on.Write(was.v, before, now)
	case p.Kind == middleware.PartReasoning:
		return "", codec.Unencodablef("a part cannot become reasoning: keep its Kind")
	}
	return on.Object(now...), nil
}

// partMembers projects a part. Whether a text is a thought is not projected: a part
// keeps that, and no fresh part is one.
func partMembers(p middleware.Part) ([]lens.Member, error) {
	switch {
	case p.Kind == middleware.PartText || p.Kind == middleware.PartReasoning:
		if p.Data != nil || p.URL != "" || p.MediaType != "" {
			return nil, codec.Unencodablef("a text part with data: clear Data, URL and MediaType")
		}
		return []lens.Member{lens.Text("text", p.Text)}, nil
	case p.Kind != middleware.PartMedia:
		return nil, codec.Unencodablef("a part of kind %q of another provider: drop it", p.Kind)
	case p.Text != "", len(p.Data) > 0 && p.URL != "":
		return nil, codec.Unencodablef("media with Text, or with Data and URL: keep one of them")
	case p.URL != "":
		return []lens.Member{lens.Word("fileData/mimeType", p.MediaType), lens.Text("fileData/fileUri", p.URL)}, nil
	case len(p.Data) == 0:
		return nil, codec.Unencodablef("media without Data and URL: set one of them")
	case p.MediaType == "":
		return nil, codec.Unencodablef("data without a type: set Part.MediaType")
	}
	return []lens.Member{lens.Text("inlineData/mimeType", p.MediaType), lens.Text("inlineData/data", base64.StdEncoding.EncodeToString(p.Data))}, nil
}

// appendParts appends the texts of parts, without those that are left out.
func appendParts(to []string, parts []middleware.Part) ([]string, error) {
	for _, p := range parts {
		text, err := partText(p)
		if err != nil {
			return nil, err
		}
		if text != "" {
			to = append(to, text)
		}
	}
	return to, nil
}

// wireID returns the id that the wire has, or will have, for a call, "" for one by
// its place. An id that looks like one by place may be the provider's own: then its
// Native has it.
func wireID(c middleware.ToolCall) (string, error) {
	raw := on.Raw(c.Native)
	if !codec.IsPlaceID(c.ID) {
		return c.ID, nil
	}
	if !strings.Contains(raw, `"id"`) && !strings.Contains(raw, `\`) { // nothing to read
		return "", nil
	}
	was, err := pieceOf(c.Native)
	if err != nil || was.call == nil || was.call.ID == "" {
		return "", err
	}
	return c.ID, nil
}

// callText returns a call as a text. In an answer the arguments must be an object; a request
// has {} for any others. Built-in calls are function calls here.
func callText(c middleware.ToolCall, answer bool) (string, error) {
	was, err := pieceOf(c.Native)
	switch {
	case err != nil:
		return "", err
	case c.Kind != middleware.KindFunction && c.Kind != middleware.KindBuiltin:
		return "", codec.Unencodablef("a call of kind %q: this format has function calls only", c.Kind)
	case was == nil:
		was = &piece{call: &middleware.ToolCall{}}
	case was.call == nil:
		return "", codec.Unencodablef("a part in the place of a call")
	}
	switch {
	case was.v.Exists() && c.Arguments == was.call.Arguments, codec.IsObject(c.Arguments):
	case !answer:
		c.Arguments = "{}"
	case c.Arguments != "":
		return "", codec.Unencodablef("arguments that are not a JSON object: repair them, or drop the call")
	}
	if was.call.ID == "" && codec.IsPlaceID(c.ID) {
		c.ID = ""
	}
	return on.Write(was.v, callMembers(*was.call), callMembers(c))
}

// callMembers projects a call. An id or args that were missing stay missing if unchanged.
func callMembers(c middleware.ToolCall) []lens.Member {
	return []lens.Member{
		lens.Word("functionCall/id", c.ID),
		lens.Text("functionCall/name", c.Name),
		lens.Raw("functionCall/args", c.Arguments),
	}
}

// replyOf reads the part of n, a result, from the content that is n's text. The Native of a
// tool message is a content, not a part, so that its role is kept. It is nil if n is nil, of
// another dialect, or not the Native of a result.
func replyOf(n *middleware.Native) (*piece, error) {
	v, err := on.Value(n)
	if err != nil || !v.Exists() {
		return nil, err
	}
	c, err := readContent(v, on.Get(v, "role").Str() == "model")
	if err != nil {
		return nil, codec.Unencodablef("what was stored is not content: %v", err)
	}
	if i := first(c.pieces, -1, func(p *piece) bool { return p.reply != nil }); i >= 0 {
		return c.pieces[i], nil
	}
	return nil, nil
}

// replyText returns a result, which was old or is new, as a text with that id. The
// form of the client's response stays as long as it can hold the new text: the key
// of a single text, or an object for an object.
func replyText(m middleware.Message, old *piece, id string) (string, error) {
	media, err := appendParts(nil, slices.DeleteFunc(slices.Clone(m.Parts), func(p middleware.Part) bool { return p.Kind == middleware.PartText }))
	if err != nil {
		return "", err
	}
	if old == nil {
		if m.ToolName == "" {
			return "", codec.Unencodablef("a result without the name of its tool: set ToolName")
		}
		return on.Object(replyMembers(m, id, freshResponse(m), media)...), nil
	}
	was := old.reply
	before, now := lens.Raw(responseKey, was.text), freshResponse(m)
	if was.key != "" {
		before = lens.Text(responseKey+"/"+was.key, was.text)
	}
	switch text := m.Text(); {
	case m.IsError != was.is.IsError:
	case was.key != "":
		now = lens.Text(before.Key, text)
	case text == was.text || codec.IsObject(text) && was.text != "":
		now.Raw = text
	}
	return on.Write(old.v, replyMembers(was.is, was.is.ToolCallID, before, was.media), replyMembers(m, id, now, media))
}

const responseKey = "functionResponse/response"

// freshResponse is the response of a result that has no form of the client's own.
func freshResponse(m middleware.Message) lens.Member {
	key := "output"
	if m.IsError {
		key = "error"
	}
	return lens.Raw(responseKey, codec.Object(lens.Text(key, m.Text())))
}

// replyMembers projects a result: its id on the wire, its name, its text and its
// media.
func replyMembers(m middleware.Message, id string, result lens.Member, media []string) []lens.Member {
	return []lens.Member{lens.Word("functionResponse/id", id), lens.Text("functionResponse/name", m.ToolName), result, lens.List("functionResponse/parts", media)}
}
