package transport_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// unreadIn returns an answer whose finish word says that the provider could not read its call.
func unreadIn(answer string) string {
	return strings.NewReplacer(
		`"finish_reason":"tool_calls"`, `"finish_reason":"function_call_filter: MALFORMED_FUNCTION_CALL"`,
		`"stop_reason":"tool_use"`, `"stop_reason":"malformed_tool_use"`,
		`"status":"completed","model"`, `"status":"incomplete","incomplete_details":{"reason":"malformed_function_call"},"model"`,
		`response.completed`, `response.incomplete`,
		`"finishReason":"STOP"`, `"finishReason":"MALFORMED_FUNCTION_CALL"`,
		`"done_reason":"stop"`, `"done_reason":"UNEXPECTED_TOOL_CALL"`,
	).Replace(answer)
}

// unreadWord is the finish reason of unreadIn.
func unreadWord(format string) middleware.FinishReason {
	return map[string]middleware.FinishReason{"chat": "function_call_filter: MALFORMED_FUNCTION_CALL", "anthropic": "malformed_tool_use",
		"responses": "malformed_function_call", "gemini": "MALFORMED_FUNCTION_CALL", "ollama": "UNEXPECTED_TOOL_CALL"}[format]
}

// TestUnreadCalls: a call that the provider could not read ends in the same way in all formats.
func TestUnreadCalls(t *testing.T) {
	t.Parallel()
	validating := func(policy middleware.OnExhausted) middleware.Middleware {
		return argsvalidate.New(argsvalidate.Options{OnExhausted: policy})
	}
	for name, s := range speeches() {
		for _, stream := range []bool{false, true} {
			for _, text := range []string{"", "one "} {
				path, streamed, _ := strings.Cut(s.path, " ")
				form, kind := s.whole, "application/json"
				if stream {
					form, kind = s.stream, s.kind
					if streamed != "" {
						path = streamed
					}
				}
				unread := unreadIn(form(text))
				asked, err := s.codec.DecodeRequest([]byte(s.request(stream)))
				require.NoError(t, err)
				ask := func(t *testing.T, chain middleware.Middleware, script ...http.HandlerFunc) (*http.Response, string, *transport.Call, *upstream) {
					u := serve(t, script...)
					ctx, call := transport.Watch(t.Context())
					req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.URL+path, strings.NewReader(s.request(stream)))
					require.NoError(t, err)
					resp, err := hooked(t, transport.New(transport.Options{}, chain))(req)
					require.NoError(t, err)
					return resp, read(t, resp), call, u
				}
				sends := func(body string) http.HandlerFunc { return answer(http.StatusOK, body, "Content-Type", kind) }
				// requireMarked requires that the client gets an unread answer, marked.
				requireMarked := func(t *testing.T, resp *http.Response, body string, call *transport.Call, attempts int) {
					t.Helper()
					require.Equal(t, http.StatusOK, resp.StatusCode, body)
					require.Equal(t, "invalid", resp.Header.Get("X-Toolmend-Status")+resp.Trailer.Get("X-Toolmend-Status"), body)
					require.Equal(t, stream && name != "gemini" && name != "ollama", strings.Contains(body, ": toolmend status=invalid"), body)
					_, err := s.codec.DecodeResponse(asked, []byte(body))
					var e *middleware.ModelError
					require.ErrorAs(t, err, &e, body)
					got := e.Response
					require.Equal(t, unreadWord(name), got.FinishReason, body)
					require.Equal(t, text, got.Message.Text(), body)
					require.Empty(t, got.Message.ToolCalls)
					require.NoError(t, call.Err())
					require.Equal(t, "invalid", call.Status())
					report := call.Report()
					require.Equal(t, middleware.Invalid, report.Status)
					require.Len(t, report.Attempts, attempts)
					require.Equal(t, unreadWord(name), report.Attempts[report.Final].FinishReason)
				}
				t.Run(fmt.Sprintf("%s/stream=%t/text=%q", name, stream, text), func(t *testing.T) {
					t.Parallel()
					t.Run("corrected", func(t *testing.T) {
						resp, body, call, _ := ask(t, validating(0), sends(unread), sends(form("", `{"n":1}`)))
						require.Equal(t, "valid", resp.Header.Get("X-Toolmend-Status")+resp.Trailer.Get("X-Toolmend-Status"), body)
						got, err := s.codec.DecodeResponse(asked, []byte(body))
						require.NoError(t, err, body)
						require.Equal(t, []string{`{"n":1}`}, arguments(got))
						require.Equal(t, middleware.FinishToolCalls, got.FinishReason)
						require.ErrorIs(t, call.Report().Attempts[0].Err, middleware.ErrInvalidToolCall)
					})
					for _, policy := range []middleware.OnExhausted{middleware.Pass, middleware.DropInvalid} {
						t.Run("stays unread, "+policy.String(), func(t *testing.T) {
							resp, body, call, u := ask(t, validating(policy), sends(unread), sends(unread), sends(unread))
							requireMarked(t, resp, body, call, 3)
							require.Equal(t, 2, call.Report().Final)
							require.Contains(t, string(u.body[1]), "could not be read")
						})
						t.Run("the re-ask fails, "+policy.String(), func(t *testing.T) {
							resp, body, call, _ := ask(t, validating(policy), sends(unread), answer(http.StatusTooManyRequests, "{}"))
							requireMarked(t, resp, body, call, 2)
							require.Zero(t, call.Report().Final)
						})
					}
					t.Run("without a chain that asks", func(t *testing.T) {
						resp, body, call, _ := ask(t, nothing, sends(unread))
						requireMarked(t, resp, body, call, 1)
					})
					t.Run("no tools", func(t *testing.T) {
						for _, chain := range []middleware.Middleware{nothing, validating(0)} {
							_, tools, _ := strings.Cut(s.request(stream), `"tools":`)
							request := strings.Replace(s.request(stream), tools, "[]}", 1)
							u := serve(t, sends(unread))
							ctx, call := transport.Watch(t.Context())
							req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.URL+path, strings.NewReader(request))
							require.NoError(t, err)
							resp, err := hooked(t, transport.New(transport.Options{}, chain))(req)
							require.NoError(t, err)
							body := read(t, resp)
							require.Equal(t, http.StatusOK, resp.StatusCode, body)
							require.Contains(t, body, string(unreadWord(name)))
							require.Empty(t, resp.Header.Get("X-Toolmend-Status")+resp.Trailer.Get("X-Toolmend-Status"))
							require.NoError(t, call.Err())
							require.Empty(t, call.Status())
						}
					})
					t.Run("stays unread, raise", func(t *testing.T) {
						resp, body, call, _ := ask(t, validating(0), sends(unread), sends(unread), sends(unread))
						require.ErrorIs(t, call.Err(), argsvalidate.ErrExhausted)
						require.ErrorIs(t, call.Err(), middleware.ErrInvalidToolCall)
						require.Equal(t, "invalid_tool_call", resp.Header.Get("X-Toolmend-Error")+resp.Trailer.Get("X-Toolmend-Error"), body)
						require.Contains(t, body, "the model sent no valid tool call (3 attempts)")
						if live := stream && text != ""; !live {
							require.Equal(t, http.StatusBadRequest, resp.StatusCode, body)
							return
						}
						require.Equal(t, http.StatusOK, resp.StatusCode)
						_, err := s.codec.DecodeResponse(asked, []byte(body))
						var failure *middleware.ModelError
						require.ErrorAs(t, err, &failure, body)
						require.NotErrorIs(t, err, middleware.ErrInvalidToolCall, "it is an error of the format")
					})
					t.Run("an invalid answer before", func(t *testing.T) {
						resp, body, _, _ := ask(t, validating(middleware.Pass), sends(form(text, `{}`)), sends(unread), sends(unread))
						require.Equal(t, "invalid", resp.Header.Get("X-Toolmend-Status")+resp.Trailer.Get("X-Toolmend-Status"), body)
						got, err := s.codec.DecodeResponse(asked, []byte(body))
						require.NoError(t, err, body)
						require.Equal(t, []string{`{}`}, arguments(got), "it is returned, as it has a call")
					})
				})
			}
		}
	}
}

// nothing is a middleware that does nothing.
func nothing(next middleware.ModelCall) middleware.ModelCall { return next }
