package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/middleware"
)

// TestUnreadCall: if the provider could not read the call in any attempt, the header, the log and
// the metrics agree, in each mode and for each setting.
func TestUnreadCall(t *testing.T) {
	t.Parallel()
	whole := strings.Replace(chatAnswer(""), `"tool_calls":[{"id":"c","type":"function","function":{"name":"read_file","arguments":""}}]`, `"refusal":null`, 1)
	whole = strings.Replace(whole, `"finish_reason":"tool_calls"`, `"finish_reason":"stop","native_finish_reason":"MALFORMED_FUNCTION_CALL"`, 1)
	stream := "data: " + strings.Replace(strings.Replace(whole, `"message"`, `"delta"`, 1), "chat.completion", "chat.completion.chunk", 1) + "\n\ndata: [DONE]\n\n"
	for name, c := range map[string]struct {
		settings gateway.Settings
		calls    int
		raised   bool
	}{
		"default": {gateway.Settings{}, 3, false},
		"drop":    {gateway.Settings{OnExhausted: middleware.DropInvalid}, 3, false},
		"raise":   {gateway.Settings{OnExhausted: middleware.Raise}, 3, true},
		"repair":  {gateway.Settings{Mode: gateway.Repair}, 1, false},
		"observe": {gateway.Settings{Mode: gateway.Observe}, 1, false},
	} {
		for form, body := range map[string]string{"whole": whole, "stream": stream} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				calls := 0
				url, end, counted := logged(t, c.settings, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					calls++
					w.Header().Set("Content-Type", map[bool]string{true: "application/json", false: "text/event-stream"}[form == "whole"])
					_, _ = io.WriteString(w, body)
				})
				request := chatRequest("m")
				if form == "stream" {
					request = strings.Replace(request, "{", `{"stream":true,`, 1)
				}
				resp, got := send(t, http.MethodPost, url+"/v1/chat/completions", request)
				line := end()
				require.Equal(t, c.calls, calls)
				require.Equal(t, "WARN", line["level"])
				if c.raised {
					require.Equal(t, http.StatusBadRequest, resp.StatusCode)
					require.Equal(t, "invalid_tool_call", resp.Header.Get("X-Toolmend-Error"))
					require.Contains(t, got, "the model sent no valid tool call (3 attempts)")
					require.Equal(t, "invalid_tool_call", line["error"])
					require.EqualValues(t, 1, counted("invalid_tool_call", "", "openai-chat"))
					return
				}
				require.Equal(t, http.StatusOK, resp.StatusCode, got)
				require.Contains(t, got, `"finish_reason":"stop"`)
				require.Contains(t, got, `"native_finish_reason":"MALFORMED_FUNCTION_CALL"`)
				require.Equal(t, "invalid", line["status"])
				require.NotContains(t, line, "error")
				require.EqualValues(t, c.calls, line["attempts"])
				require.EqualValues(t, 1, counted("", "invalid", "openai-chat"))
				if name == "observe" {
					require.Equal(t, body, got)
					require.Equal(t, "reasked", line["would"])
					return
				}
				require.Equal(t, "invalid", resp.Header.Get("X-Toolmend-Status")+resp.Trailer.Get("X-Toolmend-Status"))
			})
		}
	}
}
