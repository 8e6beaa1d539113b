package gemini

import (
	"encoding/base64"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// piece is one part of a content as it was received: the handle behind a
// neutral part or call, with a snapshot of it.
type piece struct {
	native middleware.Native
	v      rawjson.Value
	home   *content
	at     int // its place among home's parts
	part   middleware.Part
	call   *middleware.ToolCall // nil: it is a part
	id     string               // of the call, on the wire
	reply  *reply               // of a function response
	wire   []item               // of a call that came in several parts: those
}

// members are those of a part that are looked at.
type members struct {
	text, call, reply, inline, file rawjson.Value
	thought                         bool
	odd                             bool // one is of a kind that it never is
}

func membersOf(v rawjson.Value) (members, error) {
	var m members
	if v.Kind() != rawjson.Object {
		return m, codec.Shapef("a part of kind %s", v.Kind())
	}
	take := func(into *rawjson.Value, c rawjson.Value, kind rawjson.Kind) error {
		switch c.Kind() {
		case rawjson.Null:
			*into = rawjson.Value{}
		case kind:
			*into = c
		default:
			if into == &m.call || into == &m.reply {
				return codec.Shapef("%s is of kind %s", c.Key(), c.Kind())
			}
			m.odd = true
		}
		return nil
	}
	for c := range v.Each() {
		var err error
		switch c.Key() {
		case "text":
			err = take(&m.text, c, rawjson.String)
		case "functionCall", "function_call":
			err = take(&m.call, c, rawjson.Object)
		case "functionResponse", "function_response":
			err = take(&m.reply, c, rawjson.Object)
		case "inlineData", "inline_data":
			err = take(&m.inline, c, rawjson.Object)
		case "fileData", "file_data":
			err = take(&m.file, c, rawjson.Object)
		case "thought":
			var thought rawjson.Value
			err = take(&thought, c, rawjson.Bool)
			m.thought = thought.Raw() == "true"
		}
		if err != nil {
			return m, err
		}
	}
	return m, nil
}

// newPiece reads one part of a content. Calls count only where the model
// speaks, results only where it does not; anywhere else they are opaque.
func newPiece(v rawjson.Value, home *content, at int, model bool) (*piece, error) {
	p := &piece{v: v, home: home, at: at}
	p.native = middleware.Native{Dialect: dialect, Raw: v.Raw(), Ref: p}
	m, err := membersOf(v)
	if err != nil {
		return nil, err
	}
	switch {
	case m.call.Exists() && model:
		return p, p.readCall(m.call)
	case m.reply.Exists() && !model:
		p.reply, err = newReply(m.reply)
		return p, err
	}
	p.part = partOf(m)
	p.part.Native = &p.native
	return p, nil
}

func partOf(m members) middleware.Part {
	media := m.inline.Exists() || m.file.Exists()
	switch {
	case m.odd, m.call.Exists(), m.reply.Exists(), m.thought && media && !m.text.Exists():
	case m.text.Exists() && m.thought:
		return middleware.Part{Kind: middleware.PartReasoning, Text: m.text.Str()}
	case m.text.Exists():
		return middleware.Part{Text: m.text.Str()}
	case media:
		return mediaOf(m)
	}
	return middleware.Part{Kind: middleware.PartOpaque}
}

// mediaOf reads inline data, or a file by its address. Data that is no base64,
// or no text, is opaque.
func mediaOf(m members) middleware.Part {
	opaque := middleware.Part{Kind: middleware.PartOpaque}
	from, key := m.inline, "data"
	if !from.Exists() {
		from, key = m.file, "fileUri"
	}
	media, err := getText(from, "mimeType")
	if err != nil {
		return opaque
	}
	what, err := getText(from, key)
	if err != nil {
		return opaque
	}
	p := middleware.Part{Kind: middleware.PartMedia, MediaType: media, URL: what}
	if m.inline.Exists() {
		p.URL = ""
		if p.Data, err = unbase64(what); err != nil {
			return opaque
		}
	}
	return p
}

// unbase64 reads either alphabet, padded or not.
func unbase64(s string) ([]byte, error) {
	s = strings.TrimRight(s, "=")
	if strings.ContainsAny(s, "-_") {
		return base64.RawURLEncoding.DecodeString(s)
	}
	return base64.RawStdEncoding.DecodeString(s)
}

func (p *piece) readCall(fc rawjson.Value) error {
	id := codec.Text(get(fc, "id"))
	name, err := getText(fc, "name")
	if err != nil {
		return err
	}
	// Arguments that are no object are for the validator to refuse.
	p.id = id
	p.call = &middleware.ToolCall{ID: id, Name: name, Arguments: fc.Get("args").Raw(), Native: &p.native}
	return nil
}

// partText writes the part as it is now.
func (p *piece) partText(now middleware.Part) (string, error) {
	if p.call != nil || p.reply != nil {
		return "", codec.Unencodablef("a call or a result in the place of a part")
	}
	if codec.SamePart(now, p.part) {
		return p.v.Raw(), nil
	}
	switch {
	case now.Kind != p.part.Kind:
		return freshPart(now)
	case now.Kind == middleware.PartText, now.Kind == middleware.PartReasoning:
		if now.Data != nil || now.URL != "" || now.MediaType != p.part.MediaType {
			return "", codec.Unencodablef("a text part with data")
		}
		return edited(p.v, codec.Member{Key: "text", Raw: rawjson.Quote(now.Text)})
	case now.Kind == middleware.PartMedia && now.Text == "":
		return p.mediaText(now)
	}
	return "", codec.Unencodablef("a part of kind %q has changed", now.Kind)
}

func (p *piece) mediaText(now middleware.Part) (string, error) {
	in, key, what := "inlineData", "data", base64.StdEncoding.EncodeToString(now.Data)
	if p.part.URL != "" {
		in, key, what = "fileData", "fileUri", now.URL
	}
	if (now.URL == "") != (p.part.URL == "") || len(now.Data) > 0 && now.URL != "" {
		return "", codec.Unencodablef("data in the place of an address, or the reverse")
	}
	holder, err := only(p.v, in)
	if err != nil {
		return "", err
	}
	edits, err := setAll(holder, codec.Member{Key: "mimeType", Raw: rawjson.Quote(now.MediaType)}, codec.Member{Key: key, Raw: rawjson.Quote(what)})
	if err != nil {
		return "", err
	}
	return codec.Within(p.v, edits)
}

// callText writes the call as it is now. In an answer the arguments must be an
// object; a request has {} for what is none.
func (p *piece) callText(now middleware.ToolCall, answer bool) (string, error) {
	if p.call == nil {
		return "", codec.Unencodablef("a part in the place of a call")
	}
	if err := callable(now); err != nil {
		return "", err
	}
	fc, err := only(p.v, "functionCall")
	if err != nil {
		return "", err
	}
	var set []codec.Member
	if now.ID != p.call.ID && (p.id != "" || !codec.IsPlaceID(now.ID)) {
		set = append(set, codec.Member{Key: "id", Raw: quoteOrNone(now.ID)})
	}
	if now.Name != p.call.Name {
		set = append(set, codec.Member{Key: "name", Raw: rawjson.Quote(now.Name)})
	}
	if now.Arguments != p.call.Arguments {
		args, err := arguments(now.Arguments, answer)
		if err != nil {
			return "", err
		}
		set = append(set, codec.Member{Key: "args", Raw: args})
	}
	if len(set) == 0 {
		return p.v.Raw(), nil
	}
	edits, err := setAll(fc, set...)
	if err != nil {
		return "", err
	}
	return codec.Within(p.v, edits)
}

func quoteOrNone(s string) string {
	if s == "" {
		return ""
	}
	return rawjson.Quote(s)
}

// callable refuses the kinds of calls that the format does not have. Built-in
// ones are function calls here.
func callable(c middleware.ToolCall) error {
	if c.Kind != middleware.KindFunction && c.Kind != middleware.KindBuiltin {
		return codec.Unencodablef("a call of kind %q", c.Kind)
	}
	return nil
}

// arguments returns what stands in args; "" for no such member.
func arguments(text string, answer bool) (string, error) {
	switch {
	case codec.IsObject(text):
		return text, nil
	case !answer:
		return "{}", nil
	case text == "":
		return "", nil
	}
	return "", codec.Unencodablef("arguments that are no JSON object")
}
