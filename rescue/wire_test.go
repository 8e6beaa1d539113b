package rescue_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// server answers every request with a body.
type server struct {
	kind  string
	parts []string
}

// RoundTrip is part of http.RoundTripper.
func (s server) RoundTrip(req *http.Request) (*http.Response, error) {
	var readers []io.Reader
	for _, p := range s.parts {
		readers = append(readers, strings.NewReader(p))
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {s.kind}}, Request: req, ContentLength: -1, Body: io.NopCloser(io.MultiReader(readers...))}, nil
}

// TestNativeCalls: behind package transport, the client gets a call in its own
// format, in a stream and in a whole answer.
func TestNativeCalls(t *testing.T) {
	t.Parallel()
	const text = "Let me check.\n<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}</tool_call>"
	for _, codec := range wire.Codecs() {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprint(codec.Dialect(), " streamed ", streams), func(t *testing.T) {
				t.Parallel()
				asked, path, body := ask(t, codec, streams)
				answer, kind, err := codec.EncodeAnswer(path, body, &middleware.Response{Message: middleware.Assistant(text), FinishReason: middleware.FinishStop})
				require.NoError(t, err)
				got := []byte(post(t, server{kind, []string{string(answer)}}, path, body))
				read, err := codec.DecodeResponse(asked, got)
				require.NoError(t, err, string(got))
				require.Equal(t, []string{`get_weather{"city": "Oslo"}`}, spaced(calls(read.Message)), string(got))
				require.Equal(t, "Let me check.\n", read.Message.Text(), string(got))
				require.Equal(t, middleware.FinishToolCalls, read.FinishReason)
				require.NotContains(t, string(got), "tool_call>")
			})
		}
	}
}

// spaced undoes the spelling of the formats that hold arguments as an object.
func spaced(calls []string) []string {
	for i := range calls {
		calls[i] = strings.ReplaceAll(calls[i], `":"`, `": "`)
	}
	return calls
}

// TestLiveStream: the text before a call reaches the client as it arrives, and the
// call follows in the same stream.
func TestLiveStream(t *testing.T) {
	t.Parallel()
	pieces := []string{"Let ", "me ", "check.", " So: <tool", "_call>{\"name\": \"get_", "weather\", \"arguments\": {\"city\": \"Os", "lo\"}}</tool_call>"}
	for _, codec := range wire.Codecs() {
		t.Run(codec.Dialect(), func(t *testing.T) {
			t.Parallel()
			asked, path, body := ask(t, codec, true)
			whole, kind, err := codec.EncodeAnswer(path, body, &middleware.Response{Message: middleware.Assistant("PIECE"), FinishReason: middleware.FinishStop})
			require.NoError(t, err)
			end := "\n\n"
			if codec.Dialect() == "ollama-chat" {
				end = "\n"
			}
			var events []string
			head := 0 // events up to the first three pieces
			for _, e := range strings.SplitAfter(string(whole), end) {
				if head > 0 || !strings.Contains(e, "PIECE") {
					text := strings.Join(pieces, "")
					events = append(events, strings.ReplaceAll(e, `"PIECE"`, string(quoted(t, text))))
					continue
				}
				for _, p := range pieces {
					events = append(events, strings.ReplaceAll(e, `"PIECE"`, string(quoted(t, p))))
				}
				head = len(events) - len(pieces) + 3
			}
			got := post(t, server{kind, events}, path, body)
			if codec.Dialect() != "gemini-generate" { // whose events here all have a finish reason, so that none is shown early
				require.True(t, strings.HasPrefix(got, strings.Join(events[:head], "")), got)
			}
			read, err := codec.DecodeResponse(asked, []byte(got))
			require.NoError(t, err, got)
			require.Equal(t, []string{`get_weather{"city": "Oslo"}`}, spaced(calls(read.Message)), got)
			require.Equal(t, "Let me check. So: ", read.Message.Text(), got)
			require.Equal(t, middleware.FinishToolCalls, read.FinishReason)
			require.NotContains(t, got, "tool_call>")
		})
	}
}

