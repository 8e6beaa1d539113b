package anthropic

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// contentOf returns the blocks of the member key of holder: the elements of a list, or one
// text.
func contentOf(holder rawjson.Value, key string) ([]rawjson.Value, error) {
	if v := on.Get(holder, key); v.Kind() == rawjson.String {
		return []rawjson.Value{v}, nil
	}
	return on.List(holder, key, rawjson.Object)
}

// readMessage reads an element of messages: a message for every tool result, and one for the
// blocks between two results. For example,
//
//	{"role": "user", "content": [{"type": "tool_result", …}, {"type": "tool_result", …}, {"type": "text", …}]}
//
// becomes two tool messages and a user message. lens.History finds the messages of one element
// again, and they are written as one element.
func readMessage(v rawjson.Value) (out []middleware.Message, err error) {
	role := middleware.Role(v.Get("role").Str())
	switch role {
	case middleware.RoleUser, middleware.RoleAssistant, middleware.RoleSystem:
	default:
		return nil, codec.Shapef("a message of an unknown role, or none")
	}
	content, err := contentOf(v, "content")
	if err != nil {
		return nil, err
	}
	open := false // whether the last message takes further blocks
	for _, c := range content {
		if isResult(role, c) {
			m, err := readResult(c)
			if err != nil {
				return nil, err
			}
			out, open = append(out, m), false
			continue
		}
		if !open {
			out, open = append(out, middleware.Message{Role: role}), true
		}
		b, err := readBlock(c, role)
		if err != nil {
			return nil, err
		}
		add(&out[len(out)-1], b)
	}
	if len(out) == 0 {
		out = []middleware.Message{{Role: role}}
	}
	for i := range out {
		text := v.Raw()
		if len(out) > 1 {
			text = share(out[i])
		}
		out[i].Native = on.Native(text)
	}
	return out, nil
}

// isResult reports whether a block is a tool message of its own. Only the client
// answers calls: a result in a message of the assistant is of a hosted tool.
func isResult(role middleware.Role, v rawjson.Value) bool {
	return role == middleware.RoleUser && v.Get("type").Str() == "tool_result"
}

// add adds a block to the parts or to the calls of m.
func add(m *middleware.Message, b block) {
	if b.isCall {
		m.ToolCalls = append(m.ToolCalls, b.call)
	} else {
		m.Parts = append(m.Parts, b.part)
	}
}

// share returns m, one of several messages of an element, as an element of its
// own. Other members of the element are not repeated: they would be, for each of
// its results.
func share(m middleware.Message) string {
	blocks := lens.TextsOf(m.Parts, func(p middleware.Part) string { return p.Native.Raw })
	if m.Role == middleware.RoleTool {
		blocks = []string{m.Native.Raw}
	}
	return on.Object(lens.Text("role", "user"), lens.Raw("content", codec.Array(blocks)))
}

// readResult reads a tool_result, whose text it leaves as Native.
func readResult(v rawjson.Value) (m middleware.Message, err error) {
	r := on.Reader()
	m = middleware.Message{Role: middleware.RoleTool, ToolCallID: r.Text(v, "tool_use_id"), IsError: r.Kind(v, "is_error", rawjson.Bool).Raw() == "true", Native: on.Native(v.Raw())}
	if r.Err != nil {
		return m, r.Err
	}
	content, err := contentOf(v, "content")
	for _, c := range content {
		b, err := readBlock(c, m.Role)
		if err != nil {
			return m, err
		}
		add(&m, b)
	}
	return m, err
}

// origin is the state in which a message was read. It is decoded from the text of the
// message's Native alone, so a message from storage, or from another request, is edited in the
// same way. The zero origin belongs to a fresh message.
type origin struct {
	v      rawjson.Value // the element of messages, absent for none
	result rawjson.Value // of a tool message
	texts  []string      // of the blocks
}

// readOrigin decodes the Native of m. A message without an origin had another role, or was an
// answer without content, which no request can hold.
func readOrigin(m middleware.Message) (o origin, err error) {
	v, err := on.Value(m.Native)
	role := middleware.Role(v.Get("role").Str())
	if err != nil || role == "" {
		if m.Role == middleware.RoleSystem && v.Exists() { // a block of the system prompt
			o.texts = []string{v.Raw()}
		}
		return o, err
	}
	content, err := contentOf(v, "content")
	if err == nil && len(content) > 0 && isResult(role, content[0]) {
		if len(content) > 1 {
			return o, codec.Unencodablef("what was stored: several messages")
		}
		role, o.result = middleware.RoleTool, content[0]
		content, err = contentOf(o.result, "content")
	}
	if role != m.Role || role == middleware.RoleAssistant && len(content) == 0 {
		return origin{}, stored(err)
	}
	o.v, o.texts = v, lens.Raws(content)
	return o, stored(err)
}

