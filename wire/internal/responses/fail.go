package responses

import (
	"net/http"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Fail is part of wire.Stream: response.failed, with the response of the event
// that began the answer. Codex ends its turn at the code invalid_prompt; at any
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
	var begun rawjson.Value
	t := tape{named: true, numbered: true}
	for _, ev := range s.events.all {
		if ev.End > sent {
			break
		}
		if n := ev.root.Get("sequence_number"); n.Kind() == rawjson.Number {
			t.number = codec.Int(n) + 1
		} else if ev.root.Exists() {
			t.numbered = false // some servers count nothing
		}
		if ev.head {
			begun = ev.root.Get("response")
		}
	}
	if s.buf.IsWhole() || s.buf.IsArray() {
		return nil
	}
	t.write("response.failed", codec.Member{Key: "response", Raw: failedResponse(begun, code, message)})
	return []byte(t.out.String())
}

// failedResponse returns the response object of an answer that has failed; begun
// is how it began, absent if nothing of it was sent.
func failedResponse(begun rawjson.Value, code, message string) string {
	e := codec.Object(member("code", code), member("message", message))
	if begun.Kind() == rawjson.Object {
		patch := codec.NewPatch(begun)
		patch.Set("status", `"failed"`)
		patch.Set("error", e)
		if text, err := patch.Text(); err == nil {
			return text
		}
	}
	return codec.Object(member("id", "resp_toolmend"), member("object", "response"), codec.Member{Key: "created_at", Raw: "0"},
		member("status", "failed"), codec.Member{Key: "error", Raw: e}, codec.Member{Key: "output", Raw: "[]"})
}

// Comment is part of wire.Stream.
func (s *stream) Comment(text string) []byte { return s.buf.Comment(text) }

// MayHoldCall is part of wire.Codec. The quote leaves out parallel_tool_calls,
// which every response names.
func (Format) MayHoldCall(body []byte) bool {
	return codec.MayHold(body, `_call"`, "_call_", "mcp_approval_request")
}
