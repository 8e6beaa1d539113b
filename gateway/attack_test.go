package gateway_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/internal/test/envelope"
	"github.com/toolmend/toolmend/middleware"
)

// evil is a name that ends its line wherever it is written as it is.
const evil = "x\r\nX-Evil: 1\r\n\r\nevil"

// TestHeaderInjection: no text of a request or an answer ends a line of a
// header, a trailer or the log.
func TestHeaderInjection(t *testing.T) {
	t.Parallel()
	const quoted = `x\r\nX-Evil: 1\r\n\r\nevil`
	request := func(stream bool) string {
		return fmt.Sprintf(`{"model":"%s","stream":%t,"messages":[{"role":"user","content":"%s"}],"tools":[{"type":"function","function":{"name":"%s","parameters":{"type":"object","properties":{"%s":{"type":"string"}},"required":["%s"],"additionalProperties":false}}}]}`,
			quoted, stream, quoted, quoted, quoted, quoted)
	}
	whole := fmt.Sprintf(`{"id":"%[1]s","object":"chat.completion","created":1,"model":"%[1]s","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"%[1]s","type":"function","function":{"name":"%[1]s","arguments":"{\"%[2]s\":1}"}}]},"finish_reason":"tool_calls"}]}`,
		quoted, strings.ReplaceAll(quoted, `\`, `\\`))
	stream := "data: " + strings.Replace(strings.Replace(strings.Replace(whole, `"message"`, `"delta"`, 1), `"tool_calls":[{`, `"tool_calls":[{"index":0,`, 1), "chat.completion", "chat.completion.chunk", 1) + "\n\ndata: [DONE]\n\n"
	refusal := fmt.Sprintf(`{"error":{"message":"%[1]s","type":"%[1]s","code":"%[1]s"}}`, quoted)
	for name, c := range map[string]struct {
		settings gateway.Settings
		stream   bool
		status   int
		answer   string
	}{
		"whole, passed":    {gateway.Settings{Attempts: 1}, false, 200, whole},
		"whole, raised":    {gateway.Settings{Attempts: 1, OnExhausted: middleware.Raise}, false, 200, whole},
		"whole, dropped":   {gateway.Settings{Attempts: 1, OnExhausted: middleware.DropInvalid}, false, 200, whole},
		"whole, re-asked":  {gateway.Settings{Attempts: 2}, false, 200, whole},
		"stream, passed":   {gateway.Settings{Attempts: 1}, true, 200, stream},
		"stream, raised":   {gateway.Settings{Attempts: 1, OnExhausted: middleware.Raise}, true, 200, stream},
		"stream, re-asked": {gateway.Settings{Attempts: 2}, true, 200, stream},
		"refused":          {gateway.Settings{Attempts: 1}, true, 429, refusal},
		"failed":           {gateway.Settings{Attempts: 1}, true, 200, "data: " + refusal + "\n\n"},
		"not JSON":         {gateway.Settings{Attempts: 1}, false, 200, evil + "tool_calls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.stream {
					w.Header().Set("Content-Type", "text/event-stream")
				} else {
					w.Header().Set("Content-Type", "application/json")
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.answer)
			}))
			t.Cleanup(s.Close)
			log := &lines{}
			g, err := gateway.New(gateway.Config{Settings: c.settings, Upstreams: []gateway.Upstream{{URL: s.URL}}}, gateway.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
			require.NoError(t, err)
			front := httptest.NewServer(g)
			body := request(c.stream)
			back := raw(t, front.URL, fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTE: trailers\r\nUser-Agent: a\tX-Evil: 1\r\nX-Toolmend-Client: a%%0aX-Evil: 1\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body))
			front.Close()
			require.NoError(t, g.Close())
			require.True(t, strings.HasPrefix(back, "HTTP/1.1 "), back)
			if name != "not JSON" { // that body is the upstream's
				require.NotContains(t, back, "\nX-Evil")
			}
			head, rest, _ := strings.Cut(back, "\r\n\r\n")
			require.NotContains(t, head, "Evil")
			if _, trailer, found := strings.Cut(rest, "\r\n0\r\n"); found {
				require.NotContains(t, trailer, "Evil")
			}
			require.NotContains(t, log.String(), "\nX-Evil")
			require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		})
	}
}

// TestHostileAnswers: whatever the envelope of an answer is, no client decodes
// an invalid call from what leaves the gateway.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	var plays sync.Map // the answers by the number of the exchange
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		play, _ := plays.Load(r.Header.Get("X-Exchange"))
		resp, err := play.(func(*http.Request) (*http.Response, error))(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header()["Content-Type"] = nil // no guess by net/http
		for k, v := range resp.Header {
			w.Header()[k] = v
		}
		_ = http.NewResponseController(w).Flush()
		buf := make([]byte, 512)
		for {
			n, err := resp.Body.Read(buf)
			_, _ = w.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	url := serve(t, gateway.Config{Settings: gateway.Settings{Attempts: 2, OnExhausted: middleware.Raise}, Upstreams: []gateway.Upstream{{URL: s.URL}}})
	client := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}
	t.Cleanup(client.CloseIdleConnections)
	var count atomic.Int64
	through := func(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		id := strconv.FormatInt(count.Add(1), 10)
		plays.Store(id, next)
		defer plays.Delete(id)
		out, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.RequestURI(), r.Body)
		if err != nil {
			return nil, err
		}
		out.Header.Set("X-Exchange", id)
		resp, err := client.RoundTrip(out)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(resp.Body) // a re-ask needs the play until then
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
		return resp, nil
	}
	for _, f := range envelope.Formats() {
		for _, stream := range []bool{false, true} {
			readers := f.Readers(stream)
			if stream { // clients that look at what came read one object, too
				readers = append(readers, f.Readers(false)...)
			}
			t.Run(fmt.Sprintf("%s/stream=%t", f.Name, stream), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(rt *rapid.T) {
					x := f.Hostile(envelope.Uniform(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "seed")...), stream)
					left := x.Through(through)
					for _, r := range readers {
						for _, c := range r.Calls(left) {
							if !c.Valid() {
								rt.Fatalf("%s sees %q\nsent %q\nand %q\nleft %q", r.Name, c, x.First, x.Body, left)
							}
						}
					}
				})
			})
		}
	}
}

// failing is a reader that ends with an error, or with EOF if that is nil.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// TestEndlessAnswers: an answer that never ends is cut off at max_body, and so
// is one that is small while it is compressed.
func TestEndlessAnswers(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	noise := make([]byte, 32<<10)
	_, _ = rand.Read(noise)
	for name, c := range map[string]struct{ kind, begin, more string }{
		"a stream of text":      {"text/event-stream", "", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + strings.Repeat("a", 1000) + "\"}}]}\n\n"},
		"one event":             {"text/event-stream", "data: {\"tool_calls\":\"", strings.Repeat("a", 1000)},
		"arguments":             {"application/json", `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"read_file","arguments":"`, strings.Repeat("a", 1000)},
		"white space":           {"application/json", "", strings.Repeat(" ", 1000)},
		"keep-alives":           {"text/event-stream", "", ": tool_calls\n\n"},
		"bytes of another kind": {"application/octet-stream", "tool_calls", string(noise)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cut := make(chan int64, 1)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var sent int64
				defer func() { cut <- sent }()
				w.Header().Set("Content-Type", c.kind)
				text := c.begin
				for r.Context().Err() == nil {
					n, err := io.WriteString(w, text)
					sent += int64(n)
					if text = c.more; err != nil {
						return
					}
				}
			}))
			t.Cleanup(s.Close)
			url := serve(t, gateway.Config{Settings: gateway.Settings{MaxBody: limit, Attempts: 1}, Upstreams: []gateway.Upstream{{URL: s.URL}}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/chat/completions", strings.NewReader(strings.Replace(chatRequest("m"), "{", `{"stream":true,`, 1)))
			require.NoError(t, err)
			resp, err := http.DefaultTransport.RoundTrip(req)
			require.NoError(t, err)
			n, _ := io.Copy(io.Discard, resp.Body)
			require.NoError(t, resp.Body.Close())
			require.LessOrEqual(t, n, int64(2*limit))
			require.NoError(t, ctx.Err())
			require.Less(t, <-cut, int64(64*limit), "the upstream's connection was closed") // the buffers of the kernel hold a few MiB
		})
	}
}

// TestEndlessHeaders: headers of more than 1 MiB are no answer.
func TestEndlessHeaders(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/chat/completions", "/v1/models"} {
		sent := make(chan int64, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			var n int64
			for err == nil {
				var k int
				k, err = io.WriteString(conn, "X-A: "+strings.Repeat("a", 1000)+"\r\n")
				n += int64(k)
			}
			sent <- n
		}))
		url := serve(t, gateway.Config{Upstreams: []gateway.Upstream{{URL: s.URL}}})
		status, _, _ := post(t, url+path, chatRequest("m"))
		require.Equal(t, http.StatusBadGateway, status)
		require.Less(t, <-sent, int64(8<<20)) // with the buffers of the kernel
		s.Close()
	}
}

// TestKeysStaySecret: no credential of a client or an upstream is in the log, the
// record, a response or its trailers, whatever goes wrong.
func TestKeysStaySecret(t *testing.T) {
	t.Parallel()
	const upKey = "secret-of-the-upstream"
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, play := range map[string]http.HandlerFunc{
		"a good answer":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, chatAnswer(good)) },
		"an invalid call": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, chatAnswer(bad)) },
		"not JSON":        func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `"tool_calls" <html>`) },
		"an error":        func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error":{"message":"no"}}`, 500) },
		"nothing":         func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"half an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "999")
			_, _ = io.WriteString(w, chatAnswer(good)[:40])
			panic(http.ErrAbortHandler)
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		},
		"no HTTP": func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(c, "hello\r\n\r\n")
			_ = c.Close()
		},
		"no such upstream": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := closed.URL
			if play != nil {
				s := httptest.NewServer(play)
				t.Cleanup(s.Close)
				to = s.URL
			}
			log, file := &lines{}, filepath.Join(t.TempDir(), "record.jsonl")
			g, err := gateway.New(gateway.Config{
				Settings: gateway.Settings{OnExhausted: middleware.Raise}, Listen: ":1", Access: gateway.Access{ClientKeyFile: keyFile(t, clientKey)},
				Record: gateway.Record{File: file, Content: true},
				Upstreams: []gateway.Upstream{{URL: to, Timeouts: gateway.Timeouts{Refused: gateway.Off},
					Headers: gateway.HeaderRules{Set: map[string]string{"Authorization": "Bearer " + upKey}}}},
			}, gateway.Options{Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			require.NoError(t, err)
			front := httptest.NewServer(g)
			front.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(log, nil), slog.LevelError)
			var out strings.Builder
			for _, stream := range []string{"", `"stream":true,`} {
				body := strings.Replace(chatRequest("m"), "{", "{"+stream, 1)
				for _, request := range []string{
					"POST /v1/chat/completions?key=" + clientKey + "&a=1 HTTP/1.1\r\nCookie: secret-cookie\r\n",
					"POST /v1/chat/completions HTTP/1.1\r\nX-Toolmend-Key: " + clientKey + "\r\nX-Api-Key: secret-own-key\r\nApi-Key: secret-other-key\r\n",
					"POST /v1/chat/completions?key=secret-in-query HTTP/1.1\r\nAuthorization: Bearer " + clientKey + "\r\n",
					"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer secret-and-wrong\r\n",
					"POST /v1/models HTTP/1.1\r\nX-Api-Key: " + clientKey + "\r\n",
				} {
					out.WriteString(raw(t, front.URL, fmt.Sprintf("%sHost: localhost\r\nTE: trailers\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", request, len(body), body)))
				}
			}
			front.Close()
			require.NoError(t, g.Close())
			record, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NotEmpty(t, log.String())
			for where, text := range map[string]string{"log": log.String(), "record": string(record), "response": out.String()} {
				require.NotContains(t, text, clientKey, where)
				require.NotContains(t, text, "secret", where)
			}
		})
	}
}