// stored makes ErrUnencodable of the error of a text that was stored.
func stored(err error) error {
	if err != nil {
		return codec.Unencodablef("what was stored: %v", err)
	}
	return nil
}

// contentsOf returns the blocks of m, and its origin. A result is one block. Each block is a
// JSON text: an object, or a string for a text without further members.
func contentsOf(m middleware.Message) (o origin, contents []string, err error) {
	if m.Role != middleware.RoleAssistant && len(m.ToolCalls) > 0 {
		return o, nil, codec.Unencodablef("tool calls in a message that is not the assistant's: drop them")
	}
	if o, err = readOrigin(m); err != nil {
		return o, nil, err
	}
	if contents, err = historyTexts(m, o.texts); err != nil || m.Role != middleware.RoleTool {
		return o, contents, err
	}
	text, err := o.resultText(m, contents)
	return o, []string{text}, err
}

// historyTexts returns the parts and calls of m in the order of the wire; old are the texts
// that m held. It leaves out what no provider takes: reasoning of another one,
// and text that is empty, unless it was there.
func historyTexts(m middleware.Message, old []string) ([]string, error) {
	return on.Arrange(m, old, math.MaxInt, func(p middleware.Part, at int) (string, error) {
		text, err := partText(p)
		if p.Kind == middleware.PartText && p.Text == "" && (at < 0 || text != old[at]) {
			text = ""
		}
		return text, err
	}, func(c middleware.ToolCall, _ int) (string, error) { return callText(c, true) })
}

// resultText returns m, a tool message with those contents, as a tool_result.
func (o origin) resultText(m middleware.Message, contents []string) (string, error) {
	if !o.result.Exists() {
		members := resultMembers(o.result, m)
		if len(contents) > 0 {
			members = append(members[:2:2], lens.Raw("content", freshContent(contents)), members[2])
		}
		return on.Object(members...), nil
	}
	was, err := readResult(o.result)
	if err != nil {
		return "", stored(err)
	}
	e := on.Edit(o.result)
	e.Put(lens.Differ(resultMembers(o.result, was), resultMembers(o.result, m))...)
	putContent(e, o.result, "content", contents)
	return e.Text()
}

// resultMembers projects a result, but for its content. v is its text. A flag
// that the text has stays, as false too.
func resultMembers(v rawjson.Value, m middleware.Message) []lens.Member {
	failed := lens.Flag("is_error", m.IsError)
	if on.Get(v, "is_error").Exists() {
		failed.Raw = strconv.FormatBool(m.IsError)
	}
	return []lens.Member{lens.Text("type", "tool_result"), lens.Text("tool_use_id", m.ToolCallID), failed}
}

// element returns the messages of run as an element of messages. It is "" for an
// assistant message without content, which the provider refuses.
func (h *request) element(run lens.Run) (string, error) {
	var contents []string
	var o origin
	for _, m := range run.Messages {
		of, more, err := contentsOf(m)
		if err != nil {
			return "", err
		}
		o, contents = of, append(contents, more...)
	}
	role := run.Messages[0].Role
	switch role {
	case middleware.RoleTool:
		role = middleware.RoleUser
	case middleware.RoleAssistant:
		if len(contents) == 0 {
			return "", nil
		}
	case middleware.RoleUser, middleware.RoleSystem:
	default:
		return "", codec.Unencodablef("a message of role %q, which this format does not know", role)
	}
	switch {
	case run.Group >= 0:
		o.v = h.elements[run.Group]
	case len(run.Messages) > 1:
		o.v = rawjson.Value{} // several elements of other requests
	}
	if !o.v.Exists() {
		return on.Object(lens.Text("role", string(role)), lens.Raw("content", freshContent(contents))), nil
	}
	e := on.Edit(o.v)
	putContent(e, o.v, "content", contents)
	if role == middleware.RoleAssistant {
		e.Put(lens.None("container")) // see container
	}
	return e.Text()
}

// container names the container in which code goes on to run: the one of the answer to which the
// request replies, because its files are gone in another one. was is the request's own.
func container(was rawjson.Value, messages []middleware.Message) lens.Member {
	key := "container"
	if was.Kind() == rawjson.Object {
		key = "container/id"
	}
	named := was.Kind() == rawjson.String || was.Get("id").Str() != ""
	for i := len(messages) - 1; !named && i >= 0 && (messages[i].Role == middleware.RoleTool || messages[i].Role == middleware.RoleAssistant); i-- {
		if v, err := on.Value(messages[i].Native); err == nil && messages[i].Role == middleware.RoleAssistant && v.Get("container").Str() != "" {
			return lens.Text(key, v.Get("container").Str())
		}
	}
	return lens.None(key)
}

