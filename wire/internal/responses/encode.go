package responses

import (
	"errors"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// EncodeRequest is part of wire.Codec.
func (Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	out, err := encodeRequest(req)
	return []byte(out), unencodable(err)
}

// unencodable makes ErrUnencodable of what went wrong with a form that was
// stored and does not read as one any more.
func unencodable(err error) error {
	if err != nil && !errors.Is(err, codec.ErrUnencodable) {
		return codec.Unencodablef("%v", err)
	}
	return err
}

func encodeRequest(req *middleware.Request) (string, error) {
	h, err := codec.Handle(req.Native, dialect, func(raw string) (*request, error) {
		again, err := decodeRequest(raw)
		if err != nil {
			return nil, err
		}
		return again.Native.Ref.(*request), nil
	})
	if err != nil {
		return "", err
	}
	if h == nil {
		return freshRequest(req)
	}
	patch := codec.NewPatch(h.root)
	h.settings(req, patch)
	patch.Add(nil, h.tools(req, patch))
	patch.Add(nil, h.input(req, patch))
	edits, err := patch.Edits()
	if err != nil {
		return "", err
	}
	return codec.Apply(req.Native.Raw, edits)
}

// settings patches the figures and the model.
func (h *request) settings(req *middleware.Request, patch *codec.Patch) {
	if req.Model != h.was.Model {
		m := codec.Member{Key: "model"} // none: the prompt or the provider has one
		if req.Model != "" {
			m = member(m.Key, req.Model)
		}
		patch.Put(m)
	}
	if !codec.SameFloat(req.Temperature, h.was.Temperature) {
		if req.Temperature == nil {
			patch.Unset("temperature")
		} else {
			patch.Set("temperature", codec.Number(*req.Temperature))
		}
	}
	if req.MaxTokens != h.was.MaxTokens {
		if req.MaxTokens == 0 {
			patch.Unset("max_output_tokens")
		} else {
			patch.Set("max_output_tokens", codec.Count(int64(req.MaxTokens)))
		}
	}
	if len(req.Stop) > 0 {
		patch.Add(nil, errStop)
	}
}

var errStop = codec.Unencodablef("this format has no stop sequences")

// unchanged reports whether the messages are those that were decoded.
func (h *request) unchanged(messages []middleware.Message) bool {
	if len(messages) != len(h.messages) {
		return false
	}
	for i, m := range messages {
		if !codec.SameNative(m.Native, h.natives[i]) || !h.messages[i].same(m) {
			return false
		}
	}
	return true
}

// input patches instructions and input.
func (h *request) input(req *middleware.Request, patch *codec.Patch) error {
	if h.unchanged(req.Messages) {
		return nil
	}
	in := &input{req: req, h: h, stored: h.stored, held: h.held}
	messages := req.Messages
	if len(h.messages) > 0 && h.messages[0].place == asInstructions {
		if len(messages) == 0 || in.find(messages[0].Native) != h.messages[0] {
			patch.Unset("instructions")
		} else {
			if !h.messages[0].same(messages[0]) {
				text, ok := instructions(messages[0])
				if !ok {
					return codec.Unencodablef("instructions that are no text")
				}
				patch.Set("instructions", rawjson.Quote(text))
			}
			messages = messages[1:]
		}
	}
	items, single, err := in.all(messages)
	if err != nil {
		return err
	}
	switch old, err := codec.Only(h.root, "input"); {
	case err != nil:
		return err
	case old.Kind() == rawjson.Array:
		patch.Add(codec.Splice(old, items), nil)
	case single != nil && old.Kind() == rawjson.String:
		if *single != old.Str() {
			patch.Set("input", rawjson.Quote(*single))
		}
	case old.Exists() || len(items) > 0:
		patch.Set("input", codec.Array(items))
	}
	return nil
}

// all returns the items of the messages; single is the text of the one message
// that was the whole input and still can be.
func (in *input) all(messages []middleware.Message) (items []string, single *string, err error) {
	for _, m := range messages {
		h, err := in.handle(m)
		if err != nil {
			return nil, nil, err
		}
		if h != nil && h.place == asInput && len(messages) == 1 && m.Role == middleware.RoleUser && len(m.Parts) == 1 && m.Parts[0].Kind == middleware.PartText {
			single = &m.Parts[0].Text
		}
		raws, err := in.items(m, h)
		if err != nil {
			return nil, nil, err
		}
		items = append(items, raws...)
	}
	return items, single, nil
}
