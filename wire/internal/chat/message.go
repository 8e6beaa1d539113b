package chat

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// functionRole is the role of the reply to a call in the old form.
const functionRole = "function"

// roleOf returns the neutral role of the wire's word; others pass as they are.
func roleOf(word string) middleware.Role {
	switch word {
	case "developer":
		return middleware.RoleSystem
	case functionRole:
		return middleware.RoleTool
	}
	return middleware.Role(word)
}

// readMessage reads a message of a request's history.
func readMessage(v rawjson.Value) (middleware.Message, error) {
	m := middleware.Message{Native: on.Native(v.Raw())}
	if v.Kind() != rawjson.Object {
		return m, codec.Shapef("a message is of kind %s", v.Kind())
	}
	if m.Role = roleOf(v.Get("role").Str()); m.Role == "" {
		return m, codec.Shapef("a message without a role")
	}
	if m.Role == middleware.RoleTool {
		m.ToolCallID, m.ToolName = codec.Text(v.Get("tool_call_id")), v.Get("name").Str()
	}
	var err error
	if m.Parts, err = readParts(v); err != nil {
		return m, err
	}
	m.ToolCalls, err = readCalls(v)
	return m, err
}

// editMessage returns v, the text of the message was, with the content of now.
func editMessage(v rawjson.Value, was, now middleware.Message) (string, error) {
	if now.Role == "" {
		return "", codec.Unencodablef("a message without a role")
	}
	before, _ := headMembers(v, was)
	after, err := headMembers(v, now)
	if err != nil {
		return "", err
	}
	e := on.Edit(v)
	e.Put(lens.Differ(before, after)...)
	if err := editParts(e, v, was.Parts, now); err != nil {
		return "", err
	}
	if err := editCalls(e, v, was.ToolCalls, now.ToolCalls); err != nil {
		return "", err
	}
	return e.Text()
}

// headMembers projects the members of a message other than parts and calls. v is the text to
// edit, absent for a fresh message. A reply in the old form has no id. A name that the text
// does not have is not written.
func headMembers(v rawjson.Value, m middleware.Message) ([]lens.Member, error) {
	word := v.Get("role")
	members := []lens.Member{lens.Text("role", string(m.Role))}
	if roleOf(word.Str()) == m.Role {
		members[0].Raw = word.Raw()
	}
	old := word.Str() == functionRole
	if old && m.ToolCallID != "" && !codec.IsPlaceID(m.ToolCallID) {
		return nil, codec.Unencodablef("an id for the reply to a function_call")
	}
	if !old && (m.Role == middleware.RoleTool || m.ToolCallID != "") {
		members = append(members, lens.Text("tool_call_id", m.ToolCallID))
	}
	if v.Get("name").Str() != "" && roleOf(word.Str()) == middleware.RoleTool {
		members = append(members, lens.Text("name", m.ToolName))
	}
	return members, nil
}

// editParts puts the parts of now into an edit of v. Those in members of
// their own and those in content do not know of each other: the order in which a
// middleware puts one of each is not kept.
func editParts(e *lens.Edit, v rawjson.Value, was []middleware.Part, now middleware.Message) error {
	if slices.EqualFunc(was, now.Parts, samePart) {
		return nil
	}
	wasItems, before, err := sortParts(was)
	if err != nil {
		return err
	}
	items, after, err := sortParts(now.Parts)
	if err != nil {
		return err
	}
	for _, m := range before {
		if !slices.ContainsFunc(after, func(n lens.Member) bool { return n.Key == m.Key }) {
			e.Put(lens.None(m.Key))
		}
	}
	e.Put(lens.Differ(before, after)...)
	if slices.EqualFunc(wasItems, items, samePart) {
		return nil
	}
	content := v.Get("content")
	if content.Kind() != rawjson.Array || len(items) == 0 {
		raw, err := contentText(now.Role, items)
		e.Put(lens.Raw("content", raw))
		return err
	}
	texts, err := itemTexts(lens.Raws(slices.Collect(content.Each())), items)
	e.Elements("content", texts)
	return err
}

