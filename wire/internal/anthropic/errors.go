package anthropic

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// ReadFailure reads an error of the provider, of the cloud that it runs in, or of another server
// with this format:
//
//	{"type": "error", "error": {"type": "overloaded_error", "message": …}}            the provider
//	{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": …}}            Vertex
//	{"message": …} or {"Message": …}                                                  Bedrock
//
// A code in words is preferred to a type, and a type to a number, which only repeats the
// status. Vertex puts the error of a stream into a list.
func (Format) ReadFailure(root rawjson.Value) (codec.Failure, bool) {
	root = codec.Unlisted(root)
	e := root.Get("error")
	f := codec.Failure{
		Code:    cmp.Or(e.Get("code").Str(), codec.FirstText(e.Get("type"), e.Get("status"), e.Get("code"))),
		Message: codec.FirstText(e.Get("message"), root.Get("message"), root.Get("Message")),
	}
	return codec.Refusal(f, e), f.Message != "" || f.Code != ""
}

// isFailure reports whether root is an error. Errors of clouds have no type.
func isFailure(root rawjson.Value) bool {
	kind := root.Get("type").Str()
	return kind == "error" || kind == "" && root.Get("error").Kind() == rawjson.Object
}

// fail notes an error that came with a good status. The event of a cloud holds the
// status that it should have had.
func (s *stream) fail(root rawjson.Value) {
	f, ok := Format{}.ReadFailure(root)
	if !ok {
		f.Message = "an error without a message"
	}
	status := 0
	if n := codec.Int(root.Get("error").Get("code")); n >= 400 && n < 600 {
		status = int(n)
	}
	s.failed = codec.ModelError(status, nil, f)
}

// EncodeError writes an error as the provider does. A code that is not one of the provider's
// types is an additional member.
func (Format) EncodeError(status int, code, message string) []byte {
	kind, own := codeOf(status), ""
	switch {
	case strings.HasSuffix(code, "_error"), code == "request_too_large":
		kind = code
	default:
		own = code
	}
	return []byte(on.Object(lens.Text("type", "error"), lens.Text("error/type", kind), lens.Text("error/message", message), lens.Word("error/code", own)))
}

// Fail returns the failure that follows the first sent bytes: an event of the name error,
// which ends the stream in every SDK.
func (s *stream) Fail(sent, status int, code, message string) []byte {
	return s.Buf.Frame(sent, "error", string(Format{}.EncodeError(status, code, message)))
}

// codes are the provider's words for a status. 529 is its own number, for a service that is
// overloaded.
var codes = map[int]string{http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error",
	http.StatusNotFound: "not_found_error", http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error",
	http.StatusGatewayTimeout: "timeout_error", 529: "overloaded_error"}

func codeOf(status int) string {
	if status >= 500 {
		return cmp.Or(codes[status], "api_error")
	}
	return cmp.Or(codes[status], "invalid_request_error")
}