// block is a content block: a part, or a call of the assistant's. Its Native is its
// own text, which is how a message that was changed finds its blocks again.
type block struct {
	part   middleware.Part
	call   middleware.ToolCall
	isCall bool

	// of an answer
	raw string // as it came; of a stream, as it was put together
	odd bool   // out of shape: history leaves it out

	// of a provider-executed tool: the id that a call and its result share, and 1 or -1
	pair string
	side int

	// of a stream, but not of a call
	joined string      // the block with the pieces of its input as one string
	deltas []deltaKind // that bring its pieces
	ends   []int       // of the pieces of its input, in joined
}

// native returns the Native of the part or of the call.
func (b *block) native() *middleware.Native {
	if b.isCall {
		return b.call.Native
	}
	return b.part.Native
}

// readBlock reads a content block of a message of that role. A string is a text block.
// Encrypted reasoning is a reasoning part without a text, so that it is kept. A tool_use in a
// message of another role than the assistant is not a call: it stays opaque.
func readBlock(v rawjson.Value, role middleware.Role) (b block, err error) {
	p := middleware.Part{Native: on.Native(v.Raw())}
	if v.Kind() == rawjson.String {
		p.Text = v.Str()
		return block{part: p}, nil
	}
	if v.Kind() != rawjson.Object || v.Get("type").Kind() != rawjson.String {
		return b, codec.Shapef("a content block without a type")
	}
	switch kind := v.Get("type").Str(); {
	case kind == "text":
		p.Text, err = on.Text(v, "text")
	case kind == "thinking":
		p.Kind = middleware.PartReasoning
		p.Text, err = on.Text(v, "thinking")
	case kind == "redacted_thinking":
		p.Kind = middleware.PartReasoning
	case kind == "tool_use" && role == middleware.RoleAssistant:
		c, err := readCall(v)
		return block{call: c, isCall: true}, err
	default:
		p.Kind = middleware.PartOpaque
		if kind == "image" || kind == "document" {
			readMedia(v, kind, &p)
		}
	}
	return block{part: p}, err
}

// readMedia reads what has neutral form into p; a file id or a list of blocks
// has none, and stays opaque:
//
//	{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": …}}
//	{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": …}}
//	{"type": "document", "source": {"type": "url", "url": …}}
func readMedia(v rawjson.Value, kind string, p *middleware.Part) {
	source := v.Get("source")
	media := middleware.Part{Kind: middleware.PartMedia, MediaType: source.Get("media_type").Str(), Native: p.Native}
	switch source.Get("type").Str() {
	case "base64":
		data, err := base64.StdEncoding.DecodeString(source.Get("data").Str())
		if err != nil {
			return
		}
		media.Data = data
	case "text":
		media.Data = []byte(source.Get("data").Str())
	case "url":
		media.URL = source.Get("url").Str()
		if kind == "document" && media.MediaType == "" {
			media.MediaType = "application/pdf" // the only one that the provider takes from an address
		}
	}
	if len(media.Data) > 0 || media.URL != "" {
		*p = media
	}
}

// readCall reads a tool_use.
func readCall(v rawjson.Value) (c middleware.ToolCall, err error) {
	if v.Get("type").Str() != "tool_use" {
		return c, codec.Shapef("a block that is not a tool_use")
	}
	in := on.Reader()
	c = middleware.ToolCall{ID: in.Name(v, "id"), Name: in.Name(v, "name"), Arguments: v.Get("input").Raw(), Native: on.Native(v.Raw())}
	return c, in.Err
}

// callText returns c as a tool_use. The provider refuses a history in which
// arguments are no object: there it is {}, unless it came so from the client. In an
// answer such arguments are an error, because {} would be a call that the model did
// not write.
func callText(c middleware.ToolCall, history bool) (string, error) {
	return lens.Rewrite(on, c.Native, c, codec.SameCall, readCall, func(v rawjson.Value, c middleware.ToolCall) ([]lens.Member, error) {
		switch was := v.Get("input"); {
		case c.Kind != middleware.KindFunction:
			return nil, codec.Unencodablef("a call of kind %q: this format has function calls only", c.Kind)
		case v.Exists() && c.Arguments == was.Raw(), codec.IsObject(c.Arguments):
		case history:
			c.Arguments = "{}"
		default:
			return nil, codec.Unencodablef("arguments that are not a JSON object: repair them, or drop the call")
		}
		return []lens.Member{lens.Text("type", "tool_use"), lens.Text("id", c.ID), lens.Text("name", c.Name), lens.Raw("input", c.Arguments)}, nil
	})
}

