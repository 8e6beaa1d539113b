package gemini

import (
	"strconv"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// ReadFailure reads the error in a body. A stream that fails at its start is an array with the error
// in it.
func (Format) ReadFailure(root rawjson.Value) (codec.Failure, bool) {
	root = codec.Unlisted(root)
	return failureOf(on.Get(root, "error")), hasFailure(root)
}

// hasFailure reports whether root holds an error of the provider:
//
//	{"error": {"code": 429, "message": …, "status": "RESOURCE_EXHAUSTED", "details": [{"@type": …, "retryDelay": "3s"}]}}
//
// An empty object does not count: clients skip it.
func hasFailure(root rawjson.Value) bool {
	e := on.Get(root, "error")
	return e.Kind() == rawjson.Object && codec.FirstText(on.Get(e, "message"), on.Get(e, "status"), on.Get(e, "code")) != ""
}

// failureOf reads e, an error of the provider. The time to wait may be in details.
func failureOf(e rawjson.Value) codec.Failure {
	return codec.Failure{
		Code:    codec.FirstText(on.Get(e, "status"), on.Get(e, "code")),
		Message: on.Get(e, "message").Str(),
		Wait:    retryDelay(on.Get(e, "details")),
	}
}

// retryDelay reads google.rpc.RetryInfo, whose delay is a number of seconds followed by an s.
func retryDelay(details rawjson.Value) time.Duration {
	for d := range details.Each() {
		if !strings.HasSuffix(on.Get(d, "@type").Str(), "/google.rpc.RetryInfo") {
			continue
		}
		if seconds, ok := strings.CutSuffix(on.Get(d, "retryDelay").Str(), "s"); ok {
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

// EncodeError writes an error as the provider does, in a stream too: for google.golang.org/genai
// v1.77.0 (api_client.go), data with a member error is an APIError. A code that is not a name of google.rpc is
// the reason in a google.rpc.ErrorInfo, and status gives the name.
func (Format) EncodeError(status int, code, message string) []byte {
	word, details := statusWords[status], []string(nil)
	switch {
	case code != "" && code == strings.ToUpper(code):
		word = code
	case code != "":
		details = []string{codec.Object(lens.Text("@type", "type.googleapis.com/google.rpc.ErrorInfo"), lens.Text("reason", code), lens.Text("domain", "toolmend"))}
	}
	return []byte(on.Object(lens.Raw("error/code", strconv.Itoa(status)), lens.Text("error/message", message), lens.Word("error/status", word),
		lens.List("error/details", details)))
}

// Comment returns text as a comment of the stream. The official clients for Go and Python take a
// comment for an error.
func (s *stream) Comment(string) []byte { return nil }
