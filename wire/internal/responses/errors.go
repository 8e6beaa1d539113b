package responses

import (
	"cmp"
	"net/http"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// DecodeError is part of wire.Codec.
func (Format) DecodeError(status int, header http.Header, body []byte) *middleware.ModelError {
	root, err := codec.ParseObject(string(body))
	if err != nil {
		return codec.NoFailure(status, header, body)
	}
	f, ok := failure(root)
	if !ok {
		return codec.NoFailure(status, header, body)
	}
	return codec.ModelError(status, header, f)
}

// failure reads an error in one of its forms: an object with a message, or, of
// xAI, a text beside its code, or the error itself, as in an event.
func failure(v rawjson.Value) (codec.Failure, bool) {
	e := v.Get("error")
	text := e.Str()
	if e.Kind() != rawjson.Object {
		e = v
	}
	f := codec.Refusal(codec.Failure{
		Code:    codec.FirstText(e.Get("code"), e.Get("type"), v.Get("code")),
		Message: cmp.Or(text, codec.FirstText(e.Get("message"), e.Get("detail"))),
	}, e)
	return f, f.Message != "" || e != v && f.Code != ""
}

// inAnswer returns an error that came with a good status.
func inAnswer(f codec.Failure) *middleware.ModelError {
	f.Message = cmp.Or(f.Message, "an error without a message")
	return codec.ModelError(codec.StatusOf(f.Code), nil, f)
}

// EncodeError is part of wire.Codec.
func (Format) EncodeError(status int, code, message string) []byte {
	return codec.OpenAIError(status, code, message)
}
