package responses

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// ReadFailure reads an error in one of its forms: an object with a message, or, of xAI, a text
// with its code, or the error itself, as in an event:
//
//	{"error": {"message": …, "type": …, "code": …}}
//	{"code": …, "error": text}
//	{"type": "error", "code": …, "message": …}
//
// It is false for any other v.
func (Format) ReadFailure(v rawjson.Value) (codec.Failure, bool) {
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

// inAnswer returns an error that came with a good status. Some gateways write
// the status that it should have had as its code.
func inAnswer(f codec.Failure) *middleware.ModelError {
	f.Message = cmp.Or(f.Message, "an error without a message")
	return codec.ModelError(codec.StatusOf(f.Code), nil, f)
}

// UnavailableStatus returns the status for a provider that cannot be reached. Codex makes
// thirty attempts after a 5xx, and one after a 400, of which it shows the message.
func (Format) UnavailableStatus(int) int { return http.StatusBadRequest }

// Fail returns the events that end a stream as a failure: response.failed, with the response
// of the event that began the answer. Codex ends its turn at the code invalid_prompt; at any
// other, and at an event of type error, it starts the turn again.
func (s *stream) Fail(sent, status int, code, message string) []byte {
	switch {
	case status == http.StatusBadRequest:
		code = "invalid_prompt"
	case code == "" && status == http.StatusTooManyRequests:
		code = "rate_limit_exceeded"
	case code == "":
		code = codec.FailureType(status)
	}
	if s.Buf.IsWhole() {
		return nil
	}
	t := transcript{}
	if has, err := s.Replay(sent); err == nil {
		t.beginning = has.(*stream).snapshot
	}
	if !t.begun {
		t.named, t.numbered = true, true
	}
	head, _ := codec.ParseObject(t.head)
	t.write("response.failed", lens.Raw("response", failedResponse(head, code, message)))
	return []byte(t.out.String())
}

// failedResponse returns the response object of an answer that has failed; begun
// is how it began, absent if nothing of it was sent:
//
//	{"id": …, "object": "response", "status": "failed", "error": {"code": …, "message": …}, "output": [], …}
func failedResponse(begun rawjson.Value, code, message string) string {
	e := lens.Raw("error", on.Object(lens.Text("code", code), lens.Text("message", message)))
	if begun.Kind() == rawjson.Object {
		if text, err := on.Set(begun, lens.Text("status", "failed"), e); err == nil {
			return text
		}
	}
	return on.Object(lens.Text("id", "resp_toolmend"), lens.Text("object", "response"), lens.Raw("created_at", "0"),
		lens.Text("status", "failed"), e, lens.Raw("output", "[]"))
}

// isFailure reports whether an event is an error: by its name or type, or without a type.
func isFailure(u *codec.Unit) bool {
	typ := typeOf(u)
	return typ == "error" || typ == "" && u.Value.Get("error").Exists()
}

// fail notes the error that an event is, which ends the answer. The last one counts: an event
// of type error may be followed by response.failed, which has more details.
func (s *stream) fail(u *codec.Unit) {
	f, _ := Format{}.ReadFailure(u.Value)
	if !u.Value.Exists() {
		f = codec.Refusal(codec.Failure{Message: strings.TrimSpace(u.Data)}, u.Value)
	}
	s.fault = inAnswer(f)
}
