package chat

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// ReadFailure decodes an error body, which has many forms:
//
//	{"error": {"message": …, "type": …, "param": …, "code": …}}   OpenAI and most others
//	{"error": text}                                               Hugging Face
//	{"message": …, "type": …, "code": …}                          Mistral, Cerebras
//	{"detail": text or [{"loc": […], "msg": …}]}                  FastAPI, in many servers
//
// It is false for a body in no such form. OpenRouter wraps the error of its provider. The
// wrapped error is read if it is the refusal of a call or of the history, and its message if
// OpenRouter's own has no information. Gemini's compatible address puts the error into a list.
func (Format) ReadFailure(v rawjson.Value) (codec.Failure, bool) {
	v = codec.Unlisted(v)
	if e := v.Get("error"); e.Kind() == rawjson.Object {
		v = e
	} else if e.Str() != "" {
		return codec.Refusal(codec.Failure{Message: e.Str(), Code: codec.FirstText(v.Get("code"), v.Get("type"))}, v), true
	}
	f := codec.Failure{Message: v.Get("message").Str(), Code: failureCode(v)}
	if f.Message == "" {
		f.Message = detailText(v.Get("detail"))
	}
	f = codec.Refusal(f, v)
	if raw := v.Get("metadata").Get("raw"); !f.Refused && raw.Str() != "" { // OpenRouter quotes its provider
		if inner, err := codec.ParseObject(raw.Str()); err == nil {
			e := inner.Get("error")
			if e.Kind() != rawjson.Object {
				e = inner
			}
			if g := codec.Refusal(codec.Failure{Message: e.Get("message").Str(), Code: failureCode(e)}, e); g.Refused || codec.RefusesHistory(http.StatusBadRequest, g.Message) {
				return g, true
			} else if f.Message == "Provider returned error" && g.Message != "" {
				f.Message = g.Message
			}
		}
	}
	return f, f.Message != "" || f.Code != ""
}

// failureCode prefers a word to a number, which mostly repeats the status.
func failureCode(v rawjson.Value) string {
	code := v.Get("code")
	if code.Kind() == rawjson.Number {
		return codec.FirstText(v.Get("metadata").Get("error_type"), v.Get("type"), code)
	}
	return codec.FirstText(code, v.Get("type"), v.Get("status"))
}

// detailText returns the text of a FastAPI error: a text, or a list of faults.
func detailText(v rawjson.Value) string {
	if v.Kind() == rawjson.String {
		return v.Str()
	}
	var b strings.Builder
	for d := range v.Each() {
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(d.Get("msg").Str())
		for part := range d.Get("loc").Each() {
			b.WriteString(" " + codec.Text(part))
		}
	}
	return b.String()
}

// modelError reads the error in v, whose status may be in e. It returns an error even if v has
// no details.
func modelError(v, e rawjson.Value) *middleware.ModelError {
	f, ok := Format{}.ReadFailure(v)
	if !ok {
		f.Message = noMessage
	}
	f.Refused = f.Refused || nativeWord(v) != ""
	return codec.ModelError(statusOf(e), nil, f)
}

const noMessage = "an error without a message"

// statusOf returns the HTTP status that an error quotes; 0 for none.
func statusOf(e rawjson.Value) int {
	for _, key := range []string{"status_code", "code", "status"} {
		if n := codec.StatusOf(codec.Text(e.Get(key))); n > 0 {
			return n
		}
	}
	return 0
}

// Fail returns the events that end a stream as a failure. opencode and qwen-code end their
// turn at an error of type invalid_request_error with the number 400 for a code.
func (s *stream) Fail(sent, status int, code, message string) []byte {
	kind := codec.FailureType(status)
	if code != "" && status != http.StatusBadRequest {
		kind = code
	}
	e := codec.Object(lens.Raw("error", codec.Object(
		lens.Text("message", message),
		lens.Text("type", kind),
		lens.Raw("param", "null"),
		lens.Raw("code", strconv.Itoa(status)))))
	out := s.Buf.Frame(sent, "", e)
	if s.Buf.IsEvents() {
		out = append(out, "data: [DONE]\n\n"...)
	}
	return out
}