// partText returns p as a content block; a string is a text without further members. It is ""
// for a part that no request can hold: reasoning of another provider, and a malformed block of
// an answer.
func partText(p middleware.Part) (string, error) {
	v, err := on.Value(p.Native)
	if err != nil {
		return "", err
	}
	if !v.Exists() {
		return freshPart(p)
	}
	b, err := readBlock(v, middleware.RoleUser)
	was, edited := b.part, b.part
	edited.Text = p.Text
	switch key := textKey(v); {
	case p.Kind == middleware.PartOpaque && (err != nil || v.Kind() != rawjson.Object):
		return "", nil
	case err != nil:
		return "", stored(err)
	case codec.SamePart(p, was):
		return v.Raw(), nil
	case p.Kind == middleware.PartMedia && was.Kind == p.Kind:
		members, err := mediaMembers(p)
		if err != nil {
			return "", err
		}
		return on.Set(v, lens.Differ([]lens.Member{lens.Raw("type", v.Get("type").Raw())}, members)...)
	case key == "" || !codec.SamePart(p, edited):
		return "", codec.Unencodablef("only the text of a block can change, and nothing of signed reasoning: drop the part, or leave it")
	case v.Kind() == rawjson.String:
		return rawjson.Quote(p.Text), nil
	default:
		return on.Set(v, lens.Text(key, p.Text))
	}
}

// textKey names the member with the text of a block; "" if it cannot be changed,
// as reasoning that the provider has signed.
func textKey(v rawjson.Value) string {
	switch kind := v.Get("type").Str(); {
	case kind == "text", v.Kind() == rawjson.String:
		return "text"
	case kind == "thinking" && v.Get("signature").Str() == "":
		return "thinking"
	}
	return ""
}

// freshPart returns a part that is not of this format; "" for reasoning, which no
// provider takes from another one.
func freshPart(p middleware.Part) (string, error) {
	switch p.Kind {
	case middleware.PartText:
		return rawjson.Quote(p.Text), nil
	case middleware.PartReasoning:
		return "", nil
	case middleware.PartMedia:
		members, err := mediaMembers(p)
		return on.Object(members...), err
	}
	return "", codec.Unencodablef("a part that only its own provider knows: drop it")
}

// mediaMembers projects the type of the block that holds p, and its source. The
// provider takes images in any form, PDF by data or address, and plain text by its
// data. Media without a type are taken for an image, the only kind whose type it
// finds out itself.
func mediaMembers(p middleware.Part) ([]lens.Member, error) {
	image, pdf := strings.HasPrefix(p.MediaType, "image/"), p.MediaType == "application/pdf"
	kind := "document"
	if image || p.MediaType == "" {
		kind = "image"
	}
	source := []lens.Member{lens.Text("type", "url"), lens.Text("url", p.URL)}
	switch data := len(p.Data) > 0; {
	case data && p.MediaType == "text/plain" && utf8.Valid(p.Data):
		source = []lens.Member{lens.Text("type", "text"), lens.Text("media_type", p.MediaType), lens.Text("data", string(p.Data))}
	case data && (image || pdf):
		source = []lens.Member{lens.Text("type", "base64"), lens.Text("media_type", p.MediaType), lens.Text("data", base64.StdEncoding.EncodeToString(p.Data))}
	case !data && p.URL != "" && (kind == "image" || pdf):
	default:
		return nil, codec.Unencodablef("media that is not an image, a PDF or plain text: drop the part")
	}
	return []lens.Member{lens.Text("type", kind), lens.Raw("source", on.Object(source...))}, nil
}

// asBlocks returns contents as the elements of a list: a string becomes a block.
func asBlocks(contents ...string) []string {
	out := slices.Clone(contents)
	for i, c := range contents {
		if strings.HasPrefix(c, `"`) {
			out[i] = `{"type":"text","text":` + c + `}`
		}
	}
	return out
}

// freshContent returns contents as a value of its own: a single text as a string,
// as most clients write it.
func freshContent(contents []string) string {
	switch {
	case len(contents) == 0:
		return `""`
	case len(contents) == 1 && strings.HasPrefix(contents[0], `"`):
		return contents[0]
	}
	return codec.Array(asBlocks(contents...))
}

// putContent makes contents the member key of holder, which e is an edit of; a
// list stays one, so that its other elements are not touched.
func putContent(e *lens.Edit, holder rawjson.Value, key string, contents []string) {
	old, err := contentOf(holder, key)
	switch {
	case err == nil && slices.Equal(lens.Raws(old), contents):
	case holder.Get(key).Kind() == rawjson.Array:
		e.Elements(key, asBlocks(contents...))
	default:
		e.Put(lens.Raw(key, freshContent(contents)))
	}
}
