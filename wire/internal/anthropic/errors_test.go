package anthropic_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func TestDecodeError(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct{ body, code, text string }{
		"the provider":    {`{"type":"error","error":{"type":"rate_limit_error","message":"Slow down."},"request_id":"r"}`, "rate_limit_error", "Slow down."},
		"Bedrock":         {`{"message":"No access."}`, "", "No access."},
		"Vertex":          {`[{"error":{"code":404,"message":"No model.","status":"NOT_FOUND"}}]`, "NOT_FOUND", "No model."},
		"a gateway":       {`<html>502</html>`, "", "HTML"},
		"something else":  {`{"detail":"no"}`, "", "JSON of another form"},
		"an empty list":   {`[]`, "", "JSON of another form"},
		"nothing to read": {``, "", "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := format.DecodeError(429, http.Header{"Retry-After": {"3"}}, []byte(x.body))
			require.Equal(t, 429, e.StatusCode)
			require.Equal(t, 3*time.Second, e.RetryAfter)
			require.Equal(t, x.code, e.Code)
			require.ErrorContains(t, e.Err, x.text)
		})
	}
}

func TestEncodeError(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"type":"error","error":{"type":"invalid_request_error","message":"a \"b\"","code":"my_code"}}`, string(format.EncodeError(422, "my_code", `a "b"`)))
	for status, code := range map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
		422: "invalid_request_error", 429: "rate_limit_error", 500: "api_error", 504: "timeout_error", 529: "overloaded_error",
	} {
		require.Equal(t, code, format.DecodeError(status, nil, format.EncodeError(status, "", "m")).Code)
	}
}

func TestErrorInAnAnswer(t *testing.T) {
	t.Parallel()
	const overloaded = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	for name, x := range map[string]struct {
		body  string
		usage middleware.Usage
	}{
		"whole":         {overloaded, middleware.Usage{}},
		"at once":       {event("error", overloaded), middleware.Usage{}},
		"after content": {messageStream(textBlockStart(0), textDelta(0, "a"), event("error", overloaded)), middleware.Usage{InputTokens: 14, Cached: 4, OutputTokens: 1}},
		"of a tail":     {textDelta(0, "a") + event("error", overloaded), middleware.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := codec.Decode(format.NewStream(nil, nil), []byte(x.body))
			var e *middleware.ModelError
			require.ErrorAs(t, err, &e)
			require.Equal(t, "overloaded_error", e.Code)
			require.Zero(t, e.StatusCode)
			require.True(t, retry.Transient(err))
			require.Equal(t, x.usage, middleware.ReportOf(nil, err).Usage(), "what it has cost is not lost")
		})
	}
}
