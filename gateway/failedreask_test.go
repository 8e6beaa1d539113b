package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

// A re-ask that fails takes nothing away: the client gets the answer that it would have got
// without a gateway, marked.
func TestFailedReask(t *testing.T) {
	t.Parallel()
	fails := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error":{"message":"no"}}`, status) }
	}
	whole := chatAnswer(bad)
	stream := "data: " + strings.Replace(strings.Replace(strings.Replace(whole, `"message"`, `"delta"`, 1), `"tool_calls":[{`, `"tool_calls":[{"index":0,`, 1), "chat.completion", "chat.completion.chunk", 1) + "\n\ndata: [DONE]\n\n"
	for name, second := range map[string]http.HandlerFunc{
		"400":    fails(http.StatusBadRequest),
		"429":    fails(http.StatusTooManyRequests),
		"529":    fails(529),
		"breaks": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"an HTML page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>Sign in</html>")
		},
		"sends no byte for longer than the limit": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"sends headers, and no byte for longer than the limit": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"breaks inside": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"id\":\"y\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":[{\"index\":0,")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		live := `data: {"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Well."}}]}` + "\n\n" + stream
		for form, first := range map[string]string{"whole": whole, "stream": stream, "live": live} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				var calls atomic.Int64
				up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if calls.Add(1) > 1 {
						second(w, r)
						return
					}
					w.Header().Set("Content-Type", map[bool]string{true: "application/json", false: "text/event-stream"}[form == "whole"])
					_, _ = io.WriteString(w, first)
				}))
				t.Cleanup(up.Close)
				request := chatRequest("m")
				if form != "whole" {
					request = strings.Replace(request, "{", `{"stream":true,`, 1)
				}
				var s gateway.Settings
				if strings.HasSuffix(name, "limit") {
					s.ReaskTimeout = gateway.Duration(20 * time.Millisecond)
				}
				resp, got := send(t, http.MethodPost, serve(t, gateway.Config{Settings: s, Upstreams: []gateway.Upstream{{URL: up.URL}}})+"/v1/chat/completions", request)
				require.Equal(t, http.StatusOK, resp.StatusCode, got)
				require.Contains(t, got, strings.ReplaceAll(bad, `"`, `\"`))
				status := resp.Header.Get("X-Toolmend-Status") + resp.Trailer.Get("X-Toolmend-Status")
				require.Equal(t, "invalid", status, got)
				require.Equal(t, form == "live", strings.Contains(got, "Well."))
				require.EqualValues(t, 2, calls.Load())
			})
		}
	}
}