// TestLiveStreamInTime: a client gets held text when its time is over, although
// the provider sends nothing more.
func TestLiveStreamInTime(t *testing.T) {
	t.Parallel()
	const first = "data: {\"id\":\"r\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"A <tool_call>{\\\"na\"}}]}\n\n"
	synctest.Test(t, func(t *testing.T) {
		_, path, body := ask(t, wire.OpenAIChat(), true)
		r, w := io.Pipe()
		upstream := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: r}, nil
		})
		go func() {
			_, _ = io.WriteString(w, first)
			time.Sleep(time.Minute) // of the test's own clock
			_, _ = io.WriteString(w, strings.Replace(strings.Replace(first, "A <tool_call>{\\\"na", "x", 1), "}}]", "},\"finish_reason\":\"stop\"}]", 1)+"data: [DONE]\n\n")
			_ = w.Close()
		}()
		client := http.Client{Transport: transport.New(transport.Options{KeepAlive: transport.Off}, rescue.New(rescue.Options{MaxAttempts: 1, OnExhausted: middleware.Pass})).RoundTripper(upstream)}
		began := time.Now()
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://server.invalid"+path, bytes.NewReader(body))
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		got := make([]byte, len(first))
		_, err = io.ReadFull(resp.Body, got)
		require.NoError(t, err)
		require.Equal(t, first, string(got))
		require.Equal(t, 2*time.Second, time.Since(began))
		rest, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Contains(t, string(rest), `"content":"x"`)
	})
}

// TestLiveStreamTooSlow: if the beginning of a call was shown because the model was
// slow, it stays in the client's text, and the call follows all the same.
func TestLiveStreamTooSlow(t *testing.T) {
	t.Parallel()
	const begin, rest = "A <tool_call>{\"na", "me\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}</tool_call> So."
	for _, codec := range wire.Codecs() {
		t.Run(codec.Dialect(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked, path, body := ask(t, codec, true)
				head, tail, kind := divided(t, codec, path, body, begin, rest)
				r, w := io.Pipe()
				upstream := roundTripper(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, ContentLength: -1, Body: r}, nil
				})
				go func() {
					_, _ = io.WriteString(w, head)
					time.Sleep(5 * time.Second) // of the test's own clock
					_, _ = io.WriteString(w, tail)
					_ = w.Close()
				}()
				got := post(t, upstream, path, body)
				read, err := codec.DecodeResponse(asked, []byte(got))
				require.NoError(t, err, got)
				require.Equal(t, []string{`get_weather{"city": "Oslo"}`}, spaced(calls(read.Message)), got)
				if codec.Dialect() == "gemini-generate" { // whose events here all have a finish reason, so that none is shown early
					require.Equal(t, "A  So.", read.Message.Text())
				} else {
					require.Equal(t, begin+" So.", read.Message.Text(), got)
				}
			})
		})
	}
}

// divided writes a streamed answer of two texts in a format, up to the first one and
// from the second one on.
func divided(t *testing.T, codec wire.Codec, path string, body []byte, first, second string) (head, tail, kind string) {
	whole, kind, err := codec.EncodeAnswer(path, body, &middleware.Response{Message: middleware.Assistant("PIECE"), FinishReason: middleware.FinishStop})
	require.NoError(t, err)
	end := "\n\n"
	if codec.Dialect() == "ollama-chat" {
		end = "\n"
	}
	events := &head
	for _, e := range strings.SplitAfter(string(whole), end) {
		switch {
		case events == &tail:
			*events += strings.ReplaceAll(e, `"PIECE"`, string(quoted(t, first+second)))
		case strings.Contains(e, "PIECE"):
			*events += strings.ReplaceAll(e, `"PIECE"`, string(quoted(t, first)))
			events = &tail
			*events += strings.ReplaceAll(e, `"PIECE"`, string(quoted(t, second)))
		default:
			*events += e
		}
	}
	return head, tail, kind
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func quoted(t *testing.T, s string) []byte {
	b, err := json.Marshal(s)
	require.NoError(t, err)
	return b
}

// ask writes a request in a format.
func ask(t *testing.T, codec wire.Codec, streams bool) (asked *middleware.Request, path string, body []byte) {
	path = map[string]string{
		"openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses", "anthropic-messages": "/v1/messages",
		"gemini-generate": "/v1beta/models/m:generateContent", "ollama-chat": "/api/chat",
	}[codec.Dialect()]
	require.NotEmpty(t, path, codec.Dialect())
	asked = request()
	asked.Model = "m"
	asked.Tools = asked.Tools[:3]
	if streams {
		path = strings.ReplaceAll(path, ":generateContent", ":streamGenerateContent?alt=sse")
		asked.Sink = func(middleware.Event) error { return nil }
	}
	body, err := codec.EncodeRequest(asked)
	require.NoError(t, err)
	if codec.Dialect() == "ollama-chat" && !streams {
		body = bytes.Replace(body, []byte("{"), []byte(`{"stream":false,`), 1)
	}
	return asked, path, body
}

// post sends a request through the stack, and returns the body of the answer.
func post(t *testing.T, s http.RoundTripper, path string, body []byte) string {
	client := http.Client{Transport: transport.New(transport.Options{}, argsvalidate.New(argsvalidate.Options{}), rescue.New(rescue.Options{})).RoundTripper(s)}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://server.invalid"+path, bytes.NewReader(body))
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode, string(got))
	return string(got)
}
