package responses

import (
	"net/http"
	"strconv"

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
	switch {
	case e.Kind() == rawjson.String:
		return codec.Failure{Code: codec.FirstText(v.Get("code"), v.Get("type")), Message: e.Str()}, true
	case e.Kind() != rawjson.Object:
		e = v
	}
	f := codec.Failure{
		Code:    codec.FirstText(e.Get("code"), e.Get("type"), v.Get("code")),
		Message: codec.FirstText(e.Get("message"), e.Get("detail")),
	}
	if f.Code == "tool_use_failed" { // Groq
		f.Refused, f.Output = true, e.Get("failed_generation").Str()
	}
	return f, f.Message != "" || e != v && f.Code != ""
}

// inAnswer returns an error that came with a good status.
func inAnswer(f codec.Failure) *middleware.ModelError {
	status, err := strconv.Atoi(f.Code)
	if err != nil || status < 400 || status > 599 {
		status = 0
	}
	return codec.ModelError(status, nil, f)
}

// EncodeError is part of wire.Codec.
func (Format) EncodeError(status int, code, message string) []byte {
	typ := "invalid_request_error"
	if status >= 500 {
		typ = "server_error"
	}
	return []byte(codec.Object(codec.Member{Key: "error", Raw: codec.Object(member("message", message), member("type", typ),
		codec.Member{Key: "param", Raw: "null"}, member("code", code))}))
}
