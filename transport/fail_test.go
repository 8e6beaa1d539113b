package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// chainError is an error of a user's middleware.
type chainError struct{}

func (chainError) Error() string         { return "password=hunter2" }
func (chainError) ErrorType() string     { return "quota" }
func (chainError) ClientMessage() string { return "ask your administrator" }

// TestErrorsOfTheChain: before the first byte each is a 400 with its code and
// with a message that every client may read.
func TestErrorsOfTheChain(t *testing.T) {
	t.Parallel()
	returns := func(err error) middleware.Middleware {
		return around(func(context.Context, *middleware.Request, middleware.ModelCall) (*middleware.Response, error) {
			return nil, err
		})
	}
	raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: 2})
	broken := argsvalidate.New(argsvalidate.Options{Rules: []argsvalidate.Rule{argsvalidate.RuleFunc(
		func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) {
			return nil, errors.New("hunter2")
		})}})
	cases := map[string]struct {
		chain         middleware.Middleware
		script        []http.HandlerFunc
		status        int
		code, message string
	}{
		"invalid call":               {raise, []http.HandlerFunc{answer(200, badCall), answer(200, badCall)}, 400, "invalid_tool_call", "add: n is missing (2 attempts)"},
		"rule":                       {broken, []http.HandlerFunc{answer(200, goodCall)}, 400, "rule_failed", "a rule could not decide"},
		"budget":                     {returns(fmt.Errorf("x: %w", budget.ErrExceeded)), nil, 400, "budget", "the budget for model calls is used up"},
		"model calls":                {returns(transport.ErrModelCalls), nil, 400, "budget", "transport: the model calls of this request are used up"},
		"a user's error":             {returns(chainError{}), nil, 400, "quota", "ask your administrator"},
		"an error without words":     {returns(errors.New("password=hunter2")), nil, 400, "middleware_error", "a middleware refused the answer"},
		"another provider's status":  {returns(&middleware.ModelError{StatusCode: 429, Code: "slow", Err: errors.New("wire: slow down")}), nil, 429, "slow", "slow down"},
		"another provider's refusal": {returns(&middleware.ModelError{Code: "bad", Err: middleware.ErrInvalidToolCall}), nil, 400, "invalid_tool_call", "the provider refused the model's tool call"},
		"an error without a status":  {returns(&middleware.ModelError{Code: "overloaded"}), nil, 502, "overloaded", "the provider sent an error"},
		"a status without a message": {returns(&middleware.ModelError{StatusCode: 529}), nil, 529, "", "the provider answered with status 529"},
		"a middleware that panics": {around(func(context.Context, *middleware.Request, middleware.ModelCall) (*middleware.Response, error) {
			panic("hunter2")
		}), nil, 400, "panic", "a middleware panicked"},
		"a page in answer to the re-ask":  {raise, []http.HandlerFunc{answer(200, badCall), answer(200, "<html>Sign in</html>", "Content-Type", "text/html")}, 400, "invalid_tool_call", "add: n is missing"},
		"nothing in answer to the re-ask": {raise, []http.HandlerFunc{answer(200, badCall), answer(200, "")}, 400, "invalid_tool_call", "add: n is missing"},
		"the provider's own, re-asked":    {raise, []http.HandlerFunc{answer(200, badCall), answer(503, `{"busy":1}`)}, 503, "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []bool{false, true} {
				at := proxy(t, toys(c.chain), serve(t, c.script...).URL)
				client := &http.Client{Transport: &http.Transport{}}
				resp, err := client.Do(post(t, t.Context(), at, ask(stream, addTool)))
				require.NoError(t, err)
				got := read(t, resp)
				client.CloseIdleConnections()
				require.Equal(t, c.status, resp.StatusCode, got)
				require.NotContains(t, got, "hunter2")
				if c.message == "" {
					require.Equal(t, `{"busy":1}`, got)
					require.Empty(t, resp.Header.Get("X-Toolmend-Error"))
					continue
				}
				require.JSONEq(t, fmt.Sprintf(`{"error":{"status":%d,"code":%q,"message":%q}}`, c.status, c.code, c.message), got)
				if c.status == http.StatusBadRequest {
					require.Equal(t, c.code, resp.Header.Get("X-Toolmend-Error"))
					require.Equal(t, "false", resp.Header.Get("X-Should-Retry"))
				} else {
					require.Empty(t, resp.Header.Get("X-Toolmend-Error"))
				}
			}
		})
	}
}

// TestFormsOfErrors: in each format, before the first byte and in a stream that
// has begun, in the form at which clients end their turn; through a Handler, so
// that the body ends as it should.
func TestFormsOfErrors(t *testing.T) {
	t.Parallel()
	const message = "add: n is missing (1 attempt)"
	whole := map[string]string{
		"chat":      `{"error":{"message":"` + message + `","type":"invalid_request_error","param":null,"code":"invalid_tool_call"}}`,
		"responses": `{"error":{"message":"` + message + `","type":"invalid_request_error","param":null,"code":"invalid_tool_call"}}`,
		"anthropic": `{"type":"error","error":{"type":"invalid_request_error","message":"` + message + `","code":"invalid_tool_call"}}`,
		"gemini": `{"error":{"code":400,"message":"` + message + `","status":"INVALID_ARGUMENT","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"invalid_tool_call","domain":"toolmend"}]}}`,
		"ollama": `{"error":"` + message + `"}`,
	}
	streamed := map[string]string{
		"chat": `data: {"error":{"message":"` + message + `","type":"invalid_request_error","param":null,"code":400}}` + "\n\ndata: [DONE]\n\n",
		"responses": `event: response.failed` + "\n" + `data: {"type":"response.failed","sequence_number":7,"response":{"id":"x","object":"response",` +
			`"status":"failed","model":"m","output":[],"error":{"code":"invalid_prompt","message":"` + message + `"}}}` + "\n\n",
		"anthropic": "event: error\ndata: " + whole["anthropic"] + "\n\n",
		"gemini":    "data: " + whole["gemini"] + "\n\n",
		"ollama":    whole["ollama"] + "\n",
	}
	raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1})
	for name, s := range speeches() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []bool{false, true} {
				path, streamPath, _ := strings.Cut(s.path, " ")
				sent, kind := s.whole("one ", `{}`), "application/json"
				if stream {
					sent, kind = s.stream("one ", `{}`), s.kind
					if streamPath != "" {
						path = streamPath
					}
				}
				at := proxy(t, transport.New(transport.Options{}, raise), serve(t, answer(http.StatusOK, sent, "Content-Type", kind)).URL)
				resp, err := http.Post(at+path, "application/json", strings.NewReader(s.request(stream)))
				require.NoError(t, err)
				b, err := io.ReadAll(resp.Body)
				require.NoError(t, err, "the body ends properly")
				require.NoError(t, resp.Body.Close())
				if !stream {
					require.Equal(t, http.StatusBadRequest, resp.StatusCode)
					require.Equal(t, whole[name], string(b))
					require.True(t, json.Valid(b))
					require.Equal(t, "invalid_tool_call", resp.Header.Get("X-Toolmend-Error"))
					continue
				}
				shown, ok := strings.CutSuffix(string(b), streamed[name])
				require.True(t, ok, string(b))
				require.True(t, strings.HasPrefix(sent, shown))
				require.Contains(t, shown, "one ")
			}
		})
	}
}