// itemTexts writes parts as elements of a list that has the texts have. A bare
// text among them stays one.
func itemTexts(have []string, parts []middleware.Part) ([]string, error) {
	texts := lens.TextsOf(parts, func(p middleware.Part) string { return on.Raw(p.Native) })
	for i, at := range lens.Align(have, texts) {
		v, err := on.Value(parts[i].Native)
		if err == nil && (at < 0 || !codec.SamePart(readPart(v), parts[i])) {
			texts[i], err = itemText(parts[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// samePart reports whether a part is what was decoded.
func samePart(was, now middleware.Part) bool {
	return codec.SameNative(was.Native, now.Native) && codec.SamePart(was, now)
}

// editCalls puts the calls now into an edit of v. A message that had its call in the old
// form keeps that form.
func editCalls(e *lens.Edit, v rawjson.Value, was, now []middleware.ToolCall) error {
	if slices.EqualFunc(was, now, sameCall) {
		return nil
	}
	old, key := isOldTurn(v), "tool_calls" // by the place: an element of tool_calls may look like a function_call
	if len(was) == 0 {
		old = oldCall(now)
	}
	if old {
		key = "function_call"
	}
	switch {
	case !old && hasFunction(v) && len(was) > 0:
		return codec.Unencodablef("a call in both forms")
	case old && len(now) > 1:
		return codec.Unencodablef("a function_call has room for one call")
	case len(now) == 0:
		e.Put(lens.None(key))
		return nil
	}
	texts, err := lens.Convert(now, func(c middleware.ToolCall) (string, error) { return callText(c, old) })
	if err != nil {
		return err
	}
	if old {
		e.Put(lens.Raw(key, texts[0]))
	} else {
		e.Elements(key, texts)
	}
	return nil
}

// messageText writes m as an element of a request: its own text with its changes or, without
// one, afresh. before are the messages before it.
func messageText(m middleware.Message, before []middleware.Message) (string, error) {
	v, err := on.Value(m.Native)
	switch {
	case err != nil:
		return "", err
	case !v.Exists():
		return freshMessage(m, before)
	}
	was, err := readMessage(v)
	if err != nil {
		return "", codec.Unencodablef("what was stored: %v", err)
	}
	return editMessage(v, was, m)
}

// freshMessage writes m from its neutral fields, as a change of an empty message. Parts and
// calls with a Native of this format keep their text.
func freshMessage(m middleware.Message, before []middleware.Message) (string, error) {
	members := []lens.Member{lens.Text("role", string(m.Role))}
	switch {
	case m.Role != middleware.RoleTool:
	case answersOld(m.ToolCallID, before):
		members, m.ToolCallID = []lens.Member{lens.Text("role", functionRole), lens.Text("name", m.ToolName)}, ""
	default:
		members = append(members, lens.Text("tool_call_id", ""))
	}
	content := lens.Text("content", "")
	if len(m.ToolCalls) > 0 {
		content.Raw = "null"
	}
	v, err := codec.ParseObject(codec.Object(append(members, content)...))
	if err != nil {
		return "", err
	}
	return editMessage(v, middleware.Message{Role: m.Role}, m)
}

// answersOld reports whether the call of that id, which one of before has, came
// in the old form.
func answersOld(id string, before []middleware.Message) bool {
	for _, m := range slices.Backward(before) {
		if slices.ContainsFunc(m.ToolCalls, func(c middleware.ToolCall) bool { return c.ID == id }) {
			return oldCall(m.ToolCalls)
		}
	}
	return false
}

// form is how a thing is written that comes in several forms, such as a call in
// tool_calls or in function_call. members projects onto the form that v has or, for
// a fresh one, onto the form that is wanted.
type form[T any] struct {
	read    func(v rawjson.Value) (T, error)
	fits    func(v rawjson.Value, was T) bool // v, which was is read from, can be edited
	members func(v rawjson.Value, value T) ([]lens.Member, error)
}

// rewrite is lens.Rewrite for a thing that comes in several forms: now is written
// afresh if the text of n has another one.
func rewrite[T any](n *middleware.Native, now T, same func(was, now T) bool, f form[T]) (string, error) {
	if v, err := on.Value(n); err == nil && v.Exists() {
		switch was, err := f.read(v); {
		case err != nil: // lens.Rewrite returns it
		case !f.fits(v, was):
			n = nil
		case same(was, now):
			return v.Raw(), nil
		}
	}
	return lens.Rewrite(on, n, now, same, f.read, f.members)
}

// readPart reads a part from its text, which has one of three forms:
//
//	"Hello"                                            the whole content
//	{"type": "text", "text": "Hello"}                  an element of a content list
//	{"role": "assistant", "reasoning_content": "Hm."}  members of the message
//
// The third form is not one piece of the body. It is a message with only a role and the
// members of the part, so that storage keeps all of it.
func readPart(v rawjson.Value) middleware.Part {
	p := middleware.Part{Kind: middleware.PartOpaque}
	switch {
	case v.Kind() == rawjson.String:
		p = middleware.Part{Text: v.Str()}
	case isOwn(v) && hasReasoning(v):
		p = middleware.Part{Kind: middleware.PartReasoning, Text: reasoningText(v)}
	case isOwn(v) && v.Get("refusal").Kind() == rawjson.String:
		p = middleware.Part{Text: v.Get("refusal").Str()}
	case v.Kind() == rawjson.Object && !isOwn(v):
		p = readItem(v)
	}
	p.Native = on.Native(v.Raw())
	return p
}

// isOwn tells the members of a message from an element of a list, which has no
// role. An element with a role would be taken for a message: readParts refuses it.
func isOwn(v rawjson.Value) bool { return v.Get("role").Exists() && !v.Get("type").Exists() }

// ownPart returns a part that is made of members of the message. The role in its Native
// distinguishes it from an element of a list.
func ownPart(kind middleware.PartKind, text string, members ...lens.Member) middleware.Part {
	raw := codec.Object(append([]lens.Member{lens.Text("role", "assistant")}, members...)...)
	return middleware.Part{Kind: kind, Text: text, Native: on.Native(raw)}
}

// itemKind returns the type of an element of a content list. All that have a
// text are the same to a reader.
func itemKind(v rawjson.Value) string {
	kind := v.Get("type")
	word := kind.Str()
	if kind.Kind() == rawjson.String && word != "text" && word != "input_text" && word != "output_text" {
		return word
	}
	if v.Get("text").Kind() == rawjson.String {
		return "text"
	}
	return ""
}

// urlKinds are the types of elements that hold an address.
var urlKinds = []string{"image_url", "video_url", "audio_url", "document_url", "file_url"}

// readItem reads an element of a content list, such as
//
//	{"type": "text", "text": …}
//	{"type": "thinking", "thinking": [{"type": "text", "text": …}]}           Mistral
//	{"type": "image_url", "image_url": {"url": address or data}}
//	{"type": "input_audio", "input_audio": {"data": base64, "format": "wav"}}
//	{"type": "file", "file": {"filename": …, "file_data": data}}
//
// A part whose type is not certain is opaque: a file by its id, an address of unknown type.
func readItem(v rawjson.Value) middleware.Part {
	kind := itemKind(v)
	switch {
	case kind == "text" || kind == "refusal":
		return middleware.Part{Text: v.Get(kind).Str()}
	case kind == "thinking":
		return middleware.Part{Kind: middleware.PartReasoning, Text: thinking(v.Get(kind))}
	case slices.Contains(urlKinds, kind):
		url := v.Get(kind).Str()
		if url == "" {
			url = v.Get(kind).Get("url").Str()
		}
		if mediaType, data, ok := codec.FromDataURL(url); ok {
			return middleware.Part{Kind: middleware.PartMedia, MediaType: mediaType, Data: data}
		}
		if kind == "image_url" && url != "" && !strings.HasPrefix(url, "data:") {
			return middleware.Part{Kind: middleware.PartMedia, URL: url}
		}
	case kind == "input_audio":
		data, err := base64.StdEncoding.DecodeString(v.Get(kind).Get("data").Str())
		if format := v.Get(kind).Get("format").Str(); err == nil && len(data) > 0 && format != "" {
			return middleware.Part{Kind: middleware.PartMedia, MediaType: audioType(format), Data: data}
		}
	case kind == "file":
		if mediaType, data, ok := codec.FromDataURL(v.Get(kind).Get("file_data").Str()); ok {
			return middleware.Part{Kind: middleware.PartMedia, MediaType: mediaType, Data: data}
		}
	}
	return middleware.Part{Kind: middleware.PartOpaque}
}

// thinking returns the text of a thinking item, which is a text or a list of
// texts.
func thinking(v rawjson.Value) string {
	if v.Kind() == rawjson.String {
		return v.Str()
	}
	var b strings.Builder
	for t := range v.Each() {
		b.WriteString(t.Get("text").Str())
	}
	return b.String()
}

// itemText returns p as an element of a content list.
func itemText(p middleware.Part) (string, error) {
	return rewrite(p.Native, p, codec.SamePart, form[middleware.Part]{
		read: func(v rawjson.Value) (middleware.Part, error) { return readPart(v), nil },
		fits: func(v rawjson.Value, was middleware.Part) bool {
			return v.Kind() != rawjson.String && !isOwn(v) && was.Kind == p.Kind
		},
		members: itemMembers,
	})
}

// itemMembers projects p onto an element of the same type as v or, without v, of
// the type that p is written as. What an element of that type has no member for
// is refused.
func itemMembers(v rawjson.Value, p middleware.Part) ([]lens.Member, error) {
	fresh, kind := !v.Exists(), itemKind(v)
	var members []lens.Member
	if fresh {
		kind = freshKind(p)
		members = append(members, lens.Text("type", kind))
	}
	switch {
	case kind == "text" || kind == "refusal":
		return append(members, lens.Text(kind, p.Text)), nil
	case kind == "thinking" && v.Get(kind).Kind() == rawjson.Array:
		return []lens.Member{lens.Raw(kind, thinkingList(p.Text))}, nil
	case kind == "thinking":
		return []lens.Member{lens.Text(kind, p.Text)}, nil
	}
	media := mediaMembers(v, kind, p)
	if media == nil {
		return nil, codec.Unencodablef("a part of kind %q without a place in its item", p.Kind)
	}
	return append(members, media...), nil
}

// mediaMembers returns the members of an element with the media of p; nil if the element
// cannot have them.
func mediaMembers(v rawjson.Value, kind string, p middleware.Part) []lens.Member {
	url, data := codec.DataURL(p), len(p.Data) > 0
	switch {
	case slices.Contains(urlKinds, kind) && v.Get(kind).Kind() == rawjson.String && url != "":
		return []lens.Member{lens.Text(kind, url)}
	case slices.Contains(urlKinds, kind) && url != "":
		return []lens.Member{lens.Text(kind+"/url", url)}
	case kind == "input_audio" && data && strings.HasPrefix(p.MediaType, "audio/"):
		return []lens.Member{lens.Text("input_audio/data", base64.StdEncoding.EncodeToString(p.Data)), lens.Text("input_audio/format", audioFormat(p.MediaType))}
	case kind == "file" && data && v.Exists():
		return []lens.Member{lens.Text("file/file_data", url)}
	case kind == "file" && data:
		return []lens.Member{lens.Text("file/filename", fileName(p.MediaType)), lens.Text("file/file_data", url)}
	}
	return nil
}

// thinkingList is the content of a thinking item as Mistral writes it.
func thinkingList(text string) string {
	return codec.Array([]string{codec.Object(lens.Text("type", "text"), lens.Text("text", text))})
}

// freshKind returns the type of element that p is written as: images by address or data, sound
// as data, videos as most compatible servers want them, and any other data as a file. It is ""
// for a part without such a type.
func freshKind(p middleware.Part) string {
	family, _, _ := strings.Cut(p.MediaType, "/")
	switch data := len(p.Data) > 0; {
	case p.Kind == middleware.PartText:
		return "text"
	case p.Kind != middleware.PartMedia, data && p.MediaType == "":
		return ""
	case family == "image" || family == "":
		return "image_url"
	case family == "video":
		return "video_url"
	case family == "audio" && data:
		return "input_audio"
	case data:
		return "file"
	}
	return ""
}

// fileName is the name that OpenAI requires with the data of a file.
func fileName(mediaType string) string {
	_, sub, _ := strings.Cut(mediaType, "/")
	if sub == "" || strings.ContainsAny(sub, ".+;") {
		return "file"
	}
	return "file." + sub
}

// audioType returns the media type of what OpenAI calls a format of sound.
func audioType(format string) string {
	if format == "mp3" {
		return "audio/mpeg"
	}
	return "audio/" + format
}

// audioFormat returns what OpenAI calls a type of sound.
func audioFormat(mediaType string) string {
	switch _, sub, _ := strings.Cut(mediaType, "/"); sub {
	case "mpeg":
		return "mp3"
	case "x-wav", "wave", "vnd.wave":
		return "wav"
	default:
		return sub
	}
}

// textKeys are the members of a message that are one text each: reasoning, then other texts of
// the model. A stream brings them in pieces. A further text member needs no more than its name
// here.
var textKeys = [...]string{"reasoning_content", "reasoning", "refusal"}

// reasoningTexts is how many of textKeys are reasoning.
const reasoningTexts = 2

// reasoningKeys are the members that servers put reasoning in. A server that fills several
// puts the same text into each.
var reasoningKeys = append(textKeys[:reasoningTexts:reasoningTexts], "reasoning_details")

// hasReasoning reports whether a message has reasoning in any of its members.
func hasReasoning(v rawjson.Value) bool {
	return slices.ContainsFunc(textKeys[:reasoningTexts], func(key string) bool { return v.Get(key).Str() != "" }) ||
		v.Get("reasoning_details").Kind() == rawjson.Array && !v.Get("reasoning_details").Empty()
}

// reasoningText returns the reasoning of a message once.
func reasoningText(v rawjson.Value) string {
	for _, key := range textKeys[:reasoningTexts] {
		if s := v.Get(key).Str(); s != "" {
			return s
		}
	}
	var b strings.Builder
	for d := range v.Get("reasoning_details").Each() {
		b.WriteString(d.Get("text").Str() + d.Get("summary").Str())
	}
	return b.String()
}

// readParts reads the parts of a message: reasoning first, then its content.
func readParts(v rawjson.Value) ([]middleware.Part, error) {
	var parts []middleware.Part
	if hasReasoning(v) {
		var members []lens.Member
		for _, key := range reasoningKeys {
			if m := v.Get(key); m.Kind() == rawjson.String || m.Kind() == rawjson.Array {
				members = append(members, lens.Raw(key, m.Raw()))
			}
		}
		parts = append(parts, ownPart(middleware.PartReasoning, reasoningText(v), members...))
	}
	switch content := v.Get("content"); content.Kind() {
	case rawjson.String:
		if hasText(content) {
			parts = append(parts, readPart(content))
		}
	case rawjson.Array:
		for item := range content.Each() {
			if isOwn(item) {
				return nil, codec.Shapef("a message in a content list")
			}
			parts = append(parts, readPart(item))
		}
	case rawjson.Object: // Cloudflare sends structured output as it is
		parts = append(parts, middleware.Part{Text: content.Raw(), Native: on.Native(rawjson.Quote(content.Raw()))})
	}
	for _, key := range textKeys[reasoningTexts:] {
		if text := v.Get(key); text.Str() != "" {
			parts = append(parts, ownPart(middleware.PartText, text.Str(), lens.Raw(key, text.Raw())))
		}
	}
	if id := v.Get("audio").Get("id"); id.Str() != "" {
		audio := codec.Object(lens.Raw("id", id.Raw()))
		parts = append(parts, ownPart(middleware.PartOpaque, "", lens.Raw("audio", audio)))
	}
	return parts, nil
}

// sortParts tells the parts of a message that are its content from those in
// members of their own, of which it returns the members. Reasoning that this format did
// not write has no place: no provider takes another's. Text of reasoning_details
// cannot be told apart from what is signed there.
func sortParts(parts []middleware.Part) (items []middleware.Part, own []lens.Member, err error) {
	for _, p := range parts {
		v, err := on.Value(p.Native)
		switch {
		case err != nil:
			return nil, nil, err
		case !isOwn(v):
			if v.Exists() || p.Kind != middleware.PartReasoning {
				items = append(items, p)
			}
			continue
		}
		was := readPart(v)
		for m := range v.Each() {
			raw := m.Raw()
			switch {
			case m.Key() == "role":
				continue
			case codec.SamePart(p, was):
			case m.Kind() != rawjson.String || p.Kind != was.Kind:
				return nil, nil, codec.Unencodablef("%s holds a copy of what was changed", m.Key())
			default:
				raw = rawjson.Quote(p.Text)
			}
			own = append(own, lens.Raw(m.Key(), raw))
		}
	}
	return items, own, nil
}

// contentText writes parts as content: a text wherever that loses nothing, as
// not every server takes a list.
func contentText(role middleware.Role, parts []middleware.Part) (string, error) {
	assistant := role == middleware.RoleAssistant
	if len(parts) == 0 && assistant {
		return "null", nil
	}
	plain := len(parts) < 2 || assistant
	items, text := make([]string, len(parts)), ""
	for i, p := range parts {
		v, err := on.Value(p.Native)
		if err == nil {
			items[i], err = itemText(p)
		}
		if err != nil {
			return "", err
		}
		if p.Kind == middleware.PartMedia && assistant && !v.Exists() {
			return "", codec.Unencodablef("media in an assistant message")
		}
		plain = plain && p.Kind == middleware.PartText && (!v.Exists() || v.Kind() == rawjson.String)
		text += p.Text
	}
	if plain {
		return rawjson.Quote(text), nil
	}
	return codec.Array(items), nil
}

// holderOf returns what holds the name and the arguments of a call, and under
// which keys. at is "" for the call itself.
func holderOf(v rawjson.Value, kind middleware.Kind, old bool) (holder rawjson.Value, at, key string) {
	switch {
	case old:
		return v, "", "arguments"
	case kind == middleware.KindCustom:
		return v.Get("custom"), "custom", "input"
	}
	return v.Get("function"), "function", "arguments"
}

// kindOf tells the kind of a call, whole or a delta's. Mistral leaves the type
// out, and some servers fill both members:
//
//	{"id": …, "type": "function", "function": {"name": …, "arguments": text}}
//	{"id": …, "type": "custom", "custom": {"name": …, "input": text}}
//
// A call of any other type is one that the client answers in a form of its own.
func kindOf(v rawjson.Value) middleware.Kind {
	function, custom := v.Get("function").Kind() == rawjson.Object, v.Get("custom").Kind() == rawjson.Object
	switch kind := v.Get("type").Str(); {
	case kind == "custom" && custom, !function && custom:
		return middleware.KindCustom
	case function || kind == "function" || kind == "":
		return middleware.KindFunction
	}
	return middleware.KindBuiltin
}

// textOf returns the text of a value that should be one, such as arguments: a few servers
// send the object itself.
func textOf(v rawjson.Value) string {
	switch v.Kind() {
	case rawjson.String:
		return v.Str()
	case rawjson.Null, rawjson.Invalid:
		return ""
	}
	return v.Raw()
}

// hasText reports whether textOf is not empty.
func hasText(v rawjson.Value) bool { return v.Kind() != rawjson.Null && v.Exists() && v.Raw() != `""` }

// checkCall returns an error if it cannot be told what a call, whole or a
// delta's, calls.
func checkCall(v rawjson.Value) error {
	if v.Kind() != rawjson.Object {
		return codec.Shapef("a tool call is of kind %s", v.Kind())
	}
	in, filled := on.Reader(), 0
	in.Text(v, "name")
	for _, key := range []string{"function", "custom"} {
		holder := in.Kind(v, key, rawjson.Object)
		if in.Text(holder, "name") != "" || hasText(holder.Get("arguments")) || hasText(holder.Get("input")) {
			filled++
		}
	}
	if filled > 1 {
		return codec.Shapef("a tool call that is a function's and a custom tool's")
	}
	return in.Err
}

// readCall reads an element of tool_calls or, if old, a function_call.
func readCall(v rawjson.Value, old bool) (middleware.ToolCall, error) {
	c := middleware.ToolCall{Native: on.Native(v.Raw())}
	if err := checkCall(v); err != nil {
		return c, err
	}
	if !old {
		c.Kind, c.ID = kindOf(v), codec.Text(v.Get("id"))
	}
	holder, _, key := holderOf(v, c.Kind, old)
	c.Name, c.Arguments = holder.Get("name").Str(), textOf(holder.Get(key))
	if c.Kind == middleware.KindBuiltin {
		c.Name = v.Get("type").Str()
	}
	return c, nil
}

// readCalls reads the calls of a message, in whichever form it has them.
func readCalls(v rawjson.Value) ([]middleware.ToolCall, error) {
	if err := checkCalls(v); err != nil {
		return nil, err
	}
	if isOldTurn(v) {
		c, err := readCall(v.Get("function_call"), true)
		return []middleware.ToolCall{c}, err
	}
	var calls []middleware.ToolCall
	for e := range v.Get("tool_calls").Each() { // checkCalls has made sure that it is a list, if it holds anything
		c, err := readCall(e, false)
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// checkCalls returns an error if a member that holds calls is of a kind that
// hides them.
func checkCalls(v rawjson.Value) error {
	if m := v.Get("tool_calls"); m.Kind() != rawjson.Array && !holdsNothing(m) {
		return codec.Shapef("tool_calls is of kind %s", m.Kind())
	}
	if m := v.Get("function_call"); m.Kind() != rawjson.Object && !holdsNothing(m) {
		return codec.Shapef("function_call is of kind %s", m.Kind())
	}
	return nil
}

// holdsNothing reports whether v is of a kind that holds no calls: servers write
// "", false or {} for none.
func holdsNothing(v rawjson.Value) bool {
	switch v.Kind() {
	case rawjson.String:
		return v.Str() == ""
	case rawjson.Array, rawjson.Object:
		return v.Empty()
	}
	return true
}

// hasFunction reports whether a message has a call in the old form: some servers
// send an empty one always.
func hasFunction(v rawjson.Value) bool {
	f := v.Get("function_call")
	return f.Get("name").Str() != "" || f.Get("arguments").Str() != ""
}

// isOldTurn reports whether a message has its call in the old form only. A message with calls
// in both forms is read by its tool_calls.
func isOldTurn(v rawjson.Value) bool {
	list := v.Get("tool_calls")
	return (list.Kind() != rawjson.Array || list.Empty()) && hasFunction(v)
}

// isOldCall reports whether v, the text of a call, has the old form: the name is its
// own member. It is for a text without its place, such as one that was stored.
func isOldCall(v rawjson.Value) bool {
	return v.Get("name").Exists() && !v.Get("function").Exists() && !v.Get("custom").Exists()
}

// oldCall reports whether the only call of calls came in the old form.
func oldCall(calls []middleware.ToolCall) bool {
	if len(calls) != 1 {
		return false
	}
	v, err := on.Value(calls[0].Native)
	return err == nil && isOldCall(v)
}

// sameCall reports whether a call is what was decoded. A function_call has no
// place for an id, so that one that comes from the place is not compared.
func sameCall(was, now middleware.ToolCall) bool {
	if codec.IsPlaceID(now.ID) && (was.ID == "" || codec.IsPlaceID(was.ID)) && oldCall([]middleware.ToolCall{was}) {
		now.ID = was.ID
	}
	return codec.SameNative(was.Native, now.Native) && codec.SameCall(was, now)
}

// callText writes c as an element of tool_calls or, if old, as a function_call:
// from its own text where that has the same form and kind. A call of another form,
// or of another kind, is written afresh.
func callText(c middleware.ToolCall, old bool) (string, error) {
	return rewrite(c.Native, c, codec.SameCall, form[middleware.ToolCall]{
		read:    func(v rawjson.Value) (middleware.ToolCall, error) { return readCall(v, isOldCall(v)) },
		fits:    func(v rawjson.Value, was middleware.ToolCall) bool { return isOldCall(v) == old && was.Kind == c.Kind },
		members: func(v rawjson.Value, c middleware.ToolCall) ([]lens.Member, error) { return callMembers(v, c, old) },
	})
}

// callMembers projects a call. v is the text that is edited, absent for a fresh one.
// If v has the arguments as an object, as a few servers send them, they stay one.
func callMembers(v rawjson.Value, c middleware.ToolCall, old bool) ([]lens.Member, error) {
	holder, at, key := holderOf(v, c.Kind, old)
	arguments := rawjson.Quote(c.Arguments)
	if holder.Get(key).Kind() == rawjson.Object && codec.IsObject(c.Arguments) {
		arguments = c.Arguments
	}
	switch {
	case c.Kind == middleware.KindBuiltin, old && c.Kind != middleware.KindFunction:
		return nil, codec.Unencodablef("a call of kind %q that is not of this format", c.Kind)
	case old && v.Exists() && c.ID != "" && !codec.IsPlaceID(c.ID):
		return nil, codec.Unencodablef("an id for a function_call")
	case old:
		return []lens.Member{lens.Text("name", c.Name), lens.Raw(key, arguments)}, nil
	}
	members := []lens.Member{lens.Text("id", c.ID)}
	if !v.Exists() {
		members = append(members, lens.Text("type", at))
	}
	return append(members, lens.Text(at+"/name", c.Name), lens.Raw(at+"/"+key, arguments)), nil
}
