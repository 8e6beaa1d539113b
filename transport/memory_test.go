package transport_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// behindMemory returns a Handler that counts in m, in front of upstream.
func behindMemory(t *testing.T, m *transport.Memory, upstream http.HandlerFunc) *httptest.Server {
	t.Helper()
	up := httptest.NewServer(upstream)
	t.Cleanup(up.Close)
	to, err := url.Parse(up.URL)
	require.NoError(t, err)
	o := transport.Options{Memory: m, Decoders: map[string]transport.Decoder{"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }}}
	front := httptest.NewServer(transport.New(o, argsvalidate.New(argsvalidate.Options{OnExhausted: middleware.Pass})).Handler(to))
	t.Cleanup(front.Close)
	return front
}

// sendTo sends body to a Handler, and returns the response with its text.
func sendTo(t *testing.T, at string, body []byte, encoding string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, bytes.NewReader(body))
	require.NoError(t, err)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(text)
}

const asksChat = `{"model":"m","messages":[{"role":"user","content":"%s"}],"metadata":%s,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"type":"string"}}}}}]}`

func TestRequestsShareTheMemory(t *testing.T) {
	t.Parallel()
	long := fmt.Sprintf(asksChat, strings.Repeat("a", 150<<10), "{}")
	for name, c := range map[string]struct {
		body     []byte
		encoding string
	}{
		"plain":       {[]byte(long), ""},
		"compressed":  {[]byte(zipped(long)), "gzip"},
		"many values": {[]byte(fmt.Sprintf(asksChat, strings.Repeat("a", 100<<10), "["+strings.Repeat("0,", 5_000)+"0]")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &transport.Memory{}
			m.SetLimit(1 << 20)
			held := make(chan struct{})
			arrived := make(chan struct{}, 2)
			front := behindMemory(t, m, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				arrived <- struct{}{}
				<-held
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
			})
			release := sync.OnceFunc(func() { close(held) })
			t.Cleanup(release)
			first := make(chan int, 1)
			go func() {
				resp, err := http.Post(front.URL+"/v1/chat/completions", "application/json", strings.NewReader(long))
				if err != nil {
					first <- 0
					return
				}
				_ = resp.Body.Close()
				first <- resp.StatusCode
			}()
			select {
			case <-arrived:
			case status := <-first:
				require.Fail(t, "the first request was refused", status)
			}
			require.Less(t, m.Used(), int64(400<<10), "while the provider works, only texts are kept")
			resp, text := sendTo(t, front.URL+"/v1/chat/completions", c.body, c.encoding)
			require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
			require.Contains(t, text, "max_memory")
			require.Contains(t, text, `"error":{`, "in the form of the format")
			require.EqualValues(t, 1, m.Refused())
			release()
			require.Equal(t, http.StatusOK, <-first)
			require.Eventually(t, func() bool { return m.Used() == 0 }, 10*time.Second, time.Millisecond, "what was served counts no longer")
			resp, _ = sendTo(t, front.URL+"/v1/chat/completions", c.body, c.encoding)
			require.Equal(t, http.StatusOK, resp.StatusCode)
		})
	}
}

func TestAnswersShareTheMemory(t *testing.T) {
	t.Parallel()
	const offers = `"tools":[{"name":"f","input_schema":{"type":"object"},"parameters":{"type":"object"},"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
	zeros := "[" + strings.Repeat("0,", 20_000) + "0]"
	text := `"` + strings.Repeat("a", 300<<10) + `"`
	for name, c := range map[string]struct{ path, body, answer, kind string }{
		"chat, values":            {"/v1/chat/completions", fmt.Sprintf(asksChat, "hi", "{}"), `{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"x":` + zeros + `}`, "application/json"},
		"chat, text":              {"/v1/chat/completions", fmt.Sprintf(asksChat, "hi", "{}"), `{"choices":[{"index":0,"message":{"role":"assistant","content":` + text + `},"finish_reason":"stop"}]}`, "application/json"},
		"chat, one event":         {"/v1/chat/completions", strings.Replace(fmt.Sprintf(asksChat, "hi", "{}"), `{`, `{"stream":true,`, 1), "data: {\"x\":" + zeros + "}\n\n", "text/event-stream"},
		"chat, an error page":     {"/v1/chat/completions", fmt.Sprintf(asksChat, "hi", "{}"), text, "error"},
		"chat, not of the format": {"/v1/chat/completions", fmt.Sprintf(asksChat, "hi", "{}"), text + text, "text/plain"},
		"anthropic, values":       {"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],` + strings.Replace(offers, `"type":"function",`, "", 1) + `}`, `{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","x":` + zeros + `}`, "application/json"},
		"responses, values":       {"/v1/responses", `{"model":"m","input":"hi",` + offers + `}`, `{"object":"response","status":"completed","output":[],"x":` + zeros + `}`, "application/json"},
		"gemini, values":          {"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}]}`, `{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}],"x":` + zeros + `}`, "application/json"},
		"ollama, values":          {"/api/chat", `{"model":"m","stream":false,"messages":[{"role":"user","content":"hi"}],` + offers + `}`, `{"model":"m","message":{"role":"assistant","content":"hi"},"done":true,"x":` + zeros + `}`, "application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &transport.Memory{}
			m.SetLimit(1 << 19)
			front := behindMemory(t, m, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("Content-Encoding", "gzip")
				if c.kind == "error" {
					w.Header().Del("Content-Encoding")
					w.WriteHeader(http.StatusInternalServerError)
					_, _ = io.WriteString(w, c.answer+c.answer)
					return
				}
				_, _ = io.WriteString(w, zipped(c.answer))
			})
			resp, text := sendTo(t, front.URL+c.path, []byte(c.body), "")
			require.Equal(t, http.StatusBadRequest, resp.StatusCode, text)
			require.Equal(t, "memory", resp.Header.Get("X-Toolmend-Error"))
			require.Contains(t, text, "need too much memory")
			require.EqualValues(t, 1, m.Refused())
			require.Eventually(t, func() bool { return m.Used() == 0 }, 10*time.Second, time.Millisecond)
			m.SetLimit(0)
			resp, _ = sendTo(t, front.URL+c.path, []byte(c.body), "")
			require.Empty(t, resp.Header.Get("X-Toolmend-Error"))
		})
	}
}

