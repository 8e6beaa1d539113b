package gemini

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// DecodeError is part of wire.Codec. A stream that fails at its start is an
// array with the error in it.
func (Format) DecodeError(status int, header http.Header, body []byte) *middleware.ModelError {
	doc, err := codec.Parse(string(body))
	if err != nil {
		return codec.NoFailure(status, header, body)
	}
	root := doc.Root()
	if root.Kind() == rawjson.Array {
		for first := range root.Each() {
			root = first
			break
		}
	}
	e := get(root, "error")
	if !isFailure(e) {
		return codec.NoFailure(status, header, body)
	}
	return modelError(status, header, e)
}

// isFailure reports whether e is an error of the provider.
func isFailure(e rawjson.Value) bool {
	return e.Kind() == rawjson.Object && codec.FirstText(get(e, "message"), get(e, "status"), get(e, "code")) != ""
}

func modelError(status int, header http.Header, e rawjson.Value) *middleware.ModelError {
	out := codec.ModelError(status, header, codec.Failure{
		Code:    codec.FirstText(get(e, "status"), get(e, "code")),
		Message: get(e, "message").Str(),
	})
	if out.RetryAfter == 0 {
		out.RetryAfter = retryDelay(get(e, "details"))
	}
	return out
}

// retryDelay reads google.rpc.RetryInfo, whose delay is a number of seconds
// with an s behind it.
func retryDelay(details rawjson.Value) time.Duration {
	for d := range details.Each() {
		if !strings.HasSuffix(get(d, "@type").Str(), "/google.rpc.RetryInfo") {
			continue
		}
		if seconds, ok := strings.CutSuffix(get(d, "retryDelay").Str(), "s"); ok {
			if wait, ok := codec.Wait(seconds, time.Second); ok {
				return wait
			}
		}
	}
	return 0
}

// statusWords are google.rpc's names for what HTTP has a number for.
var statusWords = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
	429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

// EncodeError is part of wire.Codec. A code that is none of google.rpc's names is
// the reason in a google.rpc.ErrorInfo, and status gives the name.
func (Format) EncodeError(status int, code, message string) []byte {
	return []byte(encodeError(status, code, message))
}

func encodeError(status int, code, message string) string {
	word, details := statusWords[status], ""
	switch {
	case code != "" && code == strings.ToUpper(code):
		word = code
	case code != "":
		details = codec.Array([]string{codec.Object(
			codec.Member{Key: "@type", Raw: `"type.googleapis.com/google.rpc.ErrorInfo"`},
			codec.Member{Key: "reason", Raw: rawjson.Quote(code)},
			codec.Member{Key: "domain", Raw: `"toolmend"`})})
	}
	return codec.Object(codec.Member{Key: "error", Raw: codec.Object(
		codec.Member{Key: "code", Raw: strconv.Itoa(status)},
		codec.Member{Key: "message", Raw: rawjson.Quote(message)},
		codec.Member{Key: "status", Raw: quoteOrNone(word)},
		codec.Member{Key: "details", Raw: details})})
}

// Fail is part of wire.Stream. Source: google.golang.org/genai v1.77.0,
// api_client.go: data with a member error is an APIError.
func (s *stream) Fail(sent, status int, code, message string) []byte {
	return s.buf.Frame(sent, "", encodeError(status, code, message))
}

// Comment is part of wire.Stream. The official clients for Go and Python take a
// comment for an error.
func (s *stream) Comment(string) []byte { return nil }

// MayHoldCall is part of wire.Codec.
func (Format) MayHoldCall(body []byte) bool {
	return codec.MayHold(body, "functioncall", "function_call")
}
