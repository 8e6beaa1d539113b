package gemini

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Members of a function response that say what its text is. The server gives
// a meaning to "output" and "error"; the others are what clients write.
const (
	outputKey = "output"
	errorKey  = "error"
)

var textKeys = []string{outputKey, errorKey, "result", "return_value", "response", "content"}

// reply is a function response as it was received.
type reply struct {
	id, name string
	key      string // the one member of response, whose string is the text; "": the text is all of it
	text     string
	isError  bool
	parts    []*piece // media beside the text
}

func newReply(fr rawjson.Value) (*reply, error) {
	var r reply
	var err error
	if r.id, err = getText(fr, "id"); err != nil {
		return nil, err
	}
	if r.name, err = getText(fr, "name"); err != nil {
		return nil, err
	}
	response, err := getKind(fr, "response", rawjson.Object)
	if err != nil {
		return nil, err
	}
	if !response.Empty() && response.Exists() {
		r.text = response.Raw()
	}
	for m := range response.Each() {
		if response.Len() != 1 {
			break
		}
		r.isError = m.Key() == errorKey
		if m.Kind() == rawjson.String && slices.Contains(textKeys, m.Key()) {
			r.key, r.text = m.Key(), m.Str()
		}
	}
	list, _, err := getList(fr, "parts")
	for i := 0; err == nil && i < len(list); i++ {
		var p *piece
		p, err = newPiece(list[i], nil, i, true)
		if err == nil && p.part.Kind != middleware.PartMedia {
			p.makeOpaque() // the text is in response
		}
		r.parts = append(r.parts, p)
	}
	return &r, err
}

// makeOpaque hides what does not belong where the part stands.
func (p *piece) makeOpaque() {
	p.call, p.part = nil, middleware.Part{Kind: middleware.PartOpaque, Native: &p.native}
}

// message returns the result as a neutral message, but for the id of its call.
func (r *reply) message() middleware.Message {
	m := middleware.Message{Role: middleware.RoleTool, ToolName: r.name, IsError: r.isError}
	if r.text != "" {
		m.Parts = append(m.Parts, middleware.Part{Text: r.text})
	}
	for _, p := range r.parts {
		m.Parts = append(m.Parts, p.part)
	}
	return m
}

// replyText writes the result as it is now; id is what the wire shall have for
// one, if it is not to stay as it was.
func (p *piece) replyText(now middleware.Message, id *string) (string, error) {
	r := p.reply
	fr, err := only(p.v, "functionResponse")
	if err != nil {
		return "", err
	}
	var set []codec.Member
	if id != nil && *id != r.id {
		set = append(set, codec.Member{Key: "id", Raw: quoteOrNone(*id)})
	}
	if now.ToolName != r.name {
		set = append(set, codec.Member{Key: "name", Raw: rawjson.Quote(now.ToolName)})
	}
	if text := now.Text(); text != r.text || now.IsError != r.isError {
		response, err := r.responseText(get(fr, "response"), text, now.IsError)
		if err != nil {
			return "", err
		}
		set = append(set, codec.Member{Key: "response", Raw: response})
	}
	media, err := mediaTexts(now.Parts)
	if err != nil {
		return "", err
	}
	if !slices.EqualFunc(media, r.parts, func(text string, p *piece) bool { return text == p.v.Raw() }) {
		parts := "" // none
		if len(media) > 0 {
			parts = codec.Array(media)
		}
		set = append(set, codec.Member{Key: "parts", Raw: parts})
	}
	if len(set) == 0 {
		return p.v.Raw(), nil
	}
	edits, err := setAll(fr, set...)
	if err != nil {
		return "", err
	}
	return codec.Within(p.v, edits)
}

// responseText keeps the form that the client has for its results.
func (r *reply) responseText(response rawjson.Value, text string, isError bool) (string, error) {
	switch {
	case isError != r.isError:
	case r.key != "":
		return edited(response, codec.Member{Key: r.key, Raw: rawjson.Quote(text)})
	case codec.IsObject(text) && r.text != "":
		return text, nil
	}
	return freshResponse(text, isError), nil
}

func freshResponse(text string, isError bool) string {
	key := outputKey
	if isError {
		key = errorKey
	}
	return codec.Object(codec.Member{Key: key, Raw: rawjson.Quote(text)})
}

// freshReply writes a result that did not come from this wire.
func freshReply(m middleware.Message, id string) (string, error) {
	if m.ToolName == "" {
		return "", codec.Unencodablef("a result without the name of its tool")
	}
	media, err := mediaTexts(m.Parts)
	if err != nil {
		return "", err
	}
	members := []codec.Member{
		{Key: "id", Raw: quoteOrNone(id)},
		{Key: "name", Raw: rawjson.Quote(m.ToolName)},
		{Key: "response", Raw: freshResponse(m.Text(), m.IsError)},
	}
	if len(media) > 0 {
		members = append(members, codec.Member{Key: "parts", Raw: codec.Array(media)})
	}
	return codec.Object(codec.Member{Key: "functionResponse", Raw: codec.Object(members...)}), nil
}

// mediaTexts writes the parts of a result that are not its text.
func mediaTexts(parts []middleware.Part) ([]string, error) {
	var out []string
	for _, part := range parts {
		if part.Kind == middleware.PartText {
			continue
		}
		text, ok, _, err := writePart(part, nil)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, text)
		}
	}
	return out, nil
}