// A stream that has begun ends with the failure event, and a re-ask that does not fit leaves the
// client the last answer.
func TestAnswersThatBeganBeforeTheMemoryWasUsedUp(t *testing.T) {
	t.Parallel()
	zeros := "[" + strings.Repeat("0,", 20_000) + "0]"
	const call = `{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":{\"a\":2}}"}}]},"finish_reason":"tool_calls"}]}`
	for name, c := range map[string]struct {
		body    string
		answers []string // by the number of the model call
		status  string
		want    string
	}{
		"a stream": {strings.Replace(fmt.Sprintf(asksChat, "hi", "{}"), `{`, `{"stream":true,`, 1),
			[]string{"data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"text\"}}]}\n\n|data: {\"x\":" + zeros + "}\n\n"}, "", `need too much memory`},
		"a re-ask": {fmt.Sprintf(asksChat, "hi", "{}"), []string{call, `{"choices":[],"x":` + zeros + `}`}, "invalid", `{\"x\":{\"a\":2}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &transport.Memory{}
			m.SetLimit(1 << 19)
			n := 0
			front := behindMemory(t, m, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				for piece := range strings.SplitSeq(c.answers[n], "|") {
					_, _ = io.WriteString(w, piece)
					_ = http.NewResponseController(w).Flush()
				}
				n++
			})
			resp, text := sendTo(t, front.URL+"/v1/chat/completions", []byte(c.body), "")
			require.Equal(t, http.StatusOK, resp.StatusCode, text)
			require.Equal(t, c.status, resp.Header.Get("X-Toolmend-Status"))
			require.Contains(t, text, c.want)
			require.Equal(t, len(c.answers), n)
			require.EqualValues(t, 1, m.Refused())
		})
	}
}

// The events of a stream are parsed one by one, so a long stream counts as its text.
func TestLongStreamsCountAsText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, body, piece, end string }{
		"events": {"/v1/chat/completions", strings.Replace(fmt.Sprintf(asksChat, "hi", "{}"), `{`, `{"stream":true,`, 1), "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"text\"},\"x\":[0,0,0,0,0,0,0,0]}]}\n\n", "data: [DONE]\n\n"},
		"lines":  {"/api/chat", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"text\"},\"done\":false,\"x\":[0,0,0,0,0,0,0,0]}\n", "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &transport.Memory{}
			m.SetLimit(2 << 20) // the values of the whole stream would need twice as much
			front := behindMemory(t, m, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, strings.Repeat(c.piece, 3_000)+c.end)
			})
			_, text := sendTo(t, front.URL+c.path, []byte(c.body), "")
			require.NotContains(t, text, "memory")
			require.Equal(t, 3_000, strings.Count(text, "text"))
		})
	}
}

// TestMemoryAfterAPanic: a function of the user that panics leaves nothing reserved.
func TestMemoryAfterAPanic(t *testing.T) {
	t.Parallel()
	m := &transport.Memory{}
	tr := transport.New(transport.Options{Memory: m, Client: func(*http.Request) string { panic("no name") }})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1/v1/chat/completions",
		strings.NewReader(`{"messages":[{"role":"user","content":"`+strings.Repeat("x", 1<<20)+`"}]}`))
	require.NoError(t, err)
	require.Panics(t, func() { _, _ = tr.Hook(req, nil) })
	require.Zero(t, m.Used())
}

// TestMemoryOfConcurrentAttempts: an attempt that outlives the chain may still count bytes.
func TestMemoryOfConcurrentAttempts(t *testing.T) {
	t.Parallel()
	m := &transport.Memory{}
	var wg sync.WaitGroup
	tr := transport.New(transport.Options{Memory: m}, func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			wg.Go(func() { _, _ = next(ctx, req) })
			return &middleware.Response{Message: middleware.Assistant("own")}, nil
		}
	})
	for range 20 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1/v1/chat/completions", strings.NewReader(`{"messages":[]}`))
		require.NoError(t, err)
		resp, err := tr.Hook(req, func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"choices":[{"message":{"content":"x"}}]}`))}, nil
		})
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	wg.Wait()
	require.Zero(t, m.Used())
}
