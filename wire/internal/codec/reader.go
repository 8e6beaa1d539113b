package codec

import (
	"errors"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Tell sends to sink what a part of that kind says. sink may be nil. A part that
// is neither text nor reasoning, and an empty text, say nothing.
func Tell(sink middleware.Sink, kind middleware.PartKind, text string) error {
	event := middleware.EventText
	switch {
	case sink == nil, text == "":
		return nil
	case kind == middleware.PartReasoning:
		event = middleware.EventReasoning
	case kind != middleware.PartText:
		return nil
	}
	return sink(middleware.Event{Kind: event, Text: text})
}

// CutShort reports whether err, of a text that is not JSON, says that only the end
// of the text is missing: then the answer is incomplete rather than of another
// format.
func CutShort(err error) bool {
	var bad *rawjson.Error
	return errors.As(err, &bad) && bad.AtEnd
}

// Unreadable returns why u, which is a whole answer, is not an object, and nil if it is.
func (u *Unit) Unreadable() error {
	switch {
	case CutShort(u.Err) && strings.HasPrefix(u.Data, "{"):
		return ErrIncomplete
	case u.Err != nil:
		return u.Err
	case !u.Value.Exists():
		return Shapef("an empty answer")
	}
	return nil
}

// Object returns the object of u, absent if it has none. An object that isFailure takes for
// an error may stand in a stream without a field.
func (u *Unit) Object(isFailure func(object rawjson.Value) bool) rawjson.Value {
	if text := strings.TrimSpace(u.Text); u.Data == "" && strings.HasPrefix(text, "{") {
		if v, err := ParseObject(text); err == nil && isFailure(v) {
			return v
		}
	}
	return u.Value
}
